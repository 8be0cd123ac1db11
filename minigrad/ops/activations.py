"""Activations, elementwise: no overflow and no NaN, for infinite x either.

Far out, x is held at a bound where its factor is exactly 0, because 0 · ∞ would be NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..axes import number
from ..card import Kink
from ..domains import away_from
from ..kernels import erfc, logistic, select
from ..op import elementwise

SQRT_2 = 1.4142135623730951
SQRT_2_PI = 2.5066282746310002  # sqrt(2π)
SLOPE = 1.5957691216057308  # 2 sqrt(2/π)
CUBIC = 0.044715  # Hendrycks and Gimpel 2016, arXiv:1606.08415
FAR = 1000.0  # where the logistic function is exactly 0 or 1
FAR_GELU = 40.0  # where gelu's is; nothing overflows there, in float16 either


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
    """The logistic function of x."""
    return logistic(x)


@elementwise(
    tex=r"y = \ln(1 + e^x)",
    partials={"x": (lambda x: logistic(x), r"\frac{1}{1 + e^{-x}}")},
    reference=lambda x: np.log(1 + np.exp(x)),
)
def softplus(x: Any) -> Any:
    """A smooth relu: the logarithm of 1 + e^x."""
    return np.logaddexp(x, x.dtype.type(0))


@elementwise(
    tex=r"y = \max(x, 0)",
    domain=away_from(0),
    kinks=Kink("at x = 0 the slope is 0", {"x": [-1.0, 0.0, -0.0, 2.0]}, {"x": [0, 0, 0, 1]}),
    partials={"x": (lambda g, x: select(x > 0, g, 0), "[x > 0]")},
    reference=lambda x: np.where(x > 0, x, 0),
)
def relu(x: Any) -> Any:
    """x where it is above 0, else 0."""
    return np.maximum(x, 0)


@elementwise(
    tex=r"y = \max(x, 0) + \text{slope} \cdot \min(x, 0)",
    domain={"x": away_from(0), "slope": (0.01, 0.0, -0.5)},
    kinks=(
        Kink("at x = 0 the slope is `slope`", {"x": [0.0, -0.0], "slope": 0.1}, {"x": [0.1, 0.1]}),
        Kink("slope 0 gives 0", {"x": [-2.0, 0.0, 2.0], "slope": 0.0}, {"x": [0, 0, 1]}),
    ),
    partials={
        "x": (
            lambda g, x, slope: select(x > 0, g, select(slope == 0, 0, slope * g)),
            r"[x > 0] + \text{slope} \cdot [x \le 0]",
        )
    },
    reference=lambda x, slope: np.where(x > 0, x, slope * x),
)
def leaky_relu(x: Any, *, slope: float = 0.01) -> Any:
    """x where it is above 0, else slope · x."""
    low = number("leaky_relu", "slope", slope)
    return np.where(x > 0, x, x * low) if low else np.maximum(x, 0)


@elementwise(
    tex=r"y = \max(x, 0) + \text{alpha} \cdot (e^{\min(x, 0)} - 1)",
    domain={"x": away_from(0), "alpha": (1.0, 0.5, 2.0)},
    kinks=Kink("at x = 0 the slope is alpha", {"x": 0.0, "alpha": 0.5}, {"x": 0.5}),
    partials={
        "x": (
            lambda x, alpha: select(x > 0, 1.0, alpha * np.exp(x)),
            r"[x > 0] + \text{alpha} \cdot e^x [x \le 0]",
        )
    },
    reference=lambda x, alpha: np.where(x > 0, x, alpha * (np.exp(x) - 1)),
)
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    """x where it is above 0, else alpha · (e^x - 1)."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)) * number("elu", "alpha", alpha))


@elementwise(
    tex=r"y = x \sigma(x), \quad \sigma(x) = \frac{1}{1 + e^{-x}}",
    partials={
        "x": (
            lambda x: logistic(x) * (1 + np.minimum(np.maximum(x, -FAR), FAR) * (1 - logistic(x))),
            r"\sigma(x) (1 + x (1 - \sigma(x)))",
        )
    },
    reference=lambda x: x / (1 + np.exp(-x)),
)
def silu(x: Any) -> Any:
    """x times its logistic function, also called swish."""
    return np.maximum(x, -FAR) * logistic(x)


@elementwise(
    tex=r"y = \frac{x}{2} (1 + \tanh u), \quad u = \sqrt{2/\pi} (x + 0.044715 x^3)",
    partials={
        "x": (
            lambda x: (
                logistic(SLOPE * x * (1 + CUBIC * x * x))
                * (
                    1
                    + np.minimum(np.maximum(x, -FAR_GELU), FAR_GELU)
                    * (1 - logistic(SLOPE * x * (1 + CUBIC * x * x)))
                    * (SLOPE * (1 + 3 * CUBIC * np.minimum(x * x, FAR_GELU * FAR_GELU)))
                )
            ),
            r"s (1 + x (1 - s) \, 2 u'), \quad s = \frac{1}{1 + e^{-2u}}",
        )
    },
    reference=lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
)
def gelu(x: Any) -> Any:
    """The tanh form of gelu, which is x times the logistic function of 2u."""
    return np.maximum(x, -FAR_GELU) * logistic(SLOPE * x * (1 + CUBIC * x * x))


@elementwise(
    tex=r"y = x \Phi(x) = \frac{x}{2} \left(1 + \text{erf} \frac{x}{\sqrt{2}}\right)",
    partials={
        "x": (
            lambda x: (
                erfc(-x / SQRT_2) / 2
                + np.minimum(np.maximum(x, -FAR_GELU), FAR_GELU) * np.exp(-x * x / 2) / SQRT_2_PI
            ),
            r"\Phi(x) + \frac{x e^{-x^2/2}}{\sqrt{2\pi}}",
        )
    },
    reference=lambda x: x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2))),
)
def gelu_erf(x: Any) -> Any:
    """x times the standard normal distribution function of x."""
    return np.maximum(x, -FAR_GELU) * (erfc(-x / SQRT_2) / 2)
