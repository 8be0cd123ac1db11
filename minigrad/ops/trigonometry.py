"""Trigonometry, elementwise; angles in radians."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..domains import between
from ..op import elementwise


@elementwise(tex=r"y = \sin x", partials={"x": (lambda x: np.cos(x), r"\cos x")}, reference=np.sin)
def sin(x: Any) -> Any:
    """The sine of x."""
    return np.sin(x)


@elementwise(
    tex=r"y = \cos x", partials={"x": (lambda x: -np.sin(x), r"-\sin x")}, reference=np.cos
)
def cos(x: Any) -> Any:
    """The cosine of x."""
    return np.cos(x)


@elementwise(
    tex=r"y = \tan x",
    domain=between(-1.4, 1.4),
    partials={"x": (lambda y: 1 + y * y, "1 + y^2")},
    reference=np.tan,
)
def tan(x: Any) -> Any:
    """The tangent of x."""
    return np.tan(x)


@elementwise(
    tex=r"y = \arctan x",
    partials={"x": (lambda x: 1 / (1 + x * x), r"\frac{1}{1 + x^2}")},
    reference=np.arctan,
)
def atan(x: Any) -> Any:
    """The angle between -π/2 and π/2 whose tangent is x."""
    return np.arctan(x)


@elementwise(
    tex=r"y = \sinh x", partials={"x": (lambda x: np.cosh(x), r"\cosh x")}, reference=np.sinh
)
def sinh(x: Any) -> Any:
    """The hyperbolic sine of x."""
    return np.sinh(x)


@elementwise(
    tex=r"y = \cosh x", partials={"x": (lambda x: np.sinh(x), r"\sinh x")}, reference=np.cosh
)
def cosh(x: Any) -> Any:
    """The hyperbolic cosine of x."""
    return np.cosh(x)
