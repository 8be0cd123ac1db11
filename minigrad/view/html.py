"""The stepper's data, and one self-contained page that opens from disk: no server, no network."""

from __future__ import annotations

import json
import os
from collections import Counter
from html import escape
from typing import Any

from ..events import WHOLE, Summary, array_out, number_out
from ..numeric import Verdict
from ..paths import ASSETS
from ..trace import Trace
from ..trace_file import write_whole
from .dot import all_stats, dot, far_edges
from .formula import mathml, name_tex
from .frame import frames
from .memory import lane
from .parts import (
    Cells,
    Frame,
    Grid,
    Letters,
    Math,
    Name,
    Panel,
    Part,
    Proof,
    Sign,
    Text,
)
from .svg import svg

Json = dict[str, Any]


def markup(text: Text) -> str:
    """A text as HTML: names bold and escaped, formulas as MathML."""
    return "".join(
        f"<b>{escape(s.text)}</b>"
        if isinstance(s, Name)
        else mathml(s.tex)
        if isinstance(s, Math)
        else escape(s)
        for s in text
    )


def legend(trace: Trace) -> Text:
    """What a bar means, said of this trace's result."""
    root = trace.nodes[-1].name
    formula = rf"\bar{{x}} = \frac{{\partial {name_tex(root)}}}{{\partial x}}"
    return Math(formula), ": how ", Name(root), " answers to a small change of x"


def payload(trace: Trace) -> Json:
    """Everything `assets/stepper.js` needs to step through a trace on its own."""
    arrays = _Arrays()
    first: dict[int, int] = {}
    for step in trace.steps:
        if step.kind in ("forward", "reach"):
            first.setdefault(step.node, step.index)
    uses: dict[float, int] = {}
    for step in reversed(trace.steps):
        for i in trace.nodes[step.node].inputs if step.kind == "forward" else ():
            uses[i] = step.index
    stats = all_stats(trace)
    return {
        "name": trace.nodes[-1].name,
        "summary": summary(trace),
        "legend": markup(legend(trace)),
        "svg": svg(dot(trace), far_edges(trace)),
        "code": _code(trace),
        "nodes": [
            {
                "id": n.id,
                "name": n.name,
                "step": first.get(n.id, uses.get(n.id, 0)),
                "stats": [
                    {
                        "from": s.start,
                        "text": s.text,
                        "hue": s.hue,
                        "strength": round(s.strength, 4),
                    }
                    for s in stats[n.id]
                ],
            }
            for n in trace.nodes
        ],
        "frames": [_frame(f, arrays) for f in frames(trace)],
        "memory": lane(trace),
        "arrays": arrays.rows,
    }


def summary(trace: Trace) -> Json:
    """All checks in a few words: `4 of 4 checks agree`."""
    if not trace.checks:
        return {"verdict": "none", "symbol": "", "text": "not checked"}
    counts = Counter(c.verdict for c in trace.checks)
    worst = max(counts, key=list(Verdict).index)
    fine = sum(n for verdict, n in counts.items() if verdict.fine)
    text = f"{fine} of {len(trace.checks)} checks agree"
    if counts[Verdict.kink]:
        text += f", {counts[Verdict.kink]} at a kink"
    return {"verdict": str(worst), "symbol": worst.symbol, "text": text}


def _code(trace: Trace) -> Json | None:
    if trace.source is None:
        return None
    lines = [{"number": n, "text": text} for n, text in trace.source.lines]
    return {"title": trace.source.title, "lines": lines}


class _Arrays:
    """Each array once, however many frames show it."""

    def __init__(self) -> None:
        self.rows: list[Json] = []
        self._places: dict[Any, int] = {}

    def place(self, array: Any) -> int:
        if isinstance(array, Summary) or array.size > WHOLE:
            self.rows.append(array_out(array))
            return len(self.rows) - 1
        key = (array.shape, array.dtype.str, array.tobytes())
        if key not in self._places:
            self._places[key] = len(self.rows)
            self.rows.append(array_out(array))
        return self._places[key]


