"""The numeric check gives the right verdict: it forgives what is right, and finds what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.numeric import STRICT, TOLERANCES, Slope, Tolerance, Verdict, judge


def leaf(values: object, dtype: str | None = None, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name, dtype=dtype)


def scaled(op, factor: float):
    """A unary op of ours whose rule is off by a factor."""
    [(name, rule)] = op.card.rules.items()

    @mg.elementwise(tex="", partials={"x": (lambda x: factor * slope(op, x), "")})
    def off(x):
        return op.card.forward(x)

    def slope(op, x):
        y = op.card.forward(x)
        return rule.fn(*[{"x": x, "y": y}[n] for n in rule.reads])

    return off


sin = mg.elementwise(tex=r"y = \sin x", partials={"x": (lambda x: np.cos(x), r"\cos x")})(
    lambda x: np.sin(x)
)
wrong_sin = mg.elementwise(tex="", partials={"x": (lambda x: 1.001 * np.cos(x), "")})(
    lambda x: np.sin(x)
)


# --- what must pass, each with its twin -----------------------------------------------------------

T = np.arange(10.0)
HARD = {
    "wide range": (lambda f, x: mg.sum(f(x)), mg.exp, [20.0, -5.0]),
    "fast": (lambda f, x: mg.sum(f(50 * x)), sin, [0.3, -1.7, 12.0]),
    "cancelling": (lambda f, x: mg.sum(f(x - 1000 * T)), mg.sqr, T + 0.5),
    "huge": (lambda f, x: mg.sum(f(x)), mg.sqr, [1e10, -1e10]),
    "close to a pole": (lambda f, x: mg.sum(f(x)), mg.ln, [1e-7, 3e-7]),
}


@pytest.mark.parametrize("build, op, at", HARD.values(), ids=HARD)
def test_a_right_gradient_agrees_even_where_differences_are_hard(build, op, at) -> None:
    report = mg.gradcheck(lambda x: build(op, x), [leaf(at)])
    assert report.verdicts == (Verdict.agrees,), report.table()
    assert all(mg.record(build(op, leaf(at))).checks)


@pytest.mark.parametrize("build, op, at", HARD.values(), ids=HARD)
def test_a_gradient_off_by_a_thousandth_differs_there_too(build, op, at) -> None:
    wrong = wrong_sin if op is sin else scaled(op, 1.001)
    report = mg.gradcheck(lambda x: build(wrong, x), [leaf(at)])
    assert report.verdicts == (Verdict.differs,), report.table()
    blamed = [(c.level, c.op) for c in mg.record(build(wrong, leaf(at))).checks if not c]
    assert blamed == [("op", wrong.card.name), ("graph", "loss")]


@pytest.mark.parametrize("x", [1e-5, -1e-5, 1e-9, 0.0])
def test_relu_closer_to_zero_than_the_step_is_a_kink(x: float) -> None:
    report = mg.gradcheck(lambda t: mg.sum(t.relu() * 3), [leaf([x, 1.0])])
    assert report and report.verdicts == (Verdict.kink,)
    assert report.checks[0].cells == (Verdict.kink, Verdict.agrees)


# --- the five verdicts ----------------------------------------------------------------------------


def only(fn, at: object, dtype: str | None = None):
    """The one check of a function of one tensor."""
    [check] = mg.gradcheck(fn, [leaf(at, dtype)]).checks
    return check


def test_agrees_says_nothing_more() -> None:
    check = only(lambda x: mg.sum(x * x), [1.0, 2.0])
    assert (check.verdict, check.note, bool(check)) == (Verdict.agrees, "", True)
    np.testing.assert_allclose(check.numeric, [2, 4], atol=1e-9)
    assert check.difference.max() == check.max_difference <= 1e-9


def test_differs_names_the_worst_element_both_numbers_and_their_ratio() -> None:
    check = only(lambda x: mg.sum(scaled(mg.sqr, 1.5)(x)), [[1.0, 2.0], [5.0, 4.0]])
    assert check.verdict is Verdict.differs and check.index == (1, 0)
    assert check.note == (
        "4 of 4 elements differ, worst at x[1, 0]: analytic 15, numeric 10, ratio 1.5"
    )


def test_a_value_outside_the_two_slopes_of_a_kink_differs() -> None:
    steep = mg.elementwise(tex="", partials={"x": (lambda x: 1.2, "")})(lambda x: np.maximum(x, 0))
    between = mg.elementwise(tex="", partials={"x": (lambda x: 0.5, "")})(
        lambda x: np.maximum(x, 0)
    )
    assert only(lambda x: mg.sum(steep(x)), [0.0]).verdict is Verdict.differs
    assert only(lambda x: mg.sum(between(x)), [0.0]).verdict is Verdict.kink


def test_noise_larger_than_the_slope_is_undecided() -> None:
    check = only(lambda x: mg.sum(x + 1e20), [0.7, 1.3])
    assert check.verdict is Verdict.undecided and not check
    assert only(lambda x: mg.sum(x + 1e3), [0.7, 1.3]).verdict is Verdict.agrees


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e14])
def test_a_right_gradient_is_not_blamed_for_rounding_inside_the_function(size: float) -> None:
    check = only(lambda x: mg.sum((x / 3 + size) - size), [0.7, 1.3])
    assert check.verdict in (Verdict.agrees, Verdict.undecided), check.note


@pytest.mark.parametrize("at", [np.nan, -2.0])
def test_nan_is_undefined(at: float) -> None:
    check = only(lambda x: mg.sum(x.sqrt()), [at])
    assert check.verdict is Verdict.undefined and not check


def test_infinite_on_both_sides_is_undefined() -> None:
    assert only(lambda x: mg.sum(x.exp()), [800.0]).verdict is Verdict.undefined


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_rule_that_makes_nan_or_infinity_of_a_finite_slope_differs(wrong: float) -> None:
    bad = mg.elementwise(tex="", partials={"x": (lambda x: wrong * x, "")})(lambda x: 2 * x)
    assert only(lambda x: mg.sum(bad(x)), [1.0]).verdict is Verdict.differs


def test_only_agrees_and_kink_make_a_report_true() -> None:
    assert [v for v in Verdict if v.fine] == [Verdict.agrees, Verdict.kink]
    assert [v.symbol for v in Verdict] == ["✓", "∧", "?", "?", "✗"]


@pytest.mark.parametrize(
    "analytic, numeric, tolerance, expected",
    [
        (1e-12, 0.0, STRICT, Verdict.agrees),
        (0.0, 0.0, STRICT, Verdict.agrees),
        (2.0, 2.002, Tolerance(0, 1e-3), Verdict.agrees),
        (2.0, 2.003, Tolerance(0, 1e-3), Verdict.differs),
        (1e-3, 2e-3, STRICT, Verdict.differs),
        (1.0, 1.0 + 0.9e-6, STRICT, Verdict.agrees),
        (1.0, 1.0 + 1.2e-6, STRICT, Verdict.differs),
        (2e-8, 0.0, STRICT, Verdict.differs),
        (1.0, np.nan, STRICT, Verdict.undefined),
    ],
)
def test_tolerances_are_absolute_plus_relative(analytic, numeric, tolerance, expected) -> None:
    assert judge(analytic, Slope(numeric, 0.0, numeric, numeric), tolerance) is expected


def test_the_error_estimate_is_allowed_for_until_it_decides_nothing() -> None:
    assert judge(1.05, Slope(1.0, 0.06, 1, 1), STRICT) is Verdict.agrees
    assert judge(1.05, Slope(1.0, 0.04, 1, 1), STRICT) is Verdict.differs
    assert judge(1.05, Slope(1.0, 0.2, 1, 1), STRICT) is Verdict.undecided


def test_the_tolerances_of_each_dtype() -> None:
    facts = {name: (t.rtol, t.atol) for name, t in TOLERANCES.items()}
    assert facts == {"float64": (1e-6, 1e-8), "float32": (1e-4, 1e-5), "float16": (1e-2, 1e-3)}


# --- low precision --------------------------------------------------------------------------------


@pytest.mark.parametrize("x, slope", [(1.5, 3.0), (1000.25, 2000.5)])
def test_a_float32_function_is_checked_in_float64(x: float, slope: float) -> None:
    check = only(lambda t: mg.sum(t * t), [x], "float32")
    assert check.verdict is Verdict.agrees and check.analytic.dtype == np.float32
    assert check.numeric.item() == pytest.approx(slope, rel=1e-9)


def test_lost_precision_is_not_called_wrong() -> None:
    def cancelling(x: mg.Tensor) -> mg.Tensor:
        return mg.sum(((x + 4096) - 4096) ** 2)

    check = only(cancelling, [0.3712], "float16")
    assert check and check.note.startswith("precision lost")
    assert only(cancelling, [0.3712], "float64").note == ""


def test_a_wrong_rule_in_low_precision_is_called_wrong() -> None:
    check = only(lambda x: mg.sum(scaled(mg.sqr, 1.01)(x)), [0.3712], "float16")
    assert check.verdict is Verdict.differs and "precision lost" not in check.note


# --- a right gradient of a wrong rule -------------------------------------------------------------


def softmax_pull(g: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y * (g - np.sum(g * y))


@pytest.mark.parametrize(
    "pull, fine",
    [
        (softmax_pull, True),
        (lambda g, y: 3 * softmax_pull(g, y), False),
        (lambda g, y: -softmax_pull(g, y), False),
        (lambda g, y: softmax_pull(g, y)[::-1].copy(), False),
    ],
)
def test_a_wrong_softmax_is_caught_though_the_gradient_of_its_sum_is_right(pull, fine: bool):
    @mg.op(tex=r"y_i = e^{x_i} / \sum_j e^{x_j}", pulls={"x": (pull, "")})
    def softmax(x):
        return np.exp(x) / np.exp(x).sum()

    x = leaf([0.0, np.log(2), np.log(3)])
    trace = mg.record(mg.sum(softmax(x)))
    np.testing.assert_allclose(mg.grad(mg.sum(softmax(x)), [x])[0], 0, atol=1e-15)
    checks = {c.op: c for c in trace.checks}
    assert bool(checks["softmax"]) is fine and checks["sum"] and checks["loss"]
    assert ("with a random one" in checks["softmax"].note) is not fine
    assert bool(mg.gradcheck(softmax, [x])) is fine
    if fine:
        found = mg.grad(mg.sum(softmax(x) * np.array([1.0, 2.0, 3.0])), [x])[0]
        np.testing.assert_allclose(found, [-2 / 9, -1 / 9, 1 / 3])


CORNERED = {
    "relu": lambda x: mg.relu(x + 1.0),
    "abs": lambda x: mg.abs(x + 1.0),
    "leaky_relu": lambda x: mg.leaky_relu(x + 1.0, 0.3),
    "clamp": lambda x: mg.clamp(x, -1.0, 1.0),
}


@pytest.mark.parametrize("name", CORNERED)
@pytest.mark.parametrize("side", [-1, 1])
def test_a_right_op_is_not_blamed_however_near_its_corner(name: str, side: int) -> None:
    for distance in 10.0 ** np.linspace(-9, -1, 25):
        x = mg.tensor([-1 + side * distance], requires_grad=True)
        verdicts = {str(c.verdict) for c in mg.record(CORNERED[name](x), np.ones(1)).checks}
        assert verdicts <= {"agrees", "kink"}, distance


@pytest.mark.parametrize("distance", [1e-2, 3e-4, 1e-5])
def test_a_wrong_op_is_blamed_however_near_its_corner(distance: float) -> None:
    @mg.elementwise(tex="", partials={"x": (lambda x: np.where(x > 0, 1.0, 0.1), "")})
    def almost_relu(x):
        return np.maximum(x, 0)

    x = mg.tensor([-distance, 1.0], requires_grad=True)
    check = mg.record(almost_relu(x), np.ones(2)).checks[0]
    assert check.verdict == "differs"
