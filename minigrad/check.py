"""The numeric check, at two levels: one op alone, and the whole graph.

A wrong rule is blamed at its op, its damage is seen at the leaves, and a correct op is never
blamed. Everything runs in float64 on copies; parameters, constants and detached values stay as
recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .backward import gradients
from .card import Op, registry
from .compare import Array, Check, Function, check, distance, worst_index
from .domains import samples
from .errors import GraphError
from .graph import Node, Tape, order, refuse_stale
from .numeric import Verdict
from .pull import (
    axes_to_reduce,
    contribution_of,
    on_arrays,
    reduce,
    run_forward,
    saved,
    value_of,
)
from .report import Report

JACOBIAN = 4096  # entries up to which a Jacobian is kept


# --- level 1: one op alone ------------------------------------------------------------------------


def widened(value: Any) -> Any:
    """A float64 copy of a floating array, float64 for a floating dtype; else the value itself."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.array(value, np.float64)
    return np.dtype(np.float64) if isinstance(value, np.dtype) and value.kind == "f" else value


def check_input(
    card: Op,
    operands: Sequence[Any],
    params: Any,
    argnum: int,
    g: Array,
    recorded: Array | None = None,
    **places: Any,
) -> Check:
    """Check the rule of one input against the op's own forward, for g and for a random upstream.

    recorded: the reduced gradient that the walk gave, if there is one. Raises RuleError or
    ShapeError as the walk would.
    """
    name, values = card.inputs[argnum], [widened(o) for o in operands]
    params = {n: widened(v) for n, v in params.items()}
    x = np.array(values[argnum], np.float64)
    y = run_forward(card, values, params).astype(np.float64)

    def f(changed: Array) -> Array:
        moved = [*values[:argnum], changed, *values[argnum + 1 :]]
        return run_forward(card, moved, params).astype(np.float64).ravel()

    made = on_arrays(card, values, y, params)

    def pull(upstream: Array) -> Array:
        rule = card.rules[name]
        with np.errstate(all="ignore"):
            read = saved(card, rule, made, value_of)
            contribution = contribution_of(card, name, rule, upstream, read)
            axes = axes_to_reduce(card, name, contribution.shape, x.shape)
            return reduce(contribution, axes, x.shape, np.float64)

    probe = np.random.default_rng(1).uniform(0.5, 1.5, y.shape) * np.where(
        np.arange(y.size) % 3, 1, -1
    ).reshape(y.shape)
    upstreams = [np.asarray(g, np.float64), probe]
    exact = [np.zeros(x.shape) if card.rules[name].is_zero else pull(u) for u in upstreams]
    jacobian = None
    if not card.elementwise and 0 < y.size * x.size <= JACOBIAN:
        ones = np.eye(y.size).reshape(y.size, *y.shape)
        jacobian = np.stack([pull(one).ravel() for one in ones])
    weights = np.stack([u.ravel() for u in upstreams])
    kept = exact[0] if recorded is None else recorded
    return check(
        "op",
        card.name,
        name,
        f,
        x,
        kept,
        exact,
        weights,
        jacobian=jacobian,
        argnum=argnum,
        **places,
    )


def card_of(op: Any) -> Op:
    """The card of an op: its name in the registry, its function, or itself. Raises GraphError."""
    card = registry.get(op) if isinstance(op, str) else getattr(op, "card", op)
    if not isinstance(card, Op):
        raise GraphError(f"check_op: there is no op called {op!r}")
    return card


def check_op(op: Any, seed: int = 0) -> Report:
    """Check every rule of one op on its declared domain, and its forward.

    op: a name from the registry, an op function, or a card. Raises GraphError for an unknown name,
    CardError for an op that needs a domain and has none, RuleError or ShapeError as the walk would.
    """
    card = card_of(op)
    rng = np.random.default_rng(seed)
    checks = []
    for operands, given in samples(card, seed):
        used, params = card.taking(len(operands)), card.settle(given)
        y = run_forward(used, operands, params)
        g = rng.uniform(-1.5, 1.5, y.shape)
        for argnum, name in enumerate(used.inputs):
            if name in used.rules:
                checks.append(check_input(used, operands, params, argnum, g))
        checks += _against_reference(used, operands, given, y)
    note = "" if card.rules else "it has no rule to check"
    return Report(card.name, tuple(checks), note)


