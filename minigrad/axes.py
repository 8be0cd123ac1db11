"""Axes in a user's words: `dim` checked and counted from 0, and what reducing over it means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, DtypeError, ShapeError

Array = NDArray[Any]
Shape = tuple[int, ...]
Dim = int | tuple[int, ...] | None
add_up: Any = np.add.reduce  # np.sum without what np.sum does before; untyped in its stubs
VIEW = 4096  # cells from which making a view takes less time than copying


def axes_of(name: str, dim: Any, shape: Shape) -> tuple[int, ...]:
    """`dim` (None: all) as a tuple of axes 0 … n-1.

    Raises ShapeError for an axis that is not there, or named twice.
    """
    axes: list[int] = []
    for d in (
        range(len(shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    ):
        if not is_whole(d) or not -len(shape) <= d < len(shape):
            raise ShapeError(
                f"{name}: dim {said(d)} is no axis of x {shape}, whose axes are {_axes(shape)}"
            )
        axes.append(int(d) % len(shape))
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{name}: dim {dim} names an axis of x {shape} twice")
    return tuple(axes)


def axis_of(name: str, dim: Any, shape: Shape) -> int:
    """One axis, counted from 0. Raises ShapeError for an axis that is not there, or several."""
    if dim is None or isinstance(dim, (tuple, list)):
        raise ShapeError(f"{name}: dim {dim!r} is no single axis of x {shape}")
    return axes_of(name, dim, shape)[0]


def new_axis_of(name: str, dim: Any, shape: Shape) -> int:
    """The place of an axis that x does not have yet. Raises ShapeError."""
    count = len(shape) + 1
    if not is_whole(dim) or not -count <= dim < count:
        raise ShapeError(
            f"{name}: dim {said(dim)} is no place for a new axis in x {shape}; "
            f"there are {-count} … {count - 1}"
        )
    return int(dim) % count


def _axes(shape: Shape) -> str:
    return f"0 … {len(shape) - 1}" if shape else "none, it is a scalar"


def said(value: Any) -> str:
    """A value as it stands in a sentence: on one line."""
    return " ".join(repr(value).split())


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, and no truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def sizes_of(name: str, shape: Any) -> Shape:
    """A shape argument, an int or ints, as a tuple. Raises ShapeError for anything else."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    for size in sizes:
        if not is_whole(size) or size < -1:
            raise ShapeError(f"{name}: {shape!r} is no shape; a shape is made of whole numbers")
    return tuple(int(s) for s in sizes)


def number(name: str, word: str, value: Any, low: float = -np.inf) -> float:
    """A parameter that must be a number, not below `low`. Raises ArgumentError."""
    kinds = (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds) or value != value:
        raise ArgumentError(f"{name}: {word} must be a number, not {said(value)}")
    if value < low:
        raise ArgumentError(f"{name}: {word} must be a number from {low:g} on, not {value}")
    return float(value)


# --- reducing -------------------------------------------------------------------------------------


def kept(reduced: Array, dim: Dim, shape: Shape) -> Array:
    """A reduced array with its summed axes back as size 1, so that it broadcasts against x."""
    if reduced.ndim == len(shape):
        return reduced
    axes = axes_of("reduce", dim, shape)
    return reduced.reshape(tuple([1 if n in axes else s for n, s in enumerate(shape)]))


def copied(g: Array, shape: Shape) -> Array:
    """g copied to a shape that it broadcasts to: as a view, where that is not the slower way."""
    if math.prod(shape) > VIEW:
        return np.broadcast_to(g, shape)
    copies = np.empty(shape, g.dtype)
    copies[...] = g
    return copies


def count(dim: Dim, shape: Shape) -> int:
    """How many cells of x meet in one cell of the result."""
    return (
        math.prod(shape)
        if dim is None
        else math.prod(shape[a] for a in axes_of("reduce", dim, shape))
    )


def total(x: Array, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """The sum over axes in x's dtype; low precision is accumulated in float64."""
    wide = np.float64 if x.dtype.kind == "f" else None
    y = add_up(x, axis=axes, keepdims=keepdims, dtype=wide)
    return np.asarray(y.astype(x.dtype) if wide else y)


def largest(x: Array, axes: tuple[int, ...]) -> Array:
    """The largest cell over axes, kept as size 1; 0 where it is infinite or there is no cell.

    Subtracting it before an exponential keeps that from overflowing.
    """
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0).astype(x.dtype)


_WEIGHTS = {"mean": lambda n: 1 / np.float64(n), "sum": lambda n: np.float64(1)}


def fold(losses: Array, reduction: str, name: str) -> Array:
    """All losses as they are, added up, or averaged. Raises ArgumentError or DtypeError."""
    floating(name, "x", losses)
    if reduction == "none":
        return losses
    if reduction not in _WEIGHTS:
        raise ArgumentError(f'{name}: reduction is "mean", "sum" or "none", not {reduction!r}')
    summed = np.sum(losses, dtype=np.float64) * _WEIGHTS[reduction](losses.size)
    return np.asarray(summed).astype(losses.dtype)


def share(g: Array, reduction: str, losses: int) -> Array:
    """What of the upstream gradient reaches each single one of so many losses."""
    return g if reduction == "none" else np.asarray(g * _WEIGHTS[reduction](losses))


def floating(name: str, word: str, array: Any) -> Array:
    """An operand that must hold floating numbers. Raises DtypeError."""
    if array.dtype.kind != "f":
        raise DtypeError(f"{name}: {word} must hold floating numbers, not {array.dtype}")
    return np.asarray(array)
