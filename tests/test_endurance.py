"""Endurance: a million links, ten thousand training steps, eight threads, interleaved walks."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import threading
import weakref
from array import array
from collections.abc import Iterator

import numpy as np
import pytest

import minigrad as mg
from minigrad.events import Recomputed

STEPS = 10_000


def leaf(values, name: str | None = None) -> mg.Tensor:
    return mg.tensor(np.array(values, float), requires_grad=True, name=name)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """The cyclic garbage collector, switched off: what is freed was freed by counting."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_million_links_go_forward_backward_and_away(no_collector) -> None:
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = y + x
    y.backward()
    assert (y.item(), float(x.grad)) == (1_000_001, 1_000_001)
    last = weakref.ref(y)
    del y
    assert last() is None


def train(steps: int, policy: str) -> Iterator[int]:
    """A small network that learns; yields how many memory blocks are in use after each step."""
    rng = np.random.default_rng(0)
    x, target = rng.normal(size=(4, 2)), rng.normal(size=(4, 1))
    w, b, v = leaf(rng.normal(size=(2, 3))), leaf(np.zeros(3)), leaf(rng.normal(size=(3, 1)))
    adam = mg.optim.Adam([w, b, v])
    for _ in range(steps):
        with mg.checkpointing(policy):
            loss = mg.mse_loss(mg.tanh(x @ w + b) @ v, target)
        adam.zero_grad()
        loss.backward()
        adam.step()
        yield sys.getallocatedblocks()


@pytest.mark.parametrize("policy", ["save_all", "recompute"])
def test_ten_thousand_training_steps_do_not_grow_memory(no_collector, policy: str) -> None:
    blocks = array("q", train(STEPS if policy == "save_all" else STEPS // 10, policy))
    quarter, middle = len(blocks) // 4, len(blocks) // 2  # what is cached is cached by then
    assert min(blocks[middle:]) - min(blocks[quarter:middle]) < 50
    assert max(blocks[middle:]) - max(blocks[quarter:middle]) < 200


def test_memory_that_grows_would_be_noticed(no_collector) -> None:
    kept, blocks = [], []
    for count in train(200, "save_all"):
        kept.append(leaf([1.0]))
        blocks.append(count)
    assert min(blocks[100:]) - min(blocks[10:100]) > 50


def graph(n: int) -> tuple[mg.Tensor, list[mg.Tensor]]:
    """Graph number n, under either policy, with fan-out and broadcasting."""
    rng = np.random.default_rng(n)
    x, w = leaf(rng.normal(size=(3, 4))), leaf(rng.normal(size=4))
    with mg.checkpointing("recompute" if n % 2 else "save_all"):
        h = x
        for _ in range(1 + n % 5):
            h = mg.tanh(h * w) + x
        return mg.sum(mg.softmax(h, dim=-1) * h), [x, w]


def test_eight_threads_walking_different_graphs_give_the_serial_gradients() -> None:
    expected = [mg.grad(*graph(n)) for n in range(8)]
    found: dict[int, list] = {n: [] for n in range(8)}
    barrier = threading.Barrier(8)

    def work(n: int) -> None:
        barrier.wait()
        for _ in range(40):
            found[n].append(mg.grad(*graph(n)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, serial in enumerate(expected):
        assert len(found[n]) == 40
        for got in found[n]:
            for a, b in zip(got, serial, strict=True):
                np.testing.assert_array_equal(a, b)


def test_two_interleaved_walks_tell_what_each_tells_alone() -> None:
    losses = [graph(n)[0] for n in (1, 3)]
    alone = [[repr(e) for e in mg.walk(loss)] for loss in losses]
    together: list[list[str]] = [[], []]
    for pair in itertools.zip_longest(*map(mg.walk, losses)):
        for told, event in zip(together, pair, strict=True):
            if event is not None:
                told.append(repr(event))
    assert together == alone


def test_several_losses_accumulate_into_one_store_and_touch_no_leaf() -> None:
    x = leaf([2.0])
    h = x * x
    store = mg.GradStore()
    mg.sum(3 * h).backward_into(store)
    mg.sum(h * h).backward_into(store)
    assert store[x].tolist() == [12 + 32] and x.grad is None
    assert store[h] is None and len(store) == 1


def test_the_policy_and_no_grad_belong_to_their_async_task() -> None:
    async def recording(wait: asyncio.Event, go: asyncio.Event) -> tuple[bool, int]:
        with mg.no_grad():
            go.set()
            await wait.wait()
            return (leaf([1.0]) * 2).requires_grad, 0

    async def dropping(wait: asyncio.Event, go: asyncio.Event) -> tuple[bool, int]:
        await wait.wait()
        with mg.checkpointing("recompute"):
            go.set()
            loss = mg.sum(mg.exp(mg.tanh(leaf([1.0]))))
        told = [e for e in mg.walk(loss) if isinstance(e, Recomputed)]
        return loss.requires_grad, len(told)

    async def both() -> list[tuple[bool, int]]:
        first, second = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(recording(second, first), dropping(first, second))

    assert asyncio.run(both()) == [(False, 0), (True, 2)]


def test_a_generator_paused_inside_a_policy_does_not_leave_it_behind_for_others() -> None:
    @mg.no_grad()
    def values() -> Iterator[mg.Tensor]:
        while True:
            yield leaf([1.0]) * 2

    source = values()
    assert not next(source).requires_grad
    assert (leaf([1.0]) * 2).requires_grad
    source.close()
