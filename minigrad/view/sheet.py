"""A sheet: all that the card of one op says, as data to show. App, HTML file and text draw it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..card import Op, required
from ..check import check_op
from ..domains import Cases, domain_of, samples
from ..tensor import Tensor, tensor
from ..trace import Trace, record
from .formula import plain
from .parts import shape_text, short

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "matmul": "@"}


@dataclass(frozen=True, slots=True)
class Input:
    """One operand: where it may lie, and how the gradient is pulled back into it.

    tex: the formula of its rule; empty for an index or a mask, which gets no gradient. reads: what
    the rule reads; saves: those of them that are arrays, kept for backward.
    """

    name: str
    domain: str
    tex: str
    reads: tuple[str, ...]
    saves: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One op. calls: how it is called, as code. params: name and default, empty if required."""

    name: str
    family: str
    words: str
    calls: tuple[str, ...]
    tex: str
    elementwise: bool
    inputs: tuple[Input, ...]
    params: tuple[tuple[str, str], ...]
    domain: str
    kinks: tuple[str, ...]
    cost: str
    broadcasts: bool
    variadic: bool

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What kind of op it is: pairs of a word and its explanation."""
        kind = "a cell of y depends on one cell of each input" if self.elementwise else "no"
        cheap = self.cost == "memory"
        broadcasts = "yes, and the copies are summed" if self.broadcasts else "no"
        alone = self.elementwise and len(self.inputs) == 1
        rows = [
            ("parameters", ", ".join(f"{n} = {d}" if d else n for n, d in self.params)),
            ("domain", self.domain),
            ("elementwise", kind),
            ("broadcasts", "" if alone else broadcasts),
            ("cost", f"{self.cost}: {'cheap' if cheap else 'dear'} to make again"),
        ]
        return tuple((word, text) for word, text in rows if text)

    @property
    def rule_word(self) -> str:
        """What the formula of an input is: the local slope, or the rule for a contribution."""
        return "slope" if self.elementwise else "rule"

    @property
    def text(self) -> str:
        """All that a search looks through, in small letters."""
        formulas = [plain(self.tex), *(plain(i.tex) for i in self.inputs)]
        names = [*(i.name for i in self.inputs), *(n for n, _ in self.params)]
        words = [self.name, self.family, self.words, *self.calls, *formulas, *self.kinks, *names]
        return " ".join(" ".join(words).lower().split())


def sheet_of(card: Op) -> Sheet:
    """The sheet of a card."""
    module = sys.modules[card.forward.__module__]
    family = re.split(r"[:.,;(]", (module.__doc__ or "").strip().partition("\n")[0])[0].strip()
    cases = isinstance(card.domain, Cases)
    return Sheet(
        name=card.name,
        family=family or module.__name__,
        words=" ".join((card.forward.__doc__ or "").replace("`", "").split()),
        calls=_calls(card),
        tex=card.tex,
        elementwise=card.elementwise,
        inputs=tuple(_input(card, name, cases) for name in card.inputs),
        params=tuple((n, "" if d is required else said(d)) for n, d in card.params.items()),
        domain=card.domain.words if cases else "",
        kinks=tuple(kink.words for kink in card.kinks),
        cost=card.cost,
        broadcasts=card.broadcasts,
        variadic=card.variadic,
    )


def _input(card: Op, name: str, cases: bool) -> Input:
    rule = card.rules.get(name)
    reads = rule.reads if rule else ()
    arrays = (*card.inputs, "y", "others")
    return Input(
        name=name,
        domain="" if cases else domain_of(card, name).words,
        tex=rule.tex if rule else "",
        reads=reads,
        saves=tuple(word for word in reads if word in arrays),
    )


def _calls(card: Op) -> tuple[str, ...]:
    """The function, the method, and the operator, as code."""
    calls = [f"mg.{card.name}{card.signature}"]
    own = next((name for name in card.order if name in card.rules), None)
    if own and not card.variadic:
        parameters = card.signature.parameters.values()
        rest = inspect.Signature([p for p in parameters if p.name != own])
        calls.append(f"{own}.{card.name}{rest}")
    if card.name in SIGNS:
        calls.append(f" {SIGNS[card.name]} ".join(card.inputs))
    if card.name == "neg":
        calls.append(f"-{card.inputs[0]}")
    if card.name == "getitem":
        calls[:] = ["x[key]", *calls]
    return tuple(calls)


# --- calls of an op -------------------------------------------------------------------------------


def said(value: Any) -> str:
    """A parameter's value in a few letters."""
    if isinstance(value, tuple):
        return f"({', '.join(map(said, value))}{',' * (len(value) == 1)})"
    if isinstance(value, slice):
        ends = ["" if v is None else str(v) for v in (value.start, value.stop, value.step)]
        return ":".join(ends[: 2 + bool(ends[2])])
    if value is ...:
        return "…"
    if isinstance(value, np.ndarray):
        return f"array {shape_text(value.shape)}"
    if isinstance(value, np.dtype | type):
        return np.dtype(value).name
    if isinstance(value, float):
        return short(value, 6)
    return str(value)


