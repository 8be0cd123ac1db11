"""Compiled rules give the gradients that NumPy gives, for every elementwise card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from calling import called

import minigrad as mg
from minigrad import kernel_source, kernels
from minigrad.card import Op
from minigrad.domains import domain_of
from minigrad.events import Reached
from minigrad.kernels import erfc, logistic
from minigrad.ops.activations import CUBIC, SLOPE
from minigrad.pull import pulls, value_of

SHAPE = (4, 5, 6)
FLAT = {"floor", "ceil", "round", "sign"}  # the slope is 0: the gradient stops, and no rule runs
CARDS = [c for c in mg.registry.values() if c.elementwise and c.name not in FLAT]
SEVERAL = [c for c in CARDS if len(c.inputs) > 1]
LEADING, INNER, ALL = [(6,), (5, 6), (1, 1, 6)], [(4, 5, 1), (4, 1, 6), (5, 1)], [(), (1, 1, 1)]

# Compiling takes a second a rule: every card in float64, the knotty ones in float32 too.
ALSO_SINGLE = {"pow", "where", "clamp", "gelu", "gelu_erf"}


def by_dtype(cards: list[Op]) -> Any:
    rows = [(c, "float64") for c in cards]
    rows += [(c, "float32") for c in cards if c.name in ALSO_SINGLE]
    return pytest.mark.parametrize("card, dtype", rows, ids=[f"{c.name}-{d}" for c, d in rows])


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


def operands(card: Op, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Cells of the card's domain."""
    rng = np.random.default_rng(7)
    return [domain_of(card, n).draw(rng, s) for n, s in zip(card.inputs, shapes, strict=True)]


def all_params(card: Op) -> Iterator[dict[str, Any]]:
    """Every value that the domain names for the parameters, in turn."""
    given = card.domain if isinstance(card.domain, Mapping) else {}
    values = {name: given[name] for name in card.params if name in given}
    for turn in range(max(map(len, values.values()), default=1)):
        yield {name: several[turn % len(several)] for name, several in values.items()}


def assert_both_executors_agree(y: mg.Tensor, leaves: list[mg.Tensor], g: np.ndarray) -> None:
    """Within 8 · eps · Σ|terms|."""
    ours = mg.grad(y, leaves, g)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGRAD_JIT", "0")
        numpy = mg.grad(y, leaves, g)
    for a, b, leaf in zip(ours, numpy, leaves, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        apart = np.abs(a.astype(np.float64) - b)
        assert (apart <= 8 * np.finfo(b.dtype).eps * total_terms(y, leaf, g)).all(), apart.max()


# Where a slope is itself a sum, and near 0 for x near -1: the sum of its terms' sizes.
TERMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "silu": lambda x: logistic(x) * (1 + np.abs(x) * logistic(-x)),
    "gelu": lambda x: (
        logistic(SLOPE * x * (1 + CUBIC * x * x))
        * (1 + np.abs(x) * SLOPE * (1 + 3 * CUBIC * x * x))
    ),
    "gelu_erf": lambda x: erfc(-x / np.sqrt(2)) / 2 + np.abs(x) * np.exp(-x * x / 2),
}


def total_terms(y: mg.Tensor, leaf: mg.Tensor, g: np.ndarray) -> np.ndarray:
    """Σ|terms| of a leaf: its contribution before the reduction, by NumPy, summed."""
    [pull] = [p for p in pulls(y, g, value_of) if p.operand is leaf]
    copies = np.abs(pull.contribution().astype(np.float64))
    if pull.card.name in TERMS:
        copies = np.abs(g) * TERMS[pull.card.name](leaf.data.astype(np.float64))
    lead = tuple(range(copies.ndim - leaf.ndim))
    ones = tuple(n + len(lead) for n, size in enumerate(leaf.shape) if size == 1)
    return copies.sum(axis=lead + ones).reshape(leaf.shape)


