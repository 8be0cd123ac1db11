"""Normalisation over the last axes, those of `weight`: layer_norm and rms_norm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Shape, count, floating, number
from ..domains import Cases, Rng, Sample
from ..errors import ShapeError
from ..op import op


def _cases(operands: int) -> Cases:
    def calls(rng: Rng) -> Iterator[Sample]:
        for x, weight, eps in [
            ((3,), (3,), 1e-5),
            ((2, 4), (4,), 1.0),
            ((2, 2, 3), (3,), 1e-5),
            ((2, 2, 3), (2, 3), 0.1),
        ]:
            rest = [rng.normal(1, 0.5, weight) for _ in range(operands - 1)]
            yield (rng.normal(0, 1.5, x), *rest), {"eps": eps}

    return Cases("any shape that ends in the shape of weight", calls)


def last_axes(name: str, x: Array, weight: Any) -> tuple[int, ...]:
    """The axes that weight stands for; the last one if it is a plain number."""
    shape = np.shape(weight) or x.shape[-1:]
    if not x.ndim:
        raise ShapeError(f"{name}: x () must have an axis to normalise over")
    if x.shape[x.ndim - len(shape) :] != shape:
        raise ShapeError(f"{name}: x {x.shape} must end in the shape of weight {shape}")
    return tuple(range(x.ndim - len(shape), x.ndim))


def mean_of(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean over axes, kept as size 1, in float64."""
    total = np.sum(x, axis=axes, keepdims=True, dtype=np.float64)
    return np.asarray(total / np.float64(count(axes, x.shape)))


def summed_to(g: Array, shape: Shape) -> Array:
    """g added up over its leading axes, or over all for a scalar."""
    lead = tuple(range(g.ndim - len(shape)))
    return np.asarray(np.sum(g, axis=lead, dtype=np.float64))


def pull_rms(g: Array, x: Array, weight: Array, eps: float) -> Array:
    """g w r - x r³ mean(g w x), with r = 1 / sqrt(mean x² + eps)."""
    axes, x = last_axes("rms_norm", x, weight), x.astype(np.float64, copy=False)
    r = 1 / np.sqrt(mean_of(x * x, axes) + eps)
    scaled = g * weight
    return scaled * r - x * r**3 * mean_of(scaled * x, axes)


@op(
    tex=r"y = \frac{x \odot \text{weight}}{\sqrt{\text{mean}(x^2) + \text{eps}}}",
    domain=_cases(2),
    pulls={
        "x": (
            lambda g, x, weight, eps: pull_rms(g, x, weight, eps),
            r"r \, \bar y w - r^3 x \, \text{mean}(\bar y w x), \quad "
            r"r = \frac{1}{\sqrt{\text{mean}(x^2) + \text{eps}}}, \; w = \text{weight}",
        ),
        "weight": (
            lambda g, x, weight_shape, eps: summed_to(
                g * scaled_rms(x, np.ones(weight_shape), eps), weight_shape
            ),
            r"\sum r \, \bar y x",
        ),
    },
    reference=lambda x, weight, eps: (
        x * weight / np.sqrt(np.mean(x**2, axis=tuple(range(-weight.ndim, 0)), keepdims=True) + eps)
    ),
)
def rms_norm(x: Any, weight: Any = 1.0, *, eps: float = 1e-6) -> Any:
    """x divided by its root mean square over the axes of weight, times weight (Zhang 2019)."""
    number("rms_norm", "eps", eps, low=0)
    return (scaled_rms(floating("rms_norm", "x", x), weight, eps) * weight).astype(x.dtype)


def scaled_rms(x: Array, weight: Any, eps: float) -> Array:
    """x divided by its root mean square, in float64."""
    axes, x = last_axes("rms_norm", x, weight), x.astype(np.float64, copy=False)
    return np.asarray(x / np.sqrt(mean_of(x * x, axes) + eps))


def standard(x: Array, weight: Any, eps: float) -> tuple[Array, Array]:
    """x with mean 0 and variance 1 over the axes of weight, and what it was divided by."""
    axes, x = last_axes("layer_norm", x, weight), x.astype(np.float64, copy=False)
    centred = x - mean_of(x, axes)
    spread = np.sqrt(mean_of(centred * centred, axes) + eps)
    return centred / spread, spread


def pull_layer_norm(g: Array, x: Array, weight: Array, eps: float) -> Array:
    """(s - mean s - z mean(s z)) / spread, with s = g w and z the standardised x."""
    axes = last_axes("layer_norm", x, weight)
    z, spread = standard(x, weight, eps)
    scaled = g * weight
    centred = scaled - mean_of(scaled, axes) - z * mean_of(scaled * z, axes)
    return np.asarray(centred / spread)


@op(
    tex=r"y = \frac{x - \text{mean}\,x}{\sqrt{\text{var}\,x + \text{eps}}} \odot \text{weight} "
    r"+ \text{bias}",
    domain=_cases(3),
    pulls={
        "x": (
            lambda g, x, weight, eps: pull_layer_norm(g, x, weight, eps),
            r"\frac{\bar y w - \text{mean}(\bar y w) - z \, \text{mean}(\bar y w z)}"
            r"{\sqrt{\text{var}\,x + \text{eps}}}, \quad z = \frac{x - \text{mean}\,x}"
            r"{\sqrt{\text{var}\,x + \text{eps}}}, \; w = \text{weight}",
        ),
        "weight": (
            lambda g, x, weight_shape, eps: summed_to(
                g * standard(x, np.ones(weight_shape), eps)[0], weight_shape
            ),
            r"\sum \bar y z",
        ),
        "bias": (lambda g, bias_shape: summed_to(g, bias_shape), r"\sum \bar y"),
    },
    reference=lambda x, weight, bias, eps: (
        (x - np.mean(x, axis=tuple(range(-weight.ndim, 0)), keepdims=True))
        / np.sqrt(np.var(x, axis=tuple(range(-weight.ndim, 0)), keepdims=True) + eps)
        * weight
        + bias
    ),
)
def layer_norm(x: Any, weight: Any = 1.0, bias: Any = 0.0, *, eps: float = 1e-5) -> Any:
    """x with mean 0 and variance 1 over the axes of weight, times weight, plus bias (Ba 2016)."""
    number("layer_norm", "eps", eps, low=0)
    if np.shape(bias) not in ((), np.shape(weight) or x.shape[-1:]):
        raise ShapeError(
            f"layer_norm: bias {np.shape(bias)} must have the shape of weight {np.shape(weight)}"
        )
    z, _ = standard(floating("layer_norm", "x", x), weight, eps)
    return (z * weight + bias).astype(x.dtype)
