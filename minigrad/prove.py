"""The proof: everything a card promises, tested on its declared domain, and one table of it.

The forward beside its NumPy reference, every rule beside central differences, the compiled rule
beside NumPy, what a walk really saved beside what the rules name, and every convention at a kink.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import kernels
from .backward import gradients, walk
from .card import Op
from .check import check_op
from .domains import domain_of, samples
from .errors import CardError, RuleError, ShapeError
from .events import Pulled
from .kernel_source import rule_source
from .numeric import Verdict
from .pull import Array, Pull, pulls, reduce, value_of
from .report import Report
from .tensor import Tensor, tensor

EPS = 8.0  # units of eps · Σ|terms| by which the compiled rule and NumPy may differ
SIDE = 1024  # rows and columns of the arrays for the compiled rule


@dataclass(frozen=True)
class Proof:
    """What was found for one card.

    forward, rule: the largest differences; no forward without a reference. kernel: the largest
    difference of compiled rule and NumPy in units of eps · Σ|terms|; None for an op without
    compiled rules. saves: what is kept for backward. faults: every broken promise, in words; true
    if there is none.
    """

    op: str
    checks: int
    forward: float | None
    rule: float
    kernel: float | None
    saves: tuple[str, ...]
    kinks: int
    faults: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.faults


def prove(card: Op) -> Proof:
    """Test everything that one card promises; a rule that breaks its contract is a fault too."""
    try:
        return _prove(card, check_op(card))
    except (RuleError, ShapeError, CardError) as problem:
        return Proof(card.name, 0, None, 0.0, None, (), 0, (str(problem),))


def _prove(card: Op, report: Report) -> Proof:
    rules = [c for c in report.checks if c.level == "op"]
    forwards = [c for c in report.checks if c.level == "forward"]
    kernel = max(_kernel_differences(card), default=None) if card.elementwise else None
    faults = [f"{c.level}: {c.note}" for c in report.checks if not c]
    if card.ours:
        faults += [] if forwards else ["it has no reference to test the forward against"]
        faults += list(_without_kernel(card))
    faults += [report.note] if report.note else []
    if kernel is not None and kernel > EPS:
        faults.append(f"compiled rule and NumPy differ by {kernel:.1f} eps Σ|terms|")
    faults += list(_saves_otherwise(card)) + list(_broken_kinks(card))
    return Proof(
        op=card.name,
        checks=len(report.checks),
        forward=max((c.max_difference for c in forwards), default=None),
        rule=_largest(rules),
        kernel=kernel,
        saves=_residuals(card),
        kinks=len(card.kinks),
        faults=tuple(dict.fromkeys(faults)),
    )


def _largest(checks: Sequence[Any]) -> float:
    """The largest difference; at a kink there is no slope to differ from."""
    return max((c.max_difference for c in checks if c.verdict is Verdict.agrees), default=0.0)


def _residuals(card: Op) -> tuple[str, ...]:
    """What is kept if every operand needs a gradient; of two, where any number may come."""
    used = card.taking(2)
    return used.residuals((True,) * len(used.inputs))


# --- compiled rules -------------------------------------------------------------------------------


def _kernel_differences(card: Op) -> Iterator[float]:
    """|compiled - NumPy| / (eps Σ|terms|) per input, also where broadcasting is reduced."""
    shapes = [(SIDE, SIDE)] * len(card.inputs)
    for axis_shape in ((SIDE, SIDE), (1, SIDE), (SIDE, 1)) if len(shapes) > 1 else ((SIDE, SIDE),):
        for pull in _large_pulls(card, [*shapes[:-1], axis_shape]):
            kernel = pull.kernel()
            if pull.rule.is_zero or kernel is None:
                continue
            kernel(ours := pull.zeros())
            with np.errstate(all="ignore"):
                contribution = pull.contribution()
                axes = pull.axes(contribution)
                numpy = pull.reduced(contribution, axes)
                terms = reduce(_sizes(pull, contribution), axes, pull.shape, np.float64)
                apart = np.abs(ours - numpy) / (np.finfo(np.float64).eps * terms)
            yield float(np.max(np.where(ours == numpy, 0.0, apart)))


def _sizes(pull: Pull, contribution: Array) -> Array:
    """|contribution|, and where the slope is a sum, which may cancel, |g| for terms of size 1."""
    sums = (ast.Add, ast.Sub)
    steps = ast.walk(ast.parse(rule_source(pull.rule.fn)))
    added = any(isinstance(step, sums) for step in steps)
    return np.abs(contribution) + (np.abs(pull.g) if added else 0)


def _large_pulls(card: Op, shapes: Sequence[tuple[int, ...]]) -> Iterator[Pull]:
    rng = np.random.default_rng(0)
    operands = [
        tensor(domain_of(card, name).draw(rng, shape), requires_grad=name in card.rules)
        for name, shape in zip(card.inputs, shapes, strict=True)
    ]
    _, params = next(samples(card))
    y = card.function(*operands, **params)
    yield from pulls(y, rng.normal(size=y.shape), value_of)


def _without_kernel(card: Op) -> Iterator[str]:
    """The elementwise rules that stay in NumPy, and why."""
    for name, rule in card.rules.items() if card.elementwise else ():
        why = None if rule.is_zero else kernels.why_not(rule.fn, rule.reads, rule.takes_g)
        if why:
            yield f"the rule of {name} is not compiled: {why}"


# --- residuals and kinks --------------------------------------------------------------------------


def _called(card: Op, operands: Sequence[Any], params: Any) -> tuple[Tensor, list[Tensor]]:
    """The op on leaves that need a gradient wherever there is a rule."""
    used = card.taking(len(operands))
    leaves = [
        tensor(np.asarray(o), requires_grad=name in used.rules)
        for name, o in zip(used.inputs, operands, strict=True)
    ]
    given: dict[str, Any] = (
        {card.inputs[0]: leaves} if card.variadic else dict(zip(card.inputs, leaves, strict=True))
    )
    return card.function(**given, **params), leaves


def _saves_otherwise(card: Op) -> Iterator[str]:
    """Where a walk read something else than the residuals that the card names."""
    for operands, params in samples(card):
        used = card.taking(len(operands))
        y, _ = _called(card, operands, params)
        read = {
            n for e in walk(y, np.ones(y.shape)) if isinstance(e, Pulled) for n, _ in e.residuals
        }
        named = set(used.residuals((True,) * len(used.inputs)))
        if read != named:
            yield f"a walk read {sorted(read)}, but the card names {sorted(named)}"


def _broken_kinks(card: Op) -> Iterator[str]:
    """The conventions that do not hold, in their words."""
    for kink in card.kinks:
        if not kink.at:
            continue
        operands = [np.asarray(kink.at[name], _dtype(card, name)) for name in card.inputs]
        params = {name: kink.at[name] for name in card.params if name in kink.at}
        y, leaves = _called(card, operands, params)
        found = {leaf.id: g for leaf, g in gradients(y, np.ones(y.shape))}
        for name, slopes in kink.slopes.items():
            got = found[leaves[card.inputs.index(name)].id]
            wanted = np.broadcast_to(np.asarray(slopes, np.float64), got.shape)
            if not np.array_equal(got, wanted, equal_nan=True):
                yield f"{kink.words}: {name} got {got.tolist()}, not {wanted.tolist()}"


def _dtype(card: Op, name: str) -> Any:
    return np.float64 if name in card.rules else None


# --- the table ------------------------------------------------------------------------------------


def proof_table(proofs: Sequence[Proof]) -> str:
    """One line per op, and one more per broken promise."""
    head = ("", "op", "checks", "max |y − ref|", "max |a − n|", "kernel", "saves", "kinks")
    rows = [head, *(_row(proof) for proof in proofs)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    faults = [[f"   {proof.op}: {fault}" for fault in proof.faults] for proof in proofs]
    told = [[line, *wrong] for line, wrong in zip(lines, [[], *faults], strict=True)]
    return "\n".join(line for several in told for line in several)


def _row(proof: Proof) -> tuple[str, ...]:
    return (
        "✓" if proof else "✗",
        proof.op,
        str(proof.checks),
        "—" if proof.forward is None else f"{proof.forward:.1e}",
        f"{proof.rule:.1e}",
        "—" if proof.kernel is None else f"{proof.kernel:.1f} eps",
        ", ".join(proof.saves) or "nothing",
        str(proof.kinks) if proof.kinks else "none",
    )