def upstream(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


# --- every rule is compiled -----------------------------------------------------------------------


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
def test_every_elementwise_rule_has_a_kernel(card: Op) -> None:
    for rule in card.rules.values():
        assert kernels.why_not(rule.fn, rule.reads, rule.takes_g) is None


@pytest.mark.parametrize("name", sorted(FLAT))
def test_a_slope_of_zero_needs_no_kernel(name: str, compiled: list[bool]) -> None:
    card = mg.registry[name]
    assert all(rule.is_zero for rule in card.rules.values())
    y, [x] = called(card, operands(card, [SHAPE]), {})
    np.testing.assert_array_equal(mg.grad(y, [x], np.full(SHAPE, np.inf))[0], np.zeros(SHAPE))
    assert compiled == []


# --- equal to NumPy -------------------------------------------------------------------------------


@by_dtype(CARDS)
def test_a_compiled_rule_gives_what_numpy_gives(card: Op, dtype: str, compiled: list) -> None:
    for params in all_params(card):
        y, leaves = called(card, operands(card, [SHAPE] * len(card.inputs)), params, [dtype])
        compiled.clear()
        assert_both_executors_agree(y, leaves, upstream(SHAPE, dtype))
        assert compiled[: len(leaves)] == [True] * len(leaves)


@by_dtype(SEVERAL)
@pytest.mark.parametrize("shape", LEADING + INNER + ALL, ids=str)
def test_a_compiled_rule_reduces_what_broadcasting_copied(card: Op, dtype: str, shape: tuple):
    for smaller in range(len(card.inputs)):
        shapes = [shape if n == smaller else SHAPE for n in range(len(card.inputs))]
        y, leaves = called(card, operands(card, shapes), {}, [dtype])
        assert_both_executors_agree(y, leaves, upstream(SHAPE, dtype))


@by_dtype(CARDS)
def test_transposed_and_reversed_operands_give_what_numpy_gives(card: Op, dtype: str) -> None:
    params = next(all_params(card))
    y, leaves = called(card, operands(card, [SHAPE] * len(card.inputs)), params, [dtype])
    views = [flip(x.T) if n else x.T for n, x in enumerate(y._inputs)]
    turned, _ = called(card, views, params)
    loss = mg.sum(flip(turned).T * upstream(SHAPE, dtype))
    ours = mg.grad(loss, leaves)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGRAD_JIT", "0")
        numpy = mg.grad(loss, leaves)
    eps = np.finfo(dtype).eps
    for a, b in zip(ours, numpy, strict=True):
        np.testing.assert_allclose(a, b, rtol=8 * eps, atol=eps, strict=True)


ODD = [-np.inf, -1000.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 1000.0, np.inf, np.nan]


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
def test_kinks_infinities_and_nan_give_what_numpy_gives(card: Op, compiled: list[bool]) -> None:
    tracked = [n for n in card.inputs if n in card.rules]
    columns = dict(zip(tracked, np.array([*product(ODD, repeat=len(tracked))]).T, strict=True))
    masks = np.arange(len(columns[tracked[0]])) % 2 == 0
    params = next(all_params(card))
    y, leaves = called(card, [columns.get(n, masks) for n in card.inputs], params)
    for g in (np.ones(y.shape), np.full(y.shape, np.inf)):
        compiled.clear()
        ours = mg.grad(y, leaves, g)
        assert compiled == [True] * len(leaves)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MINIGRAD_JIT", "0")
            numpy = mg.grad(y, leaves, g)
        for a, b in zip(ours, numpy, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-300)


def test_a_rule_that_differs_in_the_last_bits_would_be_noticed() -> None:
    @mg.elementwise(tex="", partials={"x": (lambda x: 2 * x, "")})
    def square(x):
        return x * x

    x = mg.tensor(operands(square.card, [SHAPE])[0], requires_grad=True)
    y, g = square(x), upstream(SHAPE, "float64")
    assert_both_executors_agree(y, [x], g)
    original = kernel_source._RULE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_modules", {})
        patch.setattr(kernels, "_ready", {})
        wrong = original.replace("+= {term}", "+= 1.00000001 * {term}")
        patch.setattr(kernel_source, "_RULE", wrong)
        with pytest.raises(AssertionError):
            assert_both_executors_agree(y, [x], g)


def test_more_axes_than_a_kernel_has_run_in_numpy(compiled: list) -> None:
    a = mg.tensor(np.ones((2, 1, 2, 1, 2)), requires_grad=True, name="a")
    b = mg.tensor(np.ones((2, 3, 2, 3, 2)), requires_grad=True, name="b")
    mg.sum(a * b).backward()
    assert compiled == [False, False]
    np.testing.assert_array_equal(a.grad, np.full(a.shape, 9.0))


# --- events and silence agree ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
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
