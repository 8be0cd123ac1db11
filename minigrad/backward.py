"""The walk: in reverse-topological order it pulls back, reduces and accumulates.

`_walk` alone owns order, store, consume and accumulate. What happens at one node has two bodies,
which call the same executor and so give the same gradients: `_Narrate` tells every step as events,
`_Fuse` is silent and fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .checkpoint import Values, bytes_of
from .errors import DtypeError, GraphError, ShapeError
from .events import (
    Accumulated,
    Event,
    Pulled,
    Reached,
    Recomputed,
    Reduced,
    Released,
    Seeded,
    Stopped,
    Visited,
)
from .graph import Node, Tape, label, order, refuse_stale
from .pull import Array, Pull, pulls, slope_of
from .store import GradStore

# --- the two bodies of one visit ------------------------------------------------------------------


class _Visit(Protocol):
    values: Values

    def leaf(self, node: Node, g: Array) -> Iterable[Event]: ...
    def pull(self, node: Node, g: Array, store: GradStore) -> Iterable[Event]: ...


class _Fuse:
    """Silent: no events, and a large elementwise input is one compiled pass."""

    def __init__(self, wanted: Iterable[Node] = ()) -> None:
        self.values = Values()
        self.wanted = {node.id for node in wanted}
        self.finished: list[tuple[Node, Array]] = []  # leaves, and the nodes that were asked for

    def leaf(self, node: Node, g: Array) -> Iterable[Event]:
        self.finished.append((node, g))
        return ()

    def pull(self, node: Node, g: Array, store: GradStore) -> Iterable[Event]:
        if self.wanted and node.id in self.wanted:
            self.finished.append((node, g))
        for pull in pulls(node, g, self.values.of):
            if pull.rule.constant == 0:
                store.add(pull.operand, pull.zeros())
            elif (kernel := pull.kernel()) is not None:
                kernel(store.buffer(pull.operand))
            else:
                store.add(pull.operand, pull.gradient())
        return ()


class _Narrate:
    """Tells everything as events; arrays in events are read-only."""

    def __init__(self, root: Node) -> None:
        self.made: list[tuple[Node, Array]] = []  # made again, and not told yet
        self.values = Values(self.made)
        self.tape = Tape(root)
        self.arrived: Counter[int] = Counter()
        self.expected: Counter[int] = Counter()
        self.saved: set[int] = set()  # nodes whose value some rule reads
        for node in self.tape.live:
            if node.card is None:
                continue
            tracked = [isinstance(i, Node) and i._tracked for i in node._inputs]
            operands = dict(zip(node.card.inputs, node._inputs, strict=True))
            for operand, needed in zip(node._inputs, tracked, strict=True):
                if isinstance(operand, Node) and needed:
                    self.expected[operand.id] += 1
            for name in node.card.residuals(tuple(tracked)):
                kept = node if name == "y" else operands[name]
                if isinstance(kept, Node):
                    self.saved.add(kept.id)

    def leaf(self, node: Node, g: Array) -> Iterator[Event]:
        place = self.tape.place[node.id]
        yield Reached(place, label(node, place), _frozen(g))

    def pull(self, node: Node, g: Array, store: GradStore) -> Iterator[Event]:
        assert node.card is not None
        here, g = self.tape.place[node.id], _frozen(g)
        yield Visited(here, node.card.name, g)
        waiting = {pull.argnum: pull for pull in pulls(node, g, self.values.of)}
        for made, value in self.made:
            self.saved.add(made.id)
            yield Recomputed(self.tape.place[made.id], _frozen(value), value.nbytes)
        self.made.clear()
        for argnum, operand in enumerate(node._inputs):
            if argnum in waiting:
                with np.errstate(all="ignore"):  # never across a yield
                    told = list(self._input(here, waiting[argnum], store))
                yield from told
            elif isinstance(operand, Node):
                yield Stopped(here, self.tape.place[operand.id], argnum, operand.origin[0])
        if node.id in self.saved:
            yield Released(here, bytes_of(node))

    def _input(self, here: int, pull: Pull, store: GradStore) -> Iterator[Event]:
        operand, argnum = pull.operand, pull.argnum
        there = self.tape.place[operand.id]
        if pull.rule.is_zero:
            gradient = pull.zeros()
            yield Stopped(here, there, argnum, "zero slope")
        else:
            contribution = pull.contribution()
            axes = pull.axes(contribution)
            if (kernel := pull.kernel()) is not None:
                kernel(gradient := pull.zeros())
            else:
                gradient = pull.reduced(contribution, axes)
            yield self._pulled(here, there, pull, contribution if axes else gradient)
            if axes:
                shapes = contribution.shape, pull.shape
                yield Reduced(here, there, argnum, axes, *shapes, _frozen(gradient))
        before = store[operand]
        store.add(operand, gradient)
        self.arrived[operand.id] += 1
        yield Accumulated(
            node=there,
            source=here,
            argnum=argnum,
            before=_frozen(pull.zeros() if before is None else before),
            added=_frozen(gradient),
            after=_frozen(store[operand]),
            arrived=self.arrived[operand.id],
            expected=self.expected[operand.id],
        )

    @staticmethod
    def _pulled(here: int, there: int, pull: Pull, contribution: Array) -> Pulled:
        local = slope_of(pull.card, pull.name, pull.rule, pull.g, pull.values)
        read = zip(pull.rule.reads, pull.values, strict=True)
        return Pulled(
            node=here,
            input=there,
            argnum=pull.argnum,
            upstream=pull.g,
            local=None if local is None else _frozen(local),
            contribution=_frozen(contribution.astype(pull.operand._dtype, copy=False)),
            tex=pull.rule.tex,
            residuals=tuple((n, _frozen(v)) for n, v in read if isinstance(v, np.ndarray)),
        )


def _frozen(array: Any) -> Array:
    """A read-only view; nobody writes into what lies below it once it was told."""
    view: Array = array.view()
    view.flags.writeable = False
    return view


# --- the walk -------------------------------------------------------------------------------------


def _walk(root: Node, seed: Array, visit: _Visit) -> Iterator[Event]:
    store = GradStore()
    store.add(root, seed)
    for node in order(root):
        g = store.take(node)
        assert g is not None, (
            "every node on the way to the root has a use that was visited before it"
        )
        if node.card is None:
            yield from visit.leaf(node, g)
        else:
            refuse_stale(node)
            yield from visit.pull(node, g, store)
            visit.values.release(node)


def seed_for(root: Node, gradient: ArrayLike | Node | None) -> Array:
    """The first gradient, in the value's shape and dtype: ones, or what was passed."""
    if not isinstance(root, Node):
        raise DtypeError(f"backward: a tensor is walked, not {type(root).__name__}")
    value, name = root._value, root.name or "the value"
    if not root._tracked:
        raise GraphError(
            f"backward: {name} of shape {value.shape} depends on no tensor with "
            "requires_grad=True, so there is nothing to pull back to"
        )
    if gradient is None:
        if value.size != 1:
            raise ShapeError(
                f"backward: {name} has shape {value.shape}; only a value of size 1 may start "
                f"without a gradient, so pass gradient= of shape {value.shape}, or reduce it"
            )
        return np.ones(value.shape, value.dtype)
    try:
        given = np.asarray(gradient._value if isinstance(gradient, Node) else gradient)
    except ValueError as problem:
        raise DtypeError(f"backward: the gradient of {name} is no array: {problem}") from problem
    if given.dtype.kind not in "fiub":
        raise DtypeError(
            f"backward: the gradient of {name} must hold real numbers, not {given.dtype}"
        )
    if given.shape != value.shape:
        raise ShapeError(
            f"backward: the gradient has shape {given.shape}, but {name} has shape {value.shape}; "
            "they must be equal"
        )
    return given.astype(value.dtype)


