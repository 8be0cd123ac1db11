"""What an adversary found in the engine and the check, each with the value that is right."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.numeric import Verdict


def leaf(values, dtype=None) -> mg.Tensor:
    return mg.tensor(np.asarray(values, dtype or float), requires_grad=True, name="x")


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "a", "b", "expected"),
    [
        ("f2", 300.0, 300.0, -1 / 300),
        ("f4", 1e-25, 1e-25, -1e25),
        ("f4", 1e30, 1e20, -1e-10),
        ("f8", 1e-200, 1e-200, -1e200),
        ("f8", 0.0, 1e-200, 0.0),
    ],
)
def test_a_quotient_neither_overflows_nor_underflows_on_the_way(dtype, a, b, expected) -> None:
    y = leaf([b], dtype)
    (mg.tensor(np.array([a], dtype)) / y).sum().backward()
    assert y.grad == pytest.approx(expected, rel=1e-3)


def test_a_number_that_is_zero_divides_like_a_tensor_that_is() -> None:
    x = leaf([1.0, 2.0])
    (x / 0).sum().backward()
    assert np.isposinf(x.grad).all()


def test_the_mean_of_many_float16_cells_has_a_gradient() -> None:
    x = leaf(np.ones(70_000), "f2")
    x.mean().backward()
    assert x.grad == pytest.approx(np.full(70_000, 1 / 70_000), rel=0.05)


def test_slopes_at_the_edge_of_a_domain_are_what_the_card_says() -> None:
    x = leaf([-1.0, -0.0, 0.0])
    assert np.isnan(mg.grad(mg.ln(x).sum(), [x])[0][0])
    assert np.isposinf(mg.grad(mg.ln(x).sum(), [x])[0][1:]).all()
    assert np.isposinf(mg.grad(mg.sqrt(x).sum(), [x])[0][1:]).all()


def test_a_rule_and_a_forward_that_reuse_their_buffers_do_no_harm() -> None:
    room, out = np.zeros(2), np.zeros(2)

    def rule(g, x):
        np.multiply(g, x, out=room)
        return room

    @mg.op(tex="y", pulls={"x": (rule, "x")})
    def half_square(x):
        np.multiply(x, x / 2, out=out)
        return out

    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    first, second = half_square(a), half_square(b)
    (first + second).sum().backward()
    assert first.data.tolist() == [0.5, 2.0] and second.data.tolist() == [4.5, 8.0]
    assert a.grad.tolist() == [1.0, 2.0] and b.grad.tolist() == [3.0, 4.0]
    assert all(mg.record((half_square(a) + half_square(b)).sum()).checks)


@pytest.mark.parametrize(
    "result",
    [None, [1.0, None], 1j, ["1", "2"], np.timedelta64(1), lambda: 1],
    ids=["none", "none in a list", "complex", "texts", "a time", "a function"],
)
def test_a_rule_that_returns_no_real_numbers_is_one_sentence(result) -> None:
    @mg.op(tex="y", pulls={"x": (lambda g, x: result, "?")})
    def odd(x):
        return x * 1.0

    x = leaf([1.0, 2.0])
    with pytest.raises(mg.RuleError, match="odd, input x: the rule"):
        odd(x).sum().backward() if result is not None else mg.grad(odd(x).sum(), [x])
    assert x.grad is None


def test_a_rule_that_only_fails_is_one_sentence() -> None:
    broken = mg.elementwise(tex="y", partials={"x": (lambda: 1 / 0, "?")})(lambda x: x * 1.0)
    with pytest.raises(mg.RuleError, match="division by zero"):
        broken(leaf([1.0])).sum().backward()


def test_an_object_as_a_rule_runs_in_numpy(monkeypatch) -> None:
    class Slope:
        def __call__(self, x):
            return 2 * x

    monkeypatch.setattr("minigrad.kernels.LARGE", 1)
    square = mg.elementwise(tex="y", partials={"x": (Slope(), "2x")})(lambda x: x * x)
    x = leaf([3.0])
    square(x).sum().backward()
    assert x.grad.tolist() == [6.0]


# --- the check ------------------------------------------------------------------------------------


def verdict_of(fn, values) -> Verdict:
    (verdict,) = mg.gradcheck(fn, [leaf(values)]).verdicts
    return verdict


def test_a_kink_beside_another_kink_is_still_one() -> None:
    assert verdict_of(lambda x: (mg.relu(x) - mg.relu(x - 1e-4)).sum(), [1e-4]) is Verdict.kink


@pytest.mark.parametrize("size", [1e-18, 1e-20])
def test_a_correct_op_at_a_tiny_scale_is_not_blamed(size) -> None:
    assert verdict_of(lambda x: (1 / x).sum(), [size]).fine
    assert verdict_of(lambda x: mg.tanh(x * (0.1 / size)).sum(), [size]).fine


def test_a_correct_op_that_computes_in_float32_is_not_blamed() -> None:
    @mg.elementwise(tex="y", partials={"x": (lambda y: 1 - y * y, "1 - y^2")})
    def coarse(x):
        return np.tanh(np.asarray(x, np.float32)).astype(float)

    for value in (0.3, 0.77, -1.2):
        assert verdict_of(lambda x: coarse(x).sum(), [value]) is not Verdict.differs


@pytest.mark.parametrize("slope", [1.0, 500.0])
def test_no_slope_is_right_where_the_function_jumps(slope) -> None:
    stairs = mg.elementwise(tex="y", partials={"x": (lambda x: slope + 0 * x, "?")})(
        lambda x: np.floor(x)
    )
    assert verdict_of(lambda x: stairs(x).sum(), [1.0]) is Verdict.undefined


def test_one_wrong_sign_among_many_elements_is_found() -> None:
    def rule(x):
        slope = 2 * x
        slope[17] = -slope[17]
        return slope

    wrong = mg.elementwise(tex="y", partials={"x": (rule, "2x")})(lambda x: x * x)
    values = np.random.default_rng(0).normal(size=5000) + 3
    values[0] = 1e5
    assert verdict_of(lambda x: wrong(x).sum(), values) is Verdict.differs
    assert verdict_of(lambda x: (x * x).sum(), values) is Verdict.agrees


def test_a_rule_that_answers_differently_in_the_walk_is_not_fine() -> None:
    calls = []

    def rule(x):
        calls.append(1)
        return 2 * x * (5 if len(calls) == 1 else 1)

    moody = mg.elementwise(tex="y", partials={"x": (rule, "2x")})(lambda x: x * x)
    trace = mg.record(moody(leaf([1.0, 2.0])).sum())
    assert "the walk gave something else" in " ".join(c.note for c in trace.checks)
    assert not all(trace.checks)


def test_a_forward_that_writes_into_its_operand_fails_the_check_too() -> None:
    @mg.elementwise(tex="y", partials={"x": (lambda: 2.0, "2")})
    def doubled(x):
        x *= 2
        return x

    with pytest.raises(mg.ShapeError, match="read-only"):
        mg.check_op(doubled)


def test_an_op_without_a_domain_is_checked_on_shapes_it_takes() -> None:
    @mg.op(tex="y", pulls={"a": (lambda g, b: g @ b.T, ""), "b": (lambda g, a: a.T @ g, "")})
    def product(a, b):
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError("matrices only")
        return a @ b

    @mg.op(tex="y", pulls={"x": (lambda g, k: g * k, "")})
    def scaled(x, *, k):
        return x * k

    assert mg.check_op(product)
    with pytest.raises(mg.CardError, match="a domain= must say what the parameter k"):
        mg.check_op(scaled)


# --- traces and arguments -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "u2", "u8", ">f8", "longdouble"])
def test_a_constant_of_any_dtype_survives_a_file(dtype, tmp_path: Path) -> None:
    trace = mg.record((leaf([1.0, 2.0]) * np.array([1, 0]).astype(dtype)).sum())
    trace.save(tmp_path / "run.json")
    assert mg.load_trace(tmp_path / "run.json").text() == trace.text()


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    trace = mg.record(leaf([1.0]).sum())
    for write in (trace.save, trace.to_html):
        with pytest.raises(mg.TraceError, match="cannot be written"):
            write(tmp_path / "nowhere" / "run")


@pytest.mark.parametrize("size", [1e160, 1e308, -1e308])
def test_huge_numbers_can_be_drawn(size, tmp_path: Path) -> None:
    x = leaf([size, 1.0])
    mg.record((x * x + x).sum(), checks=False).to_html(tmp_path / "run.html")
    scalar = mg.tensor(size, requires_grad=True)
    mg.record(scalar * scalar).to_html(tmp_path / "run.html")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mg.gradcheck(lambda x: x.sum(), x),
        lambda x: mg.gradcheck(lambda x: x.sum(), [np.ones(2)]),
        lambda x: mg.grad(x.sum(), x),
        lambda x: mg.grad(x.sum(), [1]),
        lambda x: mg.walk(1.0),
        lambda x: mg.record(1.0),
        lambda x: x.backward([[1.0], [1.0, 2.0]]),
    ],
)
def test_a_wrong_argument_is_one_sentence(call) -> None:
    with pytest.raises(mg.MinigradError):
        call(leaf([1.0, 2.0]))


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: mg.elementwise(tex="y", partials={"x": np.cos})(lambda x: x), "rule, formula"),
        (lambda: mg.elementwise(tex="y", partials={"x": (np.cos, "")})(lambda x: x), "lambda x"),
        (lambda: mg.elementwise(tex=None, partials={})(lambda x: x), "formula as text"),
        (lambda: mg.elementwise(tex="y", partials={})(lambda *x: x), "have none"),
        (lambda: mg.elementwise(tex="y", partials={}, domain=3)(lambda x: x), "no domain"),
        (lambda: mg.elementwise(tex="y", partials={}, domain={"z": None})(lambda x: x), "names z"),
    ],
)
def test_a_wrong_declaration_is_one_sentence(declare, sentence) -> None:
    with pytest.raises(mg.CardError, match=sentence):
        declare()


def test_a_fraction_is_a_number() -> None:
    from fractions import Fraction

    x = leaf([3.0])
    (x * Fraction(1, 4)).sum().backward()
    assert math.isclose(x.grad[0], 0.25)
