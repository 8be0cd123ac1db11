"""What a trace must satisfy to be shown: every place exists, every edge is one, every array fits.

A trace file may come from anywhere. What passes here can be drawn without looking twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .compare import Check
from .errors import TraceError
from .events import (
    Accumulated,
    Event,
    Pulled,
    Reached,
    Recomputed,
    Reduced,
    Released,
    Seeded,
    Stopped,
    Visited,
)
from .graph import TapeNode

Nodes = Sequence[TapeNode]
MOST = 2**62  # bytes: more than any memory


def refuse_unsound(nodes: Nodes, events: Sequence[Event], checks: Sequence[Check]) -> None:
    """Raise TraceError, in one sentence, for the first thing that does not fit."""
    _must(bool(nodes), "it holds no nodes")
    for place, node in enumerate(nodes):
        _node(place, node)
    _must(bool(events) and isinstance(events[0], Seeded), "its walk does not start with a seed")
    pulled: Pulled | None = None
    for event in events:
        _event(nodes, event, pulled)
        pulled = event if isinstance(event, Pulled) else None
    for check in checks:
        _check(nodes, check)


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise TraceError(otherwise)


def _place(nodes: Nodes, place: Any, what: str) -> TapeNode:
    _must(
        isinstance(place, int) and not isinstance(place, bool) and 0 <= place < len(nodes),
        f"{what} names a node that is not there",
    )
    node: TapeNode = nodes[place]
    return node


def _edge(nodes: Nodes, consumer: Any, argnum: Any, operand: Any, what: str) -> None:
    """`operand` is the input `argnum` of `consumer`."""
    inputs = _place(nodes, consumer, what).inputs
    known = isinstance(argnum, int) and 0 <= argnum < len(inputs)
    _must(known and inputs[argnum] == operand, f"{what} goes along an edge that is not there")
    _place(nodes, operand, what)


def _fits(array: Any, shape: tuple[int, ...], what: str) -> None:
    _must(array is not None and array.shape == shape, f"{what} has an array of the wrong shape")


def _node(place: int, node: TapeNode) -> None:
    what = f"node {place}"
    words = (node.name, node.op, node.symbol, node.tex, *node.operands, *node.residuals)
    words += (*node.origin, *node.sources)
    _must(all(isinstance(word, str) for word in words), f"{what} has a name that is no text")
    _must(node.id == place and node.kind in ("leaf", "constant", "op"), f"{what} is malformed")
    _must(isinstance(node.params, Mapping), f"{what} has malformed parameters")
    older = (i for i in node.inputs if not isinstance(i, float))
    known = all(isinstance(i, int) and not isinstance(i, bool) and 0 <= i < place for i in older)
    _must(known, f"{what} has an input that is not older than itself")
    pairs = len(node.operands) == len(node.inputs) and len(node.origin) == 2
    _must(pairs and (node.kind == "op") == bool(node.inputs), f"{what} has malformed inputs")
    kept = all(name == "y" or name in node.operands for name in node.residuals)
    _must(kept, f"{what} has saved a value that it does not have")
    _must(node.cost in ("", "memory", "compute"), f"{what} has a cost of no known kind")
    _must(math.prod(node.value.shape) < MOST, f"{what} is larger than any memory")
    _must(len(node.sources) in (0, len(node.inputs) + 1), f"{what} has malformed sources")


def _event(nodes: Nodes, event: Event, pulled: Pulled | None) -> None:
    what = f"an event {type(event).__name__}"
    node = _place(nodes, event.node, what)
    shape = node.value.shape
    match event:
        case Seeded() | Reached():
            _fits(event.gradient, shape, what)
        case Visited():
            _fits(event.upstream, shape, what)
        case Pulled():
            _edge(nodes, event.node, event.argnum, event.input, what)
            _fits(event.upstream, shape, what)
            if event.local is not None:
                _fits(event.local, shape, what)
            _must(event.contribution is not None, f"{what} has no contribution")
            for pair in event.residuals:
                named = isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
                _must(named and hasattr(pair[1], "shape"), f"{what} has a malformed saved value")
        case Reduced():
            _edge(nodes, event.node, event.argnum, event.input, what)
            _must(event.to_shape == nodes[event.input].value.shape, f"{what} has a wrong shape")
            _fits(event.gradient, event.to_shape, what)
            _must(pulled is not None, f"{what} follows no pull")
            assert pulled is not None
            _fits(pulled.contribution, event.from_shape, what)
            axes = all(isinstance(a, int) and 0 <= a < len(event.from_shape) for a in event.axes)
            _must(axes, f"{what} sums an axis that is not there")
        case Accumulated():
            _edge(nodes, event.source, event.argnum, event.node, what)
            for array in (event.before, event.added, event.after):
                _fits(array, shape, what)
            if pulled is not None:
                _fits(pulled.contribution, shape, "an event Pulled")
        case Stopped():
            _edge(nodes, event.node, event.argnum, event.input, what)
        case Recomputed() | Released():
            _must(0 <= event.bytes < MOST, f"{what} names a number of bytes that cannot be")


def _check(nodes: Nodes, check: Check) -> None:
    what = "a check"
    words = (check.level, check.op, check.name, check.note)
    _must(all(isinstance(word, str) for word in words), f"{what} has a malformed text")
    _must(check.level in ("op", "graph"), f"{what} is of no known level")
    node = _place(nodes, check.node, what)
    if check.level == "op":
        _edge(nodes, check.node, check.argnum, check.input, what)
    receiver = _place(nodes, check.input, what)
    shape = receiver.value.shape
    _must(check.shape == shape, f"{what} does not fit the node it names")
    _fits(check.analytic, shape, what)
    for array in (check.numeric, check.error):
        if array is not None:
            _fits(array, shape, what)
    if check.numeric is not None:
        _must(len(check.cells) == math.prod(shape), f"{what} has not one verdict per element")
    inside = len(check.index) in (0, len(shape)) and all(
        isinstance(n, int) and 0 <= n < size for n, size in zip(check.index, shape, strict=False)
    )
    _must(inside, f"{what} points outside its array")
    if check.jacobian is not None:
        _fits(check.jacobian, (math.prod(node.value.shape), math.prod(shape)), what)
