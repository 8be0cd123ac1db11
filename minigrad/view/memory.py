"""Memory: how many bytes a graph holds for backward at each step, under both policies.

Counted are the results of ops, by shape and dtype (a view as if it were a copy). Leaves and
constants are there anyway, plain numbers take nothing, and gradients are another matter. A step
counts what is held while it runs, so what it lets go of counts for the last time.

save_all: a result is held from the step that makes it until its node has been visited.

recompute: so is the result of a compute-bound op, and the root. That of a memory-bound op is
dropped after the forward step of its last use. Backward makes it again at the first step of a visit
whose rules read it, together with the dropped operands that it is made from, and holds it until its
own node has been visited. This is what the walk does with a graph that was made under
`mg.checkpointing("recompute")`; here it is worked out from any tape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from ..graph import TapeNode
from ..trace import Step, Trace
from .parts import bytes_text

LARGE = 1000  # bytes from which the stepper shows the lane without being asked

Span = tuple[int, int, int]  # a node, and the first and last step at which its value is held


@dataclass(frozen=True, slots=True)
class Held:
    """One policy: the bytes held at each step; the nodes whose values are made again, in order."""

    policy: str
    bytes: tuple[int, ...]
    made_again: tuple[int, ...] = ()

    @property
    def peak(self) -> int:
        """The most bytes at any step."""
        return max(self.bytes, default=0)

    @property
    def peak_step(self) -> int:
        """The first step (0-based) at which the peak is held."""
        return self.bytes.index(self.peak) if self.bytes else 0

    @property
    def text(self) -> str:
        """`save all: peak 1.2 kB at step 5`."""
        name = self.policy.replace("_", " ")
        return f"{name}: peak {bytes_text(self.peak)} at step {self.peak_step + 1}"


@dataclass(frozen=True, slots=True)
class Memory:
    """Both policies; recompute is None for an older trace, which does not say what ops cost."""

    save_all: Held
    recompute: Held | None

    @property
    def policies(self) -> tuple[Held, ...]:
        return (self.save_all,) if self.recompute is None else (self.save_all, self.recompute)


def memory(trace: Trace) -> Memory:
    """The bytes that are held at each step of a trace, under both policies."""
    made = {step.node: step.index for step in trace.steps if step.kind == "forward"}
    last = len(trace.steps) - 1
    visited = {step.node: step.index for step in _visits(trace)}  # the last step of each visit
    let_go = {place: visited.get(place, last) for place in made}
    all_kept = [(place, first, let_go[place]) for place, first in made.items()]
    save_all = Held("save_all", _bytes(trace, all_kept))
    if any(node.kind == "op" and not node.cost for node in trace.nodes):
        return Memory(save_all, None)
    return Memory(save_all, _recompute(trace, made, let_go))


def _recompute(trace: Trace, made: dict[int, int], let_go: dict[int, int]) -> Held:
    root = trace.nodes[-1].id
    dropped = {i for i in made if trace.nodes[i].cost == "memory" and i != root}
    last_use = {i: step for place, step in made.items() for i in _nodes(trace.nodes[place])}
    again: dict[int, int] = {}
    for step in _visits(trace):
        wanted = [i for i in kept(trace.nodes[step.node]) if i in dropped]
        while wanted:
            place = wanted.pop()
            if place not in again:
                again[place] = step.index
                wanted += [i for i in _nodes(trace.nodes[place]) if i in dropped]
    spans = [
        (place, first, last_use.get(place, first) if place in dropped else let_go[place])
        for place, first in made.items()
    ]
    spans += [(place, first, max(first, let_go[place])) for place, first in again.items()]
    return Held("recompute", _bytes(trace, spans), tuple(again))


def _visits(trace: Trace) -> Iterable[Step]:
    """The steps at which a rule runs: one per tracked operand of the node that is visited."""
    return (step for step in trace.steps if step.kind in ("pull", "stop"))


def _nodes(node: TapeNode) -> list[int]:
    """The operands of an op that are nodes, not numbers."""
    return [i for i in node.inputs if isinstance(i, int)]


def kept(node: TapeNode) -> tuple[int, ...]:
    """The nodes whose values an op keeps for backward, itself among them if its rules read `y`."""
    places = (
        node.id if name == "y" else node.inputs[node.operands.index(name)]
        for name in node.residuals
    )
    return tuple(dict.fromkeys(i for i in places if isinstance(i, int)))


def size_in_bytes(array: Any) -> int:
    """What an array, or a large one that was summarised, takes in memory."""
    return int(math.prod(array.shape) * np.dtype(array.dtype).itemsize)


def _bytes(trace: Trace, spans: Iterable[Span]) -> tuple[int, ...]:
    """The bytes of all values held at each step."""
    change = [0] * (len(trace.steps) + 1)
    for place, first, last in spans:
        size = size_in_bytes(trace.nodes[place].value)
        change[first] += size
        change[last + 1] -= size
    return tuple(accumulate(change[:-1]))


# --- said -----------------------------------------------------------------------------------------


def memory_text(trace: Trace) -> str:
    """Both peaks in one line; nothing where there are no bytes to hold."""
    found = memory(trace)
    if not found.save_all.peak:
        return ""
    return f"Memory held for backward · {' · '.join(held.text for held in found.policies)}"


def lane(trace: Trace) -> dict[str, Any] | None:
    """The memory lane for `assets/stepper.js`; None where there are no bytes to hold.

    Per policy (one alone for an older trace) the bytes at each step, the peak and its words;
    `texts` says every number that occurs. open: whether there is enough to show it unasked.
    """
    found = memory(trace)
    if not found.save_all.peak:
        return None
    policies = found.policies
    counts = {count for held in policies for count in held.bytes}
    return {
        **{held.policy: list(held.bytes) for held in policies},
        "peaks": {h.policy: {"step": h.peak_step, "text": bytes_text(h.peak)} for h in policies},
        "labels": {h.policy: h.text for h in policies},
        "texts": {str(count): bytes_text(count) for count in sorted(counts)},
        "open": found.save_all.peak >= LARGE,
    }
