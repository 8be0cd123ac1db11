"""Elementary functions of one operand, elementwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..axes import number
from ..card import Kink
from ..domains import away_from, between, positive
from ..errors import ArgumentError
from ..kernels import erf as error_function
from ..kernels import select
from ..op import elementwise


@elementwise(tex="y = -x", partials={"x": (lambda: -1.0, "-1")}, reference=np.negative)
def neg(x: Any) -> Any:
    """The negative of x."""
    return -x


@elementwise(
    tex=r"y = \left|x\right|",
    domain=away_from(0),
    partials={"x": (lambda g, x: select(x > 0, g, select(x < 0, -g, 0)), r"\text{sign}(x)")},
    reference=np.abs,
    kinks=Kink("at x = 0 the slope is 0", {"x": [-2.0, 0.0, -0.0, 3.0]}, {"x": [-1, 0, 0, 1]}),
)
def abs(x: Any) -> Any:
    """The absolute value of x."""
    return np.abs(x)


@elementwise(
    tex=r"y = \frac{1}{x}",
    domain=away_from(0),
    partials={"x": (lambda y: -y * y, "-y^2")},
    reference=np.reciprocal,
    kinks=Kink("at x = 0 value and slope are infinite", {"x": 0.0}, {"x": -np.inf}),
)
def recip(x: Any) -> Any:
    """The reciprocal of x."""
    return 1 / x


@elementwise(
    tex=r"y = \text{mul} \cdot x + \text{add}",
    domain={"mul": (2.0, -0.5, 0.0), "add": (1.0, 0.0, -3.0)},
    partials={"x": (lambda mul: mul, r"\text{mul}")},
    reference=lambda x, mul, add: mul * x + add,
)
def affine(x: Any, *, mul: float, add: float) -> Any:
    """mul · x + add, with two plain numbers."""
    return x * number("affine", "mul", mul) + number("affine", "add", add)


@elementwise(
    tex=r"y = \min(\max(x, \text{min}), \text{max})",
    domain={"min": (-1.0, -0.7, -np.inf), "max": (1.0, np.inf, 0.4)},
    partials={
        "x": (
            lambda g, x, min, max: select((x >= min) & (x <= max) & (min < max), g, 0),
            r"[\text{min} \le x \le \text{max}]",
        )
    },
    reference=np.clip,
    kinks=(
        Kink(
            "at a bound the slope is 1",
            {"x": [-1.0, 0.0, 0.5, 1.0, 2.0], "min": 0.0, "max": 1.0},
            {"x": [0, 1, 1, 1, 0]},
        ),
        Kink(
            "where min = max the result is constant: the slope is 0",
            {"x": [0.0, 1.0, 2.0], "min": 1.0, "max": 1.0},
            {"x": [0, 0, 0]},
        ),
    ),
)
def clamp(x: Any, *, min: float = -np.inf, max: float = np.inf) -> Any:
    """x, but not below min and not above max; either bound may be left out."""
    low, high = number("clamp", "min", min), number("clamp", "max", max)
    if low > high:
        raise ArgumentError(f"clamp: min {low:g} is above max {high:g}")
    return (
        np.clip(x, x.dtype.type(low), x.dtype.type(high))
        if x.dtype.kind == "f"
        else (np.clip(x, low, high))
    )


@elementwise(tex="y = x^2", partials={"x": (lambda x: 2 * x, "2x")}, reference=np.square)
def sqr(x: Any) -> Any:
    """The square of x."""
    return x * x


@elementwise(
    tex=r"y = \sqrt{x}",
    domain=positive,
    partials={"x": (lambda y: 0.5 / np.abs(y), r"\frac{1}{2y}")},
    reference=np.sqrt,
    kinks=(
        Kink("at x = 0 the slope is +inf", {"x": [0.0, -0.0]}, {"x": [np.inf, np.inf]}),
        Kink("below 0 value and slope are NaN", {"x": -4.0}, {"x": np.nan}),
    ),
)
def sqrt(x: Any) -> Any:
    """The square root of x."""
    return np.sqrt(x)


# --- exponentials and logarithms ------------------------------------------------------------------


@elementwise(tex="y = e^x", partials={"x": (lambda y: y, "y")}, reference=np.exp)
def exp(x: Any) -> Any:
    """The exponential of x."""
    return np.exp(x)


@elementwise(tex="y = e^x - 1", partials={"x": (lambda y: y + 1, "y + 1")}, reference=np.expm1)
def expm1(x: Any) -> Any:
    """The exponential of x less 1, exact near 0."""
    return np.expm1(x)


@elementwise(
    tex=r"y = \ln x",
    domain=positive,
    partials={"x": (lambda x: select(x < 0, np.nan, 1 / np.abs(x)), r"\frac{1}{x}")},
    reference=np.log,
    kinks=(
        Kink("at x = 0 the value is -inf and the slope +inf", {"x": 0.0}, {"x": np.inf}),
        Kink("below 0 value and slope are NaN", {"x": -1.0}, {"x": np.nan}),
    ),
)
def ln(x: Any) -> Any:
    """The natural logarithm of x."""
    return np.log(x)


@elementwise(
    tex=r"y = \ln(1 + x)",
    domain=between(-0.8, 3),
    partials={"x": (lambda x: select(x < -1, np.nan, 1 / np.abs(1 + x)), r"\frac{1}{1 + x}")},
    reference=np.log1p,
    kinks=(
        Kink("at x = -1 the value is -inf and the slope +inf", {"x": -1.0}, {"x": np.inf}),
        Kink("below -1 value and slope are NaN", {"x": -2.0}, {"x": np.nan}),
    ),
)
def log1p(x: Any) -> Any:
    """The natural logarithm of 1 + x, exact near 0."""
    return np.log1p(x)


@elementwise(
    tex=r"y = \frac{2}{\sqrt{\pi}} \int_0^x e^{-t^2} dt",
    partials={
        "x": (lambda x: 1.1283791670955126 * np.exp(-x * x), r"\frac{2}{\sqrt{\pi}} e^{-x^2}")
    },
    reference=np.vectorize(math.erf, otypes=[float]),
)
def erf(x: Any) -> Any:
    """The error function of x."""
    return error_function(x * 1.0)  # of whole numbers too


# --- steps: the slope is 0 almost everywhere ------------------------------------------------------

STEP = "the gradient stops here: the slope is 0 almost everywhere, and 0 at the steps too"


@elementwise(
    tex=r"y = \lfloor x \rfloor",
    partials={"x": (lambda: 0.0, "0")},
    reference=np.floor,
    kinks=Kink(STEP, {"x": [-0.5, 1.0, 1.5]}, {"x": [0, 0, 0]}),
)
def floor(x: Any) -> Any:
    """The largest whole number that is not above x."""
    return np.floor(x)


@elementwise(
    tex=r"y = \lceil x \rceil",
    partials={"x": (lambda: 0.0, "0")},
    reference=np.ceil,
    kinks=Kink(STEP, {"x": [-0.5, 1.0, 1.5]}, {"x": [0, 0, 0]}),
)
def ceil(x: Any) -> Any:
    """The smallest whole number that is not below x."""
    return np.ceil(x)


@elementwise(
    tex=r"y = \text{round}(x)",
    partials={"x": (lambda: 0.0, "0")},
    reference=np.round,
    kinks=Kink(STEP, {"x": [-0.5, 1.0, 2.5]}, {"x": [0, 0, 0]}),
)
def round(x: Any) -> Any:
    """The nearest whole number; halves go to the even one."""
    return np.round(x)


@elementwise(
    tex=r"y = \text{sign}(x)",
    partials={"x": (lambda: 0.0, "0")},
    reference=np.sign,
    kinks=Kink(STEP, {"x": [-2.0, 0.0, 3.0]}, {"x": [0, 0, 0]}),
)
def sign(x: Any) -> Any:
    """-1, 0 or 1."""
    return np.sign(x)
