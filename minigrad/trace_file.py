"""Trace files: a trace as one JSON object, written whole or not at all, and read without trusting
it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .compare import Check
from .errors import TraceError
from .events import (
    Event,
    Pulled,
    Reached,
    Reduced,
    Seeded,
    Stopped,
    array_in,
    array_out,
    event_in,
    event_out,
)
from .graph import TapeNode
from .numeric import Verdict
from .trace import Source, Trace

VERSION = 1
FORMAT = "minigrad-trace"


# --- save -----------------------------------------------------------------------------------------


def save_trace(trace: Trace, path: str | os.PathLike[str], full: bool = False) -> None:
    """Write the trace as JSON, under a temporary name first. full: large arrays whole, not as a
    corner.
    """
    target = Path(path)
    text = json.dumps(to_json(trace, full), allow_nan=False)
    descriptor, draft = tempfile.mkstemp(
        dir=target.parent or ".", prefix=target.name, suffix=".tmp"
    )
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, 0o644)
        os.replace(draft, target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def to_json(trace: Trace, full: bool = False) -> dict[str, Any]:
    """The trace as one JSON object."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "nodes": [_node_out(n, full) for n in trace.nodes],
        "edges": [
            [i, n.id, k] for n in trace.nodes for k, i in enumerate(n.inputs) if isinstance(i, int)
        ],
        "events": [event_out(e, full) for e in trace.events],
        "checks": [_check_out(c, full) for c in trace.checks],
        "source": dataclasses.asdict(trace.source) if trace.source else None,
    }


# --- JSON: nodes and checks -----------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """A parameter as JSON: numbers, text, None, and lists of them; anything else as text."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, (bool, int, str, float)) else str(value)


def _node_out(node: TapeNode, full: bool) -> dict[str, Any]:
    row = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
    inputs = [{"number": i} if isinstance(i, float) else i for i in node.inputs]
    params = {k: _plain(v) for k, v in (node.params or {}).items()}
    return {**row, "value": array_out(node.value, full), "inputs": inputs, "params": params}


def _node_in(data: Any, place: int) -> TapeNode:
    row = dict(data)
    row["value"] = array_in(row["value"])
    row["inputs"] = tuple(
        float(i["number"]) if isinstance(i, Mapping) else i for i in row["inputs"]
    )
    for field in ("operands", "residuals", "origin", "sources"):
        row[field] = tuple(row[field])
        if not all(isinstance(word, str) for word in row[field]):
            raise TraceError(f"node {place} of the trace has a malformed {field}")
    row["line"] = None if row["line"] is None else (str(row["line"][0]), int(row["line"][1]))
    node = TapeNode(**row)
    texts = (node.name, node.op, node.symbol, node.tex)
    if (
        node.id != place
        or node.kind not in ("leaf", "constant", "op")
        or not all(isinstance(t, str) for t in texts)
    ):
        raise TraceError(f"node {place} of the trace is malformed")
    if any(
        isinstance(i, bool) or not (isinstance(i, float) or 0 <= i < place) for i in node.inputs
    ):
        raise TraceError(f"node {place} of the trace names an input that is not older than itself")
    if len(node.operands) != len(node.inputs) or (node.kind == "op") != bool(node.inputs):
        raise TraceError(
            f"node {place} of the trace has {len(node.inputs)} inputs, "
            f"but {len(node.operands)} operands"
        )
    return node


def _check_out(check: Check, full: bool) -> dict[str, Any]:
    row = {f.name: getattr(check, f.name) for f in dataclasses.fields(check)}
    for name in ("analytic", "numeric", "error", "jacobian"):
        row[name] = None if row[name] is None else array_out(row[name], full)
    row["max_difference"] = array_out(np.asarray(check.max_difference))
    return {**row, "cells": [str(c) for c in check.cells], "verdict": str(check.verdict)}


def _check_in(data: Any) -> Check:
    row = dict(data)
    for name in ("analytic", "numeric", "error", "jacobian"):
        row[name] = None if row[name] is None else array_in(row[name])
    row["max_difference"] = float(array_in(row["max_difference"]))  # type: ignore[arg-type]
    row["cells"] = tuple(Verdict(c) for c in row["cells"])
    row["verdict"] = Verdict(row["verdict"])
    row["shape"], row["index"] = tuple(row["shape"]), tuple(row["index"])
    return Check(**row)


# --- load -----------------------------------------------------------------------------------------


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace file. Raises TraceError, in one sentence, for anything that is not a sound trace
    of this version.
    """
    name = Path(path).name
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise TraceError(f"{name} cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, RecursionError) as problem:
        raise TraceError(f"{name} is no trace: it is not complete JSON ({problem})") from problem
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise TraceError(f'{name} is no trace: it does not say "format": "{FORMAT}"')
    if data.get("version") != VERSION:
        raise TraceError(
            f"{name} is a trace of version {str(data.get('version'))[:20]}, "
            f"this minigrad reads version {VERSION}"
        )
    try:
        nodes = [_node_in(n, place) for place, n in enumerate(data["nodes"])]
        events = [event_in(e) for e in data["events"]]
        checks = [_check_in(c) for c in data["checks"]]
        source = data["source"] and Source(
            str(data["source"]["title"]),
            tuple((int(n), str(t)) for n, t in data["source"]["lines"]),
        )
        _refuse_unsound(nodes, events, checks)
        return Trace(nodes, events, checks, source or None)
    except TraceError as problem:
        raise TraceError(f"{name} is damaged: {problem}") from problem
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as problem:
        raise TraceError(
            f"{name} is damaged: a field is missing or malformed ({problem})"
        ) from problem


def _refuse_unsound(
    nodes: Sequence[TapeNode], events: Sequence[Event], checks: Sequence[Check]
) -> None:
    """Every place exists, and every array has the shape of the node it belongs to."""
    if not nodes or not events or not isinstance(events[0], Seeded):
        raise TraceError("it holds no nodes, or no walk that starts with a seed")
    for e in events:
        places = [getattr(e, f) for f in ("node", "input", "source") if hasattr(e, f)]
        if not all(0 <= p < len(nodes) for p in places):
            raise TraceError(f"the event {type(e).__name__} names a node that is not there")
        if isinstance(e, (Pulled, Reduced, Stopped)) and not 0 <= e.argnum < len(
            nodes[e.node].inputs
        ):
            raise TraceError(f"the event {type(e).__name__} names an operand that is not there")
        shape = nodes[e.node].value.shape
        own = [getattr(e, f) for f in ("upstream", "before", "after", "added") if hasattr(e, f)]
        if isinstance(e, (Seeded, Reached)):
            own.append(e.gradient)
        if any(a is None or a.shape != shape for a in own):
            raise TraceError(
                f"the event {type(e).__name__} has an array that does not fit node {e.node}"
            )
        if isinstance(e, Pulled) and e.contribution is None:
            raise TraceError("an event Pulled has no contribution")
        if isinstance(e, Reduced) and e.gradient is None:
            raise TraceError("an event Reduced has no gradient")
    for c in checks:
        arrays = [a for a in (c.analytic, c.numeric, c.error) if a is not None]
        if (
            c.node is None
            or not 0 <= c.node < len(nodes)
            or any(a.shape != c.shape for a in arrays)
        ):
            raise TraceError("a check does not fit the node it names")
