"""minigrad beside PyTorch, JAX, autograd, mygrad and micrograd: `python -m benchmarks`.

Prints ratios ours / peer, float64, all on the same number of threads (one, or MINIGRAD_THREADS):
medians of pairs of runs taken in turn, with their quartiles, and whether the targets of the design
are met. Every workload first makes sure that all systems come to the same gradients.

    python -m benchmarks                   the table
    python -m benchmarks --save            and into RESULTS.md, with curves of growth (growth.svg)
    python -m benchmarks --profile small   where the time of one step goes (or another workload)
"""

from __future__ import annotations

import argparse
import cProfile
import os
import platform
import pstats
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from . import measure

if TYPE_CHECKING:
    from .systems import System

HERE = Path(__file__).resolve().parent
SECONDS = 3.0  # of a pair that has a target
BESIDE = 0.8  # of any other
PROFILED = 1.0  # seconds of steps
ROWS = 24  # of a profile
HEAD = "Ratios ours / peer: below 1 we are faster. Median of pairs taken in turn (quartiles)."


# --- the table ------------------------------------------------------------------------------------


def lines(peers: Sequence[System]) -> list[measure.Line]:
    """Every row of the table, measured."""
    from .systems import Minigrad, Silent
    from .workloads import ELSEWHERE, IMPORT, WORKLOADS

    found = []
    for workload in WORKLOADS:
        beside = [Silent()] if workload.peer == Silent.name else peers
        entrants = workload.entrants([Minigrad(), *beside])
        own = measure.clock(entrants.pop(Minigrad.name).run)
        ratios = {}
        for name, entrant in entrants.items():
            told(f"{workload.name}: {name}")
            seconds = SECONDS if name == workload.peer else BESIDE
            ratios[name] = measure.in_turn(own, measure.clock(entrant.run), seconds)
        found.append(measure.Line(workload.name, workload.peer, workload.target, ratios))
    name, peer, target = IMPORT
    told(name)
    clocks = [measure.import_clock(text.split()[1]) for text in (name, peer)]
    found.append(measure.Line(name, peer, target, {peer: measure.in_turn(*clocks, 2 * SECONDS)}))
    return [*found, *ELSEWHERE]


def noise() -> measure.Ratio:
    """Ours against ours: what the other work on this machine does to a ratio."""
    from .workloads import ours

    told("noise")
    clock = measure.clock(ours("small").run)
    return measure.in_turn(clock, clock, BESIDE)


def told(progress: str) -> None:
    """What is being measured, for whoever waits."""
    print(f"… {progress}", file=sys.stderr)


def report(peers: Sequence[System]) -> str:
    """The table and what must be known to read it."""
    from .systems import PEERS, Minigrad, version_of

    names = [peer.name for peer in PEERS]
    missing = [name for name in names if name not in {peer.name for peer in peers}]
    versions = ", ".join(version_of(system) for system in (Minigrad, *peers))
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    notes = [
        f"{HEAD} “Close”: the target lies within the quartiles.",
        "—: not comparable. micrograd has scalars only; of a full gradcheck only PyTorch has one.",
        f"Noise: the small MLP of ours against itself comes to {noise()}.",
        *(f"{name} is not installed, so it is left out." for name in missing),
        f"{versions}, NumPy {numpy_version()}. float64, {measure.THREADS} thread(s) each, "
        f"{'processor' if measure.THREADS == 1 else 'wall'} time.",
        f"{machine}. {date.today()}.",
    ]
    return measure.table(lines(peers), names) + "\n\n" + "\n".join(f"* {note}" for note in notes)


def numpy_version() -> str:
    import numpy

    return numpy.__version__


def save(text: str, peers: Sequence[System]) -> None:
    """Write RESULTS.md, and growth.svg beside it."""
    from .growth import WAYS, measured, picture

    torch = [peer for peer in peers if peer.name == "PyTorch"]
    curves = []
    for way in WAYS:
        told(f"growth: {way.words}")
        curves.append(measured(way, torch))
    (HERE / "growth.svg").write_text(picture(curves), encoding="utf-8")
    (HERE / "RESULTS.md").write_text(
        "# minigrad beside other systems\n\n"
        f"Written by `python -m benchmarks --save`.\n\n{text}\n\n## Growth\n\n"
        "Forward and backward of blocks gelu(x @ w + b). Peak memory as `tracemalloc` sees it; "
        "PyTorch's is not\nseen, so it is left out of the lower row.\n\n"
        "![Time and peak memory of a step, over elements, ops and depth](growth.svg)\n",
        encoding="utf-8",
    )


# --- where the time goes --------------------------------------------------------------------------


def profile(key: str) -> str:
    """One step of a workload of ours, function by function, in microseconds of own time."""
    from .workloads import ours

    run = ours(key).run
    clock = measure.clock(run)
    seconds = median(clock() for _ in range(9))
    steps = max(3, int(PROFILED / seconds))
    profiler = cProfile.Profile()
    start = measure.now()
    profiler.enable()
    for _ in range(steps):
        run()
    profiler.disable()
    slowed = (measure.now() - start) / steps
    stats: Any = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    calls = sum(count for _, count, *_ in stats.values()) / steps
    rows = [
        f"{key}: one step takes {measure.duration(seconds)}; {measure.duration(slowed)} "
        f"under the profiler, which slows small functions most; {calls:.0f} calls",
        "",
        f"{'own µs':>9}{'all µs':>10}{'calls':>8}{'own µs/call':>13}   function",
    ]
    for where, (_, count, own, whole, _) in sorted(stats.items(), key=lambda s: -s[1][2])[:ROWS]:
        own, whole = own / steps * 1e6, whole / steps * 1e6
        each = own / (count / steps)
        rows.append(f"{own:>9.2f}{whole:>10.2f}{count / steps:>8.1f}{each:>13.2f}   {place(where)}")
    return "\n".join(rows)


def place(where: tuple[str, int, str]) -> str:
    """A function as people look for it: file, line, name."""
    file, line, name = where
    return f"{Path(file).parent.name}/{Path(file).name}:{line} {name}" if line else name


def main() -> int:
    """Print what was asked for."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("--save", action="store_true", help="write RESULTS.md and growth.svg")
    parser.add_argument("--profile", metavar="WORKLOAD", help="small, chain, gelu, …")
    asked = parser.parse_args()
    measure.same_threads()
    from .systems import installed
    from .workloads import WORKLOADS

    keys = [workload.key for workload in WORKLOADS]
    if asked.profile:
        if asked.profile not in keys:
            parser.error(f"there is no {asked.profile}; there are {', '.join(keys)}")
        print(profile(asked.profile))
        return 0
    peers = list(installed())
    text = report(peers)
    print(text)
    if asked.save:
        save(text, peers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
