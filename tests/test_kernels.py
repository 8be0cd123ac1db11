"""Compiled rules give the gradients that NumPy gives, for every elementwise card."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import kernel_source, kernels
from minigrad.card import Op
from minigrad.domains import domain_of, positive
from minigrad.events import Reached

SHAPE = (4, 5, 6)
CARDS = [c for c in mg.registry.values() if c.elementwise]
PAIRS = [c for c in CARDS if len(c.inputs) == 2]
LEADING, INNER, ALL = [(6,), (5, 6), (1, 1, 6)], [(4, 5, 1), (4, 1, 6), (5, 1)], [(), (1, 1, 1)]


@pytest.fixture(autouse=True)
def compiled(monkeypatch) -> list[bool]:
    """Every array counts as large; the answer lists, rule by rule, if there was a kernel."""
    asked: list[bool] = []
    original = kernels.fused

    def spy(*args):
        found = original(*args)
        asked.append(found is not None)
        return found

    monkeypatch.setattr(kernels, "LARGE", 1)
    monkeypatch.setattr(kernels, "fused", spy)
    return asked


@mg.op(tex="y = x reversed", pulls={"x": (lambda g: g[::-1, ::-1, ::-1], "")})
def flip(x):
    return x[::-1, ::-1, ::-1]


def operands(card: Op, shapes: list[tuple[int, ...]], dtype: str) -> list[mg.Tensor]:
    """Leaves well inside the card's domain, away from kinks and from cancellation."""
    rng = np.random.default_rng(7)
    leaves = []
    for name, shape in zip(card.inputs, shapes, strict=True):
        values = rng.uniform(0.3, 1.2, shape)
        if domain_of(card, name) is not positive:
            values *= rng.choice([-1, 1], shape)
        leaves.append(mg.tensor(values, requires_grad=True, name=name, dtype=dtype))
    return leaves


def assert_both_executors_agree(loss: mg.Tensor, leaves: list[mg.Tensor], g: np.ndarray) -> None:
    """Within 8 · eps · Σ|terms|; the terms are summed by the op's own rule at |g|, in NumPy."""
    ours = mg.grad(loss, leaves, g)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGRAD_JIT", "0")
        numpy = mg.grad(loss, leaves, g)
        terms = [total_terms(loss, leaf, g) for leaf in leaves]
    for a, b, term in zip(ours, numpy, terms, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        apart = np.abs(a.astype(np.float64) - b)
        assert (apart <= 8 * np.finfo(b.dtype).eps * term).all(), apart.max()


def total_terms(loss: mg.Tensor, leaf: mg.Tensor, g: np.ndarray) -> np.ndarray:
    """Σ|terms| for a leaf that is used once: its contribution before the reduction, summed."""
    for event in mg.walk(loss, g):
        if type(event).__name__ == "Pulled" and leaf.name == name_at(loss, event.input):
            copies = np.abs(event.contribution.astype(np.float64))
            lead = tuple(range(copies.ndim - leaf.ndim))
            ones = tuple(n + len(lead) for n, size in enumerate(leaf.shape) if size == 1)
            return copies.sum(axis=lead + ones).reshape(leaf.shape)
    raise AssertionError(f"nothing was pulled back into {leaf.name}")


def name_at(loss: mg.Tensor, place: int) -> str:
    return mg.record(loss, np.ones(loss.shape), checks=False).nodes[place].name


def upstream(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


every_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


# --- equal to NumPy -------------------------------------------------------------------------------


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@every_dtype
def test_a_compiled_rule_gives_what_numpy_gives(card: Op, dtype: str, compiled: list) -> None:
    leaves = operands(card, [SHAPE] * len(card.inputs), dtype)
    loss = card.function(*leaves)
    assert_both_executors_agree(loss, leaves, upstream(SHAPE, dtype))
    assert compiled[: len(leaves)] == [True] * len(leaves)


@pytest.mark.parametrize("card", PAIRS, ids=lambda c: c.name)
@pytest.mark.parametrize("shape", LEADING + INNER + ALL, ids=str)
@every_dtype
def test_a_compiled_rule_reduces_what_broadcasting_copied(card: Op, shape: tuple, dtype: str):
    for shapes in ([SHAPE, shape], [shape, SHAPE]):
        leaves = operands(card, shapes, dtype)
        assert_both_executors_agree(card.function(*leaves), leaves, upstream(SHAPE, dtype))


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@every_dtype
def test_transposed_and_reversed_operands_give_what_numpy_gives(card: Op, dtype: str) -> None:
    leaves = operands(card, [SHAPE] * len(card.inputs), dtype)
    views = [flip(x) if n else flip(x).T for n, x in enumerate(leaves)]
    views = [v if v.shape == views[0].shape else v.T for v in views]
    loss = mg.sum(card.function(*views).T * upstream(SHAPE, dtype))
    ours = mg.grad(loss, leaves)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGRAD_JIT", "0")
        numpy = mg.grad(loss, leaves)
    for a, b in zip(ours, numpy, strict=True):
        np.testing.assert_allclose(a, b, rtol=8 * np.finfo(dtype).eps, strict=True)


def test_a_rule_that_differs_in_the_last_bits_would_be_noticed() -> None:
    @mg.elementwise(tex="", partials={"x": (lambda x: 2 * x, "")})
    def square(x):
        return x * x

    x = operands(square.card, [SHAPE], "float64")[0]
    loss, g = square(x), upstream(SHAPE, "float64")
    assert_both_executors_agree(loss, [x], g)
    original = kernel_source._TEMPLATE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_modules", {})
        wrong = original.replace("+= {term}", "+= 1.00000001 * {term}")
        patch.setattr(kernel_source, "_TEMPLATE", wrong)
        with pytest.raises(AssertionError):
            assert_both_executors_agree(loss, [x], g)


def test_more_axes_than_a_kernel_has_run_in_numpy(compiled: list) -> None:
    a = mg.tensor(np.ones((2, 1, 2, 1, 2)), requires_grad=True, name="a")
    b = mg.tensor(np.ones((2, 3, 2, 3, 2)), requires_grad=True, name="b")
    mg.sum(a * b).backward()
    assert compiled == [False, False]
    np.testing.assert_array_equal(a.grad, np.full(a.shape, 9.0))


# --- events and silence agree ---------------------------------------------------------------------


@every_dtype
def test_the_narrated_walk_equals_the_silent_one_bit_for_bit(dtype: str, compiled: list) -> None:
    rng = np.random.default_rng(5)
    x, b = (
        mg.tensor(rng.normal(size=s), requires_grad=True, name=n, dtype=dtype)
        for s, n in ((SHAPE, "x"), ((6,), "b"))
    )
    h = mg.tanh(x * b + b)
    loss = mg.sum(h * h / (x * x + 2) - mg.relu(h) * mg.sigmoid(b))
    told = {e.name: e.gradient for e in mg.walk(loss) if isinstance(e, Reached)}
    by_x, by_b = mg.grad(loss, [x, b])
    assert any(compiled)
    assert (told["x"].tobytes(), told["b"].tobytes()) == (by_x.tobytes(), by_b.tobytes())
