"""The reference table of machinery: one test per row, which names the row."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from rows import leaf

import minigrad as mg
from minigrad.events import Accumulated, Pulled, Reached, Released, Seeded, Visited

TRACKED = "tracked / untracked"
RESIDUAL = "residual rule"
WALK = "reverse-topological walk"
CONSUME = "consume and accumulate"
SEED = "seed"
STORE = "GradStore / backward_into"
NO_GRAD = "no_grad"
LIFETIMES = "lifetimes"
CHECK = "numeric check"
UNSUPPORTED = "unsupported"


def row(name: str):
    """The test of a row of the table, its name first in the report."""
    return pytest.mark.parametrize("row", [name], ids=[name])


# --- what needs a gradient, and what is saved for it ----------------------------------------------


@row(TRACKED)
def test_a_node_needs_a_gradient_iff_some_input_does(row) -> None:
    x, w = leaf([1, 2]), mg.tensor([3.0, 4.0])
    assert (x * w).requires_grad and (w * x).requires_grad and not (w * w).requires_grad
    assert (w * w + x).requires_grad and not (w * w).exp().requires_grad
    assert (w * w).op is None  # an untracked result keeps no card, no operands


@row(TRACKED)
def test_an_untracked_operand_costs_nothing(row) -> None:
    x, w = leaf([1, 2]), mg.tensor([3.0, 4.0])
    [pulled] = [e for e in mg.walk(x * w, [1, 1]) if isinstance(e, Pulled)]
    assert [(name, kept.tolist()) for name, kept in pulled.residuals] == [("b", [3, 4])]
    events = list(mg.walk(x + w, [1, 1]))
    assert [e.residuals for e in events if isinstance(e, Pulled)] == [()]


@row(RESIDUAL)
def test_mul_saves_an_operand_only_if_the_other_one_needs_a_gradient(row) -> None:
    mul = mg.registry["mul"]
    assert mul.residuals((True, True)) == ("a", "b")
    assert mul.residuals((True, False)) == ("b",)
    assert mul.residuals((False, True)) == ("a",)
    assert mul.residuals((False, False)) == ()


@row(RESIDUAL)
def test_what_each_op_saved_is_shown_and_its_bytes_are_told(row) -> None:
    x, w = leaf([1, 2], "x"), mg.tensor([3.0, 4.0], name="w")
    loss = mg.sum(mg.tanh(x * w) + x)
    saved = {n.op: n.residuals for n in mg.record(loss).nodes if n.kind == "op"}
    assert saved == {"mul": ("b",), "tanh": ("y",), "add": (), "sum": ()}
    assert "For backward it saves w" in mg.record(loss).text()
    assert [e.bytes for e in mg.walk(loss) if isinstance(e, Released)] == [16]


# --- the walk -------------------------------------------------------------------------------------


@row(WALK)
def test_each_node_is_visited_once_after_all_its_uses(row) -> None:
    x = leaf(0.5, "x")
    b = x + x
    c = b * b
    loss = c + c * b
    events = list(mg.walk(loss))
    visits = [e.node for e in events if isinstance(e, Visited)]
    assert visits == [4, 3, 2, 1]  # loss, c·b, c, b: newest first
    assert [e.node for e in events if isinstance(e, Reached)] == [0]
    for event in events:
        if isinstance(event, (Visited, Reached)):
            later = events[events.index(event) :]
            assert not [e for e in later if isinstance(e, Accumulated) and e.node == event.node]
    assert events[-1].gradient == 2 * (2 * 1 + 3 * 1)  # d(b² + b³)/dx at b = 1


@row(WALK)
def test_the_order_is_deterministic(row) -> None:
    def told() -> list[str]:
        x = leaf([1, 2], "x")
        return [repr(e) for e in mg.walk(mg.sum(mg.exp(x) * x + x.sin() / (x * x)))]

    assert told() == told()


@row(WALK)
def test_the_walk_is_iterative(row) -> None:
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = -y
    depth, frame, limit = 0, sys._getframe(), sys.getrecursionlimit()
    while frame := frame.f_back:
        depth += 1
    sys.setrecursionlimit(depth + 100)
    try:
        y.backward()
        del y
    finally:
        sys.setrecursionlimit(limit)
    assert x.grad == 1


@row(CONSUME)
def test_a_gradient_is_taken_out_once_and_each_use_adds(row) -> None:
    x = leaf(3.0, "x")
    y = x * x
    loss = 2 * y + y * y
    added = [e for e in mg.walk(loss) if isinstance(e, Accumulated)]
    told = [(e.added.item(), e.before.item(), e.after.item(), e.arrived, e.expected) for e in added]
    assert told == [
        (1, 0, 1, 1, 1),  # 2y
        (1, 0, 1, 1, 1),  # y·y
        (9, 0, 9, 1, 3),  # y, once as each operand of y·y …
        (9, 9, 18, 2, 3),
        (2, 18, 20, 3, 3),  # … and once in 2y
        (60, 0, 60, 1, 2),  # x, as each operand of x·x
        (60, 60, 120, 2, 2),
    ]
    loss.backward()
    assert x.grad == 120 and y.grad is None


@row(SEED)
def test_a_seed_is_ones_for_size_one_and_given_for_anything_else(row) -> None:
    x = leaf([1, 2])
    assert [e.gradient.item() for e in mg.walk((x * x).sum()) if isinstance(e, Seeded)] == [1]
    assert mg.grad(x * x, [x], [1, 10])[0].tolist() == [2, 40]


@row(SEED)
@pytest.mark.parametrize("seed", [None, 1.0, [1.0], [1.0, 2, 3], [[1.0, 2]]])
def test_a_seed_of_the_wrong_shape_is_an_error(row, seed) -> None:
    x = leaf([1, 2])
    with pytest.raises(mg.ShapeError, match=r"^backward: .*\(2,\)"):
        (x * x).backward(seed)
    assert x.grad is None


@row(STORE)
def test_several_losses_accumulate_into_one_store_then_one_step(row) -> None:
    x, store = leaf(2.0), mg.GradStore()
    h = x * x
    (3 * h).backward_into(store)
    (h * h).backward_into(store)
    assert store[x] == 12 + 32
    assert store[h] is None and x.grad is None and len(store) == 1  # leaf gradients only
    x.assign_(x.data - 0.25 * store[x])
    assert x.item() == -9


# --- no_grad --------------------------------------------------------------------------------------


@row(NO_GRAD)
def test_nothing_is_recorded_in_a_context_a_decorator_nested_and_in_a_generator(row) -> None:
    x = leaf(1.0)

    @mg.no_grad()
    def double() -> mg.Tensor:
        with mg.no_grad():
            return x * 2

    @mg.no_grad()
    def doubles():
        yield x * 2
        yield x * 2

    with mg.no_grad():
        inside = x * 2
    pair = doubles()
    first, between, second = next(pair), x * 2, next(pair)
    assert [t.requires_grad for t in (inside, double(), first, between, second)] == [
        False,
        False,
        False,
        True,
        False,
    ]


@row(NO_GRAD)
def test_no_grad_holds_for_one_thread(row) -> None:
    x, seen = leaf(1.0), []
    with mg.no_grad():
        other = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        other.start()
        other.join()
    assert seen == [True]


# --- lifetimes, the check, what is not supported --------------------------------------------------


@row(LIFETIMES)
def test_a_graph_is_freed_at_once_without_the_cyclic_collector(row) -> None:
    x = leaf([1, 2])
    gc.disable()
    try:
        hidden = mg.tanh(x * x)
        loss = mg.sum(hidden)
        mg.record(loss)
        loss.backward()
        held, root = weakref.ref(hidden), weakref.ref(loss)
        del hidden
        assert held() is not None  # the loss still reaches it
        del loss
        assert held() is None and root() is None
    finally:
        gc.enable()


@row(CHECK)
def test_the_check_is_a_table_of_op_input_shape_difference_and_gradient(row) -> None:
    x, w = leaf([1.5, 2], "x", "float32"), leaf([[2, 3], [4, 5]], "w")
    report = mg.gradcheck(lambda x, w: mg.sum(x * w), [x, w])
    assert report and report.checks[0].analytic.tolist() == [6, 8]
    head, *lines = report.table().splitlines()
    assert head.split()[:3] == ["op", "input", "shape"]
    assert "max |a − n|" in head and "gradient" in head
    assert [line.split()[1] for line in lines] == ["x", "w"] and "[2, 2]" in lines[1]
    assert (x.data.tolist(), x.dtype, x.grad, x.version) == ([1.5, 2], np.float32, None, 0)


@row(CHECK)
def test_everything_else_is_held_fixed_on_an_untracked_copy(row) -> None:
    tracked = []

    def f(x: mg.Tensor) -> mg.Tensor:
        y = x * x.detach()
        tracked.append(y.requires_grad)
        return y.sum()

    assert not mg.gradcheck(f, [leaf([1, 2])])  # gradcheck calls f anew, so the detached x moves
    assert set(tracked) == {False, True} and tracked.count(True) == 2
    assert all(mg.record(f(leaf([1, 2]))).checks)  # a recorded run is replayed: it stays


@row(UNSUPPORTED)
def test_an_op_without_a_rule_raises_at_the_step_before_anything_is_written(row) -> None:
    @mg.op(tex="y = \\lceil x \\rceil", pulls={})
    def opaque(x):
        return np.ceil(x)

    x, u = leaf([1.5], "x"), leaf([2.0], "u")
    u.sum().backward()
    loss = mg.sum(opaque(x * 2) * u)
    with pytest.raises(mg.RuleError, match="^opaque: input x needs a gradient, but the op has no"):
        loss.backward()
    assert (x.grad, u.grad.tolist()) == (None, [1])
    told = []
    with pytest.raises(mg.RuleError):
        for event in mg.walk(loss):
            told.append(event)
    assert isinstance(told[-1], Visited) and told[-1].op == "opaque"
