"""The executor: one rule, one input. The walk and the numeric check both call it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .card import Op, Rule
from .errors import DtypeError, MinigradError, RuleError, ShapeError
from .graph import Node

Array = NDArray[Any]
Results = dict[int, Any]  # of rules that serve several inputs: such a rule runs once per visit


def lend(card: Op, array: Any) -> Any:
    """What a rule may read: a stranger's gets arrays it cannot write into."""
    if card.ours or not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def value_of(node: Node) -> Array:
    """The value of a node, as it is."""
    return node._value


def on_arrays(card: Op, values: Sequence[Any], y: Array, params: Any) -> Node:
    """The node of a call on plain arrays and numbers, as if its forward had been recorded."""
    made = Node(y, False, None, None)
    operands = (Node(v, False, None, None) if isinstance(v, np.ndarray) else v for v in values)
    made.record(card, tuple(operands), params)
    return made


def saved(card: Op, rule: Rule, node: Node, value_of: Callable[[Node], Array]) -> list[Any]:
    """What the rule reads, in its order: operands, parameters, the output `y`, shapes.

    value_of: the value of a node, which may have to be made again. An operand that is a plain
    number is read as a number of the result's dtype: 1 / 0 is infinite.
    """
    values: list[Any] = []
    for kind, key in card.places(rule):
        if kind == "operand":
            operand = node._inputs[key]
            number = not isinstance(operand, Node)
            values.append(node._dtype.type(operand) if number else value_of(operand))
        elif kind == "y":
            values.append(value_of(node))
        elif kind == "shape":
            operand = node._inputs[key]
            values.append(operand._shape if isinstance(operand, Node) else ())
        else:
            values.append(node.params[key])
    return values if card.ours else [lend(card, value) for value in values]


class _Quiet(threading.local):
    """A context in which NumPy does not warn: entering it costs less than `np.errstate`."""

    def __init__(self) -> None:
        self.context = copy_context()
        self.context.run(np.seterr, all="ignore")


_quiet = _Quiet()


def run_forward(card: Op, values: Sequence[Any], params: Any) -> Array:
    """The op's result. Raises ShapeError or DtypeError for operands it cannot take."""
    lent = values if card.ours else [lend(card, value) for value in values]
    try:
        y = None
        if card.elementwise and card.plain and card.ours:
            y = kernels.forward(card.forward, card.inputs, values)
        if y is None and card.ours:
            y = _array(_quiet.context.run(card.forward, *lent, **params))
            if card.elementwise and y.dtype.kind == "f" and _whole(lent):
                wide = [np.float64(v) if isinstance(v, np.ndarray) else v for v in lent]
                y = _array(_quiet.context.run(card.forward, *wide, **params))
        elif y is None:  # a stranger's forward may call ops, so its context is its own
            with np.errstate(all="ignore"):
                y = _array(card.forward(*lent, **params))
    except MinigradError:
        raise
    except TypeError as problem:
        kinds = ", ".join(str(v.dtype) for v in values if isinstance(v, np.ndarray))
        said = " ".join(str(problem).split())
        raise DtypeError(f"{card.name}: it cannot be used on {kinds}: {said}") from problem
    except Exception as problem:
        raise ShapeError(_complaint(card, values, problem)) from problem
    if y.dtype.kind not in "fiub":
        raise DtypeError(f"{card.name}: the forward returned {y.dtype}, not real numbers")
    return y if card.ours else y.copy()  # a stranger may write into its array again


def _whole(values: Sequence[Any]) -> bool:
    """Whether all arrays hold whole numbers: real maths on them is done in float64.

    NumPy would choose a precision by their size, and count below 0 in unsigned ones.
    """
    kinds = [v.dtype.kind for v in values if isinstance(v, np.ndarray)]
    return "f" not in kinds


def _complaint(card: Op, values: Sequence[Any], problem: Exception) -> str:
    shapes = [np.shape(v) for v in values]
    operands = " and ".join(f"{n} {s}" for n, s in zip(card.inputs, shapes, strict=True))
    for axis in range(1, max(map(len, shapes)) + 1) if card.elementwise else ():
        sizes = sorted({s[-axis] for s in shapes if len(s) >= axis} - {1})
        if len(sizes) > 1:
            return (
                f"{card.name}: {operands} do not meet: at axis -{axis} the sizes "
                f"{' and '.join(map(str, sizes))} differ, and neither is 1"
            )
    return f"{card.name}: {operands} cannot be used: {problem}"


def _array(value: Any) -> Array:
    return value if type(value) is np.ndarray else np.asarray(value)


def run_rule(
    card: Op, name: str, rule: Rule, g: Array, values: list[Any], results: Results | None = None
) -> Array:
    """Call a rule for one of its inputs: its contribution, or the local slope. Raises RuleError.

    Infinities and NaN are results like any other: whoever calls holds `np.errstate(all="ignore")`.
    """
    arguments = list(values)
    if rule.g_at is not None:
        arguments.insert(rule.g_at, lend(card, g))
    try:
        if len(rule.inputs) == 1:
            result = rule.fn(*arguments)
        else:
            results = {} if results is None else results
            if id(rule) not in results:
                results[id(rule)] = tuple(rule.fn(*arguments))
            (*parts,) = results[id(rule)]
            if len(parts) != len(rule.inputs):
                raise ValueError(f"it returned {len(parts)} for {len(rule.inputs)} inputs")
            result = parts[rule.inputs.index(name)]
        given = _array(result)
    except Exception as problem:
        why = str(problem)
        if "read-only" in why:
            why = "it writes into an array it was only lent; let it return a new one"
        raise RuleError(f"{card.name}, input {name}: the rule failed: {why}") from problem
    if given.dtype.kind not in "fiub":
        what = type(result).__name__ if given.dtype == object else given.dtype
        raise RuleError(f"{card.name}, input {name}: the rule returned {what}, not real numbers")
    return given if card.ours else given.copy()  # a stranger may write into its array again