def _frame(frame: Frame, arrays: _Arrays) -> Json:
    return {
        "phase": frame.phase,
        "kind": frame.kind,
        "tick": frame.tick,
        "title": markup(frame.title),
        "say": markup(frame.say),
        "lines": list(frame.lines),
        "lit": {
            "nodes": list(frame.nodes),
            "edges": [f"{consumer}-{argnum}" for consumer, argnum in frame.edges],
            "flow": frame.phase,
        },
        "parts": _parts(frame.parts, arrays),
        "aside": None
        if frame.residuals is None
        else {"testid": "residuals", **_panel(frame.residuals, arrays)},
        "jacobian": None if frame.jacobian is None else _grid(frame.jacobian, arrays),
        "check": None if frame.proof is None else _proof(frame.proof, arrays),
        "ledger": None if frame.ledger is None else _panel(frame.ledger, arrays),
    }


def _panel(panel: Panel, arrays: _Arrays) -> Json:
    return {
        "title": markup(panel.title),
        "note": markup(panel.note),
        "parts": _parts(panel.parts, arrays),
    }


def _parts(parts: tuple[Part, ...], arrays: _Arrays) -> list[Json]:
    return [
        {"sign": p.sign, "under": p.under} if isinstance(p, Sign) else _grid(p, arrays)
        for p in parts
    ]


def _grid(grid: Grid, arrays: _Arrays) -> Json:
    sources = grid.sources
    row: Json = {
        "grid": grid.kind,
        "key": grid.key,
        "caption": markup(grid.caption),
        "symbol": grid.symbol,
        "array": arrays.place(grid.array),
        "hue": grid.hue,
        "note": markup(grid.note),
        "marks": list(grid.marks) if grid.marks else None,
        "sources": None,
    }
    if isinstance(sources, Letters):
        row["sources"] = {
            "out": sources.out,
            "factors": [list(f) for f in sources.factors],
            "times": None,
            "apply": sources.apply,
            "infix": sources.infix,
        }
    elif isinstance(sources, Cells):
        row["sources"] = {
            "of": sources.of,
            "cells": [[[number_out(c), at] for c, at in cell] for cell in sources.cells],
        }
    return row


def _proof(proof: Proof, arrays: _Arrays) -> Json:
    return {
        "verdict": proof.verdict,
        "symbol": proof.symbol,
        "word": proof.verdict,
        "numeric": None if proof.numeric is None else _grid(proof.numeric, arrays),
        "difference": None if proof.difference is None else _grid(proof.difference, arrays),
        "rows": [[markup(a), markup(b)] for a, b in proof.rows],
        "notes": [markup(n) for n in proof.notes],
    }


# --- one page -------------------------------------------------------------------------------------

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; padding: 16px; background: #f5f6f8; color: #1b2430; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0f141a; color: #e7ebf0; }} }}
#stepper {{ max-width: 1280px; margin: 0 auto; }}
</style>
</head><body>
<div id="stepper"></div>
<script type="application/json" id="trace">{data}</script>
<script type="application/json" id="style">{style}</script>
<script type="module">
{script}
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const root = document.getElementById("stepper").attachShadow({{ mode: "open" }});
const style = document.createElement("style");
style.textContent = read("style");
const host = document.createElement("div");
root.append(style, host);
mount(host, read("trace"), {{ step: {step} }});
// Inside a notebook's frame, take the height that is needed.
const frame = window.frameElement;
const grow = () => {{ frame.style.height = `${{document.documentElement.offsetHeight + 8}}px`; }};
if (frame) new ResizeObserver(grow).observe(document.body);
</script>
</body></html>
"""


def page(trace: Trace, step: int = 0) -> str:
    """One self-contained HTML page with the stepper in it, at 0-based `step`."""
    return _PAGE.format(
        title=escape(f"{trace.nodes[-1].name} · minigrad"),
        data=inline(payload(trace)),
        style=inline((ASSETS / "stepper.css").read_text(encoding="utf-8")),
        script=(ASSETS / "stepper.js")
        .read_text(encoding="utf-8")
        .replace("</script", r"<\/script"),
        step=step,
    )


def inline(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def to_html(trace: Trace, path: str | os.PathLike[str], step: int = 0) -> None:
    """Write `page` to a file. Raises TraceError where it cannot be written."""
    write_whole(path, page(trace, step))


def notebook(trace: Trace) -> str:
    """The page inside an iframe that grows with it: for the output cell of a notebook."""
    return (
        f'<iframe srcdoc="{escape(page(trace))}" title="minigrad stepper" loading="lazy" '
        'style="width:100%;height:900px;border:0"></iframe>'
    )
