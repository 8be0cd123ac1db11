"""Indexing: cells picked by number. Repeats add; negative indices count from the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Shape, axis_of, number
from ..domains import Cases, Rng, Sample
from ..errors import ShapeError
from ..indices import Key, along, index_of, place_on_axis
from ..op import op


def _cases(words: str, *given: tuple[Any, ...]) -> Cases:
    """Calls from (shape or array, …, parameters): a shape becomes real numbers."""

    def draw(rng: Rng) -> Iterator[Sample]:
        for *operands, params in given:
            drawn = (rng.normal(size=o) if isinstance(o, tuple) else np.array(o) for o in operands)
            yield tuple(drawn), params

    return Cases(words, draw)


def added_at(shape: Shape, place: Any, g: Array) -> Array:
    """Zeros of a shape, with g added at a place; cells named twice get both."""
    back = np.zeros(shape, np.float64)
    np.add.at(back, place, g)
    return back


def with_added(x: Array, place: Any, source: Array, alpha: float) -> Array:
    """x with alpha · source added at a place; low precision is accumulated in float64."""
    kept = np.result_type(x, source)
    y = x.astype(np.float64 if kept.kind == "f" else kept)
    np.add.at(y, place, source * alpha)
    return y.astype(kept)


# --- brackets -------------------------------------------------------------------------------------


def pull_key(g: Array, x_shape: Shape, key: Key) -> Array:
    place = key.on(x_shape)
    if not key.basic:
        return added_at(x_shape, place, g)
    back = np.zeros(x_shape, g.dtype)
    back[place] = g
    return back


@op(
    tex=r"y = x[\text{key}]",
    cost="memory",
    converts={"key": Key},
    domain=_cases(
        "ints, slices with any step, None, …, index arrays, masks",
        ((4,), {"key": 1}),
        ((5,), {"key": slice(None, None, -2)}),
        ((2, 3), {"key": (Ellipsis, -1)}),
        ((2, 3), {"key": (slice(0, 1), None, slice(1, 3))}),
        ((4,), {"key": np.array([2, 0, 2])}),
        ((2, 3), {"key": (np.array([0, 1, -1]), np.array([2, 2, 2]))}),
        ((2, 3), {"key": np.array([[True, False, True], [False, True, False]])}),
        ((3, 2), {"key": (slice(None), np.array([[0, 0], [1, 0]]))}),
    ),
    pulls={
        "x": (
            lambda g, x_shape, key: pull_key(g, x_shape, key),
            r"\bar y \text{ added where it was taken from}",
        )
    },
    reference=lambda x, key: x[key],
)
def getitem(x: Any, *, key: Any) -> Any:
    """x[key]: ints, slices, None, …, index arrays and masks, as in NumPy; repeats add."""
    return x[key.on(x.shape)]


# --- along one axis -------------------------------------------------------------------------------


def vector_of(index: Any) -> Array:
    """A checked index with one axis; nothing at all is an array of floats to NumPy."""
    return np.ravel(index).astype(np.intp)


def _vector(name: str, index: Any) -> None:
    if np.ndim(index) > 1:
        raise ShapeError(f"{name}: index {np.shape(index)} must have one axis, or none")


@op(
    tex=r"y_{\ldots i \ldots} = x_{\ldots \text{index}_i \ldots}",
    cost="memory",
    call=("x", "dim", "index"),
    domain=_cases(
        "an axis, and whole numbers that point at its cells",
        ((4,), [2, 0, 2, -1], {"dim": 0}),
        ((2, 3), [1, 1], {"dim": -1}),
        ((3, 2), [0, 2, 0], {"dim": 0}),
    ),
    pulls={
        "x": (
            lambda g, x_shape, dim, index: added_at(
                x_shape, place_on_axis(dim % len(x_shape), vector_of(index)), g
            ),
            r"\bar y \text{ added where it was taken from}",
        )
    },
    reference=lambda x, index, dim: np.take(x, index, axis=dim),
)
def index_select(x: Any, index: Any, *, dim: int) -> Any:
    """The cells of x along dim that index names, in its order, repeats included."""
    _vector("index_select", index)
    axis = axis_of("index_select", dim, x.shape)
    return x[place_on_axis(axis, np.ravel(index_of("index_select", index, x.shape[axis], dim)))]


@op(
    tex=r"y_i = \text{weight}_{\text{index}_i}",
    cost="memory",
    domain=_cases(
        "whole numbers that point at rows of weight",
        ([1, 0, 1], (3, 2), {}),
        ([[0, 2], [2, 2]], (3, 2), {}),
        (1, (2, 3), {}),
    ),
    pulls={
        "weight": (
            lambda g, weight_shape, index: added_at(weight_shape, index.astype(np.intp), g),
            r"\bar y \text{ added to the rows}",
        )
    },
    reference=lambda index, weight: weight[index],
)
def embedding(index: Any, weight: Any) -> Any:
    """The rows of weight (rows, width) that index names, in the shape of index."""
    if np.ndim(weight) != 2:
        raise ShapeError(f"embedding: weight {np.shape(weight)} must have the axes (rows, width)")
    return weight[index_of("embedding", index, weight.shape[0], 0)]


def _places(name: str, index: Any, shape: Shape, dim: int, limit: Shape | None = None) -> Any:
    """Where `gather` reads and `scatter_add` adds. Raises ShapeError or OutOfRangeError.

    Along the other axes index may be smaller than x, and nowhere larger than `limit`.
    """
    axis = axis_of(name, dim, shape)
    sizes = np.shape(index)
    inside = len(sizes) == len(shape) and all(
        i <= s for n, (i, s) in enumerate(zip(sizes, shape, strict=True)) if n != axis
    )
    if not inside:
        raise ShapeError(
            f"{name}: index {sizes} must have as many axes as x {shape}, and be no larger except "
            f"along dim {dim}"
        )
    if limit is not None and (
        len(limit) != len(sizes) or any(i > s for i, s in zip(sizes, limit, strict=True))
    ):
        raise ShapeError(f"{name}: index {sizes} must be no larger than src {limit}")
    return along(index_of(name, index, shape[axis], dim), axis)


@op(
    tex=r"y_{ij} = x_{\text{index}_{ij}\,j} \text{ along the first axis}",
    cost="memory",
    call=("x", "dim", "index"),
    domain=_cases(
        "an index with as many axes as x",
        ((3,), [2, 0, 2, 2], {"dim": 0}),
        ((3, 2), [[0, 1], [2, 0]], {"dim": 0}),
        ((2, 3), [[0, -1, 0, 2]], {"dim": 1}),
    ),
    pulls={
        "x": (
            lambda g, x_shape, dim, index: added_at(
                x_shape, _places("gather", index, x_shape, dim), g
            ),
            r"\bar y \text{ added where it was taken from}",
        )
    },
    reference=lambda x, index, dim: (
        np.take_along_axis(x, index, dim)
        if x.ndim == 1 or index.shape[1 - dim] == x.shape[1 - dim]
        else np.take_along_axis(x[: len(index)], index, dim)
    ),
)
def gather(x: Any, index: Any, *, dim: int) -> Any:
    """For each cell of index the cell of x it names along dim; its own place along the others."""
    return x[_places("gather", index, x.shape, dim)]


@op(
    tex=r"y = x, \quad y_{\text{index}_i} \; \text{+=} \; \text{alpha} \cdot \text{source}_i",
    cost="memory",
    call=("x", "dim", "index", "source", "alpha"),
    domain=_cases(
        "an index as long as source along dim",
        ((3, 2), [1, 1], (2, 2), {"dim": 0, "alpha": 1}),
        ((4,), [0, -1, 0], (3,), {"dim": 0, "alpha": 2.5}),
        ((2, 3), [2, 0], (2, 2), {"dim": -1, "alpha": -1}),
    ),
    pulls={
        "x": (lambda g: g, r"\bar y"),
        "source": (
            lambda g, dim, index, alpha: g[place_on_axis(dim % g.ndim, vector_of(index))] * alpha,
            r"\text{alpha} \cdot \bar y_{\text{index}}",
        ),
    },
    reference=lambda x, index, source, dim, alpha: (
        x
        + alpha
        * np.moveaxis(
            np.tensordot(np.eye(x.shape[dim])[index], np.moveaxis(source, dim, 0), (0, 0)), 0, dim
        )
    ),
)
def index_add(x: Any, index: Any, source: Any, *, dim: int, alpha: float = 1) -> Any:
    """x with alpha · source added at the places along dim that index names; repeats add."""
    _vector("index_add", index)
    axis, count = axis_of("index_add", dim, x.shape), np.size(index)
    wanted = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if np.shape(source) != wanted:
        raise ShapeError(
            f"index_add: source {np.shape(source)} must have shape {wanted}: x {x.shape} with "
            f"{count} cells along dim {dim}"
        )
    places = place_on_axis(axis, np.ravel(index_of("index_add", index, x.shape[axis], dim)))
    number("index_add", "alpha", alpha)
    return with_added(x, places, source, alpha)


def pull_scatter(g: Array, dim: int, index: Array, src_shape: Shape) -> Array:
    """g at the places that were added to; zeros for what index does not reach of src."""
    back = np.zeros(src_shape, g.dtype)
    back[tuple(slice(n) for n in np.shape(index))] = g[_places("scatter_add", index, g.shape, dim)]
    return back


@op(
    tex=r"y = x, \quad y_{\text{index}_{ij}\,j} \; \text{+=} \; \text{src}_{ij} "
    r"\text{ along the first axis}",
    cost="memory",
    call=("x", "dim", "index", "src"),
    domain=_cases(
        "an index with as many axes as x, no larger than src",
        ((3,), [1, 1, 0, -1], (4,), {"dim": 0}),
        ((3, 2), [[0, 1], [0, 0]], (2, 2), {"dim": 0}),
        ((2, 3), [[2, 2]], (2, 4), {"dim": 1}),
    ),
    pulls={
        "x": (lambda g: g, r"\bar y"),
        "src": (
            lambda g, dim, index, src_shape: pull_scatter(g, dim, index, src_shape),
            r"\bar y_{\text{index}}",
        ),
    },
    reference=lambda x, index, src, dim: (
        x
        + np.sum(
            [
                src[at] * _one_hot(x.shape, (*at[:dim], index[at], *at[dim + 1 :]))
                for at in np.ndindex(index.shape)
            ],
            axis=0,
        )
    ),
)
def scatter_add(x: Any, index: Any, src: Any, *, dim: int) -> Any:
    """x with each src[i] added where index[i] says along dim; repeats add."""
    places = _places("scatter_add", index, x.shape, dim, np.shape(src))
    return with_added(x, places, src[tuple(slice(n) for n in np.shape(index))], 1)


def _one_hot(shape: Shape, place: tuple[int, ...]) -> Array:
    cell = np.zeros(shape)
    cell[place] = 1
    return cell
