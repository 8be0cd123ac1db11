"""The numeric check, at two levels: one op alone (its rule against its own forward), and the whole
graph.

A wrong rule is blamed at its op, its damage is seen at the leaves, and a correct op is never
blamed. Everything runs in float64 on copies; parameters, constants and detached values stay as
recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .backward import gradients, seed_for
from .compare import Array, Check, Function, check, distance, worst_index
from .domains import samples
from .errors import DtypeError, GraphError
from .graph import Node, Tape, label, refuse_stale
from .numeric import Verdict
from .op import Op, registry
from .pull import axes_to_reduce, contribution_of, reduce, saved
from .report import Report
from .tensor import Tensor, no_grad, tensor

JACOBIAN = 4096  # entries up to which a Jacobian is kept


# --- level 1: one op alone ------------------------------------------------------------------------


def _wide(value: Any) -> Any:
    """A float64 copy of a floating array; anything else as it is."""
    return (
        np.array(value, np.float64)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
        else value
    )


def check_input(
    card: Op,
    operands: Sequence[Any],
    params: Any,
    argnum: int,
    g: Array,
    recorded: Array | None = None,
    **places: Any,
) -> Check:
    """Check the rule of one input against the op's own forward, for upstream gradient g and for a
    random one.

    recorded: the reduced gradient that the walk gave, if there is one. Raises RuleError or
    ShapeError as the walk would.
    """
    name, values = card.inputs[argnum], [_wide(o) for o in operands]
    x = np.array(values[argnum], np.float64)
    with np.errstate(all="ignore"):
        y = np.asarray(card.forward(*values, **params), np.float64)

    def f(changed: Array) -> Array:
        with np.errstate(all="ignore"):
            result = card.forward(*[*values[:argnum], changed, *values[argnum + 1 :]], **params)
        return np.asarray(result, np.float64).ravel()

    def pull(upstream: Array) -> Array:
        rule = card.rules[name]
        contribution = contribution_of(
            card, name, rule, upstream, saved(card, rule, values, y, params)
        )
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


def check_op(op: Any, seed: int = 0) -> Report:
    """Check every rule of one op on its declared domain, with random upstream gradients, and its
    forward.

    op: a name from the registry, an op function, or a card. Raises KeyError-free GraphError for an
    unknown name.
    """
    card = registry.get(op) if isinstance(op, str) else getattr(op, "card", op)
    if not isinstance(card, Op):
        raise GraphError(f"check_op: there is no op called {op!r}")
    rng = np.random.default_rng(seed)
    checks = []
    for operands, params in samples(card, seed):
        with np.errstate(all="ignore"):
            y = np.asarray(card.forward(*operands, **{**card.params, **params}))
        g = rng.uniform(-1.5, 1.5, y.shape)
        for argnum, name in enumerate(card.inputs):
            if name in card.rules:
                checks.append(check_input(card, operands, {**card.params, **params}, argnum, g))
        checks += _against_reference(card, operands, params, y)
    return Report(card.name, tuple(checks))


def _against_reference(card: Op, operands: Sequence[Any], params: Any, y: Array) -> list[Check]:
    """The forward beside the NumPy reference: a gradient check cannot see a wrong forward."""
    if card.reference is None:
        return []
    expected = np.asarray(card.reference(*operands, *params.values()), np.float64)
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
    """A recorded graph run again in float64 with one leaf changed; everything else stays as it was
    recorded.
    """

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.values = [_wide(node._value) for node in tape.live]
        for node in tape.live:
            if node.card is not None:
                refuse_stale(node)
        self._run(self.values, [n for n, node in enumerate(tape.live) if node.card is not None])

    def _run(self, values: list[Any], places: Sequence[int]) -> None:
        for n in places:
            node = self.tape.live[n]
            assert node.card is not None
            operands = [
                values[self.tape.place[i.id]] if isinstance(i, Node) else i for i in node._inputs
            ]
            with np.errstate(all="ignore"):
                values[n] = np.asarray(node.card.forward(*operands, **node.params))

    def of(self, leaf: int) -> Function:
        """The root's value, flat, as a function of one leaf."""
        moved, downstream = {leaf}, []
        for n, node in enumerate(self.tape.live):
            if any(isinstance(i, Node) and self.tape.place[i.id] in moved for i in node._inputs):
                moved.add(n)
                downstream.append(n)

        def f(changed: Array) -> Array:
            values = list(self.values)
            values[leaf] = changed
            self._run(values, downstream)
            return np.asarray(values[-1], np.float64).ravel()

        return f