def contribution_of(
    card: Op, name: str, rule: Rule, g: Array, values: list[Any], results: Results | None = None
) -> Array:
    """What one rule returns for upstream gradient g, before any reduction."""
    if rule.constant is not None:
        return g if rule.constant == 1 else _array(g * rule.constant)
    result = run_rule(card, name, rule, g, values, results)
    if card.elementwise and result.ndim and result.shape != g.shape:
        _refuse_larger(card, name, result.shape, g.shape)
    return result if rule.g_at is not None else _array(g * result)


def _refuse_larger(card: Op, name: str, shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    """An elementwise rule gives a value per cell of the result: its shape must broadcast to it."""
    lead = len(result) - len(shape)
    if lead < 0 or any(n not in (1, r) for n, r in zip(shape, result[lead:], strict=True)):
        raise ShapeError(
            f"{card.name}, input {name}: the rule returned shape {shape}, which does not broadcast "
            f"to the shape {result} of the op's result"
        )


def slope_of(card: Op, name: str, rule: Rule, g: Array, values: list[Any]) -> Array | None:
    """The local slope in the shape of the result; None unless the op is elementwise."""
    if not card.elementwise:
        return None
    slope = run_rule(card, name, rule, np.ones_like(g), values)
    return np.broadcast_to(slope.astype(g.dtype, copy=False), g.shape)


def axes_to_reduce(
    card: Op, name: str, contribution: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The axes that broadcasting copied: leading ones, and those of size 1. Raises ShapeError."""
    if contribution == shape:
        return ()
    lead = len(contribution) - len(shape)
    fits = lead >= 0 and all(
        to in (1, size) for size, to in zip(contribution[lead:], shape, strict=True)
    )
    if not (fits and card.broadcasts):
        wanted = "that shape, or one it broadcasts to" if card.broadcasts else "exactly that shape"
        if fits:
            wanted += "; sum what was copied, or declare broadcasts=True"
        raise ShapeError(
            f"{card.name}, input {name}: the rule returned a contribution of shape {contribution}, "
            f"but the input has shape {shape} and must get {wanted}"
        )
    copied = (lead + n for n, to in enumerate(shape) if to == 1 and contribution[lead + n] != 1)
    return (*range(lead), *copied)


def reduce(contribution: Array, axes: tuple[int, ...], shape: tuple[int, ...], dtype: Any) -> Array:
    """Sum over `axes`, all in one pass, into `shape`; low precision accumulates in float64."""
    if axes:
        wide = np.float64 if contribution.dtype.itemsize < 8 else None
        contribution = np.asarray(contribution.sum(axis=axes, dtype=wide)).reshape(shape)
    return contribution.astype(dtype, copy=False)


@dataclass(slots=True, eq=False)
class Pull:
    """One rule about to run: it pulls `g` back from `node` into its tracked input `operand`.

    values: what the rule reads. results: of rules that serve several inputs, shared by one visit.
    """

    card: Op
    argnum: int
    operand: Node
    name: str
    rule: Rule
    values: list[Any]
    g: Array
    results: Results

    @property
    def shape(self) -> tuple[int, ...]:
        return self.operand._shape

    def zeros(self) -> Array:
        """A fresh array for the input's gradient."""
        return np.zeros(self.shape, self.operand._dtype)

    def kernel(self) -> Callable[[Array], None] | None:
        """The compiled pass that adds the gradient into an array; None where NumPy does it."""
        if not self.card.elementwise or kernels.small(self.g.size):
            return None
        if self.operand._dtype != self.g.dtype:
            return None
        rule = self.rule
        return kernels.fused(rule.fn, rule.reads, rule.takes_g, self.g, self.values, self.shape)

    def contribution(self) -> Array:
        """What the rule returns, before any reduction."""
        return contribution_of(self.card, self.name, self.rule, self.g, self.values, self.results)

    def axes(self, contribution: Array) -> tuple[int, ...]:
        """The axes to sum. Raises ShapeError if the rule returned a wrong shape."""
        return axes_to_reduce(self.card, self.name, contribution.shape, self.shape)

    def reduced(self, contribution: Array, axes: tuple[int, ...]) -> Array:
        """The gradient for the input, in its shape and dtype."""
        return reduce(contribution, axes, self.shape, self.operand._dtype)

    def gradient(self) -> Array:
        """All of it in one: contribution, axes, reduction."""
        contribution = self.contribution()
        operand = self.operand
        if contribution.shape == operand._shape and contribution.dtype == operand._dtype:
            return contribution
        return self.reduced(contribution, self.axes(contribution))


def pulls(node: Node, g: Array, value_of: Callable[[Node], Array]) -> Iterator[Pull]:
    """What is to be pulled back from `node`, in argument order. Raises RuleError."""
    card = node.card
    assert card is not None
    results: Results = {}
    for argnum, operand in enumerate(node._inputs):
        if not isinstance(operand, Node) or not operand._tracked:
            continue
        name = card.inputs[argnum]
        rule = card.rules.get(name)
        if rule is None:
            raise RuleError(
                f"{card.name}: input {name} needs a gradient, but the op has no rule for it"
            )
        values = saved(card, rule, node, value_of)
        yield Pull(card, argnum, operand, name, rule, values, g, results)
