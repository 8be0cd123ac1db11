"""Two runs timed in turn, their ratio with its spread, and the table of all ratios.

Other work on the machine makes every time uncertain, but it slows both runs of a pair alike. So a
ratio is taken pair by pair, ABAB…, and told as median and quartiles of these. As long as every
system has one thread, time is that of the processor, which goes on only while we do; with more
threads it is that on the wall. A sample is as many runs as fill a few milliseconds. The collector
of garbage stays on, because some engines live by it, but what was there before (other libraries,
mostly) is frozen and costs nobody anything.

This module loads nothing heavy: `same_threads` has to come before NumPy.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time

Run = Callable[[], object]
Clock = Callable[[], float]  # runs something and answers the seconds it took

THREADS = int(os.environ.get("MINIGRAD_THREADS") or 1)  # of every system alike
ROOT = Path(__file__).resolve().parent.parent
now = process_time if THREADS == 1 else perf_counter
SAMPLE = 0.008  # seconds that a sample fills: several rounds of the collector, few interruptions
LEAST = 7  # pairs
WARM = 3  # runs before any timing: they compile


def same_threads() -> None:
    """Let every system use THREADS threads. Comes before NumPy, whose BLAS reads this once."""
    for name in ("OPENBLAS", "OMP", "MKL", "VECLIB_MAXIMUM", "NUMEXPR"):
        os.environ[f"{name}_NUM_THREADS"] = str(THREADS)
    os.environ["MINIGRAD_THREADS"] = os.environ["NPROC"] = str(THREADS)  # NPROC: XLA's pool
    if THREADS == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"


# --- clocks and ratios ----------------------------------------------------------------------------


def clock(run: Run) -> Clock:
    """A clock for a run, which is warm by now."""
    for _ in range(WARM):
        run()
    start = now()
    run()
    loops = max(1, round(SAMPLE / max(now() - start, 1e-6)))

    def seconds() -> float:
        start = now()
        for _ in range(loops):
            run()
        return (now() - start) / loops

    return seconds


def import_clock(module: str) -> Clock:
    """A clock for importing a module in a fresh process, without the start of Python itself.

    Warm: files are read and bytecode is kept, also where the environment forbids to write it.
    """
    code = (
        f"from time import {now.__name__} as now\n"
        f"start = now(); import {module}; print(now() - start)"
    )
    command = [sys.executable, "-c", code]
    about = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}

    def seconds() -> float:
        done = subprocess.run(command, cwd=ROOT, env=about, check=True, capture_output=True)
        return float(done.stdout)

    seconds()
    return seconds


@dataclass(frozen=True)
class Ratio:
    """Ours / peer: median and quartiles over pairs, and the median seconds of each side."""

    median: float
    low: float
    high: float
    ours: float
    peer: float

    def __str__(self) -> str:
        return f"{_short(self.median)} ({_short(self.low)}–{_short(self.high)})"


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The ratio of at least two pairs of times, ours first."""
    low, middle, high = quantiles([a / b for a, b in pairs], n=4)
    return Ratio(middle, low, high, median(a for a, _ in pairs), median(b for _, b in pairs))


def in_turn(ours: Clock, peer: Clock, seconds: float) -> Ratio:
    """Both clocks in turn, for so many seconds and at least LEAST pairs."""
    pairs: list[tuple[float, float]] = []
    gc.collect()
    gc.freeze()
    stop = perf_counter() + seconds
    while len(pairs) < LEAST or perf_counter() < stop:
        pairs.append((ours(), peer()))
    gc.unfreeze()
    return ratio_of(pairs)


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One workload as the table tells it: its target is a ratio to `peer`.

    ratios: by peer. elsewhere: where it is measured, if not here.
    """

    name: str
    peer: str
    target: float
    ratios: Mapping[str, Ratio] = field(default_factory=dict)
    elsewhere: str = ""

    @property
    def verdict(self) -> str:
        """Whether the target is met; "close" if it lies within the spread."""
        if self.elsewhere:
            return self.elsewhere
        ratio = self.ratios.get(self.peer)
        if ratio is None:
            return f"unknown without {self.peer}"
        word = "met" if ratio.median <= self.target else "not met"
        return f"{word}, close" if ratio.low <= self.target <= ratio.high else word


def table(lines: Sequence[Line], peers: Sequence[str]) -> str:
    """All lines as a Markdown table, aligned; what is no peer of `peers` goes under "other"."""
    rows = [["workload", "ours", *peers, "other", "target", "met"]]
    for line in lines:
        other = next((r for name, r in line.ratios.items() if name not in peers), None)
        ratios = [line.ratios.get(name) for name in peers] + [other]
        own = line.ratios.get(line.peer) or next(iter(line.ratios.values()), None)
        time = duration(own.ours) if own else "—"
        target = f"≤ {line.target:g} × {line.peer}" if line.target else line.peer
        cells = ("—" if ratio is None else str(ratio) for ratio in ratios)
        rows.append([line.name, time, *cells, target, line.verdict])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(_row(row, widths) for row in rows)


def _short(number: float) -> str:
    return f"{number:.3f}" if number < 0.1 else f"{number:.2f}" if number < 10 else f"{number:.0f}"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def duration(seconds: float) -> str:
    """A time in its handiest unit, with three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:#.3g} {unit}"
    return f"{seconds / 1e-6:#.3g} µs"
