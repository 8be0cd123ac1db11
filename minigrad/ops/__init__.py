"""Our ops, one card each, in families. Importing this package declares them all."""

from . import activations, arithmetic, linalg, movement, reduce

__all__ = ["activations", "arithmetic", "linalg", "movement", "reduce"]
