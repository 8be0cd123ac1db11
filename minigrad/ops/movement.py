"""Movement: the same cells in another arrangement; only broadcast_to makes copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import axes_of, sizes_of
from ..domains import Cases, Rng, Sample
from ..errors import ShapeError
from ..op import op


def _calls(words: str, *calls: tuple[tuple[int, ...], dict[str, Any]]) -> Cases:
    def draw(rng: Rng) -> Iterator[Sample]:
        for shape, params in calls:
            yield (rng.normal(size=shape),), params

    return Cases(words, draw)


@op(
    tex=r"y = \text{reshape}(x)",
    cost="memory",
    domain=_calls(
        "any shape of the same size",
        ((2, 3), {"shape": (3, 2)}),
        ((4,), {"shape": (2, -1)}),
        ((1,), {"shape": ()}),
    ),
    pulls={"x": (lambda g, x_shape: np.reshape(g, x_shape), r"\bar y \text{ in the shape of } x")},
    reference=np.reshape,
)
def reshape(x: Any, *, shape: Any) -> Any:
    """The cells of x, in order, in another shape; one size may be -1."""
    wanted = sizes_of("reshape", shape)
    known = int(np.prod([s for s in wanted if s != -1], dtype=int))
    open_sizes = wanted.count(-1)
    fits = x.size % known == 0 if known and open_sizes == 1 else open_sizes == 0 and known == x.size
    if not fits:
        raise ShapeError(f"reshape: x {x.shape} has {x.size} cells and cannot become {wanted}")
    return np.reshape(x, wanted)


@op(
    tex=r"y = x^{\top}",
    cost="memory",
    domain=_calls(
        "any two axes", ((2, 3), {"dim0": 0, "dim1": 1}), ((2, 3, 4), {"dim0": -1, "dim1": 0})
    ),
    pulls={"x": (lambda g, dim0, dim1: np.swapaxes(g, dim0, dim1), r"\bar y^{\top}")},
    reference=np.swapaxes,
)
def transpose(x: Any, *, dim0: int, dim1: int) -> Any:
    """x with the axes dim0 and dim1 swapped."""
    axes_of("transpose", dim0, x.shape)
    axes_of("transpose", dim1, x.shape)
    return np.swapaxes(x, dim0, dim1)


@op(
    tex=r"y = \text{permute}(x)",
    cost="memory",
    domain=_calls(
        "any order of the axes", ((2, 3, 4), {"dims": (2, 0, 1)}), ((2, 3), {"dims": (-1, 0)})
    ),
    pulls={
        "x": (
            lambda g, dims: np.transpose(g, np.argsort(np.mod(dims, g.ndim)) if g.ndim else ()),
            r"\text{permute}^{-1}(\bar y)",
        )
    },
    reference=np.transpose,
)
def permute(x: Any, *, dims: Any) -> Any:
    """x with its axes in the order dims, which names each axis once."""
    axes = axes_of("permute", dims, x.shape)
    if len(axes) != x.ndim:
        raise ShapeError(
            f"permute: dims {dims} must name each of the {x.ndim} axes of x {x.shape} once"
        )
    return np.transpose(x, axes)


@op(
    tex=r"y = \text{copies of } x",
    cost="memory",
    broadcasts=True,
    domain=_calls(
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
