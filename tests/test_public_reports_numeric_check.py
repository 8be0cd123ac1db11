"""Public bug reports of numeric checks that lie, by number: false alarms and false peace."""

from __future__ import annotations

import numpy as np
import pytest
from rows import leaf

import minigrad as mg
from minigrad.numeric import STRICT, Slope, Tolerance, Verdict, judge

LN2, LN3 = 0.6931471805599453, 1.0986122886681098


def only(fn, x: mg.Tensor):
    """The one check of a function of one tensor."""
    [check] = mg.gradcheck(fn, [x]).checks
    return check


# --- R08: differences in low precision ------------------------------------------------------------


@pytest.mark.parametrize("x, slope", [(1.5, 3.0), (1000.25, 2000.5), (1e-3, 2e-3), (-3e4, -6e4)])
def test_R08_a_float32_function_is_differenced_in_float64(x: float, slope: float) -> None:
    leaf32 = leaf([x], "x", "float32")
    check = only(lambda x: mg.sum(x * x), leaf32)
    exact = 2 * float(np.float32(x))
    assert check.verdict is Verdict.agrees
    assert check.numeric.item() == pytest.approx(exact, rel=1e-9)
    assert check.numeric.item() == pytest.approx(slope, rel=1e-7)
    assert leaf32.dtype == check.analytic.dtype == np.float32


def test_R08_single_precision_differences_would_be_noticed() -> None:
    h = np.float32(1e-6)
    x = np.float32(1.5)
    assert ((x + h) ** 2 - (x - h) ** 2) / (2 * h) == pytest.approx(2.861, abs=1e-3)
    x = np.float32(1000.25)
    assert ((x + h) ** 2 - (x - h) ** 2) / (2 * h) == 0


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", ["tanh", "gelu", "silu", "exp", "softplus", "sqr"])
def test_R08_our_ops_raise_no_false_alarm_in_low_precision(name: str, dtype: str) -> None:
    op = getattr(mg, name)
    x = leaf([0.3, -1.2, 2.5], "x", dtype)
    assert mg.gradcheck(lambda x: mg.sum(op(x)), [x])
    trace = mg.record(mg.sum(op(x)))
    assert all(trace.checks), [c.note for c in trace.checks if not c]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_R08_a_wrong_rule_is_caught_in_any_precision(dtype: str) -> None:
    wrong = mg.elementwise(tex="y = x^2", partials={"x": (lambda x: 2.1 * x, "2x")})(
        lambda x: x * x
    )
    assert only(lambda x: mg.sum(wrong(x)), leaf([1.5], "x", dtype)).verdict is Verdict.differs


# --- R18: a loss that hides the mistake -----------------------------------------------------------


def right(g, y):
    return y * (g - np.sum(g * y))


SOFTMAXES = {
    "right": right,
    "three times too large": lambda g, y: 3 * right(g, y),
    "negated": lambda g, y: -right(g, y),
    "cells in reverse": lambda g, y: right(g, y)[::-1].copy(),
    "nothing at all": lambda g, y: 0 * g,
}


@pytest.mark.parametrize("rule", SOFTMAXES.values(), ids=SOFTMAXES)
def test_R18_a_wrong_rule_under_a_plain_sum_is_caught(rule) -> None:
    @mg.op(tex=r"y_i = e^{x_i} / \sum_j e^{x_j}", pulls={"x": (rule, "")})
    def mine(x):
        return np.exp(x) / np.exp(x).sum()

    x, fine = leaf([0, LN2, LN3], "x"), rule is right
    np.testing.assert_allclose(mg.grad(mg.sum(mine(x)), [x])[0], [0, 0, 0], atol=1e-15)
    blamed = {c.op for c in mg.record(mg.sum(mine(x))).checks if not c}
    assert blamed == (set() if fine else {"mine"})
    assert bool(mg.gradcheck(mine, [x])) is fine


def test_R18_the_true_gradient_under_weights() -> None:
    x = leaf([0, LN2, LN3])
    found = mg.grad(mg.sum(x.softmax(0) * np.array([1.0, 2, 3])), [x])[0]
    np.testing.assert_allclose(found, [-2 / 9, -1 / 9, 1 / 3], rtol=1e-14)


def untransposed(g):
    return g.reshape(g.shape[::-1])


