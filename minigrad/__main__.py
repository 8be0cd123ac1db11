"""The command line: `python -m minigrad check | ops | trace | app`."""

from __future__ import annotations

import argparse
import io
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .card import Op, registry
from .check import card_of, check_op
from .errors import CardError, MinigradError, RuleError, ShapeError, TraceError
from .lesson import Run, running
from .paths import APP, ROOT
from .prove import proof_table, prove
from .reference import CASES, worst_error
from .report import Report, table
from .tensor import Tensor
from .trace import record
from .trace_file import load_trace, save_trace

EXPECTED = 1e-12  # how far a reference gradient may be off in float64


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0, 1 for a failed check, 2 for something that cannot be used."""
    parser = argparse.ArgumentParser("minigrad", description="See where a gradient comes from.")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="the reference table, and every op's check")
    check.add_argument("what", nargs="*", help="ops by name, or a Python file that declares some")
    check.add_argument("--all", action="store_true", help="the whole proof: compiled rules, kinks")
    ops = commands.add_parser("ops", help="every op: formula, what it saves, its kinks")
    ops.add_argument("--html", metavar="F", help="write them all, with plots, as one HTML file")
    trace = commands.add_parser("trace", help="step through a Python file, or a saved trace")
    trace.add_argument("file", help="a .py file that computes a loss, or a trace .json")
    trace.add_argument("--html", metavar="F", help="write the stepper as one HTML file")
    trace.add_argument("--json", metavar="F", help="write the trace as JSON")
    app = commands.add_parser("app", help="open the app in the browser")
    app.add_argument("--port", type=int, default=8501, choices=range(1, 65536), metavar="N")
    given = parser.parse_args(arguments)
    run = {"check": _check, "ops": _ops, "trace": _trace, "app": _app}
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a console without ✓ shows ?
    try:
        return run[given.command](given)
    except BrokenPipeError:  # whoever read us has seen enough
        sys.stdout = open(os.devnull, "w")
        return 0
    except MinigradError as problem:
        print(f"minigrad {given.command}: {problem}", file=sys.stderr)
        return 2


# --- check ----------------------------------------------------------------------------------------


def _check(given: argparse.Namespace) -> int:
    fine = True
    if not given.what:
        print("The reference table: sum(op(x0, x1) · weight)\n")
        checks = []
        for case in CASES:
            report = case.check()
            checks += [replace(c, op=case.name) for c in report.checks]
            exact = worst_error(case, report)
            fine = fine and bool(report) and exact <= EXPECTED
            if exact > EXPECTED:
                print(f"{case.name}: a gradient is {exact:.1e} away from the expected value")
        print(table(checks), end="\n\n")
    cards: list[Any] = [] if given.what else list(registry.values())
    for what in given.what:
        cards += _cards_in(Path(what)) if what.endswith(".py") else [what]
    print("Each op alone, on its declared domain\n")
    fine = (_proved(cards) if given.all else _reported(cards)) and fine
    print(f"\n{'✓ every check agrees' if fine else '✗ a check differs'}")
    return 0 if fine else 1


def _reported(cards: Sequence[Any]) -> bool:
    """One line for an op whose checks agree, the whole table for one whose checks do not."""
    reports = [_checked(card) for card in cards]
    for report in reports:
        print(_line(report.title, report) if report else report.table())
    return all(reports)


def _checked(card: Any) -> Report:
    """The op's report; a rule that breaks its contract is a report too."""
    try:
        return check_op(card)
    except (RuleError, ShapeError, CardError) as problem:
        return Report(getattr(card, "name", card), (), str(problem))


def _line(name: str, report: Report) -> str:
    worst = report.worst
    assert worst is not None
    inputs = dict.fromkeys(c.name for c in report.checks)
    return (
        f"{worst.verdict.symbol} {name:<14} {len(report.checks):>3} checks of "
        f"{', '.join(inputs):<18} max |a − n| {worst.max_difference:.1e}"
    )


def _proved(cards: Sequence[Any]) -> bool:
    """The proof of each op, told on the way to whoever watches; compiling takes its time."""
    proofs = []
    for n, card in enumerate(cards, 1):
        card = card_of(card)
        if sys.stderr.isatty():
            print(f"\r{n} of {len(cards)} {card.name:<40}", end="", file=sys.stderr, flush=True)
        proofs.append(prove(card))
    if sys.stderr.isatty():
        print(f"\r{'':<60}\r", end="", file=sys.stderr)
    print(proof_table(proofs))
    return all(proofs)


def _cards_in(path: Path) -> Sequence[Any]:
    found = (getattr(value, "card", None) for value in _run(path).values())
    cards = [card for card in dict.fromkeys(found) if isinstance(card, Op) and not card.ours]
    if not cards:
        raise TraceError(f"{path.name} declares no op; declare one with @mg.elementwise or @mg.op")
    return cards


def _run(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise TraceError(f"there is no file {path}")
    try:
        return runpy.run_path(str(path), run_name="__main__")
    except SystemExit as stop:
        raise TraceError(f"{path.name} ends itself with exit({stop.code})") from stop


# --- ops ------------------------------------------------------------------------------------------


def _ops(given: argparse.Namespace) -> int:
    if given.html:
        from .view.sheets_html import to_html

        to_html(given.html, _progress)
        print(f"wrote {given.html}: {len(registry)} ops")
        return 0
    from .view.sheet import sheet_of, sheet_text

    for card in registry.values():
        print(sheet_text(sheet_of(card)))
    return 0


def _progress(name: str) -> None:
    """The op that is being drawn, for somebody who waits at a terminal."""
    if sys.stderr.isatty():
        print(f"\r{name:<40}", end="\r", file=sys.stderr)


# --- trace and app --------------------------------------------------------------------------------


def _trace(given: argparse.Namespace) -> int:
    from .view.html import to_html
    from .view.text import trace_text

    path = Path(given.file)
    trace = load_trace(path) if path.suffix == ".json" else record(_loss_in(path))
    if given.html:
        to_html(trace, given.html)
    if given.json:
        save_trace(trace, given.json)
    if given.html or given.json:
        print(f"wrote {' and '.join(filter(None, (given.html, given.json)))}: {trace!r}")
    else:
        print(trace_text(trace))
    return 0 if all(trace.checks) else 1


def _loss_in(path: Path) -> Tensor:
    """The newest size-1 result that a file computed; what it shows itself is not printed."""
    with running(Run({})):
        values = [v for v in _run(path).values() if isinstance(v, Tensor)]
    losses = [v for v in values if v.requires_grad and v.size == 1 and not v.is_leaf]
    if not losses:
        raise TraceError(f"{path.name} leaves no scalar result that needs a gradient in a variable")
    return max(losses, key=lambda loss: loss.id)


def _app(given: argparse.Namespace) -> int:
    command = [sys.executable, "-m", "streamlit", "run", str(APP)]
    command += ["--server.port", str(given.port)]
    if os.name != "posix":
        return subprocess.call(command, cwd=ROOT)
    os.chdir(ROOT)
    os.execv(sys.executable, command)  # the app takes this process's place, and its signals


if __name__ == "__main__":
    sys.exit(main())
