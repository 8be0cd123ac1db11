"""The walk: which events come, in which order, with which words and numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import minigrad as mg
from minigrad.events import (
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


def leaf(values: object, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name)


def kinds(events: list[Event]) -> list[str]:
    return [type(e).__name__ for e in events]


def plain(event: Event) -> tuple:
    """An event as words and numbers, so that two can be compared."""

    def value(v: object) -> object:
        if isinstance(v, np.ndarray):
            return v.shape, v.tolist()
        return tuple(map(value, v)) if isinstance(v, tuple) else v

    return type(event).__name__, *(value(getattr(event, f.name)) for f in fields(event))


def of(events: list[Event], kind: type) -> list:
    return [e for e in events if isinstance(e, kind)]


@mg.elementwise(tex=r"y = \lfloor x \rfloor", partials={"x": (lambda: 0.0, "0")})
def floor(x):
    return np.floor(x)


# --- the whole sequence ---------------------------------------------------------------------------


def product() -> mg.Tensor:
    """L = sum(a * b * w): places a 0, b 1, w 2, a·b 3, ·w 4, L 5."""
    a, b = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "a"), leaf([2.0, -1.0, 0.5], "b")
    w = mg.tensor([[1.0], [10.0]], name="w")
    return mg.sum(a * b * w)


def test_the_events_of_a_product_in_order_with_their_values() -> None:
    ones, w = [[1, 1, 1], [1, 1, 1]], [[1, 1, 1], [10, 10, 10]]
    a, b = [[1, 2, 3], [4, 5, 6]], [2, -1, 0.5]
    by_a = [[2, -1, 0.5], [20, -10, 5]]
    by_b, total_b = [[1, 2, 3], [40, 50, 60]], [41, 52, 63]
    zero, full = ((2, 3), [[0, 0, 0], [0, 0, 0]]), lambda cells: ((2, 3), cells)
    column, flat = ((2, 1), [[1], [10]]), lambda cells: ((3,), cells)
    local_b = full([b, b])
    copied = r"\bar y \text{ copied}"
    assert [plain(e) for e in mg.walk(product()) if not isinstance(e, Released)] == [
        ("Seeded", 5, ((), 1)),
        ("Visited", 5, "sum", ((), 1)),
        ("Pulled", 5, 4, 0, ((), 1), None, full(ones), copied, ()),
        ("Accumulated", 4, 5, 0, zero, full(ones), full(ones), 1, 1),
        ("Visited", 4, "mul", full(ones)),
        ("Pulled", 4, 3, 0, full(ones), full(w), full(w), "b", (("b", column),)),
        ("Accumulated", 3, 4, 0, zero, full(w), full(w), 1, 1),
        ("Stopped", 4, 2, 1, "constant"),
        ("Visited", 3, "mul", full(w)),
        ("Pulled", 3, 0, 0, full(w), local_b, full(by_a), "b", (("b", flat(b)),)),
        ("Accumulated", 0, 3, 0, zero, full(by_a), full(by_a), 1, 1),
        ("Pulled", 3, 1, 1, full(w), full(a), full(by_b), "a", (("a", full(a)),)),
        ("Reduced", 3, 1, 1, (0,), (2, 3), (3,), flat(total_b)),
        ("Accumulated", 1, 3, 1, flat([0, 0, 0]), flat(total_b), flat(total_b), 1, 1),
        ("Reached", 1, "b", flat(total_b)),
        ("Reached", 0, "a", full(by_a)),
    ]


def test_a_product_has_three_forward_and_seven_backward_steps() -> None:
    steps = mg.record(product()).steps
    assert [s.kind for s in steps] == ["forward"] * 3 + ["seed"] + ["pull"] * 4 + ["reach"] * 2
    assert [s.index for s in steps] == list(range(10))
    assert kinds(steps[7].events) == ["Pulled", "Reduced", "Accumulated"]  # step number 8


# --- uses -----------------------------------------------------------------------------------------


def test_a_square_pulls_twice_into_the_same_leaf() -> None:
    x = leaf([3.0])
    events = list(mg.walk(x * x))
    assert [(p.input, p.argnum) for p in of(events, Pulled)] == [(0, 0), (0, 1)]
    first, second = of(events, Accumulated)
    assert (first.before, first.added, first.after) == ([0], [3], [3])
    assert (second.before, second.added, second.after) == ([3], [3], [6])
    assert [(a.arrived, a.expected) for a in (first, second)] == [(1, 2), (2, 2)]


def visits_come_after_all_uses(events: list[Event]) -> bool:
    """Each node is visited or reached once, when as many uses have arrived as were expected."""
    arrived, expected, done = Counter(), Counter(), set()
    for event in events:
        if isinstance(event, Accumulated):
            assert event.node not in done
            arrived[event.node] += 1
            expected[event.node] = event.expected
            assert event.arrived == arrived[event.node]
        elif isinstance(event, (Visited, Reached)):
            if event.node in done or arrived[event.node] != expected[event.node]:
                return False
            done.add(event.node)
    return True


def test_a_diamond_visits_each_node_once_after_all_its_uses() -> None:
    x = leaf(3.0)
    y = x * x
    z = 2 * y + y * y
    events = list(mg.walk(z))
    assert [e.node for e in of(events, Visited)] == [4, 3, 2, 1]
    assert visits_come_after_all_uses(events)
    assert of(events, Reached)[0].gradient == 120


def test_a_node_visited_twice_or_too_early_would_be_noticed() -> None:
    x = leaf(3.0)
    y = x * x
    events = list(mg.walk(2 * y + y * y))
    assert not visits_come_after_all_uses([*events, of(events, Visited)[0]])
    first_use = next(n for n, e in enumerate(events) if isinstance(e, Accumulated) and e.node == 1)
    early = [*events[: first_use + 1], Visited(1, "mul", None)]
    assert not visits_come_after_all_uses(early)


def test_sums_of_sums_reuse_interior_nodes() -> None:
    a = leaf(0.5)
    b = a + a
    c = b * b
    d = c + c
    d.backward()
    assert a.grad == 8


@pytest.mark.parametrize("fan_out", [*range(1, 9), 24, 32])
def test_any_fan_out_adds_up_and_arrives_in_full(fan_out: int) -> None:
    x = leaf(1.0)
    base = x * 1
    loss = base * 1
    for k in range(2, fan_out + 1):
        loss = loss + base * k
    events = list(mg.walk(loss))
    assert of(events, Reached)[0].gradient == fan_out * (fan_out + 1) / 2
    uses = [(e.arrived, e.expected) for e in of(events, Accumulated) if e.node == 1]
    assert uses == [(n, fan_out) for n in range(1, fan_out + 1)]
    assert visits_come_after_all_uses(events)


# --- a pure generator -----------------------------------------------------------------------------


def test_the_walk_is_lazy() -> None:
    ran = []

    @mg.elementwise(tex="y = x", partials={"x": (lambda g: ran.append(1) or g, "g")})
    def same(x):
        return x

    events = mg.walk(same(same(leaf(1.0))))
    assert isinstance(next(events), Seeded) and ran == []
    while not isinstance(next(events), Pulled):
        pass
    assert len(ran) in (1, 2)  # the rule itself, and once more at g = 1 for the local slope


def test_two_walks_are_equal_and_may_interleave() -> None:
    loss = product()
    expected = [plain(e) for e in mg.walk(loss)]
    pairs = list(zip(mg.walk(loss), mg.walk(loss), strict=True))
    assert [plain(a) for a, _ in pairs] == [plain(b) for _, b in pairs] == expected


def test_the_walk_touches_no_grad_and_gives_what_backward_gives() -> None:
    x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[0.5], [-0.5]], "w")
    loss = mg.sum(mg.tanh(x @ w) * x / 3)
    told = {e.name: e.gradient for e in mg.walk(loss) if isinstance(e, Reached)}
    assert x.grad is None and w.grad is None
    loss.backward()
    np.testing.assert_array_equal(told["x"], x.grad)
    np.testing.assert_array_equal(told["w"], w.grad)


def test_events_are_frozen_and_so_are_their_arrays() -> None:
    for event in mg.walk(product(), 2.0):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            event.node = 7
        arrays = [getattr(event, f.name) for f in fields(event)]
        arrays += [saved for _, saved in getattr(event, "residuals", ())]
        for array in arrays:
            if isinstance(array, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0


def test_events_do_not_change_after_they_were_told() -> None:
    x = leaf([1.0, 2.0])
    events, told = [], []
    for event in mg.walk(mg.sum(x * x + x)):
        events.append(event)
        told.append(plain(event))
    mg.sum(x * x).backward()
    assert [plain(e) for e in events] == told


# --- where the gradient stops, and what is released -----------------------------------------------


def stops(loss: mg.Tensor) -> list[tuple[int, int, str]]:
    return [(e.input, e.argnum, e.reason) for e in of(list(mg.walk(loss)), Stopped)]


def test_a_stop_says_why() -> None:
    x = leaf(2.0)
    with mg.no_grad():
        quiet = x * 3
    assert stops(x * mg.tensor(5.0)) == [(1, 1, "constant")]
    assert [argnum for _, argnum, _ in stops(mg.tensor(5.0) * x)] == [0]
    assert stops(x * (x * x).detach()) == [(1, 1, "detached")]
    assert stops(quiet * x)[0][1:] == (0, "no_grad")
    assert stops(x * 5) == []


def test_a_zero_slope_stops_in_the_place_of_a_pull_and_adds_zeros() -> None:
    x = leaf([1.5, -0.5])
    loss = mg.sum(floor(x) + 2 * x)
    events = list(mg.walk(loss))
    assert stops(loss) == [(0, 0, "zero slope")]
    at = kinds(events).index("Stopped")
    assert kinds(events)[at - 1 : at + 2] == ["Visited", "Stopped", "Accumulated"]
    assert events[at + 1].added.tolist() == [0, 0]
    mg.sum(floor(x)).backward()
    assert x.grad.tolist() == [0, 0]
    assert "stop" in [s.kind for s in mg.record(loss).steps]


def test_saved_values_are_released_with_their_bytes_and_nothing_else_is() -> None:
    x = leaf([1.0, 2.0])
    y = mg.exp(x)  # place 1, saves y: 16 bytes
    loss = mg.sum(y + y)
    assert [(e.node, e.bytes) for e in of(list(mg.walk(loss)), Released)] == [(1, 16)]
    assert of(list(mg.walk(mg.sum(x + x))), Released) == []


def test_reduced_says_axes_and_both_shapes() -> None:
    b = leaf([[1.0], [2.0]], "b")
    events = list(mg.walk(mg.sum(b + np.zeros((4, 2, 3)))))
    [reduced] = of(events, Reduced)
    assert (reduced.axes, reduced.from_shape, reduced.to_shape) == ((0, 2), (4, 2, 3), (2, 1))
    assert reduced.gradient.tolist() == [[12], [12]]
