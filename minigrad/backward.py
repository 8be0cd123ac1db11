"""The walk: it takes nodes in reverse-topological order, pulls gradients back, reduces and accumulates them.

`_walk` alone owns order, store, consume and accumulate. What happens at one node has two bodies, which call the same
executor and so give the same gradients: `_Narrate` tells every step as events, `_Fuse` is silent and fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .errors import DtypeError, GraphError, RuleError, ShapeError
from .events import (
    Accumulated,
    Event,
    Pulled,
    Reached,
    Reduced,
    Released,
    Seeded,
    Stopped,
    Visited,
)
from .graph import Node, Tape, label, order, refuse_stale
from .op import Rule
from .pull import (
    Array,
    Results,
    axes_to_reduce,
    contribution_of,
    kernel_for,
    reduce,
    saved,
    slope_of,
)


class GradStore:
    """Gradients by tensor: `store[x]` is an array of x's shape and dtype, or None where nothing arrived."""

    def __init__(self) -> None:
        self._arrays: dict[int, Array] = {}
        self._owned: set[int] = set()  # arrays that nobody else holds

    def __getitem__(self, node: Node) -> Array | None:
        return self._arrays.get(node.id)

    def __contains__(self, node: Node) -> bool:
        return node.id in self._arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def add(self, node: Node, gradient: Array) -> None:
        """Accumulate `gradient` for `node`."""
        before = self._arrays.get(node.id)
        self._arrays[node.id] = gradient if before is None else np.asarray(before + gradient)
        self._owned.discard(node.id)

    def buffer(self, node: Node) -> Array:
        """The array of `node`, zeros at first, for a kernel to add into; nobody else holds it."""
        if node.id not in self._owned:
            before = self._arrays.get(node.id)
            fresh = np.zeros(node._value.shape, node._value.dtype)
            self._arrays[node.id] = fresh if before is None else np.add(before, fresh)
            self._owned.add(node.id)
        return self._arrays[node.id]

    def take(self, node: Node) -> Array | None:
        """Remove and return the gradient of `node`: it is consumed once."""
        self._owned.discard(node.id)
        return self._arrays.pop(node.id, None)


# --- the two bodies of one visit ------------------------------------------------------------------------


def _pulls(node: Node) -> Iterator[tuple[int, Node, str, Rule, list[Any]]]:
    """Each tracked input of `node` with its rule and what the rule reads. Raises RuleError where one is missing."""
    card = node.card
    assert card is not None
    operands = [i._value if isinstance(i, Node) else i for i in node._inputs]
    for argnum, operand in enumerate(node._inputs):
        if isinstance(operand, Node) and operand._tracked:
            name = card.inputs[argnum]
            if name not in card.rules:
                raise RuleError(f"{card.name}: input {name} needs a gradient, but the op has no rule for it")
            rule = card.rules[name]
            yield argnum, operand, name, rule, saved(card, rule, operands, node._value, node.params)


class _Visit(Protocol):
    def leaf(self, node: Node, g: Array) -> Iterable[Event]: ...
    def pull(self, node: Node, g: Array, store: GradStore) -> Iterable[Event]: ...


class _Fuse:
    """Silent: no events; a large elementwise input is one compiled pass into the store's own buffer."""

    def __init__(self, wanted: Iterable[Node] = ()) -> None:
        self.wanted = {node.id for node in wanted}
        self.finished: list[tuple[Node, Array]] = []  # leaves, and the nodes that were asked for

    def leaf(self, node: Node, g: Array) -> Iterable[Event]:
        self.finished.append((node, g))
        return ()

    def pull(self, node: Node, g: Array, store: GradStore) -> Iterable[Event]:
        if node.id in self.wanted:
            self.finished.append((node, g))
        card = node.card
        assert card is not None
        results: Results = {}
        for _, operand, name, rule, values in _pulls(node):
            shape, dtype = operand._value.shape, operand._value.dtype
            kernel = kernel_for(card, rule, g, values, operand)
            if rule.is_zero:
                store.add(operand, np.zeros(shape, dtype))
            elif kernel is not None:
                kernel(store.buffer(operand))
            else:
                contribution = contribution_of(card, name, rule, g, values, results)
                axes = axes_to_reduce(card, name, contribution.shape, shape)
                store.add(operand, reduce(contribution, axes, shape, dtype))
        return ()


