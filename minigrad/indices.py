"""Indices in a user's words: checked before anything is read, because junk would be silent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .axes import Shape, is_whole
from .errors import DtypeError, OutOfRangeError, ShapeError

Array = NDArray[Any]


def index_of(name: str, index: Any, size: int, dim: int) -> Array:
    """An index array for an axis of `size`; negative indices count from the end.

    Raises DtypeError for anything but whole numbers, OutOfRangeError for what points at no cell.
    """
    array = np.asarray(index)
    if not array.size:
        return array.astype(np.intp)
    huge = array.dtype == object and all(map(is_whole, array.ravel()))  # beyond 64 bits
    if array.dtype.kind not in "iu" and not huge:
        raise DtypeError(f"{name}: an index must hold whole numbers, not {array.dtype}")
    low, high = int(array.min()), int(array.max())
    if low < -size or high >= size:
        wrong = high if high >= size else low
        raise OutOfRangeError(
            f"{name}: index {wrong} is out of range for dim {dim} of size {size}"
            + (f", whose cells are {-size} … {size - 1}" if size else "")
        )
    return array.astype(np.intp)


def along(index: Array, axis: int) -> tuple[Array, ...]:
    """Where `gather` reads: the index along one axis, a cell's own place along the others."""
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)]) if index.ndim else []
    if grid:
        grid[axis] = index
    return tuple(grid)


class Key:
    """What stands between the brackets of `x[…]`: ints, slices, None, `…`, index or mask arrays."""

    def __init__(self, key: Any) -> None:
        parts = key.parts if isinstance(key, Key) else key if isinstance(key, tuple) else (key,)
        self.parts: tuple[Any, ...] = tuple(map(_part, parts))

    @property
    def basic(self) -> bool:
        """True if no cell can be asked for twice: no index arrays."""
        return not any(isinstance(part, np.ndarray) for part in self.parts)

    def on(self, shape: Shape) -> tuple[Any, ...]:
        """The key for an array of `shape`. Raises OutOfRangeError, ShapeError or DtypeError."""
        takes = sum(_axes_taken(part) for part in self.parts)
        if takes > len(shape):
            raise OutOfRangeError(
                f"getitem: x[{self}] asks for {takes} axes, but x {shape} has {len(shape)}"
            )
        if sum(part is Ellipsis for part in self.parts) > 1:
            raise OutOfRangeError(f"getitem: x[{self}] holds … twice")
        self._refuse_apart(shape)
        axis, found = 0, []
        for part in self.parts:
            if part is Ellipsis:
                axis += len(shape) - takes
            elif isinstance(part, np.ndarray) and part.dtype == bool:
                _refuse_mask(part, shape, axis)
            elif isinstance(part, (int, np.ndarray)):
                checked = index_of("getitem", part, shape[axis], axis)
                part = checked if isinstance(part, np.ndarray) else part
            axis += _axes_taken(part)
            found.append(part)
        return tuple(found)

    def _refuse_apart(self, shape: Shape) -> None:
        """Index arrays are read side by side: their shapes must broadcast."""
        arrays = [p for p in self.parts if isinstance(p, np.ndarray) and p.dtype != bool]
        try:
            np.broadcast_shapes(*(a.shape for a in arrays))
        except ValueError as problem:
            shapes = " and ".join(str(a.shape) for a in arrays)
            raise ShapeError(
                f"getitem: index arrays of shapes {shapes} do not meet in x {shape}"
            ) from problem

    def __str__(self) -> str:
        return ", ".join(map(_written, self.parts))

    __repr__ = __str__


def _part(part: Any) -> Any:
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        return _slice(part)
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    if is_whole(part):
        return int(part)
    if not isinstance(part, Sequence) and not hasattr(part, "__array__"):
        raise TypeError(f"{part!r} is no index; use ints, slices, None, … or arrays of them")
    try:
        array = np.array(part)
    except ValueError as problem:
        raise TypeError(f"{part!r} is no index; its rows differ in length") from problem
    array = array.astype(np.intp) if not array.size and array.dtype != bool else array
    if array.dtype.kind not in "iub":
        raise TypeError(f"an index must hold whole numbers or truth values, not {array.dtype}")
    return array if array.ndim or array.dtype == bool else int(array)


def _slice(part: slice) -> slice:
    for end in (part.start, part.stop, part.step):
        if end is not None and not is_whole(end):
            raise TypeError(f"a slice is made of whole numbers, not {end!r}")
    if part.step == 0:
        raise ValueError("a slice cannot have step 0")
    return part


def _axes_taken(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1


def _refuse_mask(mask: Array, shape: Shape, axis: int) -> None:
    wanted = shape[axis : axis + mask.ndim]
    if mask.shape != wanted:
        raise ShapeError(
            f"getitem: a mask of shape {mask.shape} does not fit the axes of size {wanted} that it "
            f"stands for in x {shape}"
        )


def _written(part: Any) -> str:
    if isinstance(part, slice):
        ends = ["" if end is None else str(end) for end in (part.start, part.stop)]
        return ":".join(ends if part.step is None else [*ends, str(part.step)])
    if isinstance(part, np.ndarray):
        flat = np.array2string(part, separator=", ", threshold=12, max_line_width=1000)
        return flat if part.ndim <= 1 else f"{part.dtype} {part.shape}"
    return "…" if part is Ellipsis else str(part)


def place_on_axis(axis: int, part: Any) -> tuple[Any, ...]:
    """A key that takes `part` along one axis, and everything along those before it."""
    return (*(slice(None),) * axis, part)


def mask_of(name: str, mask: Any) -> Array:
    """A mask that must hold truth values. Raises DtypeError."""
    array = np.asarray(mask)
    if array.dtype != bool:
        raise DtypeError(
            f"{name}: mask must hold truth values, not {array.dtype}; compare, as in x > 0"
        )
    return array
