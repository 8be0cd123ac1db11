"""Checkpointing: the same gradients bit for bit, less memory, no value made again twice."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections import Counter

import numpy as np
import pytest

import minigrad as mg
from minigrad.domains import samples
from minigrad.events import Pulled, Recomputed, Released

MEMORY = [c for c in mg.registry.values() if c.cost == "memory" and not c.variadic]


def leaf(values, name: str | None = None) -> mg.Tensor:
    return mg.tensor(np.array(values, float), requires_grad=True, name=name)


def told(loss: mg.Tensor, kind: type) -> list:
    return [e for e in mg.walk(loss) if isinstance(e, kind)]


# --- the same gradients ---------------------------------------------------------------------------


@pytest.mark.parametrize("card", MEMORY, ids=lambda c: c.name)
def test_every_memory_bound_op_gives_the_same_bits(card) -> None:
    for operands, params in samples(card):
        leaves = [mg.tensor(o, requires_grad=n in card.rules) for n, o in _named(card, operands)]
        found = {}
        for policy in ("save_all", "recompute"):
            with mg.checkpointing(policy):
                h = [mg.tanh(x) * 0.5 + 1.0 if x.requires_grad else x for x in leaves]
                y = card.function(**dict(zip(card.inputs, h, strict=True)), **params)
                loss = mg.sum(mg.sqr(y) * y)
            found[policy] = mg.grad(loss, [x for x in leaves if x.requires_grad])
        for a, b in zip(*found.values(), strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def _named(card, operands):
    return zip(card.inputs, operands, strict=True)


def test_a_captured_leaf_gets_what_it_gets_without() -> None:  # R38
    w, x = leaf([3.0]), np.array([2.0])
    with mg.checkpointing("recompute"):
        inner = mg.sum(x * w * w)
        both = inner + mg.sum(5 * w)
    assert inner.item() == 18
    assert mg.grad(inner, [w])[0].tolist() == [12]
    assert mg.grad(both, [w])[0].tolist() == [17]
    with mg.checkpointing("recompute"):
        assert not mg.tanh(x).requires_grad
    visits = [e for e in mg.walk(both) if isinstance(e, Pulled)]
    assert len(visits) == len({(e.node, e.argnum) for e in visits})


# --- what is made again ---------------------------------------------------------------------------


def test_a_dropped_value_is_made_again_once_and_released() -> None:
    calls: Counter[str] = Counter()

    @mg.elementwise(tex="y = 2x", partials={"x": (lambda: 2.0, "2")})
    def double(x):
        calls["double"] += 1
        return x * 2

    x = leaf([1.0, 2.0])
    with mg.checkpointing("recompute"):
        h = double(x)
        loss = mg.sum(mg.exp(h) * h * h)
    assert calls["double"] == 1
    events = list(mg.walk(loss))
    assert calls["double"] == 2
    made = [e for e in events if isinstance(e, Recomputed)]
    assert len({e.node for e in made}) == len(made)
    assert {e.bytes for e in made} == {16}
    assert {e.node for e in made} <= {e.node for e in events if isinstance(e, Released)}
    np.testing.assert_array_equal(next(e for e in made if e.node == 1).value, [2.0, 4.0])
    assert [type(e) for e in mg.walk(loss)] == [type(e) for e in events]  # and again the same


def test_a_compute_bound_result_is_kept() -> None:
    x, w = leaf(np.ones((2, 2))), leaf(np.ones((2, 2)))
    with mg.checkpointing("recompute"):
        loss = mg.sum(mg.sqr(x @ w))
    assert told(loss, Recomputed) == []


def test_one_op_can_be_kept_inside_a_block_that_drops() -> None:
    x = leaf([1.0])
    with mg.checkpointing("recompute"):
        with mg.checkpointing("save_all"):
            kept = mg.tanh(x)
        loss = mg.sum(mg.exp(mg.sqr(kept)))
    names = {mg.record(loss, checks=False).nodes[e.node].op for e in told(loss, Recomputed)}
    assert names == {"sqr", "exp"}  # not tanh


def test_what_no_rule_reads_is_not_made_again() -> None:
    x = leaf([1.0, 2.0])
    with mg.checkpointing("recompute"):
        loss = mg.sum(mg.reshape(x + 1.0, (2, 1)) - 3.0)
    assert told(loss, Recomputed) == []


def test_the_data_of_a_dropped_tensor_can_be_read() -> None:
    x = leaf([0.5])
    with mg.checkpointing("recompute"):
        h = mg.tanh(x)
        loss = mg.sum(h * h)
    assert h.data.tolist() == np.tanh([0.5]).tolist()
    held = loss._inputs[0]
    assert held._value is not held._value  # made each time, kept never


def test_a_constant_beside_a_dropped_value_is_still_there() -> None:
    x, c = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    with mg.checkpointing("recompute"):
        loss = mg.sum(mg.exp(x * c) * mg.exp(c))
    assert mg.gradcheck(lambda x: mg.sum(mg.exp(x * c) * mg.exp(c)), [x])
    expected = c * np.exp([3.0, 8.0]) * np.exp(c)
    np.testing.assert_allclose(mg.grad(loss, [x])[0], expected, rtol=1e-14)


def test_a_leaf_edited_after_the_forward_pass_is_an_error() -> None:
    x = leaf([1.0])
    with mg.checkpointing("recompute"):
        loss = mg.sum(mg.exp(mg.tanh(x)))
    x.assign_([2.0])
    with pytest.raises(mg.GraphError, match="was edited by assign_"):
        loss.backward()
    assert x.grad is None


def test_the_trace_of_a_checkpointed_run_is_checked_saved_and_read(tmp_path) -> None:
    x = leaf([[0.5, -1.0]], "x")
    with mg.checkpointing("recompute"):
        loss = mg.sum(mg.gelu(mg.tanh(x) * x))
    trace = mg.record(loss)
    assert trace.checks and all(trace.checks)
    trace.save(tmp_path / "run.json")
    again = mg.load_trace(tmp_path / "run.json")
    assert [type(e) for e in again.events] == [type(e) for e in trace.events]
    assert "is made again" in trace.text() and again.text() == trace.text()


# --- memory and depth -----------------------------------------------------------------------------


def peak(policy: str) -> tuple[int, list[np.ndarray]]:
    """Bytes at the peak of one training step of 64 elementwise-heavy layers; the gradients."""
    rng = np.random.default_rng(0)
    scales = [leaf(rng.normal(1, 0.1, 32)) for _ in range(64)]
    mixes = [leaf(rng.normal(size=(32, 32)) / 6) for _ in range(64)]
    h = mg.tensor(rng.normal(size=(512, 32)))
    gc.collect()
    tracemalloc.start()
    with mg.checkpointing(policy):
        for scale, mix in zip(scales, mixes, strict=True):
            a = h @ mix
            h = mg.gelu(a * scale + 0.1) * 0.9 + mg.tanh(a) * 0.1
        loss = mg.mean(mg.sqr(h))
    del a, h
    loss.backward()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most, [x.grad for x in (*scales, *mixes)]


def test_recompute_takes_a_third_of_the_memory_at_most_for_the_same_gradients() -> None:
    (all_bytes, kept), (few_bytes, made) = peak("save_all"), peak("recompute")
    assert few_bytes <= 0.35 * all_bytes
    for a, b in zip(kept, made, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_long_chain_is_made_again_without_recursion() -> None:
    x = leaf([1.0])
    with mg.checkpointing("recompute"):
        y = x
        for _ in range(20_000):
            y = y * 1.0001
        loss = mg.sum(y * y)
    assert mg.grad(loss, [x])[0] == pytest.approx(2 * 1.0001**40_000, rel=1e-9)


def test_a_checkpointed_graph_is_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf(np.ones(60_000))  # below what is compiled: a compiler keeps things
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3):
            with mg.checkpointing("recompute"):
                loss = mg.sum(mg.exp(mg.tanh(x) * 2.0))
            loss.backward()
            list(mg.walk(loss))
            x.zero_grad()
        del loss
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert after - before < 100_000
    finally:
        gc.enable()


# --- the policy -----------------------------------------------------------------------------------


def test_the_policy_belongs_to_its_thread() -> None:
    seen = []

    def other() -> None:
        x = leaf([1.0])
        seen.append(told(mg.sum(mg.exp(mg.tanh(x))), Recomputed))

    with mg.checkpointing("recompute"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [[]]


def test_a_decorated_function_drops_what_it_makes() -> None:
    @mg.checkpointing("recompute")
    def model(x: mg.Tensor) -> mg.Tensor:
        return mg.sum(mg.exp(mg.tanh(x)))

    assert told(model(leaf([1.0])), Recomputed)
    assert not told(mg.sum(mg.exp(leaf([1.0]))), Recomputed)


def test_an_unknown_policy_is_one_sentence() -> None:
    with pytest.raises(mg.ArgumentError, match='^checkpointing: the policy is "save_all" or'):
        mg.checkpointing("drop")
