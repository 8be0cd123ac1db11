"""Report: the checks of one op or function together, and the table that people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .compare import GRAVITY, Check
from .numeric import Verdict


@dataclass(frozen=True)
class Report:
    """The checks of one function or op; true if there are some and every verdict is ✓ or ∧."""

    title: str
    checks: tuple[Check, ...]
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.checks) and all(self.checks) and not self.note

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(c.verdict for c in self.checks)

    @property
    def worst(self) -> Check | None:
        """The check with the gravest verdict, then the largest difference, if there is one."""
        return max(self.checks, key=lambda c: (GRAVITY[c.verdict], c.max_difference), default=None)

    def table(self) -> str:
        """Op, input, shape, max abs difference, verdict, and the gradient, a line per check."""
        return table(self.checks) if not self.note else f"{self.title}: {self.note}"

    def __repr__(self) -> str:
        return self.table()


def table(checks: Sequence[Check]) -> str:
    """The reference table: op, input, shape, max abs difference, verdict, gradient."""
    rows = [("op", "input", "shape", "max |a − n|", "verdict", "gradient")]
    for c in checks:
        gradient = np.array2string(
            c.analytic.ravel(), precision=4, threshold=12, max_line_width=10_000
        )
        shape = str(list(c.shape))
        rows.append(
            (
                c.op,
                c.name,
                shape,
                f"{c.max_difference:.2e}",
                f"{c.verdict.symbol} {c.verdict}",
                gradient,
            )
        )
    widths = [max(len(row[n]) for row in rows) for n in range(5)]
    lines = [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[5]])
        for row in rows
    ]
    return "\n".join([*lines, *(f"  {c.op}, input {c.name}: {c.note}" for c in checks if c.note)])
