"""Frames as plain text: for terminals, for screen readers' sake, and for tests to assert on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..events import Summary
from ..trace import Trace
from .frame import frames
from .memory import memory_text
from .parts import Frame, Grid, Panel, Part, Sign, in_words, shape_text, short

INDENT = "    "


def trace_text(trace: Trace) -> str:
    """Every step of a trace as text, then what it takes to hold in memory."""
    said = [*map(frame_text, frames(trace)), memory_text(trace)]
    return "\n\n".join(text for text in said if text)


def frame_text(frame: Frame) -> str:
    """One step as text: label, sentence, grids, numeric check and ledger."""
    lines = [
        f"Step {frame.step + 1} of {frame.steps} · {in_words(frame.title)}",
        in_words(frame.say),
    ]
    lines += _parts(frame.parts)
    if frame.residuals:
        lines += _panel(frame.residuals)
    if frame.proof:
        proof = frame.proof
        lines += [
            line for grid in (proof.numeric, proof.difference) if grid for line in _grid(grid)
        ]
        facts = "; ".join(f"{in_words(a)}: {in_words(b)}" for a, b in proof.rows)
        lines.append(f"{proof.symbol} {proof.verdict} ({facts})")
        lines += [in_words(note) for note in proof.notes]
    if frame.ledger:
        lines += _panel(frame.ledger)
    return "\n".join(lines)


def _panel(panel: Panel) -> list[str]:
    note = f": {in_words(panel.note)}" if panel.note else ""
    return [f"{in_words(panel.title)}{note}", *_parts(panel.parts)]


def _parts(parts: tuple[Part, ...]) -> list[str]:
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Sign):
            lines.append(f"  {part.sign} {part.under}".rstrip())
        else:
            lines += _grid(part)
    return lines


def _grid(grid: Grid) -> list[str]:
    note = f"  ({in_words(grid.note)})" if grid.note else ""
    head = f"  {in_words(grid.caption)} [{shape_text(grid.array.shape)}]{note}"
    return [head, *(INDENT + line for line in _cells(grid.array).splitlines())]


def _cells(array: Any) -> str:
    if isinstance(array, Summary):
        facts = ", ".join(f"{n} {short(getattr(array, n))}" for n in ("min", "max", "mean", "norm"))
        return f"{_cells(array.corner)}\n… {facts}"
    written: Any = {"float_kind": lambda v: short(v, 6)}
    return np.array2string(array, separator=" ", threshold=200, edgeitems=4, formatter=written)
