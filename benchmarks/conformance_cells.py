"""Random shapes and cells, for `benchmarks.conformance_cases`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Rng = np.random.Generator
Shape = tuple[int, ...]
Draw = Callable[[Rng, Shape], Array]
Call = tuple[dict[str, Any], dict[str, Any]]  # operands and parameters, by name
Random = Callable[[Rng], Call]


def chance(rng: Rng, p: float) -> bool:
    return bool(rng.random() < p)


def pick(rng: Rng, *options: Any) -> Any:
    return options[rng.integers(len(options))]


def sizes(rng: Rng, low: int = 0, high: int = 4, least: int = 0) -> Shape:
    """A shape of low … high axes and at most 60 cells; now and then it has none."""
    drawn = rng.choice(5, rng.integers(low, high + 1), p=(0.04, 0.2, 0.3, 0.26, 0.2))
    while np.prod(drawn) > 60:
        drawn[np.argmax(drawn)] -= 1
    return tuple(int(n) for n in np.maximum(drawn, least))


def normal(rng: Rng, shape: Shape) -> Array:
    return rng.normal(0, 1.5, shape)


def grid(rng: Rng, shape: Shape) -> Array:
    return rng.integers(-4, 5, shape) / 2


def real(rng: Rng, shape: Shape) -> Array:
    """Ordinary, on a grid, large or tiny."""
    kind = rng.choice(5, p=(0.5, 0.2, 0.1, 0.1, 0.1))
    x = grid(rng, shape) if kind == 1 else normal(rng, shape)
    return x * (1, 1, 10, 500, 1e-8)[kind]


def huge(rng: Rng, shape: Shape) -> Array:
    """As `real`, and a few cells at ±1000 or ±1e13."""
    far = rng.choice([-1e13, -1e3, 1e3, 1e13], shape)
    return np.where(rng.random(shape) < 0.15, far, real(rng, shape))


def positive(rng: Rng, shape: Shape) -> Array:
    return np.abs(real(rng, shape))


def nonzero(rng: Rng, shape: Shape) -> Array:
    return np.copysign(rng.uniform(0.05, 4, shape), rng.normal(size=shape))


def with_zeros(rng: Rng, shape: Shape) -> Array:
    return np.where(rng.random(shape) < 0.2, 0, normal(rng, shape))


def with_nothing(rng: Rng, shape: Shape) -> Array:
    """As `real`, and some cells at minus infinity."""
    return np.where(rng.random(shape) < 0.15 * chance(rng, 0.5), -np.inf, real(rng, shape))


def offset(rng: Rng, shape: Shape) -> Array:
    """Ordinary cells, some of them far from 0, so that a mean cancels."""
    return normal(rng, shape) + pick(rng, 0, 0, 0, 100)


def distinct(rng: Rng, shape: Shape) -> Array:
    """Cells without ties."""
    return rng.permutation(int(np.prod(shape))).reshape(shape) - rng.random()


def operand(rng: Rng, shape: Shape, draw: Draw) -> Array:
    """Cells in a shape that broadcasts to `shape`."""
    kept = shape[rng.integers(len(shape) + 1) if chance(rng, 0.4) else 0 :]
    return draw(rng, tuple(1 if chance(rng, 0.2) else n for n in kept))


def axis(rng: Rng, ndim: int) -> int:
    return int(rng.integers(-ndim, ndim))


def some_axes(rng: Rng, ndim: int) -> Any:
    """None, an axis or a tuple of them, counted from either end."""
    if ndim == 0 or chance(rng, 0.25):
        return None
    if chance(rng, 0.4):
        return axis(rng, ndim)
    chosen = rng.permutation(ndim)[: rng.integers(1, ndim + 1)]
    return tuple(int(a) - ndim * chance(rng, 0.4) for a in chosen)
