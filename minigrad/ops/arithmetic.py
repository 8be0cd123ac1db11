"""Arithmetic, elementwise with broadcasting; either operand may be a plain number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..domains import away_from, positive, real
from ..kernels import select
from ..op import elementwise

# --- two operands ---------------------------------------------------------------------------------


@elementwise(
    tex="y = a + b",
    symbol="+",
    reference=np.add,
    partials={"a": (lambda: 1.0, "1"), "b": (lambda: 1.0, "1")},
)
def add(a: Any, b: Any) -> Any:
    """The sum a + b, broadcast."""
    return a + b


@elementwise(
    tex="y = a - b",
    symbol="−",
    reference=np.subtract,
    partials={"a": (lambda: 1.0, "1"), "b": (lambda: -1.0, "-1")},
)
def sub(a: Any, b: Any) -> Any:
    """The difference a - b, broadcast."""
    return a - b


@elementwise(
    tex=r"y = a \odot b",
    symbol="×",
    reference=np.multiply,
    partials={"a": (lambda b: b, "b"), "b": (lambda a: a, "a")},
)
def mul(a: Any, b: Any) -> Any:
    """The product a · b, cell by cell, broadcast."""
    return a * b


@elementwise(
    tex=r"y = \frac{a}{b}",
    symbol="÷",
    domain={"a": real, "b": away_from(0)},
    reference=np.divide,
    partials={
        "a": (lambda b: 1 / b, r"\frac{1}{b}"),
        "b": (lambda b, y: -y / b, r"-\frac{y}{b}"),
    },
)
def div(a: Any, b: Any) -> Any:
    """The quotient a / b, broadcast."""
    return a / b


@elementwise(
    tex="y = x^e",
    symbol="^",
    domain={"x": positive, "e": real},
    reference=np.power,
    kinks="at x = 0 the slope in x is 0 for e = 0, 1 for e = 1 and +inf for 0 < e < 1; the slope "
    "in e is 0 for e >= 0 (0 ln 0 counts as 0) and NaN for x < 0",
    partials={
        "x": (lambda x, e: select(e == 0, 0.0, e * x ** (e - 1.0)), "e\\,x^{e-1}"),
        "e": (lambda x, e, y: select((x == 0) & (e >= 0), 0.0, y * np.log(x)), r"y \ln x"),
    },
)
def pow(x: Any, e: Any) -> Any:
    """x to the power e, broadcast; usually e is a number."""
    return x ** (e * 1.0)


# --- one operand ----------------------------------------------------------------------------------


@elementwise(tex="y = -x", partials={"x": (lambda: -1.0, "-1")}, reference=np.negative)
def neg(x: Any) -> Any:
    """The negative of x."""
    return -x


@elementwise(tex="y = e^x", partials={"x": (lambda y: y, "y")}, reference=np.exp)
def exp(x: Any) -> Any:
    """The exponential of x."""
    return np.exp(x)


@elementwise(
    tex=r"y = \ln x",
    domain=positive,
    partials={"x": (lambda x: select(x < 0, np.nan, 1 / np.abs(x)), r"\frac{1}{x}")},
    reference=np.log,
    kinks="at x = 0 the value is -inf and the slope +inf; below 0 both are NaN",
)
def ln(x: Any) -> Any:
    """The natural logarithm of x."""
    return np.log(x)


@elementwise(tex="y = x^2", partials={"x": (lambda x: 2 * x, "2x")}, reference=np.square)
def sqr(x: Any) -> Any:
    """The square of x."""
    return x * x


@elementwise(
    tex=r"y = \sqrt{x}",
    domain=positive,
    partials={"x": (lambda y: 0.5 / np.abs(y), r"\frac{1}{2y}")},
    reference=np.sqrt,
    kinks="at x = 0 the slope is +inf; below 0 value and slope are NaN",
)
def sqrt(x: Any) -> Any:
    """The square root of x."""
    return np.sqrt(x)
