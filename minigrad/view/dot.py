"""The graph as DOT text, and what its nodes say at each step. Names are labels, never keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import graphviz

from ..events import Accumulated, Seeded
from ..graph import TapeNode
from ..trace import Trace
from .parts import param_text, shape_text, short, size_of

FAR = 8  # ranks an edge may span in the layout; longer ones cost Graphviz cubic time
MANY = 60  # nodes from which the layout is told to be quick
LONGEST = 28  # letters of a name that the graph shows; the whole name stands in the step card


@dataclass(frozen=True, slots=True)
class Stat:
    """What a node says from step `start` on, and how strongly (0 … 1) it is filled in its hue."""

    start: int
    text: str
    hue: str
    strength: float


@dataclass(frozen=True, slots=True)
class Far:
    """An edge that is drawn over the finished layout: from operand to consumer."""

    operand: int
    consumer: int
    argnum: int
    kind: str


def far_edges(trace: Trace) -> tuple[Far, ...]:
    """The edges that span many ranks, such as a weight used at every layer of a deep graph."""
    depth: list[int] = []
    first: dict[int, int] = {}  # depth of the first use: a leaf is drawn just before it
    far = []
    for node in trace.nodes:
        inputs = [i for i in node.inputs if isinstance(i, int)]
        depth.append(1 + max((depth[i] for i in inputs), default=-1))
        for k, i in enumerate(node.inputs):
            if not isinstance(i, int):
                continue
            start = first.setdefault(i, depth[node.id]) - 1
            if depth[node.id] - start > FAR:
                far.append(Far(i, node.id, k, _edge_kind(trace, i)))
    return tuple(far)


def _edge_kind(trace: Trace, operand: int) -> str:
    return "constant" if trace.nodes[operand].kind == "constant" else "tracked"


def dot(trace: Trace) -> str:
    """The graph from left to right: a box per node with room for its numbers, an edge per use."""
    quick = {"nslimit": "1", "nslimit1": "1", "mclimit": "0.3", "splines": "line"}
    drawn = graphviz.Digraph(
        graph_attr={"rankdir": "LR", "nodesep": "0.25", "ranksep": "0.4", "pad": "0.1"}
        | (quick if len(trace.nodes) > MANY else {}),
        node_attr={
            "shape": "box",
            "style": "rounded",
            "fontname": "Helvetica",
            "fontsize": "13",
            "margin": "0.1,0.07",
            "height": "0.1",
        },
        edge_attr={"dir": "both", "arrowsize": "0.75", "fontname": "Helvetica", "fontsize": "12"},
    )
    for node, stats in zip(trace.nodes, all_stats(trace), strict=True):
        room = max((s.text for s in stats), key=len, default="")
        lines = (_roomy(label(trace, node)), shape_line(node), _roomy(room))
        drawn.node(f"n{node.id}", "\\n".join(map(escaped, lines)), **{"class": node.kind})
    apart = {(far.consumer, far.argnum) for far in far_edges(trace)}
    for node in trace.nodes:
        for k, i in enumerate(node.inputs):
            if isinstance(i, int) and (node.id, k) not in apart:
                kind = _edge_kind(trace, i)
                copied = _copied(trace, node, i)
                note = {"label": escaped(f" {copied} ")} if copied else {}
                drawn.edge(f"n{i}", f"n{node.id}", id=f"{node.id}-{k}", **{"class": kind}, **note)
    return str(drawn.source)


def escaped(text: str) -> str:
    """A label that Graphviz shows letter by letter: entities, escapes, markup mean nothing."""
    shown = text if len(text) <= LONGEST + 16 else text[: LONGEST + 15] + "…"
    shown = "".join(c if c.isprintable() else " " for c in shown)
    return str(
        graphviz.escape(shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    )


def _roomy(text: str) -> str:
    """With room to spare: names are drawn bold, and the reader's font may be wider."""
    return text + " " * (1 + len(text) // 8)


def _clipped(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def label(trace: Trace, node: TapeNode) -> str:
    """`mul → y`, or `mul × 2 → y` when the other operand is a number; a leaf is its name."""
    if node.kind != "op":
        return _clipped(node.name)
    words = [node.op]
    for k, number in enumerate(node.inputs if node.symbol else ()):
        if not isinstance(number, int):
            sign = node.symbol
            words.append(f"{short(number)} {sign}" if k == 0 else f"{sign} {short(number)}")
    return f"{_clipped(' '.join(words))} → {_clipped(node.name)}"


def shape_line(node: TapeNode) -> str:
    """The shape, and what kind of node it is or what parameters the op was given."""
    words = [shape_text(node.value.shape)]
    if node.kind == "leaf":
        words.append("leaf")
    elif node.kind == "constant":
        reason, op = node.origin
        words.append(f"{reason}" if reason != "constant" or not op else f"constant, from {op}")
    else:
        numbers = [
            (w, i) for w, i in zip(node.operands, node.inputs, strict=True) if not node.symbol
        ]
        words += [f"{w} {short(i)}" for w, i in numbers if not isinstance(i, int)]
        for name, value in (node.params or {}).items():
            if value is not None and value is not False:
                words.append(name if value is True else f"{name} {param_text(value)}")
    return " · ".join(words)


def _copied(trace: Trace, node: TapeNode, operand: int) -> str:
    """The words on an edge along which broadcasting makes copies."""
    from .words import along, copied_axes

    elementwise = bool(node.symbol) and not node.sources
    copied = copied_axes(trace.nodes[operand].value.shape, node.value.shape)
    return f"broadcast {along(copied)}" if copied and elementwise else ""


def all_stats(trace: Trace) -> list[list[Stat]]:
    """Per node, what it says as the steps go by: its value, then its gradient so far."""
    born = {step.node: step.index for step in trace.steps if step.phase == "forward"}
    largest = max((_finite(size_of(n.value)) for n in trace.nodes), default=0.0)
    values = [
        f"‖{_short_name(n.name)}‖ {short(size_of(n.value))}"
        if n.value.size != 1
        else short(size_of(n.value), 4)
        for n in trace.nodes
    ]
    stats = [
        [Stat(born.get(n.id, 0), value, "value", _share(size_of(n.value), largest))]
        for n, value in zip(trace.nodes, values, strict=True)
    ]
    gradients: list[tuple[int, int, Any]] = []
    for step in trace.steps:
        for event in step.events:
            if isinstance(event, Seeded):
                gradients.append((step.index, event.node, event.gradient))
            if isinstance(event, Accumulated):
                gradients.append((step.index, event.node, event.after))
    top = max((_finite(size_of(g)) for _, _, g in gradients), default=0.0)
    for start, place, gradient in gradients:
        size = size_of(gradient)
        text = f"{values[place]} · grad {short(size, 4 if gradient.size == 1 else 3)}"
        stats[place].append(Stat(start, text, "grad", _share(size, top)))
    return stats


def _short_name(name: str) -> str:
    return name if len(name) <= 6 else "·"


def _finite(size: float) -> float:
    return abs(size) if abs(size) < float("inf") else 0.0


def _share(size: float, largest: float) -> float:
    if not abs(size) < float("inf"):
        return 1.0
    return min(abs(size) / largest, 1.0) if largest else 0.0
