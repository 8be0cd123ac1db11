"""The numeric check beside a step: its grids, verdict, and facts in rows."""

from __future__ import annotations

from ..compare import Check
from ..events import Summary
from ..graph import TapeNode
from ..numeric import STRICT, TOLERANCES, Verdict
from ..trace import Trace
from .formula import bar_text
from .parts import Grid, Name, Proof, Text, short


def proof_of(trace: Trace, check: Check | None, receiver: TapeNode, level: str) -> Proof | None:
    if check is None:
        return None
    own, root = bar_text(receiver.name), trace.nodes[-1]
    tolerance = TOLERANCES.get(str(check.analytic.dtype), STRICT)
    numeric = difference = None
    if check.numeric is not None and not isinstance(check.numeric, Summary):
        moves = "nothing else moves" if check.level == "op" else "everything after it is run again"
        numeric = Grid(
            kind="numeric",
            key="numeric",
            caption=("numeric check",),
            symbol=f"numeric {own}",
            array=check.numeric,
            hue="num",
            note=(f"{level}: {receiver.name} ± h, {moves}",),
        )
        allowed = (
            f"allowed: {short(tolerance.atol)} + {short(tolerance.rtol)}·|numeric| + error estimate"
        )
        difference = Grid(
            kind="difference",
            key="difference",
            caption=("|analytic − numeric|",),
            symbol="difference",
            array=check.difference,
            hue="num",
            note=(allowed,),
            marks=tuple(str(c) for c in check.cells),
        )
    rows: list[tuple[Text, Text]] = [((level,), (f"max {short(check.max_difference)}",))]
    whole = next((c for c in trace.checks if c.level == "graph" and c.node == receiver.id), None)
    if check.level == "op" and whole is not None:
        verdict = "" if whole.verdict is Verdict.agrees else f"{whole.verdict.symbol} "
        rows.append(
            (
                ("whole graph, ", Name(root.name), " by ", Name(receiver.name)),
                (f"{verdict}max {short(whole.max_difference)}",),
            )
        )
    kinks = sum(c is Verdict.kink for c in check.cells)
    near = f"at {kinks} of {len(check.cells)} elements" if kinks else "none near these inputs"
    rows.append((("kinks",), (near,)))
    return Proof(
        verdict=str(check.verdict),
        symbol=check.verdict.symbol,
        numeric=numeric,
        difference=difference,
        rows=tuple(rows),
        notes=((check.note,),) if check.note else (),
    )
