"""Axes in a user's words: `dim` checked and counted from 0, for every op that takes one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import ShapeError

Shape = tuple[int, ...]
Dim = int | tuple[int, ...] | None


def axes_of(name: str, dim: Any, shape: Shape) -> tuple[int, ...]:
    """`dim` (None: all) as a tuple of axes 0 … n-1.

    Raises ShapeError for an axis that is not there, or named twice.
    """
    axes: list[int] = []
    for d in (
        range(len(shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    ):
        whole = isinstance(d, (int, np.integer)) and not isinstance(d, bool)
        if not whole or not -len(shape) <= d < len(shape):
            raise ShapeError(
                f"{name}: dim {d!r} is no axis of x {shape}, whose axes are {_axes(shape)}"
            )
        axes.append(int(d) % len(shape))
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{name}: dim {dim} names an axis of x {shape} twice")
    return tuple(axes)


def _axes(shape: Shape) -> str:
    return f"0 … {len(shape) - 1}" if shape else "none, it is a scalar"


def sizes_of(name: str, shape: Any) -> Shape:
    """A shape argument, an int or ints, as a tuple. Raises ShapeError for anything else."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    for size in sizes:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < -1:
            raise ShapeError(f"{name}: {shape!r} is no shape; a shape is made of whole numbers")
    return tuple(int(s) for s in sizes)
