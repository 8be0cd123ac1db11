"""Trace: the record of a whole run, as data: tape, events, checks and source lines.

Nothing in a trace can be executed. Steps, what next and prev move by, are read off the events:
forward one per op, backward the seed, each pull (or stop at a zero slope) and each leaf reached.
"""

from __future__ import annotations

import dataclasses
import linecache
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from .backward import seed_for, walk
from .check import Replay, check_input, check_leaf
from .compare import Check
from .events import (
    Accumulated,
    Event,
    Pulled,
    Reached,
    Seeded,
    Stopped,
    Visited,
)
from .graph import Node, Tape, TapeNode
from .tensor import Tensor

LINES = 80  # lines of code that a trace quotes at most


@dataclass(frozen=True, slots=True)
class Step:
    """One step: kind is "forward", "seed", "pull", "stop" or "reach"; events are those it tells."""

    index: int
    kind: str
    node: int
    events: tuple[Event, ...] = ()
    check: Check | None = None

    @property
    def phase(self) -> str:
        return "forward" if self.kind == "forward" else "backward"


@dataclass(frozen=True, slots=True)
class Source:
    """The quoted code: what file it is from, and (line number, text) pairs."""

    title: str
    lines: tuple[tuple[int, str], ...]


class Trace:
    """A recorded run: `nodes` (the tape), `events`, and `checks`, per pulled step and per leaf."""

    def __init__(
        self,
        nodes: Sequence[TapeNode],
        events: Sequence[Event],
        checks: Sequence[Check],
        source: Source | None,
    ) -> None:
        self.nodes = tuple(nodes)
        self.events = tuple(events)
        self.checks = tuple(checks)
        self.source = source
        self.steps = tuple(_steps(self.nodes, self.events, self.checks))

    def __repr__(self) -> str:
        root = self.nodes[-1]
        fine = sum(bool(c) for c in self.checks)
        checked = f"{fine} of {len(self.checks)} checks agree"
        wrong = dict.fromkeys(f"{c.op}, input {c.name}" for c in self.checks if not c)
        blamed = f"; not: {'; '.join(wrong)}" if wrong else ""
        return f"<Trace of {root.name}: {len(self.steps)} steps, {checked}{blamed}>"


# --- steps ----------------------------------------------------------------------------------------


def _steps(
    nodes: Sequence[TapeNode], events: Sequence[Event], checks: Sequence[Check]
) -> Iterator[Step]:
    by_place = {(c.level, c.node, c.argnum): c for c in checks}
    rows: list[tuple[str, int, list[Event], Check | None]] = []
    waiting: list[Event] = []  # told before the first pull of their visit
    for event in events:
        match event:
            case Seeded(node):
                rows.append(("seed", node, [event], None))
            case Pulled(node, _, argnum):
                rows.append(("pull", node, [*waiting, event], by_place.get(("op", node, argnum))))
            case Stopped(node, _, argnum, "zero slope"):
                rows.append(("stop", node, [*waiting, event], by_place.get(("op", node, argnum))))
            case Reached(node):
                rows.append(("reach", node, [event], by_place.get(("graph", node, None))))
            case Visited():
                waiting = [event]
                continue
            case _ if waiting:
                waiting.append(event)
                continue
            case _:
                rows[-1][2].append(event)
        waiting = []
    ops = [n for n in nodes if n.kind == "op"]
    for index, made in enumerate(ops):
        yield Step(index, "forward", made.id)
    for index, (kind, place, told, check) in enumerate(rows, len(ops)):
        yield Step(index, kind, place, tuple(told), check)


# --- record ---------------------------------------------------------------------------------------


def record(loss: Tensor, gradient: ArrayLike | None = None, checks: bool = True) -> Trace:
    """Walk back from `loss` and keep everything: every event, each step and leaf checked.

    gradient: the seed, as in `backward`. checks=False leaves the numeric checks out. Touches no
    `.grad`.
    """
    events = list(walk(loss, gradient))
    tape = Tape(loss)
    nodes = list(tape)
    found: list[Check] = []
    if checks:
        found = _op_checks(tape, nodes, events) + _leaf_checks(
            tape, seed_for(loss, gradient), events
        )
    return Trace([_local(n) for n in nodes], events, found, _quote(nodes))


def _op_checks(tape: Tape, nodes: Sequence[TapeNode], events: Sequence[Event]) -> list[Check]:
    upstream = {e.node: e.upstream for e in events if isinstance(e, Visited)}
    checks = []
    for event in events:
        if not isinstance(event, Accumulated):
            continue
        live = tape.live[event.source]
        assert live.card is not None
        operands = [i._value if isinstance(i, Node) else i for i in live._inputs]
        checks.append(
            check_input(
                live.card,
                operands,
                live.params,
                event.argnum,
                upstream[event.source],
                event.added,
                called=nodes[event.node].name,
                node=event.source,
                input=event.node,
            )
        )
    return checks


def _leaf_checks(tape: Tape, seed: Any, events: Sequence[Event]) -> list[Check]:
    replay = Replay(tape, seed)
    reached = [e for e in events if isinstance(e, Reached)]
    return [check_leaf(replay, e.node, e.name, e.gradient) for e in reached]


# --- source lines ---------------------------------------------------------------------------------


def _local(node: TapeNode) -> TapeNode:
    """The node without the path of the file: only its name."""
    line = (_title(node.line[0]), node.line[1]) if node.line else None
    return dataclasses.replace(node, line=line)


def _title(file: str) -> str:
    """The file's name, without its path; a notebook kernel numbers the files of its cells."""
    name = Path(file).name
    return "notebook cell" if re.fullmatch(r"\d+\.py", name) else name


def _quote(nodes: Sequence[TapeNode]) -> Source | None:
    """The lines of the file most nodes were made in: all of a short one, else those around."""
    files = Counter(n.line[0] for n in nodes if n.line)
    if not files:
        return None
    file = files.most_common(1)[0][0]
    text = [line.rstrip("\n") for line in linecache.getlines(file)]
    used = sorted({n.line[1] for n in nodes if n.line and n.line[0] == file})
    if not text or used[-1] > len(text):
        return None
    first, last = (1, len(text)) if len(text) <= LINES // 2 else (used[0], used[-1])
    numbers = list(range(first, last + 1)) if last - first < LINES else used[:LINES]
    while numbers and not text[numbers[-1] - 1].strip():
        numbers.pop()
    while numbers and not text[numbers[0] - 1].strip():
        numbers.pop(0)
    return Source(_title(file), tuple((n, text[n - 1]) for n in numbers))