def given_in_words(params: Mapping[str, Any]) -> str:
    """`dim = 0, keepdim`: the parameters of a call, without those that are off."""
    shown = [(n, v) for n, v in params.items() if v is not None and v is not False]
    return ", ".join(n if v is True else f"{n} = {said(v)}" for n, v in shown)


def call_in_words(card: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> str:
    """`x 2×3, dim = 0`: the shapes of the operands, then the parameters."""
    names = card.taking(len(operands)).inputs
    shapes = [f"{n} {shape_text(np.shape(o))}" for n, o in zip(names, operands, strict=True)]
    return ", ".join([*shapes, *filter(None, [given_in_words(params)])])


def leaves(card: Op, operands: Sequence[Any]) -> list[Tensor]:
    """The operands as tensors called what the card calls them; those with a rule are tracked."""
    used = card.taking(len(operands))
    return [
        tensor(o, requires_grad=name in used.rules, name=name)
        for name, o in zip(used.inputs, operands, strict=True)
    ]


def called(card: Op, operands: Sequence[Tensor], params: Mapping[str, Any]) -> Tensor:
    """The op on tensors; the result is called y. Raises what the op raises."""
    values = [operands] if card.variadic else operands
    y: Tensor = card.function(**dict(zip(card.inputs, values, strict=True)), **params)
    y.name = "y"
    return y


def pattern(shape: tuple[int, ...]) -> Any:
    """An upstream gradient whose cells differ."""
    size = int(np.prod(shape))
    return np.resize([1.0, -0.5, 2.0, 0.25, -1.5, 0.75], size).reshape(shape)


def neat(operands: Sequence[Any]) -> tuple[Any, ...]:
    """The operands of a sample in few digits."""
    return tuple(np.round(o, 2) if np.asarray(o).dtype.kind == "f" else o for o in operands)


def recorded(card: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Trace:
    """The trace of one call, walked back from `pattern`."""
    y = called(card, leaves(card, operands), params)
    return without_source(record(y, pattern(y.shape)))


def without_source(trace: Trace) -> Trace:
    """The trace without the lines of whoever called the op for us."""
    return Trace(trace.nodes, trace.events, trace.checks, None)


def smallest(card: Op, cells: int = 12) -> tuple[Any, ...]:
    """The sample to show: the smallest with 2 cells or more on both sides, of at most `cells`."""

    def rank(sample: Any) -> tuple[bool, bool, int]:
        operands, params = sample
        xs = leaves(card, operands)
        y = called(card, xs, params)
        sizes = [x.size for x in xs if x.requires_grad] or [0]
        fits = max(y.size, *sizes) <= cells and min(y.size, *sizes) > 0
        tells = y.size > 1 and max(sizes) > 1 and bool(y.data.any())
        return not fits, not tells, y.size * sum(sizes)

    operands, params = min(samples(card), key=rank)
    return neat(operands), params


# --- in words -------------------------------------------------------------------------------------


def verdict(card: Op) -> tuple[str, str]:
    """The worst verdict of the op's report, and what was checked: `("agrees", "✓ agrees: …")`."""
    report = check_op(card)
    worst = report.worst
    if worst is None:
        return "none", report.note
    what = ", ".join(dict.fromkeys(c.name for c in report.checks))
    words = (
        f"{worst.verdict.symbol} {worst.verdict}: {len(report.checks)} checks of {what}, "
        f"max |a − n| {short(worst.max_difference, 2)}"
    )
    return str(worst.verdict), "; ".join(filter(None, [words, worst.note]))


def sheet_text(sheet: Sheet) -> str:
    """A sheet as text: formula, calls, a line per input, facts, kinks."""
    lines = [f"{sheet.name}   {plain(sheet.tex)}", f"    {sheet.words}"]
    lines += [f"    {'   '.join(sheet.calls)}"]
    for row in sheet.inputs:
        saves = ", ".join(row.saves) or "nothing"
        rule = f"{sheet.rule_word} by {row.name}: {plain(row.tex)}   (saves {saves})"
        lines.append(f"    {rule if row.tex else f'{row.name}: index or mask, no gradient'}")
    if not sheet.domain:
        lines.append(f"    domain: {'; '.join(f'{i.name}: {i.domain}' for i in sheet.inputs)}")
    lines += [f"    {word}: {text}" for word, text in sheet.facts]
    lines += [f"    kinks: {words}" for words in sheet.kinks]
    return "\n".join(lines)
