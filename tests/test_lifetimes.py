"""Lifetimes: long chains without recursion, memory given back at once, copies, and ids."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref

import numpy as np
import pytest

import minigrad as mg

LINKS = 20_000


def leaf(values: object, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name)


def chain(x: mg.Tensor, links: int = LINKS) -> mg.Tensor:
    y = x
    for _ in range(links):
        y = y + 0.0001 * x
    return y


@pytest.fixture
def no_collector():
    """The cyclic garbage collector, switched off: what is freed was freed by counting."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def shallow():
    """A recursion limit close above where we stand."""
    depth, frame, limit = 0, sys._getframe(), sys.getrecursionlimit()
    while frame := frame.f_back:
        depth += 1
    sys.setrecursionlimit(depth + 120)
    yield
    sys.setrecursionlimit(limit)


def test_a_chain_of_20000_links_goes_forward_backward_and_away(no_collector, shallow) -> None:
    x = leaf(1.0)
    y = chain(x)
    y.backward()
    assert x.grad == pytest.approx(3.0, abs=1e-9)
    assert repr(y).startswith("tensor(") and repr(y).endswith("op=add)")
    last = weakref.ref(y)
    del y
    assert last() is None


def test_a_walk_over_a_long_chain_tells_every_link(shallow) -> None:
    count = sum(type(e).__name__ == "Visited" for e in mg.walk(chain(leaf(1.0), 3000)))
    assert count == 6000


def test_a_recursive_walk_would_be_noticed(shallow) -> None:
    def depth(node) -> int:
        return 1 + max((depth(i) for i in node._inputs if isinstance(i, mg.Tensor)), default=0)

    with pytest.raises(RecursionError):
        depth(chain(leaf(1.0), 3000))


def test_a_graph_is_freed_when_its_last_holder_lets_go(no_collector) -> None:
    x = leaf([1.0, 2.0])
    h = mg.tanh(x * x)
    loss = mg.sum(h * h)
    watched = [weakref.ref(t) for t in (h, loss)]
    loss.backward()
    for _ in mg.walk(loss):
        pass
    mg.grad(loss, [x, h])
    del h
    assert watched[0]() is not None  # the loss still reaches it
    del loss
    assert [w() for w in watched] == [None, None]


def test_an_abandoned_walk_lets_go_of_its_graph(no_collector) -> None:
    x = leaf([1.0, 2.0])
    loss = mg.sum(x * x)
    watched, events = weakref.ref(loss), mg.walk(loss)
    next(events), next(events)
    del loss
    assert watched() is not None
    del events
    assert watched() is None


def test_a_detached_or_untracked_result_holds_nothing_of_its_origin(no_collector) -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    watched, loose = weakref.ref(y), y.detach()
    with mg.no_grad():
        z = y * 2
    del y
    assert watched() is None
    assert (loose.data.tolist(), z.data.tolist()) == ([1, 4], [2, 8])


def test_a_trace_outlives_its_graph(no_collector) -> None:
    x = leaf([1.0, 2.0])
    trace, watched = mg.record(mg.sum(x * x)), weakref.ref(x)
    del x
    assert watched() is None
    assert "x is done" in trace.text()


# --- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_leaf_can_be_copied_with_its_gradient(duplicate) -> None:
    x = mg.tensor([1, 2], requires_grad=True, name="x", dtype="float32")
    mg.sum(x * x).backward()
    twin = duplicate(x)
    assert (twin.name, twin.dtype, twin.requires_grad, twin.is_leaf) == ("x", x.dtype, True, True)
    assert (twin.data.tolist(), twin.grad.tolist()) == ([1, 2], [2, 4])
    mg.sum(twin).backward()
    assert (twin.grad.tolist(), x.grad.tolist()) == ([3, 5], [2, 4])


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_graph_cannot_be_copied_and_the_error_says_what_to_do(duplicate) -> None:
    with pytest.raises(mg.GraphError, match=r"detach\(\).*trace\.save\(\)"):
        duplicate(chain(leaf(1.0), 2000))


# --- identity -------------------------------------------------------------------------------------


def test_ids_grow_and_are_never_used_again() -> None:
    ids = []
    for size in range(1, 1001):
        x = leaf(np.ones(size % 5 + 1))
        loss = mg.sum(x * x)
        ids += [x.id, loss.id]
        del x, loss
    assert ids == sorted(set(ids))


def test_a_store_never_pairs_a_new_tensor_with_a_dead_one() -> None:
    store = mg.GradStore()
    for _ in range(200):
        x = leaf([1.0])
        (x * 2).backward_into(store)
        del x
        assert store[leaf([1.0])] is None


def test_equality_is_elementwise_and_hashing_is_by_identity() -> None:
    x, twin = leaf([1.0, 2.0]), leaf([1.0, 3.0])
    same = x == twin
    assert isinstance(same, mg.Tensor) and same.data.tolist() == [True, False]
    assert not same.requires_grad
    assert len({x, twin}) == 2 and {x: "x"}[x] == "x"


def test_two_leaves_of_one_name_are_two_nodes() -> None:
    a, b = leaf(2.0, "w"), leaf(3.0, "w")
    trace = mg.record(mg.relu(mg.relu(a * b)))
    assert [n.name for n in trace.nodes if n.kind == "leaf"] == ["w", "w"]
    assert [n.op for n in trace.nodes if n.kind == "op"] == ["mul", "relu", "relu"]
