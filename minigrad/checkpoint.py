"""Checkpointing: what the graph keeps for backward, and what it drops and makes again.

An op is compute-bound (matmul, reductions: its result is kept) or memory-bound (cheap elementwise
ops and movements). Under the policy `recompute` a graph does not hold the results of memory-bound
ops. In their place stand `Dropped` nodes, which know how they were made. A walk makes a dropped
value again from the nearest kept ancestors when a rule first reads it, at most once, and lets go of
it when its node is visited: after that nothing in the walk can ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError
from .graph import Node, refuse_stale
from .pull import run_forward

Array = NDArray[Any]
POLICIES = ("save_all", "recompute")

_policy: ContextVar[str] = ContextVar("minigrad_checkpointing", default="save_all")


class checkpointing:
    """Set the policy for the ops that run inside: `with checkpointing("recompute"):`.

    "save_all" keeps every result; "recompute" drops those of memory-bound ops. Nests, so one op can
    be kept inside a block that drops; also a decorator. Holds for the current thread or async task
    only. Raises ArgumentError for another word.
    """

    def __init__(self, policy: str) -> None:
        if policy not in POLICIES:
            raise ArgumentError(
                f'checkpointing: the policy is "save_all" or "recompute", not {policy!r}'
            )
        self.policy = policy
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> None:
        self._tokens.append(_policy.set(self.policy))

    def __exit__(self, *error: object) -> None:
        _policy.reset(self._tokens.pop())

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with checkpointing(self.policy):
                return fn(*args, **kwargs)

        return call


def drops(node: Node) -> bool:
    """Whether the graph is to drop this fresh result."""
    return _policy.get() == "recompute" and node.card is not None and node.card.cost == "memory"


class Dropped(Node):
    """What a graph holds of a result whose value it does not keep: the same id, card and operands.

    Reading `_value` makes it again, without keeping it.
    """

    __slots__ = ("_dtype", "_shape")  # known without the value

    def __init__(self, result: Node) -> None:
        for name in ("id", "name", "made_at", "card", "params", "_inputs"):
            setattr(self, name, getattr(result, name))
        self._tracked, self._grad, self._dropped = True, None, False
        self.version, self.origin = 0, ("", "")
        self._shape, self._dtype = result._shape, result._dtype  # type: ignore[misc]

    @property
    def _value(self) -> Array:  # type: ignore[override]
        return Values().of(self)


def in_graphs(result: Node) -> Node:
    """What graphs hold of a result to be dropped, the same for all of its uses."""
    if result._dropped is True:
        result._dropped = Dropped(result)
    return result._dropped  # type: ignore[no-any-return]


class Values:
    """The values that one walk reads: kept ones as they are, dropped ones made again, once.

    notes: a list that every value made again is noted in, for a walk that tells of it.
    """

    def __init__(self, notes: list[tuple[Node, Array]] | None = None) -> None:
        self._made: dict[int, Array] = {}
        self._notes = notes

    def of(self, node: Node) -> Array:
        """The value of a node. Raises GraphError if a leaf it is made from was edited."""
        if not isinstance(node, Dropped):
            return node._value
        if node.id not in self._made:
            self._make(node)
        return self._made[node.id]

    def _make(self, node: Dropped) -> None:
        """Operands first, and by a list, not by recursion: a chain may be long."""
        waiting = [node]
        while waiting:
            top = waiting[-1]
            missing = [i for i in top._inputs if isinstance(i, Dropped) and i.id not in self._made]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if top.id in self._made:
                continue
            refuse_stale(top)
            assert top.card is not None
            operands = [self.of(i) if isinstance(i, Node) else i for i in top._inputs]
            value = run_forward(top.card, operands, top.params)
            self._made[top.id] = value
            if self._notes is not None:
                self._notes.append((top, value))

    def release(self, node: Node) -> None:
        """Let go of a value: the walk has passed its node."""
        self._made.pop(node.id, None)


def bytes_of(node: Node) -> int:
    """What a node's value takes in memory, without making it."""
    return int(np.prod(node._shape, dtype=np.int64)) * node._dtype.itemsize
