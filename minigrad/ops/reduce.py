"""Reductions over some axes: dim is None (all), an int or a tuple; negative ones count back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import Dim, axes_of
from ..domains import Cases, Rng, Sample, distinct, real
from ..errors import DomainError
from ..op import op

Array = NDArray[Any]


def kept(reduced: Array, dim: Dim, shape: tuple[int, ...]) -> Array:
    """A reduced array with its summed axes back as size 1, so that it broadcasts against x."""
    axes = axes_of("reduce", dim, shape)
    return np.reshape(reduced, tuple(1 if n in axes else s for n, s in enumerate(shape)))


def count(dim: Dim, shape: tuple[int, ...]) -> int:
    """How many cells of x meet in one cell of the result."""
    return int(np.prod([shape[a] for a in axes_of("reduce", dim, shape)], dtype=int))


def _cases(draw: Any) -> Cases:
    def calls(rng: Rng) -> Iterator[Sample]:
        for shape, dim, keepdim in [
            ((), None, False),
            ((4,), None, False),
            ((2, 3), 0, False),
            ((2, 3), -1, True),
            ((2, 3, 2), (0, 2), False),
            ((2, 3, 2), (-1, 1), True),
            ((2, 3), None, True),
        ]:
            yield (draw(rng, shape),), {"dim": dim, "keepdim": keepdim}

    return Cases("any shape, any axes, keepdim or not", calls)


@op(
    tex=r"y = \sum_{\text{dim}} x",
    domain=_cases(real.draw),
    pulls={
        "x": (
            lambda g, dim, x_shape: np.broadcast_to(kept(g, dim, x_shape), x_shape),
            r"\bar y \text{ copied}",
        )
    },
    reference=lambda x, dim, keepdim: np.sum(x, axis=dim, keepdims=keepdim),
)
def sum(x: Any, *, dim: Dim = None, keepdim: bool = False) -> Any:
    """The sum over dim; float32 and float16 are accumulated in float64."""
    wide = np.float64 if x.dtype.kind == "f" else None
    y = np.sum(x, axis=axes_of("sum", dim, x.shape), keepdims=keepdim, dtype=wide)
    return y.astype(x.dtype) if wide else y


@op(
    tex=r"y = \frac{1}{n} \sum_{\text{dim}} x",
    domain=_cases(real.draw),
    pulls={
        "x": (
            lambda g, dim, x_shape: np.broadcast_to(
                kept(g, dim, x_shape) / np.float64(count(dim, x_shape)), x_shape
            ),
            r"\frac{1}{n} \bar y \text{ copied}",
        )
    },
    reference=lambda x, dim, keepdim: np.mean(x, axis=dim, keepdims=keepdim),
)
def mean(x: Any, *, dim: Dim = None, keepdim: bool = False) -> Any:
    """The mean over dim: NaN over nothing."""
    axes = axes_of("mean", dim, x.shape)
    y = np.sum(x, axis=axes, keepdims=keepdim, dtype=np.float64) / np.float64(count(dim, x.shape))
    return y.astype(x.dtype if x.dtype.kind == "f" else np.float64)


def shares(x: Array, y: Array, dim: Dim) -> Array:
    """1 at the extremes of x, split evenly among ties, so that the shares of one result total 1."""
    tied = (x == kept(y, dim, x.shape)).astype(np.float64)
    axes = axes_of("max", dim, x.shape)
    split: Array = tied / tied.sum(axis=axes, keepdims=True)
    return split


@op(
    tex=r"y = \max_{\text{dim}} x",
    domain=_cases(distinct),
    kinks="ties share the gradient evenly, total 1",
    pulls={
        "x": (
            lambda g, x, y, dim: np.where(
                x == kept(y, dim, x.shape), kept(g, dim, x.shape) * shares(x, y, dim), 0
            ),
            r"\bar y \text{ to the largest}",
        )
    },
    reference=lambda x, dim, keepdim: np.max(x, axis=dim, keepdims=keepdim),
)
def max(x: Any, *, dim: Dim = None, keepdim: bool = False) -> Any:
    """The largest value over dim. Raises DomainError over nothing."""
    axes = axes_of("max", dim, x.shape)
    if any(x.shape[a] == 0 for a in axes):
        raise DomainError(
            f"max: x {x.shape} has no cells along dim {dim}, and nothing has no largest value"
        )
    return np.max(x, axis=axes, keepdims=keepdim)
