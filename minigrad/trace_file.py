"""Trace files: a trace as one JSON object, written whole or not at all, read without trust."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .compare import Check
from .errors import TraceError
from .events import (
    array_in,
    array_out,
    event_in,
    event_out,
    number_in,
    number_out,
)
from .graph import TapeNode
from .numeric import Verdict
from .sound import refuse_unsound
from .trace import Source, Trace

VERSION = 1
FORMAT = "minigrad-trace"


# --- save -----------------------------------------------------------------------------------------


def save_trace(trace: Trace, path: str | os.PathLike[str], full: bool = False) -> None:
    """Write the trace as JSON, under a temporary name first. full: large arrays whole."""
    write_whole(path, json.dumps(to_json(trace, full), allow_nan=False))


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file under a temporary name, then rename it. Raises TraceError where it cannot."""
    target = Path(path)
    draft = None
    try:
        descriptor, draft = tempfile.mkstemp(dir=target.parent, prefix=".minigrad-", suffix=".tmp")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, 0o644)
        os.replace(draft, target)
    except OSError as problem:
        raise TraceError(f"{target} cannot be written: {problem.strerror or problem}") from problem
    finally:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)


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
    if isinstance(value, float):
        return number_out(value)
    return value if value is None or isinstance(value, (bool, int, str, float)) else str(value)


def _node_out(node: TapeNode, full: bool) -> dict[str, Any]:
    row = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
    inputs = [{"number": number_out(i)} if isinstance(i, float) else i for i in node.inputs]
    params = {k: _plain(v) for k, v in (node.params or {}).items()}
    return {**row, "value": array_out(node.value, full), "inputs": inputs, "params": params}


def _read(value: Any) -> Any:
    """The inverse of `_plain`: lists are tuples again, NaN and infinities numbers."""
    if isinstance(value, list):
        return tuple(_read(v) for v in value)
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def _node_in(data: Any) -> TapeNode:
    row = dict(data)
    row["value"] = array_in(row["value"])
    row["inputs"] = tuple(
        number_in(i["number"]) if isinstance(i, Mapping) else i for i in row["inputs"]
    )
    for field in ("operands", "residuals", "origin", "sources"):
        row[field] = tuple(row[field])
    row["params"] = {k: _read(v) for k, v in (row["params"] or {}).items()}
    row["line"] = None if row["line"] is None else (str(row["line"][0]), int(row["line"][1]))
    return TapeNode(**row)


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
    """Read a trace file. Raises TraceError, in one sentence, for anything unsound."""
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
        nodes = [_node_in(n) for n in data["nodes"]]
        events = [event_in(e) for e in data["events"]]
        checks = [_check_in(c) for c in data["checks"]]
        source = data["source"] and Source(
            str(data["source"]["title"]),
            tuple((int(n), str(t)) for n, t in data["source"]["lines"]),
        )
        refuse_unsound(nodes, events, checks)
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
