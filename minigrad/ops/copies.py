"""Copies and joins: broadcast_to, repeat, pad, cat, stack; what was copied is summed again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Shape, axis_of, is_whole, new_axis_of, number, sizes_of
from ..domains import Cases, Rng, Sample, calls
from ..errors import DtypeError, ShapeError
from ..indices import place_on_axis
from ..op import op


@op(
    tex=r"y = \text{copies of } x",
    cost="memory",
    broadcasts=True,
    domain=calls(
        "shapes that x broadcasts to",
        ((3,), {"shape": (2, 3)}),
        ((2, 1), {"shape": (2, 3)}),
        ((), {"shape": (2,)}),
        ((1, 3), {"shape": (2, 2, 3)}),
    ),
    pulls={"x": (lambda g: g, r"\bar y")},
    reference=np.broadcast_to,
)
def broadcast_to(x: Any, *, shape: Any) -> Any:
    """x copied along new axes and along axes of size 1 until it has `shape`."""
    wanted = sizes_of("broadcast_to", shape)
    try:
        return np.broadcast_to(x, wanted)
    except ValueError as problem:
        raise ShapeError(f"broadcast_to: x {x.shape} does not broadcast to {wanted}") from problem


def pull_repeat(g: Array, x_shape: Shape) -> Array:
    """The sum over all copies: each axis of g is split into (copies, size)."""
    sizes = (1,) * (g.ndim - len(x_shape)) + x_shape
    split = [
        n
        for whole, size in zip(g.shape, sizes, strict=True)
        for n in (whole // size if size else 0, size)
    ]
    copies = tuple(range(0, 2 * g.ndim, 2))
    return np.sum(g.reshape(split), axis=copies, dtype=np.float64).reshape(x_shape)


@op(
    tex=r"y = x \text{ repeated}",
    cost="memory",
    domain=calls(
        "a count for each axis, and for new ones in front",
        ((3,), {"sizes": (2,)}),
        ((2, 3), {"sizes": (2, 1)}),
        ((2,), {"sizes": (2, 3)}),
        ((), {"sizes": (3,)}),
    ),
    pulls={
        "x": (lambda g, x_shape: pull_repeat(g, x_shape), r"\sum_{\text{copies}} \bar y"),
    },
    reference=np.tile,
)
def repeat(x: Any, *, sizes: Any) -> Any:
    """x repeated sizes[n] times along each axis; more sizes than axes make new axes in front."""
    counts = sizes_of("repeat", sizes)
    if len(counts) < x.ndim or min(counts, default=0) < 0:
        raise ShapeError(
            f"repeat: sizes {counts} must count the copies along each of the {x.ndim} axes of x "
            f"{x.shape}, and possibly new ones in front, from 0 on"
        )
    return np.tile(x, counts)


def widths(pad: Any, shape: Shape) -> list[tuple[int, int]]:
    """PyTorch's flat pad, last axis first, as (before, after) for every axis. Raises ShapeError."""
    flat = pad if isinstance(pad, (tuple, list)) else (pad,)
    fits = len(flat) % 2 == 0 and len(flat) <= 2 * len(shape)
    if not fits or not all(is_whole(n) and n >= 0 for n in flat):
        raise ShapeError(
            f"pad: pad {pad!r} must be pairs (before, after) of whole numbers from 0 on, last axis "
            f"first, for at most the {len(shape)} axes of x {shape}"
        )
    pairs = [(int(flat[n]), int(flat[n + 1])) for n in range(0, len(flat), 2)]
    return [(0, 0)] * (len(shape) - len(pairs)) + pairs[::-1]


def cropped(g: Array, pad: Any, x_shape: Shape) -> Array:
    """g without what was padded."""
    starts = [before for before, _ in widths(pad, x_shape)]
    return g[tuple(slice(s, s + n) for s, n in zip(starts, x_shape, strict=True))]


