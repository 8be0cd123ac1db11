"""Movement: the same cells in another arrangement, with or without new axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..axes import axes_of, axis_of, is_whole, new_axis_of, sizes_of
from ..domains import calls
from ..errors import OutOfRangeError, ShapeError
from ..indices import place_on_axis
from ..op import elementwise, op


@elementwise(tex="y = x", partials={"x": (lambda: 1.0, "1")}, reference=np.copy)
def copy(x: Any) -> Any:
    """The same cells, as a new tensor."""
    return x.copy()


def real_dtype(given: Any) -> np.dtype[Any]:
    """A dtype of numbers or truth values, as tensors have it."""
    dtype: np.dtype[Any] = np.dtype(given)
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise TypeError(f"{dtype} does not hold real numbers of at most 64 bits")
    return dtype


@op(
    tex=r"y = \text{cast}(x)",
    cost="memory",
    domain=calls("floating dtypes", ((2, 3), {"dtype": np.float64}), ((), {"dtype": "float64"})),
    converts={"dtype": real_dtype},
    pulls={"x": (lambda g: g, r"\bar y \text{ in the dtype of } x")},
    reference=lambda x, dtype: x.astype(dtype),
    kinks="to whole numbers or truth values nothing is tracked, so the gradient ends there",
)
def cast(x: Any, *, dtype: Any) -> Any:
    """x in another dtype; its gradient is cast back."""
    return x.astype(dtype)


@op(
    tex=r"y = \text{reshape}(x)",
    cost="memory",
    domain=calls(
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
    domain=calls(
        "any two axes", ((2, 3), {"dim0": 0, "dim1": 1}), ((2, 3, 4), {"dim0": -1, "dim1": 0})
    ),
    pulls={"x": (lambda g, dim0, dim1: np.swapaxes(g, dim0, dim1), r"\bar y^{\top}")},
    reference=np.swapaxes,
)
def transpose(x: Any, *, dim0: int, dim1: int) -> Any:
    """x with the axes dim0 and dim1 swapped."""
    return np.swapaxes(x, axis_of("transpose", dim0, x.shape), axis_of("transpose", dim1, x.shape))


@op(
    tex=r"y = \text{permute}(x)",
    cost="memory",
    domain=calls(
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
    tex=r"y = \text{squeeze}(x)",
    cost="memory",
    domain=calls(
        "axes of size 1",
        ((2, 1, 3), {"dim": 1}),
        ((1, 3, 1), {"dim": None}),
        ((1, 2, 1), {"dim": (0, -1)}),
    ),
    pulls={"x": (lambda g, x_shape: np.reshape(g, x_shape), r"\bar y \text{ in the shape of } x")},
    reference=np.squeeze,
)
def squeeze(x: Any, *, dim: Any = None) -> Any:
    """x without its axes of size 1, or without those that dim names; larger ones stay."""
    axes = axes_of("squeeze", dim, x.shape)
    return np.reshape(x, tuple(s for n, s in enumerate(x.shape) if s != 1 or n not in axes))


@op(
    tex=r"y = \text{unsqueeze}(x)",
    cost="memory",
    domain=calls(
        "any place for a new axis", ((2, 3), {"dim": 1}), ((2,), {"dim": -1}), ((), {"dim": 0})
    ),
    pulls={"x": (lambda g, x_shape: np.reshape(g, x_shape), r"\bar y \text{ in the shape of } x")},
    reference=np.expand_dims,
)
def unsqueeze(x: Any, *, dim: int) -> Any:
    """x with a new axis of size 1 at dim."""
    return np.expand_dims(x, new_axis_of("unsqueeze", dim, x.shape))


@op(
    tex=r"y = \text{flip}(x)",
    cost="memory",
    domain=calls("any axes", ((2, 3), {"dims": (0,)}), ((2, 3), {"dims": (0, -1)})),
    pulls={"x": (lambda g, dims: np.flip(g, dims), r"\text{flip}(\bar y)")},
    reference=np.flip,
)
def flip(x: Any, *, dims: Any) -> Any:
    """x with the cells along dims in reverse order."""
    return np.flip(x, axes_of("flip", dims, x.shape))


# --- pieces ---------------------------------------------------------------------------------------


def pull_narrow(g: Any, x_shape: tuple[int, ...], dim: int, start: int) -> Any:
    """Zeros in the shape of x, with g where it was taken from."""
    back = np.zeros(x_shape, g.dtype)
    first = start % x_shape[dim] if x_shape[dim] else 0
    place = place_on_axis(dim % len(x_shape), slice(first, first + g.shape[dim]))
    if g.size:
        back[place] = g
    return back


@op(
    tex=r"y = x[\text{start} : \text{start} + \text{length}]",
    cost="memory",
    domain=calls(
        "any stretch of an axis",
        ((4,), {"dim": 0, "start": 1, "length": 2}),
        ((2, 3), {"dim": -1, "start": -2, "length": 2}),
        ((3, 2), {"dim": 0, "start": 0, "length": 3}),
        ((3, 2), {"dim": 0, "start": 3, "length": 0}),
    ),
    pulls={
        "x": (
            lambda g, x_shape, dim, start: pull_narrow(g, x_shape, dim, start),
            r"\bar y \text{ in its place, 0 elsewhere}",
        )
    },
    reference=lambda x, dim, start, length: np.take(
        x, np.arange(length) + start % max(x.shape[dim], 1), dim
    ),
)
def narrow(x: Any, *, dim: int, start: int, length: int) -> Any:
    """The `length` cells of x along dim from `start` on."""
    axis = axis_of("narrow", dim, x.shape)
    size = x.shape[axis]
    first = start + size if is_whole(start) and start < 0 else start
    if not (is_whole(first) and is_whole(length) and length >= 0):
        raise ShapeError(
            f"narrow: start {start!r} and length {length!r} must be whole numbers, length from 0 on"
        )
    if not 0 <= first <= first + length <= size:
        raise OutOfRangeError(
            f"narrow: {length} cells from {start} on are out of range for dim {dim} of size {size}"
        )
    return x[place_on_axis(axis, slice(first, first + length))]