def walk(root: Node, gradient: ArrayLike | Node | None = None) -> Iterator[Event]:
    """The backward pass as a stream of events, one at a time and lazily; touches no `.grad`.

    gradient: the seed, of the root's shape; ones by default for a size-1 root. Pausing is not
    calling `next`; two walks may interleave. Raises GraphError, ShapeError or DtypeError at once
    for a wrong root or seed, RuleError at the step.
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
    """The finished gradients of every leaf, and of the `wanted` nodes, by the silent walk."""
    fuse = _Fuse(wanted)
    with np.errstate(all="ignore"):
        for _ in _walk(root, seed_for(root, gradient), fuse):
            pass
    return fuse.finished


def grad(
    root: Node, nodes: Iterable[Node], gradient: ArrayLike | Node | None = None
) -> tuple[Array | None, ...]:
    """The gradients of `root` by each of `nodes`; None where unreachable. Touches no `.grad`."""
    wanted = [] if isinstance(nodes, Node) else list(nodes)
    if isinstance(nodes, Node) or not all(isinstance(n, Node) for n in wanted):
        raise DtypeError("grad: give a list of tensors to take the gradient by")
    found = {node.id: g for node, g in gradients(root, gradient, wanted)}
    return tuple(np.array(found[n.id]) if n.id in found else None for n in wanted)
