"""GradStore: gradients by tensor, accumulated, and consumed once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graph import Node

Array = NDArray[Any]


class GradStore:
    """Gradients by tensor: `store[x]` is an array like x, or None where nothing arrived."""

    def __init__(self) -> None:
        self._arrays: dict[int, Array] = {}
        self._owned: set[int] = set()  # arrays that nobody else holds

    def __getitem__(self, node: Node) -> Array | None:
        return self._arrays.get(node.id)

    def __contains__(self, node: Node) -> bool:
        return node.id in self._arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def add(self, node: Node, gradient: Array) -> None:
        """Accumulate `gradient` for `node`."""
        key = node.id
        before = self._arrays.get(key)
        self._arrays[key] = gradient if before is None else np.asarray(before + gradient)
        if key in self._owned:
            self._owned.discard(key)

    def buffer(self, node: Node) -> Array:
        """The array of `node`, zeros at first, for a kernel to add into; nobody else holds it."""
        if node.id not in self._owned:
            before = self._arrays.get(node.id)
            fresh = np.zeros(node._shape, node._dtype)
            self._arrays[node.id] = fresh if before is None else np.add(before, fresh)
            self._owned.add(node.id)
        return self._arrays[node.id]

    def take(self, node: Node) -> Array | None:
        """Remove and return the gradient of `node`: it is consumed once."""
        if self._owned:
            self._owned.discard(node.id)
        return self._arrays.pop(node.id, None)