@pytest.mark.parametrize("rule, fine", [(lambda g: g.T, True), (untransposed, False)])
@pytest.mark.parametrize("shape", [(2, 3), (3, 3)])
def test_R18_a_transpose_whose_rule_forgets_to_transpose_is_caught(rule, fine, shape) -> None:
    @mg.op(tex=r"y = x^{\top}", pulls={"x": (rule, r"\bar y^{\top}")})
    def flipped(x):
        return x.T.copy()

    x = leaf(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), "x")
    assert mg.grad(mg.sum(flipped(x)), [x])[0].tolist() == np.ones(shape).tolist()
    assert bool(mg.gradcheck(flipped, [x])) is fine
    assert all(mg.record(mg.sum(flipped(x))).checks) is fine


# --- R32: a function that answers differently twice -----------------------------------------------


def fresh_mask():
    rng = np.random.default_rng(0)
    return lambda x: mg.sum(x * rng.choice([0.0, 2.0], x.shape))


def counting():
    calls: list[int] = []
    return lambda x: mg.sum(x * x) + float(len(calls) if calls.append(1) is None else 0)


def fresh_dropout():
    seeds = iter(range(1000))
    return lambda x: mg.sum(x.dropout(0.5, seed=next(seeds)))


@pytest.mark.parametrize("make", [fresh_mask, counting, fresh_dropout])
def test_R32_a_function_that_is_not_deterministic_gets_no_verdict(make) -> None:
    report = mg.gradcheck(make(), [leaf(np.arange(1.0, 9.0))])
    assert not report and report.verdicts == ()
    assert "the function is not deterministic" in report.table()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mg.sum(x * np.array([0.0, 2.0, 2.0])),
        lambda x: mg.sum(mg.where([False, True, True], 2 * x, 0)),
    ],
)
def test_R32_a_fixed_mask_is_fine(f) -> None:
    check = only(f, leaf([1, 2, 3]))
    assert check.verdict is Verdict.agrees and check.analytic.tolist() == [0, 2, 2]
    np.testing.assert_allclose(check.numeric, [0, 2, 2], atol=1e-9)


def test_R32_a_seed_makes_dropout_deterministic() -> None:
    check = only(lambda x: mg.sum(x.dropout(0.5, seed=3)), leaf(np.arange(1.0, 9.0)))
    assert check.verdict is Verdict.agrees and set(check.analytic.tolist()) == {0, 2}
    assert all(mg.record(mg.sum(leaf(np.ones(8)).dropout(0.5, seed=3))).checks)


# --- R64: relative error alone --------------------------------------------------------------------


@pytest.mark.parametrize(
    "analytic, numeric, tolerance, verdict",
    [
        (1e-12, 0.0, STRICT, Verdict.agrees),
        (0.0, 0.0, STRICT, Verdict.agrees),
        (0.0, 1e-12, STRICT, Verdict.agrees),
        (2.0, 2.002, Tolerance(1e-8, 1e-3), Verdict.agrees),
        (2.0, 2.0021, Tolerance(1e-8, 1e-3), Verdict.differs),
        (1e-3, 2e-3, STRICT, Verdict.differs),
        (-1e-3, 1e-3, STRICT, Verdict.differs),
        (1e12, 1e12 * (1 + 5e-7), STRICT, Verdict.agrees),
    ],
)
def test_R64_the_difference_is_allowed_absolutely_and_relatively(
    analytic: float, numeric: float, tolerance: Tolerance, verdict: Verdict
) -> None:
    assert judge(analytic, Slope(numeric, 0.0, numeric, numeric), tolerance) is verdict


@pytest.mark.parametrize("tiny", [1e-12, 0.0])
def test_R64_a_tiny_gradient_beside_a_zero_one_is_not_called_wrong(tiny: float) -> None:
    almost = mg.elementwise(tex="y", partials={"x": (lambda: tiny, "0")})(lambda x: x * 0)
    assert only(lambda x: mg.sum(almost(x)), leaf([1, -2])).verdict is Verdict.agrees


def test_R64_a_small_gradient_that_is_twice_too_small_is() -> None:
    half = mg.elementwise(tex="y", partials={"x": (lambda: 1e-3, "2e-3")})(lambda x: x * 2e-3)
    check = only(lambda x: mg.sum(half(x)), leaf([1, -2]))
    assert check.verdict is Verdict.differs and "ratio 0.5" in check.note
