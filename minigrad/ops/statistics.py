"""Statistics over axes, and running sums and products along one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Dim, axes_of, axis_of, count, floating, kept, largest, number, total
from ..card import Kink
from ..domains import Cases, Rng, Sample
from ..op import op


def _cases(words: str, **params: tuple[Any, ...]) -> Cases:
    """Calls over several axes; each parameter takes its values in turn."""

    def calls(rng: Rng) -> Iterator[Sample]:
        for turn, (shape, dim, keepdim) in enumerate(
            [
                ((4,), None, False),
                ((2, 3), 0, False),
                ((2, 3), -1, True),
                ((2, 3, 2), (0, 2), False),
                ((3, 2), (-1, 0), True),
            ]
        ):
            given = {name: values[turn % len(values)] for name, values in params.items()}
            yield (rng.normal(0, 1.5, shape),), {**given, "dim": dim, "keepdim": keepdim}

    return Cases(words, calls)


# --- spread ---------------------------------------------------------------------------------------


def centred(x: Array, dim: Dim) -> Array:
    """x less its mean over dim, in float64."""
    axes = axes_of("var", dim, x.shape)
    wide = x.astype(np.float64, copy=False)
    mean = np.sum(wide, axis=axes, keepdims=True) / np.float64(count(dim, x.shape))
    return np.asarray(wide - mean)


def freedom(x: Array, dim: Dim, correction: float) -> np.float64:
    """What the squares are divided by, at least 0: n - correction."""
    return np.float64(np.maximum(count(dim, x.shape) - correction, 0))


def variance(name: str, x: Array, dim: Dim, correction: float, keepdim: bool) -> Array:
    """The variance over dim, in float64. Raises ShapeError, ArgumentError or DtypeError."""
    axes = axes_of(name, dim, x.shape)
    number(name, "correction", correction)
    squares = np.square(centred(floating(name, "x", x), dim))
    return np.asarray(np.sum(squares, axis=axes, keepdims=keepdim) / freedom(x, dim, correction))


@op(
    tex=r"y = \frac{1}{n - \text{correction}} \sum_{\text{dim}} (x - \text{mean}\,x)^2",
    domain=_cases("any shape, any axes with more cells than the correction", correction=(1, 0)),
    pulls={
        "x": (
            lambda g, x, dim, correction: (
                kept(g, dim, x.shape) * 2 * centred(x, dim) / freedom(x, dim, correction)
            ),
            r"\bar y \frac{2 (x - \text{mean}\,x)}{n - \text{correction}}",
        )
    },
    reference=lambda x, dim, correction, keepdim: np.var(
        x, axis=dim, ddof=correction, keepdims=keepdim
    ),
)
def var(x: Any, *, dim: Dim = None, correction: float = 1, keepdim: bool = False) -> Any:
    """The variance over dim, divided by n - correction; NaN where that is 0."""
    return variance("var", x, dim, correction, keepdim).astype(x.dtype)


@op(
    tex=r"y = \sqrt{\text{var}(x)}",
    domain=_cases("any shape, any axes with more cells than the correction", correction=(1, 0)),
    kinks=Kink("where all cells are equal the slope is 0", {"x": [2.0, 2.0]}, {"x": [0, 0]}),
    pulls={
        "x": (
            lambda g, x, y, dim, correction: np.where(
                kept(y, dim, x.shape) == 0,
                0,
                kept(g, dim, x.shape)
                * centred(x, dim)
                / (freedom(x, dim, correction) * kept(y, dim, x.shape)),
            ),
            r"\bar y \frac{x - \text{mean}\,x}{(n - \text{correction})\,y}",
        )
    },
    reference=lambda x, dim, correction, keepdim: np.std(
        x, axis=dim, ddof=correction, keepdims=keepdim
    ),
)
def std(x: Any, *, dim: Dim = None, correction: float = 1, keepdim: bool = False) -> Any:
    """The standard deviation over dim: the root of `var`."""
    return np.sqrt(variance("std", x, dim, correction, keepdim)).astype(x.dtype)


# --- norms ----------------------------------------------------------------------------------------


def _scaled(x: Array, dim: Dim) -> tuple[Array, Array]:
    """|x| divided by the largest over dim, so that no power overflows; and that largest."""
    size = np.abs(x.astype(np.float64, copy=False))
    top = largest(size, axes_of("norm", dim, x.shape))
    top = np.where(top == 0, 1, top)
    return size / top, top


def pull_norm(g: Array, x: Array, y: Array, dim: Dim, p: float) -> Array:
    """g · sign(x) · (|x| / y)^(p-1); to the largest if p is infinite; 0 where y is 0."""
    g, y = kept(g, dim, x.shape), kept(y, dim, x.shape)
    if p == np.inf:
        tied = np.abs(x) == y
        shares = tied / tied.sum(axis=axes_of("norm", dim, x.shape), keepdims=True)
        return np.where(tied & (y != 0), g * np.sign(x) * shares, 0)
    return np.where(y == 0, 0, g * np.sign(x) * (np.abs(x) / np.where(y == 0, 1, y)) ** (p - 1))


@op(
    tex=r"y = \left(\sum_{\text{dim}} |x|^p\right)^{1/p}",
    domain=_cases("any shape, any axes, p from 1 to infinity", p=(2, 1, 3, np.inf, 1.5)),
    kinks=(
        Kink("where all cells are 0 the slope is 0", {"x": [0.0, 0.0]}, {"x": [0, 0]}),
        Kink("for p = 1 a cell that is 0 gets 0", {"x": [0.0, -3.0], "p": 1}, {"x": [0, -1]}),
        Kink(
            "for p infinite the largest share evenly",
            {"x": [2.0, -2.0, 1.0], "p": np.inf},
            {"x": [0.5, -0.5, 0]},
        ),
    ),
    pulls={
        "x": (
            lambda g, x, y, dim, p: pull_norm(g, x, y, dim, p),
            r"\bar y \, \text{sign}(x) \left(\frac{|x|}{y}\right)^{p-1}",
        )
    },
    reference=lambda x, p, dim, keepdim: (
        np.max(np.abs(x), axis=dim, keepdims=keepdim, initial=0)
        if p == np.inf
        else np.sum(np.abs(x) ** p, axis=dim, keepdims=keepdim) ** (1 / p)
    ),
)
def norm(x: Any, *, p: float = 2, dim: Dim = None, keepdim: bool = False) -> Any:
    """The p-norm over dim, without overflow on the way; p = infinity is the largest |x|."""
    power, axes = number("norm", "p", p, low=1), axes_of("norm", dim, x.shape)
    floating("norm", "x", x)
    if power == np.inf:
        return np.max(np.abs(x), axis=axes, keepdims=keepdim, initial=0)
    scaled, top = _scaled(x, dim)
    y = np.sum(scaled**power, axis=axes, keepdims=True) ** (1 / power) * top
    return np.asarray(y if keepdim else np.squeeze(y, axis=axes)).astype(x.dtype)


@op(
    tex=r"y = \ln \sum_{\text{dim}} e^x",
    domain=_cases("any shape, any axes"),
    kinks=Kink("a cell at -inf gets 0", {"x": [-np.inf, 0.0, -np.inf], "dim": 0}, {"x": [0, 1, 0]}),
    pulls={
        "x": (
            lambda g, x, y, dim: np.where(
                x == -np.inf, 0, kept(g, dim, x.shape) * np.exp(x - kept(y, dim, x.shape))
            ),
            r"\bar y \, e^{x - y}",
        )
    },
    reference=lambda x, dim, keepdim: np.log(np.sum(np.exp(x), axis=dim, keepdims=keepdim)),
)
def logsumexp(x: Any, *, dim: Dim = None, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials over dim, without overflow on the way."""
    axes = axes_of("logsumexp", dim, x.shape)
    top = largest(floating("logsumexp", "x", x), axes)
    y = np.log(total(np.exp(x - top), axes, keepdims=True)) + top
    return y if keepdim else np.squeeze(y, axis=axes)


