"""The frame of a pull: upstream ⊙ local = contribution, or upstream through the rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..compare import Check
from ..events import Accumulated, Pulled, Recomputed, Reduced, Stopped
from ..graph import TapeNode
from ..trace import Step, Trace
from .formula import bar_tex, bar_text, named
from .parts import (
    Cells,
    Frame,
    Grid,
    Letters,
    Math,
    Name,
    Panel,
    Part,
    Sign,
    Text,
    bytes_text,
    shape_text,
)
from .proof import proof_of
from .sources import axes, from_jacobian, from_letters, reduction
from .words import along, common, finite, odd, operands_in, which, word_of

JACOBIAN = 12  # rows and columns of a Jacobian that is still shown


def pull_frame(trace: Trace, step: Step) -> Frame:
    pulled = next(e for e in step.events if isinstance(e, Pulled))
    reduced = next((e for e in step.events if isinstance(e, Reduced)), None)
    node, receiver = trace.nodes[pulled.node], trace.nodes[pulled.input]
    words = operands_in(trace, node)
    here, there = bar_tex(node.name), bar_tex(receiver.name)
    whole_rule = named(pulled.tex, words)
    rule, _, _ = whole_rule.partition(r", \quad")  # without the abbreviations it explains
    accumulated = next((e for e in step.events if isinstance(e, Accumulated)), None)
    equals = "=" if accumulated is None or accumulated.expected == 1 else r"\;\text{+=}\;"
    say: list[str | Name | Math]
    if pulled.local is not None:
        by = words[node.operands[pulled.argnum]]
        slope = rf"\frac{{\partial {words['y']}}}{{\partial {by}}} = {whole_rule}"
        say = [
            "The gradient that arrived at ",
            Name(node.name),
            ", times the local slope ",
            Math(slope),
            ".",
        ]
        product = here if rule == "1" else rf"{here} \odot {_factor(rule)}"
    else:
        say = [
            "The rule of ",
            Name(node.op),
            " pulls the gradient that arrived at ",
            Name(node.name),
            " back into ",
            Name(receiver.name),
            ".",
        ]
        product = whole_rule
    total = ""
    if reduced:
        say += [
            " ",
            Name(receiver.name),
            f" was copied along {along(reduced.axes)}, so its copies' gradients are added up.",
        ]
        total = rf"\sum_{{\text{{{along(reduced.axes)}}}}} "
    say += [" ", Math(f"{there} {equals} {total}{product}"), ".", *_warnings(trace, step, pulled)]
    return Frame(
        **common(trace, step),
        tick=f"{node.op} → {receiver.name}",
        title=(Name(node.op), " pulls back into ", Name(receiver.name), which(node, pulled.argnum)),
        say=tuple(say),
        nodes=(node.id, receiver.id),
        edges=((node.id, pulled.argnum),),
        parts=tuple(_contribution(trace, step, pulled, reduced, rule, equals == "=")),
        residuals=_residuals(node, pulled, trace),
        jacobian=_jacobian(step.check, words, node, receiver),
        proof=proof_of(trace, step.check, receiver, "this op alone"),
        ledger=ledger_of(trace, step, receiver),
    )


WHY = {
    "constant": "it is a constant",
    "detached": "it was detached",
    "no_grad": "it was made inside no_grad",
}


def _warnings(trace: Trace, step: Step, pulled: Pulled) -> Iterator[str | Name | Math]:
    """What was made again, where the gradient does not go on, where it stops being finite."""
    for event in step.events:
        if isinstance(event, Recomputed):
            made = trace.nodes[event.node].name
            yield from (
                " ",
                Name(made),
                f" had been dropped and is made again: {bytes_text(event.bytes)}.",
            )
        if isinstance(event, Stopped):
            why = WHY.get(event.reason, event.reason)
            yield from (" Nothing goes on to ", Name(trace.nodes[event.input].name), f": {why}.")
    if not finite(pulled.contribution) and finite(pulled.upstream):
        yield from (" Here a finite gradient becomes ", Name(odd(pulled.contribution)), ".")


def _factor(tex: str) -> str:
    """A slope as a factor: in parentheses if it is a sum, or starts with a sign."""
    return (
        rf"\left({tex}\right)"
        if tex.startswith("-") or any(s in tex for s in (" + ", " - "))
        else tex
    )


def _contribution(
    trace: Trace,
    step: Step,
    pulled: Pulled,
    reduced: Reduced | None,
    rule: str,
    whole: bool,
) -> list[Part]:
    """The row of grids. whole: this contribution is all that the receiver gets."""
    node, receiver = trace.nodes[pulled.node], trace.nodes[pulled.input]
    full = axes(len(pulled.contribution.shape))
    own = bar_text(receiver.name) if whole else "this part"
    parts = [_upstream(trace, pulled)]
    sources: Letters | Cells | None
    if pulled.local is not None:
        sources = Letters(full, (("upstream", full), ("local", full)))
        parts += [Sign("⊙"), _local(pulled, rule), Sign("=")]
    else:
        sources = from_letters(node, pulled) or from_jacobian(step.check, pulled)
        parts.append(Sign("→", "rule"))
    part_of: Text = ("this step's part of ", Math(bar_tex(receiver.name)))
    parts.append(
        Grid(
            kind="contribution",
            key="contribution",
            caption=("contribution",),
            symbol="contribution" if reduced else own,
            array=pulled.contribution,
            hue="grad",
            note=("one per copy, before the sum",) if reduced else part_of,
            sources=sources,
        )
    )
    if reduced:
        out, summed = reduction(len(reduced.from_shape), reduced.axes, len(reduced.to_shape))
        product = pulled.local is not None
        terms = (
            (("upstream", summed), ("local", summed)) if product else (("contribution", summed),)
        )
        parts += [
            Sign("Σ", along(reduced.axes)),
            Grid(
                kind="reduced",
                key="reduced",
                caption=("gradient ", Math(bar_tex(receiver.name))) if whole else part_of,
                symbol=own,
                array=reduced.gradient,
                hue="grad",
                note=(f"{shape_text(reduced.from_shape)} → {shape_text(reduced.to_shape)}",),
                sources=Letters(out, terms),
            ),
        ]
    return parts


def _upstream(trace: Trace, pulled: Pulled) -> Part:
    name = trace.nodes[pulled.node].name
    uses = [n.op for n in trace.nodes if pulled.node in n.inputs]
    return Grid(
        kind="upstream",
        key="upstream",
        caption=("upstream ", Math(bar_tex(name))),
        symbol=bar_text(name),
        array=pulled.upstream,
        hue="grad",
        note=(f"arrived from {', '.join(uses[:3])}" if uses else "the seed",),
    )


def _local(pulled: Pulled, rule: str) -> Part:
    saved = "saved in the forward pass" if _is_saved(pulled) else "from what was saved"
    return Grid(
        kind="local",
        key="local",
        caption=("local slope ", Math(rule)),
        symbol="slope",
        array=pulled.local,
        hue="value",
        note=(saved if pulled.residuals else "a constant",),
    )


def _is_saved(pulled: Pulled) -> bool:
    return len(pulled.residuals) == 1 and pulled.tex == pulled.residuals[0][0]


def _residuals(node: TapeNode, pulled: Pulled, trace: Trace) -> Panel | None:
    if pulled.local is not None or not pulled.residuals:
        return None
    called = {"y": node.name, **{w: word_of(trace, node, k) for k, w in enumerate(node.operands)}}
    parts = tuple(
        Grid(
            kind="residual",
            key=f"residual:{name}",
            caption=(Name(called.get(name, name)),),
            symbol=called.get(name, name),
            array=value,
            hue="value",
        )
        for name, value in pulled.residuals
    )
    return Panel(title=("saved in the forward pass",), parts=parts)


def _jacobian(
    check: Check | None, words: Mapping[str, str], node: TapeNode, receiver: TapeNode
) -> Grid | None:
    if check is None or check.jacobian is None or max(check.jacobian.shape) > JACOBIAN:
        return None
    formula = (
        rf"\frac{{\partial {words['y']}}}{{\partial {words[node.operands[check.argnum or 0]]}}}"
    )
    note = f"a row per cell of {node.name}, a column per cell of {receiver.name}"
    return Grid(
        kind="jacobian",
        key="jacobian",
        caption=("Jacobian ", Math(formula)),
        symbol="J",
        array=check.jacobian,
        hue="value",
        note=(note,),
    )


def ledger_of(trace: Trace, step: Step, receiver: TapeNode) -> Panel | None:
    got = next((e for e in step.events if isinstance(e, Accumulated)), None)
    if got is None:
        return None
    has = "has" if got.expected == 1 else "have"
    note = f"{got.arrived} of {got.expected} uses {has} arrived"
    if receiver.kind == "leaf" and got.arrived == got.expected:
        note += f" · {receiver.name} is a leaf, so this becomes {receiver.name}.grad"
    own = bar_text(receiver.name)
    grids = [
        ("before", "before", got.before),
        ("added", "this step", got.added),
        ("after", "after", got.after),
    ]
    before, added, after = (
        Grid(kind=k, key=k, caption=(title,), symbol=own, array=a, hue="grad")
        for k, title, a in grids
    )
    return Panel(
        title=("What ", Name(receiver.name), " has collected"),
        note=(note,),
        parts=(before, Sign("+"), added, Sign("="), after),
    )
