"""How time and memory of a step grow: with elements, with ops side by side, with depth.

One block, gelu(x @ w + b), is put together in three ways. Time is taken in turn; peak memory is
what `tracemalloc` sees, measured apart, because it slows everything down. It sees NumPy's arrays
but not PyTorch's, so PyTorch stands only beside the times.
"""

from __future__ import annotations

import gc
import io
import re
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.view.plot import GRAD, INK, LINE, MUTED, NUMERIC, SETTINGS, VALUE

from .measure import Run, clock
from .systems import Arrays, Entrant, Minigrad, Model, System

ROUNDS = 7
WIDTH = 16  # of every layer
COLOURS = {"save_all": VALUE, "recompute": GRAD, "PyTorch": NUMERIC}
DARK = {INK: "#e7ebf0", MUTED: "#aab4c1", LINE: "#36414f"} | {
    VALUE: "#6ea8fe",
    GRAD: "#ff9646",
    NUMERIC: "#aaa0f5",
}


class SavingAll(Minigrad):
    """Ours under its ordinary policy."""

    name = "save_all"


class Recomputing(Minigrad):
    """Ours, dropping what is cheap to make again."""

    name = "recompute"

    def step(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        entrant = super().step(model, leaves, constants)
        policy = mg.checkpointing("recompute")
        return Entrant(policy(entrant.run), policy(entrant.gradients))


# --- three ways to grow ---------------------------------------------------------------------------


def deep(blocks: int) -> Model:
    """Blocks one after the other."""

    def model(ops: Any, w: Any, b: Any, x: Any) -> Any:
        for _ in range(blocks):
            x = ops.gelu(x @ w + b)
        return ops.sum(x)

    return model


def wide(blocks: int) -> Model:
    """Blocks side by side, added up in pairs; their number is a power of 2."""

    def model(ops: Any, w: Any, b: Any, x: Any) -> Any:
        parts = [ops.gelu(x @ w + b) for _ in range(blocks)]
        while len(parts) > 1:
            parts = [one + two for one, two in zip(parts[::2], parts[1::2], strict=True)]
        return ops.sum(parts[0])

    return model


@dataclass(frozen=True)
class Way:
    """One way to grow: models of several sizes, and how many rows x has in each."""

    words: str
    sizes: Sequence[int]
    models: Sequence[Model]
    rows: Sequence[int]


BLOCKS = [2**n for n in range(0, 10, 2)]
CELLS = [WIDTH * 4**n for n in range(9)]
WAYS = (
    Way(
        "elements of each layer (4 layers)",
        CELLS,
        [deep(4)] * len(CELLS),
        [n // WIDTH for n in CELLS],
    ),
    Way("ops, side by side", [4 * n for n in BLOCKS], [wide(n) for n in BLOCKS], [64] * 5),
    Way("depth: ops in a row", [3 * n + 1 for n in BLOCKS], [deep(n) for n in BLOCKS], [64] * 5),
)


@dataclass
class Curves:
    """Seconds and bytes of a step at each size of a way, by system."""

    way: Way
    seconds: dict[str, list[float]] = field(default_factory=dict)
    peak: dict[str, list[int]] = field(default_factory=dict)


def measured(way: Way, peers: Sequence[System]) -> Curves:
    """The curves of one way, ours under both policies and `peers` beside."""
    curves = Curves(way)
    rng = np.random.default_rng(0)
    for model, rows in zip(way.models, way.rows, strict=True):
        leaves = [rng.normal(0, 0.3, (WIDTH, WIDTH)), rng.normal(0, 0.3, WIDTH)]
        constants = [rng.normal(0, 0.3, (rows, WIDTH))]
        runs: dict[str, Run] = {}
        for system in (SavingAll(), Recomputing(), *peers):
            entrant = system.step(model, leaves, constants)
            if entrant is not None:
                runs[system.name] = entrant.run
        clocks = [clock(run) for run in runs.values()]
        rounds = [[seconds() for seconds in clocks] for _ in range(ROUNDS)]
        for name, times in zip(runs, zip(*rounds, strict=True), strict=True):
            curves.seconds.setdefault(name, []).append(median(times))
        for name in (SavingAll.name, Recomputing.name):
            curves.peak.setdefault(name, []).append(peak(runs[name]))
    return curves


def peak(run: Run) -> int:
    """The most bytes that one run holds at once, beyond what was there before."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most - before


# --- the picture ----------------------------------------------------------------------------------


def picture(curves: Sequence[Curves]) -> str:
    """Time above, memory below, as SVG whose colours follow the theme of the reader."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure((12.5, 7.6), layout="constrained", dpi=72)
        figure.patch.set_visible(False)
        grid = figure.subplots(2, len(curves), sharex="col", sharey="row")
        for column, of in zip(grid.T, curves, strict=True):
            for axes, series in zip(column, (of.seconds, of.peak), strict=True):
                axes.patch.set_visible(False)
                axes.grid(color=LINE, linewidth=0.8)
                axes.set_axisbelow(True)
                for name, heights in series.items():
                    axes.loglog(of.way.sizes, heights, color=COLOURS[name], **_line(name))
                axes.minorticks_off()
            column[1].set_xlabel(of.way.words)
        grid[0, 0].set_ylabel("time of a step, seconds")
        grid[1, 0].set_ylabel("peak memory of a step, bytes")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return themed(text.getvalue())


def _line(name: str) -> dict[str, Any]:
    """Told apart by marker and dashes too, not by colour alone."""
    marker, dashes = {"save_all": ("o", "-"), "recompute": ("s", "--")}.get(name, ("^", ":"))
    label = name if name not in ("save_all", "recompute") else f"minigrad, {name}"
    return {"marker": marker, "linestyle": dashes, "linewidth": 2, "markersize": 6, "label": label}


def themed(svg: str) -> str:
    """Every colour becomes a variable with a value for light pages and one for dark ones."""
    names = {colour: f"--c{n}" for n, colour in enumerate(DARK)}
    for colour, name in names.items():
        svg = svg.replace(colour, f"var({name}, {colour})")
    light = "; ".join(f"{name}: {colour}" for colour, name in names.items())
    dark = "; ".join(f"{names[colour]}: {other}" for colour, other in DARK.items())
    style = (
        f"<style>svg {{ {light} }} "
        f"@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}</style>"
    )
    return re.sub(r"(<svg\b[^>]*>)", rf"\1\n {style}", svg, count=1)
