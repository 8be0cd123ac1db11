"""SGD and Adam: their formulas by hand, stores and micro-batches, and a loop that learns."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg


def leaf(values, dtype: str = "float64") -> mg.Tensor:
    return mg.tensor(np.array(values, dtype), requires_grad=True)


def test_sgd_goes_down_the_slope() -> None:
    x = leaf([2.0, -1.0])
    sgd = mg.optim.SGD([x], lr=0.1)
    (x * x).sum().backward()
    sgd.step()
    np.testing.assert_allclose(x.data, [1.6, -0.8], rtol=1e-15)
    sgd.zero_grad()
    assert x.grad is None


def test_momentum_adds_up_what_came_before() -> None:
    x = leaf([0.0])
    sgd = mg.optim.SGD([x], lr=1.0, momentum=0.5)
    for expected in (-1.0, -2.5, -4.25):  # moves 1, 1.5, 1.75
        x.zero_grad()
        x.sum().backward()
        sgd.step()
        assert x.item() == expected


def test_the_first_step_of_adam_has_the_size_of_lr() -> None:
    x = leaf([3.0, -5.0])
    adam = mg.optim.Adam([x], lr=0.01)
    (x * x).sum().backward()
    adam.step()
    np.testing.assert_allclose(x.data, [2.99, -4.99], rtol=1e-9)


def test_three_steps_of_adam_by_hand() -> None:
    x, adam_x = leaf([1.0]), 1.0
    adam = mg.optim.Adam([x], lr=0.1, betas=(0.8, 0.9), eps=1e-3)
    m = v = 0.0
    for t in (1, 2, 3):
        x.zero_grad()
        (x * x * x).sum().backward()
        adam.step()
        g = 3 * adam_x**2
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        adam_x -= 0.1 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)
        assert x.item() == pytest.approx(adam_x, rel=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_leaf_keeps_its_dtype(dtype: str) -> None:
    x = leaf([1.0, 2.0], dtype)
    x.sum().backward()
    mg.optim.Adam([x]).step()
    assert x.dtype == dtype


def test_a_leaf_without_a_gradient_stays_as_it_is() -> None:
    x, unused = leaf([1.0]), leaf([7.0])
    x.sum().backward()
    mg.optim.SGD([x, unused], lr=1.0).step()
    assert (x.item(), unused.item()) == (0.0, 7.0)


def test_two_micro_batches_in_a_store_move_as_one_batch() -> None:
    batch = np.arange(8.0).reshape(4, 2)
    whole, halves = leaf([[1.0], [2.0]]), leaf([[1.0], [2.0]])
    store = mg.GradStore()
    ((batch @ whole) ** 2).sum().backward_into(store)
    mg.optim.SGD([whole], lr=0.01).step(store)
    store = mg.GradStore()
    for part in (batch[:2], batch[2:]):
        ((part @ halves) ** 2).sum().backward_into(store)
    mg.optim.SGD([halves], lr=0.01).step(store)
    np.testing.assert_allclose(halves.data, whole.data, rtol=1e-15)
    assert whole.grad is None


def test_a_graph_made_before_a_step_can_no_longer_be_walked() -> None:
    x = leaf([1.0])
    loss = (x * x).sum()
    loss.backward()
    mg.optim.SGD([x], lr=0.1).step()
    with pytest.raises(mg.GraphError, match="was edited by assign_ after the forward pass"):
        loss.backward()


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_small_network_learns_xor(name: str) -> None:
    rng = np.random.default_rng(1)
    x = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    target = np.array([[0.0], [1], [1], [0]])
    w1, b1 = leaf(rng.normal(size=(2, 8))), leaf(np.zeros(8))
    w2, b2 = leaf(rng.normal(size=(8, 1))), leaf(np.zeros(1))
    leaves = [w1, b1, w2, b2]
    optimizer = mg.optim.Adam(leaves, lr=0.05) if name == "Adam" else mg.optim.SGD(leaves, 0.5, 0.9)
    for _ in range(300):
        logits = mg.tanh(x @ w1 + b1) @ w2 + b2
        loss = mg.binary_cross_entropy_with_logits(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: mg.optim.SGD([mg.tensor([1.0])], lr=1), "SGD: optimizes leaves"),
        (lambda: mg.optim.SGD([leaf([1.0]) * 2], lr=1), "SGD: optimizes leaves"),
        (lambda: mg.optim.SGD([], lr=1), "SGD: there is no leaf"),
        (lambda: mg.optim.SGD([leaf([1.0])], lr="fast"), "SGD: lr must be a number"),
        (lambda: mg.optim.SGD([leaf([1.0])], lr=-1), "SGD: lr must be a number from 0 on"),
        (lambda: mg.optim.Adam([leaf([1.0])], betas=(0.9, 1.0)), "Adam: betas must be two"),
    ],
)
def test_wrong_settings_are_one_sentence(make, words: str) -> None:
    with pytest.raises(mg.MinigradError, match=f"^{words}"):
        make()