class _Narrate:
    """Tells everything as events; arrays in events are read-only."""

    def __init__(self, root: Node) -> None:
        self.tape = Tape(root)
        self.arrived: Counter[int] = Counter()
        self.expected: Counter[int] = Counter()
        self.residuals: set[int] = set()  # nodes whose value some rule reads
        for node in self.tape.live:
            for _, operand, _, rule, _ in _pulls(node) if node.card else ():
                self.expected[operand.id] += 1
                self.residuals.update(self._read(node, rule))

    @staticmethod
    def _read(node: Node, rule: Rule) -> Iterator[int]:
        assert node.card is not None
        for name in rule.reads:
            if name == "y":
                yield node.id
            elif name in node.card.inputs:
                operand = node._inputs[node.card.inputs.index(name)]
                if isinstance(operand, Node):
                    yield operand.id

    def leaf(self, node: Node, g: Array) -> Iterator[Event]:
        place = self.tape.place[node.id]
        yield Reached(place, label(node, place), _frozen(g))

    def pull(self, node: Node, g: Array, store: GradStore) -> Iterator[Event]:
        card, here = node.card, self.tape.place[node.id]
        assert card is not None
        g = _frozen(g)
        yield Visited(here, card.name, g)
        results: Results = {}
        rules = {argnum: (name, rule, values) for argnum, _, name, rule, values in _pulls(node)}
        for argnum, operand in enumerate(node._inputs):
            if not isinstance(operand, Node):
                continue
            if argnum not in rules:
                yield Stopped(here, self.tape.place[operand.id], argnum, operand.origin[0])
                continue
            yield from self._input(node, argnum, operand, *rules[argnum], g, store, results)
        if node.id in self.residuals:
            yield Released(here, node._value.nbytes)

    def _input(
        self, node: Node, argnum: int, operand: Node, name: str, rule: Rule, values: list[Any],
        g: Array, store: GradStore, results: Results,
    ) -> Iterator[Event]:  # fmt: skip
        card, here, there = node.card, self.tape.place[node.id], self.tape.place[operand.id]
        assert card is not None
        shape, dtype = operand._value.shape, operand._value.dtype
        if rule.is_zero:
            gradient = np.zeros(shape, dtype)
            yield Stopped(here, there, argnum, "zero slope")
        else:
            kernel = kernel_for(card, rule, g, values, operand)
            contribution = contribution_of(card, name, rule, g, values, results)
            axes = axes_to_reduce(card, name, contribution.shape, shape)
            if kernel is None:
                gradient = reduce(contribution, axes, shape, dtype)
            else:
                kernel(gradient := np.zeros(shape, dtype))
            residuals = tuple(
                (n, _frozen(v))
                for n, v in zip(rule.reads, values, strict=True)
                if isinstance(v, np.ndarray)
            )
            local = slope_of(card, name, rule, g, values)
            shown = contribution.astype(dtype, copy=False) if axes else gradient
            yield Pulled(
                here, there, argnum, g, None if local is None else _frozen(local), _frozen(shown),
                rule.tex, residuals,
            )  # fmt: skip
            if axes:
                yield Reduced(
                    here, there, argnum, axes, contribution.shape, shape, _frozen(gradient)
                )
        before = store[operand]
        store.add(operand, gradient)
        after = store[operand]
        self.arrived[operand.id] += 1
        yield Accumulated(
            there, here, argnum, _frozen(np.zeros(shape, dtype) if before is None else before),
            _frozen(gradient), _frozen(after), self.arrived[operand.id], self.expected[operand.id],
        )  # fmt: skip


def _frozen(array: Any) -> Array:
    """A read-only view; nobody writes into what lies below it once it was told."""
    view: Array = array.view()
    view.flags.writeable = False
    return view


# --- the walk -------------------------------------------------------------------------------------------


def _walk(root: Node, seed: Array, visit: _Visit) -> Iterator[Event]:
    store = GradStore()
    store.add(root, seed)
    for node in order(root):
        g = store.take(node)
        assert g is not None, "every node on the way to the root has a use that was visited before it"
        if node.card is None:
            yield from visit.leaf(node, g)
        else:
            refuse_stale(node)
            yield from visit.pull(node, g, store)


def seed_for(root: Node, gradient: ArrayLike | Node | None) -> Array:
    """The first gradient: ones for a size-1 value, or what was passed, in the value's shape and dtype."""
    value, name = root._value, root.name or "the value"
    if not root._tracked:
        raise GraphError(
            f"backward: {name} of shape {value.shape} depends on no tensor with requires_grad=True, so there is "
            "nothing to pull back to"
        )
    if gradient is None:
        if value.size != 1:
            raise ShapeError(
                f"backward: {name} has shape {value.shape}; only a value of size 1 may start without a gradient, so "
                f"pass gradient= of shape {value.shape} or reduce it to a scalar"
            )
        return np.ones(value.shape, value.dtype)
    given = np.asarray(gradient._value if isinstance(gradient, Node) else gradient)
    if given.dtype.kind not in "fiub":
        raise DtypeError(f"backward: the gradient of {name} must hold real numbers, not {given.dtype}")
    if given.shape != value.shape:
        raise ShapeError(
            f"backward: the gradient has shape {given.shape}, but {name} has shape {value.shape}; they must be equal"
        )
    return given.astype(value.dtype)


def walk(root: Node, gradient: ArrayLike | Node | None = None) -> Iterator[Event]:
    """The backward pass as a stream of events (minigrad.events), one at a time and lazily; touches no `.grad`.

    gradient: the seed, of the root's shape; ones by default for a size-1 root. Pausing is not calling `next`; two walks
    may interleave. Raises GraphError, ShapeError or DtypeError at once for a wrong root or seed, RuleError at the step.
    """
    seed = seed_for(root, gradient)

    def told() -> Iterator[Event]:
        narrate = _Narrate(root)
        yield Seeded(narrate.tape.place[root.id], _frozen(seed))
        yield from _walk(root, seed, narrate)

    return told()


def gradients(
    root: Node, gradient: ArrayLike | Node | None = None, wanted: Iterable[Node] = ()
) -> list[tuple[Node, Array]]:
    """The finished gradients of every leaf, and of the `wanted` interior nodes, by the silent walk."""
    fuse = _Fuse(wanted)
    for _ in _walk(root, seed_for(root, gradient), fuse):
        pass
    return fuse.finished


def grad(
    root: Node, nodes: Iterable[Node], gradient: ArrayLike | Node | None = None
) -> tuple[Array | None, ...]:
    """The gradients of `root` by each of `nodes`, as arrays; None where unreachable. Touches no `.grad`."""
    wanted = list(nodes)
    found = {node.id: g for node, g in gradients(root, gradient, wanted)}
    return tuple(np.array(found[n.id]) if n.id in found else None for n in wanted)
