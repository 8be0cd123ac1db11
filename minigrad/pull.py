"""The executor: one rule, one input. Both bodies of the walk and the numeric check call it, so all agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .errors import RuleError, ShapeError
from .graph import Node
from .op import Op, Rule

Array = NDArray[Any]
Results = dict[int, Any]  # of rules that serve several inputs: such a rule runs once per visit


def lend(card: Op, array: Any) -> Any:
    """What a rule may read. A stranger's rule gets arrays it cannot write into, others will read them too."""
    if card.ours or not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def saved(card: Op, rule: Rule, operands: list[Any], y: Any, params: Any) -> list[Any]:
    """What the rule reads, in its order: operands, parameters, the output `y`, shapes."""
    values = []
    for name in rule.reads:
        if name == "y":
            value = y
        elif name in card.params:
            value = params[name]
        elif name.endswith("_shape"):
            value = np.shape(operands[card.inputs.index(name[: -len("_shape")])])
        else:
            value = operands[card.inputs.index(name)]
        values.append(lend(card, value))
    return values


def run_rule(
    card: Op, name: str, rule: Rule, g: Array, values: list[Any], results: Results | None = None
) -> Array:
    """Call a rule for one of its inputs: its contribution, or the local slope. Raises RuleError."""
    arguments = list(values)
    if rule.g_at is not None:
        arguments.insert(rule.g_at, lend(card, g))
    try:
        if len(rule.inputs) == 1:
            with np.errstate(all="ignore"):
                return np.asarray(rule.fn(*arguments))
        results = {} if results is None else results
        if id(rule) not in results:
            with np.errstate(all="ignore"):
                results[id(rule)] = rule.fn(*arguments)
        return np.asarray(results[id(rule)][rule.inputs.index(name)])
    except Exception as problem:
        why = str(problem)
        if "read-only" in why:
            why = "it writes into an array it was only lent; let it return a new one"
        raise RuleError(f"{card.name}, input {name}: the rule failed: {why}") from problem


def contribution_of(
    card: Op, name: str, rule: Rule, g: Array, values: list[Any], results: Results | None = None
) -> Array:
    """What one rule returns for upstream gradient g, before any reduction."""
    result = run_rule(card, name, rule, g, values, results)
    if rule.takes_g:
        return result
    with np.errstate(all="ignore"):
        return np.asarray(g * result)


def slope_of(card: Op, name: str, rule: Rule, g: Array, values: list[Any]) -> Array | None:
    """The local slope in the shape of the result; None unless the op is elementwise."""
    if not card.elementwise:
        return None
    slope = run_rule(card, name, rule, np.ones_like(g), values)
    return np.broadcast_to(slope.astype(g.dtype, copy=False), g.shape)


def axes_to_reduce(
    card: Op, name: str, contribution: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The axes that broadcasting copied: leading ones, and those of size 1. Raises ShapeError if the rule is wrong."""
    if contribution == shape:
        return ()
    lead = len(contribution) - len(shape)
    fits = lead >= 0 and all(
        to in (1, size) for size, to in zip(contribution[lead:], shape, strict=True)
    )
    if not (fits and card.broadcasts):
        wanted = "that shape, or one it broadcasts to" if card.broadcasts else "exactly that shape"
        raise ShapeError(
            f"{card.name}, input {name}: the rule returned a contribution of shape {contribution}, but the input has "
            f"shape {shape} and must get {wanted}"
        )
    copied = (lead + n for n, to in enumerate(shape) if to == 1 and contribution[lead + n] != 1)
    return (*range(lead), *copied)


def reduce(contribution: Array, axes: tuple[int, ...], shape: tuple[int, ...], dtype: Any) -> Array:
    """Sum over `axes`, all in one pass, into `shape`; low precision accumulates in float64."""
    if axes:
        wide = np.float64 if contribution.dtype.itemsize < 8 else None
        contribution = contribution.sum(axis=axes, dtype=wide).reshape(shape)
    return contribution.astype(dtype, copy=False)


def kernel_for(
    card: Op, rule: Rule, g: Array, values: list[Any], operand: Node
) -> Callable[[Array], None] | None:
    """The compiled pass that adds this input's gradient into an array; None where NumPy does it."""
    if not card.elementwise or g.size < kernels.LARGE or operand._value.dtype != g.dtype:
        return None
    return kernels.fused(rule.fn, rule.reads, rule.takes_g, g, values, operand._value.shape)
