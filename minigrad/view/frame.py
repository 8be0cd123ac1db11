"""Frames: a trace, step by step, as data to show. Stepper, HTML and text draw the same frames."""

from __future__ import annotations

from ..events import Accumulated, Reached, Seeded, Stopped, Summary, Visited
from ..graph import TapeNode
from ..trace import Step, Trace
from .formula import bar_tex, bar_text, name_tex, named
from .memory import kept, size_in_bytes
from .parts import Frame, Grid, Letters, Math, Name, Part, Sign, Text, bytes_text, short
from .proof import proof_of
from .pulled import ledger_of, pull_frame
from .sources import axes, made_of
from .words import along, common, copied_axes, finite, odd, operands_in

CONTRIBUTIONS = 4  # contributions written side by side when a leaf is reached


def frames(trace: Trace) -> list[Frame]:
    """Every step of a trace as a frame: forward steps, then backward steps."""
    draw = {"forward": forward, "seed": seed, "pull": pull_frame, "stop": stop, "reach": reach}
    return [draw[step.kind](trace, step) for step in trace.steps]


def forward(trace: Trace, step: Step) -> Frame:
    node = trace.nodes[step.node]
    inputs = [i for i in node.inputs if isinstance(i, int)]
    say: list[str | Name | Math] = [
        Name(node.name),
        " is made: ",
        Math(named(node.tex, operands_in(trace, node))),
        ".",
    ]
    for i in dict.fromkeys(inputs):
        copied = copied_axes(trace.nodes[i].value.shape, node.value.shape)
        if copied and node.symbol and not node.sources:
            say += [" ", Name(trace.nodes[i].name), f" is copied along {along(copied)}."]
    say += _saved(trace, node)
    if not finite(node.value) and all(finite(trace.nodes[i].value) for i in inputs):
        say += [" Here finite numbers become ", Name(odd(node.value)), "."]
    return Frame(
        **common(trace, step),
        tick=node.name,
        title=(Name(node.op), " makes ", Name(node.name)),
        say=tuple(say),
        nodes=(node.id, *inputs),
        edges=tuple((node.id, k) for k, i in enumerate(node.inputs) if isinstance(i, int)),
        parts=tuple(_equation(trace, node)),
    )


def _saved(trace: Trace, node: TapeNode) -> Text:
    """What this op keeps for backward, and how much that is."""
    saved = kept(node)
    if not saved:
        return (" For backward it saves nothing.",)
    say: list[str | Name | Math] = [" For backward it saves "]
    names = dict.fromkeys(trace.nodes[i].name for i in saved)
    for n, name in enumerate(names):
        say += [" and " if n else "", Name(name)]
    size = sum(size_in_bytes(trace.nodes[i].value) for i in saved)
    return (*say, f", {bytes_text(size)}.")


def _equation(trace: Trace, node: TapeNode) -> list[Part]:
    parts: list[Part] = []
    for k, operand in enumerate(node.inputs):
        if k:
            parts.append(Sign(node.symbol or ","))
        if isinstance(operand, int):
            given = trace.nodes[operand]
            parts.append(
                Grid(
                    kind="operand",
                    key=f"operand{k}",
                    caption=(Name(given.name),),
                    symbol=given.name,
                    array=given.value,
                    hue="value",
                )
            )
        else:
            word = "" if node.symbol else f"{node.operands[k]} = "
            parts.append(Sign(f"{word}{short(operand, 6)}"))
    parts.append(Sign("=") if node.symbol else Sign("→", node.op))
    parts.append(
        Grid(
            kind="result",
            key="result",
            caption=(Name(node.name),),
            symbol=node.name,
            array=node.value,
            hue="value",
            sources=made_of(trace, node),
        )
    )
    return parts


