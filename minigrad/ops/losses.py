"""Losses that compare two tensors cell by cell; reduction is "mean", "sum" or "none"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import fold, share
from ..domains import Cases, Rng, Sample, between, real
from ..errors import ShapeError
from ..kernels import logistic
from ..op import op

REFERENCE: dict[str, Any] = {"mean": np.mean, "sum": np.sum, "none": lambda losses: losses}


def _cases(target: Any) -> Cases:
    def calls(rng: Rng) -> Iterator[Sample]:
        for shape, reduction in [((3,), "mean"), ((2, 3), "sum"), ((2, 2), "none"), ((), "mean")]:
            yield (real.draw(rng, shape), target.draw(rng, shape)), {"reduction": reduction}

    return Cases(f"x: {real.words}; target: {target.words}, of the same shape", calls)


def _meet(name: str, x: Any, target: Any) -> None:
    if np.shape(x) != np.shape(target):
        raise ShapeError(
            f"{name}: x {np.shape(x)} and target {np.shape(target)} must have the same shape"
        )


@op(
    tex=r"y = \frac{1}{n} \sum (x - \text{target})^2",
    domain=_cases(real),
    pulls={
        "x": (
            lambda g, x, target, reduction: share(g, reduction, x.size) * 2 * (x - target),
            r"\frac{\bar y}{n} 2 (x - \text{target})",
        ),
        "target": (
            lambda g, x, target, reduction: share(g, reduction, x.size) * 2 * (target - x),
            r"\frac{\bar y}{n} 2 (\text{target} - x)",
        ),
    },
    reference=lambda x, target, reduction: REFERENCE[reduction]((x - target) ** 2),
)
def mse_loss(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    """The squared difference of x and target, averaged over all cells."""
    _meet("mse_loss", x, target)
    return fold(np.square(x - target), reduction, "mse_loss")


@op(
    tex=r"y = \frac{1}{n} \sum \ln(1 + e^x) - x \cdot \text{target}",
    domain=_cases(between(0, 1)),
    pulls={
        "x": (
            lambda g, x, target, reduction: share(g, reduction, x.size) * (logistic(x) - target),
            r"\frac{\bar y}{n} (\sigma(x) - \text{target})",
        ),
        "target": (
            lambda g, x, reduction: share(g, reduction, x.size) * -x,
            r"-\frac{\bar y}{n} x",
        ),
    },
    reference=lambda x, target, reduction: REFERENCE[reduction](
        -target * np.log(1 / (1 + np.exp(-x))) - (1 - target) * np.log(1 / (1 + np.exp(x)))
    ),
)
def binary_cross_entropy_with_logits(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    """The cross-entropy of probabilities `target` and the logistic function of logits x."""
    _meet("binary_cross_entropy_with_logits", x, target)
    softplus = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return fold(softplus - x * target, reduction, "binary_cross_entropy_with_logits")