def _against_reference(card: Op, operands: Sequence[Any], params: Any, y: Array) -> list[Check]:
    """The forward beside the NumPy reference: a gradient check cannot see a wrong forward."""
    if card.reference is None:
        return []
    expected = card.expected(tuple(operands), params).astype(np.float64)
    if expected.shape != y.shape:
        difference, worst = None, float("inf")
    else:
        difference = distance(y, expected)
        worst = float(np.max(difference, initial=0.0))
    fine = worst <= 1e-12 * (1 + float(np.max(np.abs(expected), initial=0.0)))
    verdict = Verdict.agrees if fine else Verdict.differs
    note = "" if fine else "the forward differs from the NumPy reference"
    return [
        Check(
            level="forward",
            op=card.name,
            name="forward",
            shape=y.shape,
            verdict=verdict,
            analytic=y,
            numeric=expected if difference is not None else None,
            error=None,
            cells=(verdict,) * y.size,
            index=worst_index((verdict,) * y.size, difference, y.shape),
            max_difference=worst,
            note=note,
        )
    ]


# --- level 2: the whole graph ---------------------------------------------------------------------


class Replay:
    """A recorded graph run again in float64 with one leaf changed; everything else stays.

    It also walks its float64 graph once, for the exact gradients, and for how much of the rounding
    inside can reach the result.
    """

    def __init__(self, tape: Tape, seed: Array) -> None:
        self.nodes: list[Node] = []
        self.values: list[Array] = []
        self.inputs: list[list[int | float]] = []
        self.seed = np.asarray(seed, np.float64)
        for node in tape.live:
            inputs = [tape.place[i.id] if isinstance(i, Node) else float(i) for i in node._inputs]
            self.inputs.append(inputs)
            if node.card is None:
                wide = Node(widened(node._value), node._tracked, node.name, None)
            else:
                refuse_stale(node)
                y = self._forward(node, self.values, inputs)
                wide = Node(y, True, node.name, None)
                given = (self.nodes[i] if isinstance(i, int) else i for i in inputs)
                wide.record(node.card, tuple(given), self._params(node))
            self.nodes.append(wide)
            self.values.append(wide._value)
        self.gradients, self.inner = exact_gradients(self.nodes[-1], self.seed)

    @staticmethod
    def _forward(node: Node, values: Sequence[Array], inputs: Sequence[int | float]) -> Array:
        assert node.card is not None
        operands = [values[i] if isinstance(i, int) else i for i in inputs]
        return run_forward(node.card, operands, Replay._params(node))

    @staticmethod
    def _params(node: Node) -> dict[str, Any]:
        return {n: widened(v) for n, v in node.params.items()}

    def of(self, leaf: int) -> Function:
        """The root's value, flat, as a function of one leaf."""
        moved, downstream = {leaf}, []
        for n, inputs in enumerate(self.inputs):
            if any(isinstance(i, int) and i in moved for i in inputs):
                moved.add(n)
                downstream.append(n)

        def f(changed: Array) -> Array:
            values = list(self.values)
            values[leaf] = changed
            for n in downstream:
                values[n] = self._forward(self.nodes[n], values, self.inputs[n])
            return np.asarray(values[-1], np.float64).ravel()

        return f


def exact_gradients(root: Node, seed: Array) -> tuple[dict[int, Array], float]:
    """The gradient of every node on the way, by id, and Σ |gradient · value| over them.

    That sum times eps bounds what rounding inside the graph does to the result.
    """
    finished = gradients(root, seed, order(root))
    with np.errstate(all="ignore"):
        sizes = [float(np.sum(np.abs(g * node._value))) for node, g in finished]
    return {node.id: g for node, g in finished}, sum(s for s in sizes if np.isfinite(s))


def check_leaf(replay: Replay, leaf: int, name: str, recorded: Array) -> Check:
    """Check the loss by one leaf. recorded: the gradient that reached it."""
    node = replay.nodes[leaf]
    return check(
        "graph",
        "loss",
        name,
        replay.of(leaf),
        node._value,
        recorded,
        [replay.gradients[node.id]],
        replay.seed.reshape(1, -1),
        replay.inner,
        node=leaf,
        input=leaf,
    )
