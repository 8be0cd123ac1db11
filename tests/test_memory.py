"""The memory lane: bytes held at each step, by hand on a small graph, and as the engine does it."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.events import Recomputed
from minigrad.view.html import payload
from minigrad.view.memory import Memory, memory
from minigrad.view.parts import bytes_text


def leaf(*shape: int, name: str | None = None) -> mg.Tensor:
    rng = np.random.default_rng(len(shape))
    return mg.tensor(rng.uniform(0.5, 1.5, shape), requires_grad=True, name=name)


def small() -> mg.Tensor:
    """Places x 0, w 1; a 2, b 3, c 4 of 32 bytes each; L 5 of 8 bytes."""
    x, w = leaf(2, 3, name="x"), leaf(3, 2, name="w")
    a = x @ w
    b = mg.tanh(a)
    c = mg.exp(b)
    L = mg.sum(c)
    return L


def layers() -> mg.Tensor:
    """Elementwise-heavy: five cheap ops between one matmul and the next."""
    h = mg.tensor(np.ones((32, 8)))
    for _ in range(4):
        a = h @ leaf(8, 8)
        h = mg.gelu(a * leaf(8) + 0.1) * 0.9 + mg.tanh(a)
    return mg.mean(mg.sqr(h))


def products() -> mg.Tensor:
    """Nothing but matmuls: every result is kept under both policies."""
    h = leaf(4, 8)
    for _ in range(4):
        h = h @ leaf(8, 8)
    return mg.sum(h)


def chain() -> mg.Tensor:
    """Cheap ops only: what is dropped comes back all at once."""
    y = leaf(50)
    for _ in range(8):
        y = mg.exp(y * -0.5)
    return mg.mean(y)


def tangle() -> mg.Tensor:
    """Shared values, numbers, a constant, broadcasting, a zero slope, a memory-bound root."""
    x, b, c = leaf(3, 4), leaf(4), mg.tensor(np.full((3, 4), 0.7))
    h = mg.tanh(x * b)
    k = mg.exp(h) * h + mg.floor(h * 3) * c
    return mg.sum(2 / k + mg.reshape(h.T, (3, 4)), dim=1)[0] * mg.sum(k) * 1.5


def recorded(make: Callable[[], mg.Tensor], policy: str = "save_all") -> mg.Trace:
    with mg.checkpointing(policy):
        loss = make()
    return mg.record(loss, checks=False)


def costing(trace: mg.Trace, cost: Callable[[str], str]) -> mg.Trace:
    """The same trace, with what its ops cost said otherwise."""
    nodes = [dataclasses.replace(n, cost=cost(n.op) if n.op else "") for n in trace.nodes]
    return mg.Trace(nodes, trace.events, trace.checks, trace.source)


def made_again(trace: mg.Trace) -> set[int]:
    """What the engine made again in this run."""
    return {e.node for e in trace.events if isinstance(e, Recomputed)}


# --- by hand --------------------------------------------------------------------------------------

#             a   b   c    L    seed sum  exp tanh mm  mm  w  x
SAVE_ALL = [32, 64, 96, 104, 104, 104, 96, 64, 32, 32, 0, 0]
RECOMPUTE = [32, 64, 96, 72, 40, 40, 96, 64, 32, 32, 0, 0]


def test_the_bytes_of_a_small_graph_by_hand() -> None:
    found = memory(recorded(small))
    assert list(found.save_all.bytes) == SAVE_ALL
    assert (found.save_all.peak, found.save_all.peak_step) == (104, 3)
    assert found.recompute is not None
    # b goes after exp, c after sum; exp reads its result c, which is made from b, which is made
    # from a, which was kept
    assert list(found.recompute.bytes) == RECOMPUTE
    assert (found.recompute.peak, found.recompute.peak_step) == (96, 2)
    assert set(found.recompute.made_again) == {3, 4}


def test_what_is_never_dropped_is_held_like_all_the_rest() -> None:
    found = memory(costing(recorded(small), lambda op: "compute"))
    assert found.recompute is not None
    assert list(found.recompute.bytes) == SAVE_ALL and found.recompute.made_again == ()


# --- as the engine does it ------------------------------------------------------------------------

GRAPHS = [small, layers, products, chain, tangle]


def held_by_the_walk(trace: mg.Trace) -> list[int]:
    """The bytes at each backward step, counted from the events of a run under recompute."""
    root = trace.nodes[-1]
    alive = {n.id for n in trace.nodes if n.kind == "op" and n.cost == "compute"} | {root.id}
    counted = []
    steps = [step for step in trace.steps if step.phase == "backward"]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        alive |= {e.node for e in step.events if isinstance(e, Recomputed)}
        counted.append(sum(trace.nodes[i].value.nbytes for i in alive))
        if step.kind in ("pull", "stop") and (following is None or following.node != step.node):
            alive.discard(step.node)
    return counted


@pytest.mark.parametrize("make", GRAPHS)
def test_the_model_makes_again_what_the_walk_makes_again_and_holds_as_much(make) -> None:
    trace = recorded(make, "recompute")
    found = memory(trace).recompute
    assert found is not None
    assert set(found.made_again) == made_again(trace)
    assert len(found.made_again) == len(set(found.made_again))
    counted = held_by_the_walk(trace)
    assert list(found.bytes[-len(counted) :]) == counted
    assert found == memory(recorded(make)).recompute  # worked out from a run that kept everything


def test_a_model_that_drops_another_op_is_found_out() -> None:
    trace = recorded(layers, "recompute")
    wrong = costing(trace, lambda op: "memory" if op in ("mul", "add", "tanh") else "compute")
    found = memory(wrong).recompute
    assert found is not None and set(found.made_again) != made_again(trace)


# --- where it pays --------------------------------------------------------------------------------


def peaks(make: Callable[[], mg.Tensor]) -> tuple[int, int]:
    found: Memory = memory(recorded(make))
    assert found.recompute is not None
    both = zip(found.save_all.bytes, found.recompute.bytes, strict=True)
    assert all(few <= many for many, few in both)
    return found.save_all.peak, found.recompute.peak


def test_recomputing_pays_between_matmuls() -> None:
    many, few = peaks(layers)
    assert few < 0.5 * many


def test_recomputing_does_not_pay_where_every_result_is_kept() -> None:
    many, few = peaks(products)
    assert few == many


def test_recomputing_does_not_pay_where_nothing_is_kept_to_start_from() -> None:
    many, few = peaks(chain)
    assert few > 0.9 * many


# --- large, old and empty traces ------------------------------------------------------------------


def test_two_thousand_ops_are_counted_quickly() -> None:
    def long() -> mg.Tensor:
        y, w = leaf(2), leaf(2)
        for _ in range(500):
            y = mg.tanh(y * w + 0.1) * w
        return mg.sum(y)

    trace = recorded(long)
    start = time.perf_counter()
    found = memory(trace)
    assert time.perf_counter() - start < 0.5
    assert found.save_all.peak == 2000 * 16 + 8


def test_a_trace_from_a_file_says_the_same_of_large_arrays_too(tmp_path: Path) -> None:
    trace = recorded(lambda: mg.sum(mg.exp(leaf(100, 50) * 2)))
    trace.save(tmp_path / "run.json")
    again = mg.load_trace(tmp_path / "run.json")
    assert memory(again) == memory(trace)
    assert memory(again).save_all.peak == 2 * 100 * 50 * 8 + 8
    assert [n.cost for n in again.nodes] == [n.cost for n in trace.nodes]


def test_an_older_file_does_not_say_what_ops_cost(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    recorded(small).save(file)
    data = json.loads(file.read_text())
    for node in data["nodes"]:
        del node["cost"]
    file.write_text(json.dumps(data))
    old = mg.load_trace(file)
    assert memory(old).recompute is None and list(memory(old).save_all.bytes) == SAVE_ALL
    assert "recompute" not in payload(old)["memory"]
    assert old.text().endswith("save all: peak 104 bytes at step 4")


def test_without_bytes_there_is_no_lane() -> None:
    trace = mg.record(leaf(), checks=False)
    assert payload(trace)["memory"] is None and "Memory" not in trace.text()


# --- what is said ---------------------------------------------------------------------------------


def test_the_words_and_numbers_of_the_lane() -> None:
    lane = payload(recorded(small))["memory"]
    assert (lane["save_all"], lane["recompute"]) == (SAVE_ALL, RECOMPUTE)
    assert lane["labels"]["save_all"] == "save all: peak 104 bytes at step 4"
    assert lane["peaks"]["recompute"] == {"step": 2, "text": "96 bytes"}
    assert {int(n) for n in lane["texts"]} == {*SAVE_ALL, *RECOMPUTE}
    assert not lane["open"] and payload(recorded(layers))["memory"]["open"]


def test_the_text_ends_with_both_peaks() -> None:
    peaks = "save all: peak 104 bytes at step 4 · recompute: peak 96 bytes at step 3"
    assert recorded(small).text().endswith(f"\n\nMemory held for backward · {peaks}")


def test_a_forward_step_says_what_its_op_saves_and_how_much() -> None:
    text = recorded(small).text()
    assert "For backward it saves x and w, 96 bytes." in text  # the operands of a matmul
    assert "For backward it saves b, 32 bytes." in text  # tanh saves its result
    assert "For backward it saves nothing." in text  # sum
    x = mg.tensor(3.0, requires_grad=True, name="x")
    assert "For backward it saves x, 8 bytes." in mg.record(x * x).text()  # once, not twice


def test_bytes_in_words() -> None:
    counts = [0, 1, 999, 1000, 9_949, 9_950, 999_499, 999_500, 34_000_000, 2**62]
    assert list(map(bytes_text, counts)) == [
        "0 bytes", "1 byte", "999 bytes", "1.0 kB", "9.9 kB", "10 kB", "999 kB", "1.0 MB", "34 MB",
        "4.6 EB",
    ]  # fmt: skip
