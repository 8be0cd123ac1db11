"""Random calls of every op, for `benchmarks.conformance`: operands by name, and parameters.

Shapes have up to four axes, some of size 1 or 0; operands broadcast, or are plain numbers; indices
repeat and count from the end. Cells are ordinary, or lie on a grid (zeros, kinks and ties), or are
large, or tiny.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.conformance_cells import (
    Call,
    Draw,
    Random,
    Rng,
    axis,
    chance,
    grid,
    huge,
    nonzero,
    normal,
    offset,
    operand,
    pick,
    positive,
    real,
    sizes,
    some_axes,
    with_nothing,
    with_zeros,
)
from benchmarks.conformance_places import PLACES

# --- elementwise ----------------------------------------------------------------------------------


def unary(draw: Draw, **params: Callable[[Rng], Any]) -> Random:
    return lambda rng: ({"x": draw(rng, sizes(rng))}, {n: p(rng) for n, p in params.items()})


def binary(draw: Draw, other: Draw | None = None, names: str = "ab") -> Random:
    """Two operands that broadcast; either, but not both, may be a plain number."""

    def call(rng: Rng) -> Call:
        shape = sizes(rng)
        values: list[Any] = [operand(rng, shape, d) for d in (draw, other or draw)]
        if chance(rng, 0.4):
            k = int(rng.integers(2))
            number = float((draw, other or draw)[k](rng, ()))
            values[k] = int(number) if number == int(number) else number
        return dict(zip(names, values, strict=True)), {}

    return call


def power(rng: Rng) -> Call:
    """A positive base, or any base with a fixed exponent."""
    if chance(rng, 0.5):
        return {"x": real(rng, sizes(rng)), "e": pick(rng, 0, 1, 2, 3, -1, 0.5, 2.5, -2.0)}, {}
    return binary(
        lambda r, s: np.abs(grid(r, s)) if chance(r, 0.3) else r.uniform(0.1, 4, s), normal, "xe"
    )(rng)


def choice(rng: Rng) -> Call:
    shape = sizes(rng)
    values: list[Any] = [operand(rng, shape, real), operand(rng, shape, real)]
    if chance(rng, 0.3):
        values[rng.integers(2)] = pick(rng, 2, -0.5)
    mask = operand(rng, shape, lambda r, s: r.random(s) < 0.5)
    return {"mask": mask, "a": values[0], "b": values[1]}, {}


def clamped(rng: Rng) -> Call:
    low, high = pick(rng, None, -1.0, 0, -0.25), pick(rng, None, 0.5, 1, 300.0)
    return {"x": real(rng, sizes(rng))}, {"min": low, "max": high}


# --- over axes ------------------------------------------------------------------------------------


def over(draw: Draw, least: int = 0, **params: Callable[[Rng], Any]) -> Random:
    def call(rng: Rng) -> Call:
        x = draw(rng, sizes(rng, least=least))
        given = {name: p(rng) for name, p in params.items()}
        return {"x": x}, {**given, "dim": some_axes(rng, x.ndim), "keepdim": chance(rng, 0.5)}

    return call


def logs_summed(rng: Rng) -> Call:
    """Over nothing but -inf the slopes differ on purpose, so there is something else."""
    given, params = over(with_nothing)(rng)
    axes, x = params["dim"], given["x"]
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    return {"x": np.where(top == -np.inf, 0, x)}, params


def along(draw: Draw) -> Random:
    def call(rng: Rng) -> Call:
        x = draw(rng, sizes(rng, low=1))
        return {"x": x}, {"dim": axis(rng, x.ndim)}

    return call


# --- losses, normalisation ------------------------------------------------------------------------


def classed(draw: Draw) -> Random:
    def call(rng: Rng) -> Call:
        shape = (*sizes(rng, 0, 1), int(rng.integers(1, 5)))
        shape += sizes(rng, 0, 2, least=1) if len(shape) > 1 else ()
        place = min(len(shape) - 1, 1)
        target = rng.integers(-shape[place], shape[place], shape[:place] + shape[place + 1 :])
        return {"x": draw(rng, shape), "target": target}, {"reduction": reduction(rng)}

    return call


def reduction(rng: Rng) -> str:
    return str(rng.choice(["mean", "sum", "none"]))


def paired(draw: Draw, target: Draw) -> Random:
    def call(rng: Rng) -> Call:
        shape = sizes(rng)
        given = {"x": draw(rng, shape), "target": target(rng, shape)}
        return given, {"reduction": reduction(rng)}

    return call


def normalised(bias: bool) -> Random:
    def call(rng: Rng) -> Call:
        shape = sizes(rng, low=1, least=1)
        last = shape[-int(rng.integers(1, len(shape) + 1)) :]
        given: dict[str, Any] = {"x": offset(rng, shape)}
        if chance(rng, 0.15):
            given["weight"], last = 0.75, shape[-1:]
        else:
            given["weight"] = normal(rng, last)
        if bias:
            given["bias"] = pick(rng, -0.5, *[normal(rng, last)] * 4)
        return given, {"eps": pick(rng, 1e-5, 1e-3, 1.0)}

    return call


# --- the table ------------------------------------------------------------------------------------

CASES: dict[str, Random] = {
    **dict.fromkeys(["add", "sub", "mul", "maximum", "minimum"], binary(real)),
    "div": binary(real, nonzero),
    "pow": power,
    "hypot": binary(nonzero),  # at the origin the slopes differ on purpose
    "where": choice,
    **dict.fromkeys("neg abs affine sqr exp expm1 erf floor ceil round sign".split(), unary(real)),
    **dict.fromkeys("sin cos tan atan sinh cosh copy".split(), unary(real)),
    **dict.fromkeys(["sqrt", "ln", "log1p"], unary(positive)),
    **dict.fromkeys("tanh sigmoid softplus relu silu gelu gelu_erf".split(), unary(huge)),
    "recip": unary(nonzero),
    "affine": unary(real, mul=lambda r: pick(r, 2, -0.5, 0.0), add=lambda r: pick(r, 1, -3.0)),
    "clamp": clamped,
    "leaky_relu": unary(huge, slope=lambda r: pick(r, None, 0.2, 0.0, -0.5)),
    "elu": unary(huge, alpha=lambda r: pick(r, None, 0.5, 2.0)),
    "sum": over(real),
    "mean": over(real),
    "prod": over(with_zeros),
    "max": over(real, least=1),
    "min": over(real, least=1),
    "var": over(offset, least=1, correction=lambda r: pick(r, None, 0, 1, 0.5)),
    "std": over(offset, least=1, correction=lambda r: pick(r, None, 0, 1, 0.5)),
    "norm": over(real, least=1, p=lambda r: pick(r, None, 2, 1, 3, 1.5, np.inf)),
    "logsumexp": logs_summed,
    "cumsum": along(real),
    "cumprod": along(with_zeros),
    "softmax": along(with_nothing),
    "log_softmax": along(with_nothing),
    "nll_loss": classed(normal),
    "cross_entropy": classed(real),
    "mse_loss": paired(real, real),
    "binary_cross_entropy_with_logits": paired(huge, lambda r, s: r.random(s)),
    "rms_norm": normalised(bias=False),
    "layer_norm": normalised(bias=True),
    **PLACES,
}