# --- running --------------------------------------------------------------------------------------


def _running(zeros: bool) -> Cases:
    def calls(rng: Rng) -> Iterator[Sample]:
        for shape, dim in [((4,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 2), 1)]:
            x = rng.normal(0, 1.5, shape)
            if zeros:
                x[tuple(slice(1, 2) for _ in shape)] = 0
            yield (x,), {"dim": dim}

    return Cases("any shape with an axis", calls)


@op(
    tex=r"y_i = \sum_{j \le i} x_j",
    domain=_running(zeros=False),
    pulls={
        "x": (
            lambda g, dim: np.flip(np.cumsum(np.flip(g, dim), dim, dtype=np.float64), dim),
            r"\sum_{j \ge i} \bar y_j",
        )
    },
    reference=np.cumsum,
)
def cumsum(x: Any, *, dim: int) -> Any:
    """The running sum along dim, accumulated in float64."""
    wide = np.float64 if x.dtype.kind == "f" else None
    y = np.cumsum(x, axis=axis_of("cumsum", dim, x.shape), dtype=wide)
    return y.astype(x.dtype) if wide else y


def pull_cumprod(g: Array, x: Array, dim: int) -> Array:
    """The product before each cell, times what follows: s_i = g_i + x_{i+1} s_{i+1}.

    No division, so zeros are exact.
    """
    rows, upstream = np.moveaxis(x, dim, 0), np.moveaxis(g, dim, 0)
    before, after = np.ones(rows.shape), np.zeros(rows.shape)
    before[1:] = np.cumprod(rows[:-1], axis=0)
    for i in reversed(range(len(rows))):
        after[i] = upstream[i] + (rows[i + 1] * after[i + 1] if i + 1 < len(rows) else 0)
    return np.moveaxis(before * after, 0, dim)


@op(
    tex=r"y_i = \prod_{j \le i} x_j",
    domain=_running(zeros=True),
    kinks=Kink(
        "with zeros each term is the product of the others, exactly",
        {"x": [2.0, 0.0, 5.0], "dim": 0},
        {"x": [1, 12, 0]},
    ),
    pulls={
        "x": (
            lambda g, x, dim: pull_cumprod(g, x, dim),
            r"\sum_{j \ge i} \bar y_j \prod_{k \le j, k \ne i} x_k",
        )
    },
    reference=np.cumprod,
)
def cumprod(x: Any, *, dim: int) -> Any:
    """The running product along dim."""
    return np.cumprod(x, axis=axis_of("cumprod", dim, x.shape))
