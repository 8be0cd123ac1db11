"""Reductions over some axes: dim is None (all), an int or a tuple; negative ones count back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Dim, Shape, add_up, axes_of, copied, count, kept, total
from ..card import Kink
from ..domains import Cases, Rng, Sample, distinct, real
from ..errors import DomainError
from ..op import op


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


def _with_zeros(rng: Rng, shape: Shape) -> Array:
    """Real numbers, the first of them 0, and the last one too where there are more than four."""
    x = rng.normal(0, 1.5, shape)
    x.flat[: x.size > 1] = 0
    x.flat[x.size - 1 if x.size > 4 else x.size :] = 0
    return x


@op(
    tex=r"y = \sum_{\text{dim}} x",
    domain=_cases(real.draw),
    pulls={
        "x": (
            lambda g, dim, x_shape: copied(kept(g, dim, x_shape), x_shape),
            r"\bar y \text{ copied}",
        )
    },
    reference=lambda x, dim, keepdim: np.sum(x, axis=dim, keepdims=keepdim),
)
def sum(x: Any, *, dim: Dim = None, keepdim: bool = False) -> Any:
    """The sum over dim; float32 and float16 are accumulated in float64."""
    return total(x, axes_of("sum", dim, x.shape), keepdim)


@op(
    tex=r"y = \frac{1}{n} \sum_{\text{dim}} x",
    domain=_cases(real.draw),
    pulls={
        "x": (
            lambda g, dim, x_shape: copied(
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
    y = add_up(x, axis=axes, keepdims=keepdim, dtype=np.float64)
    y = np.asarray(y / np.float64(count(dim, x.shape)))
    return y.astype(x.dtype if x.dtype.kind == "f" else np.float64)


# --- product --------------------------------------------------------------------------------------


def others(x: Array, dim: Dim) -> Array:
    """For each cell the product of the others it is multiplied with; no division, so 0 is fine."""
    axes = axes_of("prod", dim, x.shape)
    order = [n for n in range(x.ndim) if n not in axes] + list(axes)
    rows = np.transpose(x, order)
    flat = rows.reshape(*rows.shape[: x.ndim - len(axes)], count(dim, x.shape))
    before, after = np.ones(flat.shape), np.ones(flat.shape)
    before[..., 1:] = np.cumprod(flat[..., :-1], axis=-1)
    after[..., :-1] = np.cumprod(flat[..., :0:-1], axis=-1)[..., ::-1]
    return np.transpose((before * after).reshape(rows.shape), np.argsort(order))


@op(
    tex=r"y = \prod_{\text{dim}} x",
    domain=_cases(_with_zeros),
    pulls={
        "x": (
            lambda g, x, dim: kept(g, dim, x.shape) * others(x, dim),
            r"\bar y \prod_{\text{others}} x",
        )
    },
    reference=lambda x, dim, keepdim: np.prod(x, axis=dim, keepdims=keepdim),
    kinks=Kink(
        "with zeros each cell gets the product of the others, exactly",
        {"x": [2.0, 0.0, 5.0]},
        {"x": [0, 10, 0]},
    ),
)
def prod(x: Any, *, dim: Dim = None, keepdim: bool = False) -> Any:
    """The product over dim: 1 over nothing."""
    return np.prod(x, axis=axes_of("prod", dim, x.shape), keepdims=keepdim)


# --- extremes -------------------------------------------------------------------------------------


def to_extremes(g: Array, x: Array, y: Array, dim: Dim) -> Array:
    """g to the cells that are the extreme, split evenly among ties, so that the shares total 1."""
    tied = (x == kept(y, dim, x.shape)) | (x != x)  # NaN, if there is one, is the extreme
    ties = tied.sum(axis=axes_of("max", dim, x.shape), keepdims=True)
    with np.errstate(divide="ignore"):
        return np.where(tied, kept(g, dim, x.shape) / ties, 0)


def _refuse_nothing(name: str, dim: Dim, shape: Shape) -> tuple[int, ...]:
    axes = axes_of(name, dim, shape)
    if 0 in [shape[a] for a in axes]:
        raise DomainError(
            f"{name}: x {shape} has no cells along dim {dim}, and nothing has no extreme"
        )
    return axes


@op(
    tex=r"y = \max_{\text{dim}} x",
    domain=_cases(distinct),
    kinks=Kink("ties share evenly, total 1", {"x": [1.0, 3.0, 3.0]}, {"x": [0, 0.5, 0.5]}),
    pulls={
        "x": (
            lambda g, x, y, dim: to_extremes(g, x, y, dim),
            r"\bar y \text{ to the largest}",
        )
    },
    reference=lambda x, dim, keepdim: np.max(x, axis=dim, keepdims=keepdim),
)
def max(x: Any, *, dim: Dim = None, keepdim: bool = False) -> Any:
    """The largest value over dim. Raises DomainError over nothing."""
    return np.max(x, axis=_refuse_nothing("max", dim, x.shape), keepdims=keepdim)


@op(
    tex=r"y = \min_{\text{dim}} x",
    domain=_cases(distinct),
    kinks=Kink("ties share evenly, total 1", {"x": [1.0, 3.0, 1.0]}, {"x": [0.5, 0, 0.5]}),
    pulls={
        "x": (
            lambda g, x, y, dim: to_extremes(g, x, y, dim),
            r"\bar y \text{ to the smallest}",
        )
    },
    reference=lambda x, dim, keepdim: np.min(x, axis=dim, keepdims=keepdim),
)
def min(x: Any, *, dim: Dim = None, keepdim: bool = False) -> Any:
    """The smallest value over dim. Raises DomainError over nothing."""
    return np.min(x, axis=_refuse_nothing("min", dim, x.shape), keepdims=keepdim)
