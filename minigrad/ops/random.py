"""Randomness that can be replayed: the seed is a parameter, so a walk draws the same again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..axes import Array, Shape, floating, is_whole, number
from ..domains import calls
from ..errors import ArgumentError
from ..op import op


def scale(p: float, seed: int, shape: Shape) -> Array:
    """0 for a cell that is dropped, with probability p; 1 / (1 - p) for one that stays."""
    stays = np.random.default_rng(seed).random(shape) >= p
    return np.where(stays, 1 / np.float64(1 - p) if p < 1 else 0.0, 0.0)


@op(
    tex=r"y = \frac{x \odot m}{1 - p}, \quad m \in \{0, 1\}",
    cost="memory",
    domain=calls(
        "any shape, p from 0 to 1, a whole number as seed",
        ((3,), {"p": 0.5, "seed": 0}),
        ((2, 3), {"p": 0.5, "seed": 0}),
        ((4,), {"p": 0.25, "seed": 7}),
        ((3,), {"p": 0.0, "seed": 1}),
        ((2,), {"p": 1.0, "seed": 1}),
    ),
    pulls={
        "x": (
            lambda g, p, seed, x_shape: g * scale(p, seed, x_shape),
            r"\frac{\bar y \odot m}{1 - p}",
        )
    },
    reference=lambda x, p, seed: (
        np.where(np.random.default_rng(seed).random(x.shape) < p, 0, x) / (1 - p if p < 1 else 1)
    ),
)
def dropout(x: Any, *, p: float = 0.5, seed: int) -> Any:
    """x with each cell dropped with probability p, and the rest scaled up; the seed is yours."""
    if not 0 <= number("dropout", "p", p) <= 1:
        raise ArgumentError(f"dropout: p must be a probability from 0 to 1, not {p}")
    if not is_whole(seed) or seed < 0:
        raise ArgumentError(f"dropout: seed must be a whole number from 0 on, not {seed!r}")
    return (floating("dropout", "x", x) * scale(p, seed, x.shape)).astype(x.dtype)
