"""Our ops, one card each, in families. Importing this package declares them all."""

from . import (  # isort: skip
    arithmetic,
    elementary,
    trigonometry,
    activations,
    reduce,
    statistics,
    softmax,
    losses,
    normalise,
    movement,
    copies,
    indexing,
    linalg,
    einsum,
    convolution,
    random,
)

__all__ = [
    "activations",
    "arithmetic",
    "convolution",
    "copies",
    "einsum",
    "elementary",
    "indexing",
    "linalg",
    "losses",
    "movement",
    "normalise",
    "random",
    "reduce",
    "softmax",
    "statistics",
    "trigonometry",
]
