"""Arithmetic of two operands, elementwise with broadcasting; either may be a plain number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..card import Kink
from ..domains import away_from, flags, positive, real
from ..indices import mask_of
from ..kernels import select
from ..op import elementwise


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
    kinks=Kink("at b = 0 value and slope are infinite", {"a": 1.0, "b": 0.0}, {"a": np.inf}),
)
def div(a: Any, b: Any) -> Any:
    """The quotient a / b, broadcast."""
    return a / b


@elementwise(
    tex="y = x^e",
    symbol="^",
    domain={"x": positive, "e": real},
    reference=np.power,
    kinks=(
        Kink("at x = 0 the slope in x is 0 for e = 0", {"x": 0.0, "e": 0.0}, {"x": 0, "e": 0}),
        Kink("at x = 0 the slope in x is 1 for e = 1", {"x": 0.0, "e": 1.0}, {"x": 1, "e": 0}),
        Kink("at x = 0 it is infinite for 0 < e < 1", {"x": 0.0, "e": 0.5}, {"x": np.inf, "e": 0}),
        Kink("the slope in e is 0 at x = 0: 0 ln 0 counts as 0", {"x": 0.0, "e": 2.0}, {"e": 0}),
        Kink("the slope in e is NaN for x < 0", {"x": -2.0, "e": 2.0}, {"x": -4, "e": np.nan}),
    ),
    partials={
        "x": (lambda x, e: select(e == 0, 0.0, e * x ** (e - 1.0)), "e\\,x^{e-1}"),
        "e": (lambda x, e, y: select((x == 0) & (e >= 0), 0.0, y * np.log(x)), r"y \ln x"),
    },
)
def pow(x: Any, e: Any) -> Any:
    """x to the power e, broadcast; usually e is a number."""
    return x ** (e * 1.0)


@elementwise(
    tex=r"y = \max(a, b)",
    reference=np.maximum,
    kinks=Kink(
        "a tie is split evenly; a plain number ties like an operand",
        {"a": [1.0, 2.0, 3.0], "b": 2.0},
        {"a": [0, 0.5, 1], "b": 1.5},
    ),
    partials={
        "a": (
            lambda g, a, b: select(a > b, g, select(a == b, g / 2, 0)),
            r"[a > b] + \frac{1}{2} [a = b]",
        ),
        "b": (
            lambda g, a, b: select(b > a, g, select(a == b, g / 2, 0)),
            r"[b > a] + \frac{1}{2} [a = b]",
        ),
    },
)
def maximum(a: Any, b: Any) -> Any:
    """The larger of a and b, cell by cell, broadcast."""
    return np.maximum(a, b)


@elementwise(
    tex=r"y = \min(a, b)",
    reference=np.minimum,
    kinks=Kink(
        "a tie is split evenly; a plain number ties like an operand",
        {"a": [1.0, 2.0, 3.0], "b": 2.0},
        {"a": [1, 0.5, 0], "b": 1.5},
    ),
    partials={
        "a": (
            lambda g, a, b: select(a < b, g, select(a == b, g / 2, 0)),
            r"[a < b] + \frac{1}{2} [a = b]",
        ),
        "b": (
            lambda g, a, b: select(b < a, g, select(a == b, g / 2, 0)),
            r"[b < a] + \frac{1}{2} [a = b]",
        ),
    },
)
def minimum(a: Any, b: Any) -> Any:
    """The smaller of a and b, cell by cell, broadcast."""
    return np.minimum(a, b)


@elementwise(
    tex=r"y = \sqrt{a^2 + b^2}",
    domain=away_from(0),
    reference=np.hypot,
    kinks=Kink("at a = b = 0 both slopes are 0", {"a": 0.0, "b": 0.0}, {"a": 0, "b": 0}),
    partials={
        "a": (lambda a, y: select(y == 0, 0.0, a / y), r"\frac{a}{y}"),
        "b": (lambda b, y: select(y == 0, 0.0, b / y), r"\frac{b}{y}"),
    },
)
def hypot(a: Any, b: Any) -> Any:
    """The length of (a, b), broadcast, without overflow on the way."""
    return np.hypot(a, b)


@elementwise(
    tex=r"y = a \text{ where } \text{mask} \text{, else } b",
    domain={"mask": flags, "a": real, "b": real},
    reference=np.where,
    kinks=Kink(
        "the branch that is not taken gets exactly 0, even where it is NaN",
        {"mask": [True, False], "a": [1.0, np.nan], "b": 0.0},
        {"a": [1, 0], "b": 1},
    ),
    partials={
        "a": (lambda g, mask: select(mask, g, 0), r"[\text{mask}]"),
        "b": (lambda g, mask: select(mask, 0, g), r"1 - [\text{mask}]"),
    },
)
def where(mask: Any, a: Any, b: Any) -> Any:
    """a where mask is true, else b, broadcast; it selects, and never multiplies by the mask."""
    return np.where(mask_of("where", mask), a, b)
