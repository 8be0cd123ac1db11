"""The graph that the forward pass leaves behind: Node, the order of the walk, Tape.

A node is always newer than its inputs, so descending creation id IS a reverse-topological order: no
recursion, no marking of temporary states, a chain of a million ops is just a long list.
"""

from __future__ import annotations

import dis
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .card import Op
from .errors import GraphError

Array = NDArray[Any]
Where = tuple[CodeType, int]  # the code object and instruction that ran an op

_ids = itertools.count()  # never reused, so nothing can be paired with a dead node's record


def now() -> int:
    """The next tick of the clock that ids are taken from."""
    return next(_ids)


class Node:
    """A value in the graph; an op's result keeps its card, operands and parameters."""

    __slots__ = (
        "__weakref__",
        "_dropped",
        "_grad",
        "_inputs",
        "_tracked",
        "_value",
        "card",
        "id",
        "made_at",
        "name",
        "origin",
        "params",
        "version",
    )

    id: int
    name: str | None
    card: Op | None  # None for leaves and constants
    params: Mapping[str, Any]
    _inputs: tuple[Node | float, ...]  # nodes, or plain numbers
    _value: Array
    _tracked: bool
    _grad: Array | None
    _dropped: Any  # what graphs hold in its place: False, True until its first use, or that node
    version: int  # when it was last edited, on the clock that ids are taken from; 0 for never
    origin: tuple[str, str]  # of an untracked result: (reason, op name); words only, no reference
    made_at: Where | None

    def __init__(self, value: Array, tracked: bool, name: str | None, where: Where | None) -> None:
        self.id = next(_ids)
        self._value = value
        self._tracked = tracked
        self.name = name
        self.made_at = where
        self.card = None
        self.params = {}
        self._inputs = ()
        self._grad = None
        self._dropped = False
        self.version = 0
        self.origin = ("constant", "")

    @property
    def _shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def _dtype(self) -> np.dtype[Any]:
        return self._value.dtype

    def record(self, card: Op, inputs: tuple[Node | float, ...], params: Mapping[str, Any]) -> None:
        """Make this node the tracked result of an op."""
        self.card, self._inputs, self.params = card, inputs, params


def order(root: Node) -> list[Node]:
    """The tracked nodes that reach `root`, newest first: each comes after all of its uses."""
    seen = {root.id: root}
    stack = [root]
    while stack:
        for operand in stack.pop()._inputs:
            if isinstance(operand, Node) and operand._tracked and operand.id not in seen:
                seen[operand.id] = operand
                stack.append(operand)
    return [seen[i] for i in sorted(seen, reverse=True)]


def refuse_stale(node: Node) -> None:
    """Raise GraphError if an operand of `node` was edited after the forward pass."""
    for operand in node._inputs:
        if isinstance(operand, Node) and operand.version > node.id:
            assert node.card is not None
            raise GraphError(
                f"{node.card.name}: {operand.name or 'an operand'} of shape {operand._shape} "
                "was edited by assign_ after the forward pass; run the forward pass again"
            )


# --- the tape -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TapeNode:
    """One entry of a tape. Ids are places on the tape, 0 … n-1 in creation order.

    kind: "leaf" (needs a gradient), "constant" or "op". inputs: an id, or a plain number. origin:
    where an untracked value came from, in words. residuals: names of what the op saved. cost: of an
    op, "memory" (cheap to make again) or "compute"; "" where an older file does not say. name: what
    the person called it, else `v3`. sources: axes of operands and result in letters, for ops that
    sum products. line: file and line of the call.
    """

    id: int
    kind: str
    name: str
    value: Any  # an array, or its summary in a trace read from a file
    op: str = ""
    symbol: str = ""
    tex: str = ""
    inputs: tuple[int | float, ...] = ()
    operands: tuple[str, ...] = ()
    params: Mapping[str, Any] | None = None
    residuals: tuple[str, ...] = ()
    origin: tuple[str, str] = ("", "")
    sources: tuple[str, ...] = ()
    line: tuple[str, int] | None = None
    cost: str = ""


class Tape:
    """The frozen record of a graph: every node that reaches `root`, constants too, oldest first."""

    def __init__(self, root: Node) -> None:
        seen = {root.id: root}
        stack = [root]
        while stack:
            for operand in stack.pop()._inputs:
                if isinstance(operand, Node) and operand.id not in seen:
                    seen[operand.id] = operand
                    stack.append(operand)
        self.live = [seen[i] for i in sorted(seen)]  # the nodes themselves
        self.place = {node.id: n for n, node in enumerate(self.live)}  # node id -> tape id

    def __len__(self) -> int:
        return len(self.live)

    def __iter__(self) -> Iterator[TapeNode]:
        for n, node in enumerate(self.live):
            yield self._entry(n, node)

    def _entry(self, n: int, node: Node) -> TapeNode:
        value = node._value.view()
        value.flags.writeable = False
        common: dict[str, Any] = {"id": n, "name": label(node, n), "value": value}
        common["line"] = line_of(node.made_at)
        card = node.card
        if card is None:
            kind = "leaf" if node._tracked else "constant"
            origin = ("", "") if node._tracked else node.origin
            return TapeNode(kind=kind, origin=origin, **common)
        tracked = tuple(isinstance(i, Node) and i._tracked for i in node._inputs)
        return TapeNode(
            kind="op",
            op=card.name,
            symbol=card.symbol,
            tex=card.tex,
            inputs=tuple(
                self.place[i.id] if isinstance(i, Node) else float(i) for i in node._inputs
            ),
            operands=card.inputs,
            params=node.params,
            residuals=card.residuals(tracked),
            cost=card.cost,
            sources=card.sources(*map(_shape, node._inputs), **node.params) if card.sources else (),
            **common,
        )


def _shape(operand: Node | float) -> tuple[int, ...]:
    return operand._shape if isinstance(operand, Node) else ()


# --- where an op was called, and what its result is called there ----------------------------------


def label(node: Node, place: int) -> str:
    """The name given to a node, else the variable it was assigned to, else v and its place."""
    return node.name or assigned_name(node.made_at) or f"v{place}"


def line_of(where: Where | None) -> tuple[str, int] | None:
    """File and line of an instruction."""
    if where is None:
        return None
    code, instruction = where
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


@lru_cache(maxsize=256)
def _stores(code: CodeType) -> dict[int, str]:
    names: dict[int, str] = {}
    last = 0
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith(
            ("STORE_NAME", "STORE_FAST", "STORE_GLOBAL", "STORE_DEREF")
        ):
            target = instruction.argval
            name = str(target[0] if isinstance(target, tuple) else target)
            for offset in range(last, instruction.offset, 2):  # the call, and its inline caches
                names[offset] = name
        last = instruction.offset
    return names


def assigned_name(where: Where | None) -> str | None:
    """`y` for an op called in `y = a * b`: the next instruction stores its result there."""
    if where is None:
        return None
    name = _stores(where[0]).get(where[1])
    return name if name and name.isidentifier() and name.strip("_") else None
