"""Words for a frame: what a graph calls an op's operands, axes and places."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..events import Summary
from ..graph import TapeNode
from ..trace import Step, Trace
from .formula import name_tex
from .parts import param_text, short

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def common(trace: Trace, step: Step) -> dict[str, Any]:
    line = trace.nodes[step.node].line
    quoted = bool(line and trace.source and line[0] == trace.source.title)
    return {
        "step": step.index,
        "steps": len(trace.steps),
        "phase": step.phase,
        "kind": step.kind,
        "lines": (line[1],) if quoted and line else (),
    }


def operands_in(trace: Trace, node: TapeNode) -> dict[str, str]:
    """The words of a card's formulas, and what this graph calls them, in LaTeX."""
    words = {"y": name_tex(node.name)}
    for word, operand in zip(node.operands, node.inputs, strict=True):
        words[word] = (
            name_tex(trace.nodes[operand].name) if isinstance(operand, int) else f"{{{operand:g}}}"
        )
    for word, value in (node.params or {}).items():
        words[word] = _param_tex(word, value)
    return words


def _param_tex(word: str, value: Any) -> str:
    """What a parameter was given, in a formula."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        text = f"{value:g}".replace("inf", r"\infty ")
        return f"{{{text}}}" if value >= 0 else f"{{({text})}}"
    said = "all" if word == "dim" and value is None else param_text(value)
    return name_tex(said)


def word_of(trace: Trace, node: TapeNode, argnum: int) -> str:
    """What an operand is called: the tensor's name, or the number."""
    operand = node.inputs[argnum]
    return trace.nodes[operand].name if isinstance(operand, int) else short(operand, 6)


def copied_axes(shape: tuple[int, ...], result: tuple[int, ...]) -> tuple[int, ...]:
    lead = len(result) - len(shape)
    stretched = (
        lead + n for n, s in enumerate(shape) if lead >= 0 and s == 1 and result[lead + n] != 1
    )
    return (*range(max(lead, 0)), *stretched)


def along(copied: tuple[int, ...]) -> str:
    return ("axis " if len(copied) == 1 else "axes ") + ", ".join(map(str, copied))


def which(node: TapeNode, argnum: int) -> str:
    if sum(isinstance(i, int) for i in node.inputs) == 1:
        return ""
    return f", its {ORDINALS[argnum] if argnum < len(ORDINALS) else f'{argnum + 1}th'} input"


def finite(array: Any) -> bool:
    """Whether an array, or what is known of a large one, holds finite numbers only."""
    return bool(np.isfinite(array.mean if isinstance(array, Summary) else array).all())


def odd(array: Any) -> str:
    """What an array holds instead of finite numbers: NaN, or infinity."""
    return (
        "NaN" if np.isnan(array.mean if isinstance(array, Summary) else array).any() else "infinity"
    )
