"""Optimizers: what is done with finished gradients. Each is one formula per leaf and step.

    optimizer = mg.optim.SGD([w, b], lr=0.1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

A step assigns to the leaves, so graphs made before it can no longer be walked.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .axes import number
from .errors import ArgumentError, GraphError
from .store import GradStore
from .tensor import Tensor

Array = NDArray[np.floating]


class _Optimizer:
    """The leaves, and how a step goes over them: those without a gradient stay as they are."""

    def __init__(self, leaves: Iterable[Tensor], lr: float) -> None:
        self.leaves = [leaves] if isinstance(leaves, Tensor) else list(leaves)
        name = type(self).__name__
        for leaf in self.leaves:
            if not (isinstance(leaf, Tensor) and leaf.is_leaf and leaf.requires_grad):
                raise GraphError(f"{name}: optimizes leaves with requires_grad=True, not {leaf!r}")
        if not self.leaves:
            raise GraphError(f"{name}: there is no leaf to optimize")
        self.lr = number(name, "lr", lr, low=0)

    def step(self, store: GradStore | None = None) -> None:
        """Move every leaf by its gradient, in float64: that in `store`, else its `.grad`."""
        for n, leaf in enumerate(self.leaves):
            g = leaf.grad if store is None else store[leaf]
            if g is not None:
                with np.errstate(all="ignore"):
                    leaf.assign_(leaf.data - self._move(n, g.astype(np.float64)))

    def zero_grad(self) -> None:
        """Forget the gradients of all leaves."""
        for leaf in self.leaves:
            leaf.zero_grad()

    def _move(self, n: int, g: Array) -> Array:
        raise NotImplementedError


class SGD(_Optimizer):
    """Stochastic gradient descent: x ← x − lr · v, with v ← momentum · v + g.

    Raises GraphError for anything but leaves that need a gradient, ArgumentError for settings.
    """

    def __init__(self, leaves: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        super().__init__(leaves, lr)
        self.momentum = number("SGD", "momentum", momentum, low=0)
        self._velocity: dict[int, Array] = {}

    def _move(self, n: int, g: Array) -> Array:
        if self.momentum:
            g = self._velocity[n] = self.momentum * self._velocity.get(n, np.zeros(g.shape)) + g
        return self.lr * g


class Adam(_Optimizer):
    """Adam: x ← x − lr · m̂ / (√v̂ + eps), averages of g and g² corrected for their start at 0.

    Kingma and Ba 2015, arXiv:1412.6980. Raises as SGD does.
    """

    def __init__(
        self,
        leaves: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(leaves, lr)
        self.betas = tuple(number("Adam", "betas", beta, low=0) for beta in betas)
        if len(self.betas) != 2 or max(self.betas) >= 1:
            raise ArgumentError(f"Adam: betas must be two numbers from 0 to below 1, not {betas}")
        self.eps = number("Adam", "eps", eps, low=0)
        self._averages: dict[int, tuple[int, Array, Array]] = {}

    def _move(self, n: int, g: Array) -> Array:
        zeros = np.zeros(g.shape)
        steps, mean, square = self._averages.get(n, (0, zeros, zeros))
        first, second = self.betas
        steps += 1
        mean = first * mean + (1 - first) * g
        square = second * square + (1 - second) * g * g
        self._averages[n] = steps, mean, square
        return (
            self.lr
            * (mean / (1 - first**steps))
            / (np.sqrt(square / (1 - second**steps)) + self.eps)
        )
