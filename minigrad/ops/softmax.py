"""Softmax and the losses: what a model ends in. Stable at ±1000, and with -inf cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Shape, axis_of, floating, fold, largest, share, total
from ..card import Kink
from ..domains import Cases, Rng, Sample
from ..errors import ShapeError
from ..indices import along, index_of
from ..op import op

# --- softmax --------------------------------------------------------------------------------------


def log_normalised(x: Array, axis: int) -> Array:
    """x less the logarithm of the sum of its exponentials along an axis."""
    moved = x - largest(x, (axis,))
    return moved - np.log(total(np.exp(moved), (axis,), keepdims=True))


def sum_along(x: Array, dim: int) -> Array:
    return np.asarray(np.sum(x, axis=dim, keepdims=True, dtype=np.float64))


def _rows(rng: Rng) -> Iterator[Sample]:
    for shape, dim in [((3,), 0), ((2, 3), -1), ((2, 3), 0), ((2, 3, 2), 1)]:
        yield (rng.normal(0, 1.5, shape),), {"dim": dim}


@op(
    tex=r"y_i = \frac{e^{x_i}}{\sum_j e^{x_j}}",
    domain=Cases("any shape with an axis", _rows),
    kinks=Kink("a cell at -inf has value 0 and gets 0", {"x": [-np.inf, 0.0], "dim": 0}, {"x": 0}),
    pulls={
        "x": (
            lambda g, y, dim: y * (g - sum_along(g * y, dim)),
            r"y (\bar y - \sum \bar y \odot y)",
        )
    },
    reference=lambda x, dim: np.exp(x) / np.sum(np.exp(x), axis=dim, keepdims=True),
)
def softmax(x: Any, *, dim: int) -> Any:
    """Positive shares along dim that total 1."""
    axis = axis_of("softmax", dim, x.shape)
    shares = np.exp(floating("softmax", "x", x) - largest(x, (axis,)))
    return shares / total(shares, (axis,), keepdims=True)


@op(
    tex=r"y_i = x_i - \ln \sum_j e^{x_j}",
    domain=Cases("any shape with an axis", _rows),
    pulls={
        "x": (
            lambda g, y, dim: g - np.exp(y) * sum_along(g, dim),
            r"\bar y - e^y \sum \bar y",
        )
    },
    reference=lambda x, dim: x - np.log(np.sum(np.exp(x), axis=dim, keepdims=True)),
)
def log_softmax(x: Any, *, dim: int) -> Any:
    """The logarithm of softmax, exact where shares are tiny."""
    axis = axis_of("log_softmax", dim, x.shape)
    return log_normalised(floating("log_softmax", "x", x), axis)


# --- losses over classes --------------------------------------------------------------------------


def class_axis(name: str, x: Any, target: Any) -> int:
    """The axis of the classes, as in PyTorch: the only one, or the second. Raises ShapeError."""
    if not x.ndim:
        raise ShapeError(f"{name}: x () must have an axis of classes")
    axis = 0 if x.ndim == 1 else 1
    wanted = x.shape[:axis] + x.shape[axis + 1 :]
    if np.shape(target) != wanted:
        raise ShapeError(
            f"{name}: x {x.shape} has its classes on axis {axis}, so target must have shape "
            f"{wanted}, not {np.shape(target)}"
        )
    return axis


def picked(name: str, x: Array, target: Array) -> tuple[Array, ...]:
    """Where in x the target classes stand. Raises OutOfRangeError or DtypeError."""
    axis = class_axis(name, x, target)
    index = index_of(name, target, x.shape[axis], axis)
    return along(np.expand_dims(index, axis), axis)


def _classes(rng: Rng) -> Iterator[Sample]:
    for shape, reduction in [
        ((4, 3), "mean"),
        ((3,), "sum"),
        ((2, 3, 2), "mean"),
        ((2, 3), "none"),
        ((1, 2), "sum"),
    ]:
        x = rng.normal(0, 1.5, shape)
        axis = min(x.ndim - 1, 1)
        target = rng.integers(0, shape[axis], shape[:axis] + shape[axis + 1 :])
        yield (x, target), {"reduction": reduction}


def _log_likelihood(x: Array, target: Array, reduction: str) -> Array:
    axis = 0 if x.ndim == 1 else 1
    losses = -np.take_along_axis(x, np.expand_dims(target, axis), axis).squeeze(axis)
    folds: dict[str, Any] = {"mean": np.mean, "sum": np.sum, "none": lambda a: a}
    return np.asarray(folds[reduction](losses))


def pull_nll(g: Array, x_shape: Shape, target: Array, reduction: str) -> Array:
    """Minus the share of g at the target classes, 0 elsewhere."""
    axis = 0 if len(x_shape) == 1 else 1
    back = np.zeros(x_shape, g.dtype)
    spread = np.broadcast_to(share(g, reduction, np.size(target)), np.shape(target))
    back[picked("nll_loss", back, target)] = -np.expand_dims(spread, axis)
    return back


@op(
    tex=r"y = -\frac{1}{n} \sum_i x_{i, \text{target}_i}",
    domain=Cases("log-probabilities (n, classes, …) and a class for each row", _classes),
    pulls={
        "x": (
            lambda g, x_shape, target, reduction: pull_nll(g, x_shape, target, reduction),
            r"-\frac{\bar y}{n} \text{ at the targets}",
        )
    },
    reference=_log_likelihood,
)
def nll_loss(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    """The negative log-likelihood of the target classes, given log-probabilities x."""
    axis = class_axis("nll_loss", x, target)
    losses = -np.squeeze(x[picked("nll_loss", x, target)], axis=axis)
    return fold(losses, reduction, "nll_loss")


def pull_cross_entropy(g: Array, x: Array, target: Array, reduction: str) -> Array:
    """The share of g times softmax(x), less 1 at the target classes."""
    axis = class_axis("cross_entropy", x, target)
    spread = np.broadcast_to(share(g, reduction, np.size(target)), np.shape(target))
    back = np.exp(log_normalised(x, axis))
    back[picked("cross_entropy", x, target)] -= 1
    return np.asarray(back * np.expand_dims(spread, axis))


@op(
    tex=r"y = -\frac{1}{n} \sum_i \ln \, \text{softmax}(x_i)_{\text{target}_i}",
    domain=Cases("logits (n, classes, …) and a class for each row", _classes),
    pulls={
        "x": (
            lambda g, x, target, reduction: pull_cross_entropy(g, x, target, reduction),
            r"\frac{\bar y}{n} (\text{softmax}(x) - [\text{target}])",
        )
    },
    reference=lambda x, target, reduction: _log_likelihood(
        x - np.log(np.sum(np.exp(x), axis=min(x.ndim - 1, 1), keepdims=True)), target, reduction
    ),
)
def cross_entropy(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    """The negative log-likelihood of the target classes, given logits x."""
    axis = class_axis("cross_entropy", x, target)
    scores = log_normalised(floating("cross_entropy", "x", x), axis)
    losses = -np.squeeze(scores[picked("cross_entropy", x, target)], axis=axis)
    return fold(losses, reduction, "cross_entropy")