@op(
    tex=r"y = x \text{ padded}",
    cost="memory",
    domain=calls(
        "pairs (before, after), last axis first",
        ((3,), {"pad": (1, 2), "value": 0.0}),
        ((2, 3), {"pad": (0, 1), "value": 1.5}),
        ((2, 3), {"pad": (1, 0, 2, 1), "value": -1.0}),
    ),
    pulls={
        "x": (lambda g, pad, x_shape: cropped(g, pad, x_shape), r"\bar y \text{ without the pad}")
    },
    reference=lambda x, pad, value: np.pad(
        x,
        [(0, 0)] * (x.ndim - len(pad) // 2)
        + [(pad[n], pad[n + 1]) for n in range(len(pad) - 2, -1, -2)],
        constant_values=value,
    ),
)
def pad(x: Any, *, pad: Any, value: float = 0.0) -> Any:
    """x with cells of a plain value before and after: (before, after) pairs, last axis first."""
    filled, edges = number("pad", "value", value), widths(pad, x.shape)
    if x.dtype.kind != "f" and np.full((), filled).astype(x.dtype) != filled:
        raise DtypeError(f"pad: value {filled:g} is no value of x, whose dtype is {x.dtype}")
    return np.pad(x, edges, constant_values=filled) if edges else x


# --- joins ----------------------------------------------------------------------------------------


def _joins(new_axis: bool) -> Cases:
    def draw(rng: Rng) -> Iterator[Sample]:
        if new_axis:
            rows = [((3,), 2, 0), ((2, 3), 3, 1), ((2, 3), 2, -1), ((), 2, 0)]
            cases = [((shape,) * count, dim) for shape, count, dim in rows]
        else:
            cases = [
                (((2,), (3,)), 0),
                (((2, 3), (1, 3), (2, 3)), 0),
                (((2, 3), (2, 1)), -1),
                (((2, 0), (2, 2)), 1),
            ]
        for shapes, dim in cases:
            yield tuple(rng.normal(size=shape) for shape in shapes), {"dim": dim}

    words = "tensors of one shape" if new_axis else "tensors whose shapes differ along dim only"
    return Cases(words, draw)


def pull_cat(g: Array, k: int, xs_shape: tuple[Shape, ...], dim: int) -> Array:
    """The stretch of g that operand k became."""
    axis = dim % g.ndim
    first = sum(shape[axis] for shape in xs_shape[:k])
    piece = slice(first, first + xs_shape[k][axis])
    return np.asarray(g[place_on_axis(axis, piece)])


@op(
    tex=r"y = \text{cat}(xs)",
    cost="memory",
    domain=_joins(new_axis=False),
    pulls={
        "xs": (
            lambda g, k, xs_shape, dim: pull_cat(g, k, xs_shape, dim),
            r"\text{its piece of } \bar y",
        )
    },
    reference=np.concatenate,
)
def cat(*xs: Any, dim: int = 0) -> Any:
    """Tensors one after the other along dim; all other sizes must be equal."""
    axis = axis_of("cat", dim, np.shape(xs[0]))
    wanted = xs[0].shape[:axis] + xs[0].shape[axis + 1 :]
    for k, x in enumerate(xs):
        if np.ndim(x) != xs[0].ndim or x.shape[:axis] + x.shape[axis + 1 :] != wanted:
            raise ShapeError(
                f"cat: x0 {xs[0].shape} and x{k} {np.shape(x)} must have equal sizes on every axis "
                f"but dim {dim}"
            )
    return np.concatenate(xs, axis)


@op(
    tex=r"y = \text{stack}(xs)",
    cost="memory",
    domain=_joins(new_axis=True),
    pulls={
        "xs": (lambda g, k, dim: np.take(g, k, axis=dim), r"\text{its slice of } \bar y"),
    },
    reference=np.stack,
)
def stack(*xs: Any, dim: int = 0) -> Any:
    """Tensors of one shape, one after the other along a new axis dim."""
    for k, x in enumerate(xs):
        if np.shape(x) != np.shape(xs[0]):
            raise ShapeError(
                f"stack: x0 {np.shape(xs[0])} and x{k} {np.shape(x)} must have the same shape"
            )
    return np.stack(xs, new_axis_of("stack", dim, np.shape(xs[0])))
