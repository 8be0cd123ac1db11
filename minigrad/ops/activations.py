"""Activations, elementwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..domains import away_from
from ..kernels import select
from ..op import elementwise


@elementwise(
    tex=r"y = \tanh x", partials={"x": (lambda y: 1 - y * y, "1 - y^2")}, reference=np.tanh
)
def tanh(x: Any) -> Any:
    """The hyperbolic tangent of x."""
    return np.tanh(x)


@elementwise(
    tex=r"y = \frac{1}{1 + e^{-x}}",
    partials={"x": (lambda y: y * (1 - y), "y (1 - y)")},
    reference=lambda x: 1 / (1 + np.exp(-x)),
)
def sigmoid(x: Any) -> Any:
    """The logistic function of x; it never overflows: only the exponential of -|x| is taken."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


@elementwise(
    tex=r"y = \max(x, 0)",
    domain=away_from(0),
    kinks="at x = 0 the slope is 0",
    partials={"x": (lambda g, x: select(x > 0, g, 0), "[x > 0]")},
    reference=lambda x: np.where(x > 0, x, 0),
)
def relu(x: Any) -> Any:
    """x where it is above 0, else 0."""
    return np.maximum(x, 0)