def check_leaf(replay: Replay, leaf: int, name: str, seed: Array, recorded: Array) -> Check:
    """Check the loss by one leaf. recorded: the gradient that reached it."""
    x = np.array(replay.values[leaf], np.float64)
    weights = np.asarray(seed, np.float64).reshape(1, -1)
    exact = [recorded.astype(np.float64)]
    return check(
        "graph", "loss", name, replay.of(leaf), x, recorded, exact, weights, node=leaf, input=leaf
    )


# --- a function given by the person ---------------------------------------------------------------


def gradcheck(fn: Callable[..., Any], inputs: Sequence[Tensor]) -> Report:
    """Check the gradients of `fn(*inputs)` by every input that requires one, against central
    differences.

    fn takes tensors and returns a tensor of any shape (anything but a scalar is weighted by fixed
    random numbers). It is called again on float64 copies, so the inputs are never touched. A
    function that answers differently twice gets no verdict but a note. Raises GraphError if no
    input requires a gradient, DtypeError if fn returns no tensor.
    """
    wanted = [n for n, t in enumerate(inputs) if t.requires_grad]
    if not wanted:
        raise GraphError("gradcheck: no input has requires_grad=True, so there is nothing to check")
    title = getattr(fn, "__name__", "function")

    def call(values: Sequence[Array], tracked: bool) -> tuple[Tensor, list[Tensor]]:
        leaves = [
            tensor(v, requires_grad=tracked and n in wanted, name=label(inputs[n], n))
            for n, v in enumerate(values)
        ]
        result = fn(*leaves)
        if not isinstance(result, Tensor):
            raise DtypeError(f"gradcheck: {title} returned {type(result).__name__}, not a tensor")
        return result, leaves

    wide = [_wide(t._value) for t in inputs]
    result, _ = call(wide, tracked=False)
    twice, _ = call(wide, tracked=False)
    if not np.array_equal(result._value, twice._value, equal_nan=True):
        return Report(
            title,
            (),
            "the function is not deterministic: it answers differently twice on the same input",
        )
    ones = result.size == 1
    seed = (
        np.ones(result.shape) if ones else np.random.default_rng(0).uniform(0.5, 1.5, result.shape)
    )

    def gradients_of(values: Sequence[Array]) -> list[Array]:
        loss, leaves = call(values, tracked=True)
        found: dict[int, Array] = {}
        if loss.requires_grad:
            found = {leaf.id: g for leaf, g in gradients(loss, seed_for(loss, seed))}
        return [found.get(leaves[n].id, np.zeros(leaves[n].shape, leaves[n].dtype)) for n in wanted]

    recorded, exact = gradients_of([t._value for t in inputs]), gradients_of(wide)
    checks = []
    for place, n in enumerate(wanted):

        def f(changed: Array, n: int = n) -> Array:
            with no_grad():
                return (
                    call([*wide[:n], changed, *wide[n + 1 :]], tracked=False)[0]
                    ._value.astype(np.float64)
                    .ravel()
                )

        name = label(inputs[n], n)
        weights = seed.reshape(1, -1)
        checks.append(
            check("graph", title, name, f, wide[n], recorded[place], [exact[place]], weights)
        )
    return Report(title, tuple(checks))