def seed(trace: Trace, step: Step) -> Frame:
    root = trace.nodes[step.node]
    seeded = step.events[0]
    assert isinstance(seeded, Seeded)
    bar = bar_tex(root.name)
    ones = not isinstance(seeded.gradient, Summary) and bool((seeded.gradient == 1).all())
    say: Text = ("The walk starts with the gradient that was passed for ", Name(root.name), ".")
    if ones:
        own = name_tex(root.name)
        formula = rf"{bar} = \frac{{\partial {own}}}{{\partial {own}}} = 1"
        say = (
            "Every gradient says how ",
            Name(root.name),
            " answers to a small change. It answers to itself one to one: ",
            Math(formula),
            ".",
        )
    return Frame(
        **common(trace, step),
        tick="seed",
        title=("the walk starts at ", Name(root.name)),
        say=say,
        nodes=(root.id,),
        edges=(),
        parts=(
            Grid(
                kind="seed",
                key="seed",
                caption=("seed ", Math(bar)),
                symbol=bar_text(root.name),
                array=seeded.gradient,
                hue="grad",
            ),
        ),
    )


def stop(trace: Trace, step: Step) -> Frame:
    stopped = next(e for e in step.events if isinstance(e, Stopped) and e.reason == "zero slope")
    node, receiver = trace.nodes[stopped.node], trace.nodes[stopped.input]
    upstream = next(
        (e.upstream for e in trace.events if isinstance(e, Visited) and e.node == node.id), None
    )
    grid = Grid(
        kind="upstream",
        key="upstream",
        caption=("upstream ", Math(bar_tex(node.name))),
        symbol=bar_text(node.name),
        array=upstream,
        hue="grad",
    )
    return Frame(
        **common(trace, step),
        tick=f"{node.op} ⊣ {receiver.name}",
        title=(Name(node.op), " stops the gradient to ", Name(receiver.name)),
        say=(
            "The gradient stops here: the slope of ",
            Name(node.op),
            " is 0 almost everywhere, so ",
            Name(receiver.name),
            " gets zeros.",
        ),
        nodes=(node.id, receiver.id),
        edges=((node.id, stopped.argnum),),
        parts=(grid,) if upstream is not None else (),
        proof=proof_of(trace, step.check, receiver, "this op alone"),
        ledger=ledger_of(trace, step, receiver),
    )


def reach(trace: Trace, step: Step) -> Frame:
    reached = step.events[0]
    assert isinstance(reached, Reached)
    leaf, root = trace.nodes[reached.node], trace.nodes[-1]
    bar = bar_tex(leaf.name)
    formula = rf"{bar} = \frac{{\partial {name_tex(root.name)}}}{{\partial {name_tex(leaf.name)}}}"
    given = [e for e in trace.events if isinstance(e, Accumulated) and e.node == leaf.id]
    parts: list[Part] = []
    if 1 < len(given) <= CONTRIBUTIONS:
        for n, e in enumerate(given):
            source = trace.nodes[e.source]
            parts += [
                *([Sign("+")] if n else []),
                Grid(
                    kind="added",
                    key=f"added{n}",
                    caption=("through ", Name(f"{source.op} → {source.name}")),
                    symbol=f"part {n + 1}",
                    array=e.added,
                    hue="grad",
                ),
            ]
        parts.append(Sign("="))
    full = axes(len(leaf.value.shape))
    say: list[str | Name | Math] = [
        "Every use of ",
        Name(leaf.name),
        " has reported"
        if len(given) == 1
        else f" has reported: {len(given)} contributions, added up",
        ". Its gradient is final, and becomes ",
        Name(f"{leaf.name}.grad"),
        ": ",
        Math(formula),
        ".",
    ]
    parts.append(
        Grid(
            kind="gradient",
            key="gradient",
            caption=("gradient ", Math(bar)),
            symbol=bar_text(leaf.name),
            array=reached.gradient,
            hue="grad",
            sources=Letters(
                full, tuple((f"added{n}", full) for n in range(len(given))), apply="", infix="+"
            )
            if len(parts) > 1
            else None,
        )
    )
    return Frame(
        **common(trace, step),
        tick=f"{leaf.name} done",
        title=(Name(leaf.name), " is done"),
        say=tuple(say),
        nodes=(leaf.id,),
        edges=(),
        parts=tuple(parts),
        proof=proof_of(trace, step.check, leaf, "whole graph"),
    )
