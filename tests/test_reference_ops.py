"""The reference table of ops, first half: elementwise ops, one case per thing to beware of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rows import case, holds, leaf

import minigrad as mg
from minigrad.events import Reduced, Stopped

INF, NAN = math.inf, math.nan
LN2, LN3, ATANH_HALF = 0.6931471805599453, 1.0986122886681098, 0.5493061443340548

BROADCAST = "add, sub, mul, div (tensor-tensor, broadcast)"
EXTREMES = "maximum, minimum (tensor-tensor)"
NUMBERS = "add/sub/mul/div/maximum/minimum with a Python scalar on the right, and on the left"
SMOOTH = "exp ln sin cos tanh sqr sqrt recip sigmoid erf"
RELU = "relu, leaky_relu(slope)"
GELU = "silu, gelu (tanh form), gelu_erf"
STEPS = "floor, ceil, round, sign"
POWERS = (
    "neg, abs, pow(scalar e), pow(tensor), affine(mul, add), clamp(min, max; either may be absent)"
)
WHERE = "where(mask, a, b) (either branch may be a scalar)"

COLUMN, ROW, BLOCK = [[1], [2]], [1, 2, 4], [[[1, 2, 4]], [[1, 2, 4]]]

CASES = [
    # --- two operands -----------------------------------------------------------------------------
    case(
        BROADCAST, "add, leading axis", lambda a, b: a + b, (COLUMN, ROW), ([[3], [3]], [2, 2, 2])
    ),
    case(
        BROADCAST,
        "sub, leading axis",
        lambda a, b: a - b,
        (COLUMN, ROW),
        ([[3], [3]], [-2, -2, -2]),
    ),
    case(
        BROADCAST, "mul, leading axis", lambda a, b: a * b, (COLUMN, ROW), ([[7], [7]], [3, 3, 3])
    ),
    case(
        BROADCAST,
        "div, leading axis",
        lambda a, b: a / b,
        (COLUMN, ROW),
        ([[1.75], [1.75]], [-3, -0.75, -0.1875]),
    ),
    case(
        BROADCAST,
        "axes in front and of size 1 at once",
        lambda a, b: a * b,
        ([[1], [10]], BLOCK),
        ([[14], [14]], [[[11, 11, 11]], [[11, 11, 11]]]),
    ),
    case(
        EXTREMES,
        "a tie of maximum is halved, total 1",
        mg.maximum,
        ([1, 2, 3], [2, 2, 2]),
        ([0, 0.5, 1], [1, 0.5, 0]),
    ),
    case(
        EXTREMES,
        "a tie of minimum is halved, total 1",
        mg.minimum,
        ([1, 2, 3], [2, 2, 2]),
        ([1, 0.5, 0], [0, 0.5, 1]),
    ),
    case(
        EXTREMES,
        "ties with a broadcast operand",
        mg.maximum,
        ([[1, 2], [2, 3]], [2]),
        ([[0, 5], [50, 1000]], [56]),
        [[1, 10], [100, 1000]],
    ),
    case(
        EXTREMES,
        "the loser gets exactly 0 of infinity",
        mg.maximum,
        ([1, 3], [2, 2]),
        ([0, INF], [INF, 0]),
        [INF, INF],
        smooth=False,
    ),
    # --- a number on either side ------------------------------------------------------------------
    case(NUMBERS, "x + c", lambda x: x + 3, ([1, 2, 4],), ([1, 1, 1],)),
    case(NUMBERS, "c + x", lambda x: 3 + x, ([1, 2, 4],), ([1, 1, 1],)),
    case(NUMBERS, "x - c", lambda x: x - 3, ([1, 2, 4],), ([1, 1, 1],)),
    case(NUMBERS, "c - x has its own sign", lambda x: 3 - x, ([1, 2, 4],), ([-1, -1, -1],)),
    case(NUMBERS, "x * c", lambda x: x * 3, ([1, 2, 4],), ([3, 3, 3],)),
    case(NUMBERS, "c * x", lambda x: 3 * x, ([1, 2, 4],), ([3, 3, 3],)),
    case(NUMBERS, "x / c", lambda x: x / 4, ([1, 2, 4],), ([0.25, 0.25, 0.25],)),
    case(NUMBERS, "c / x is -c/x²", lambda x: 4 / x, ([1, 2, 4],), ([-4, -1, -0.25],)),
    case(
        NUMBERS, "maximum(x, c) ties half", lambda x: mg.maximum(x, 2), ([1, 2, 4],), ([0, 0.5, 1],)
    ),
    case(
        NUMBERS, "maximum(c, x) ties half", lambda x: mg.maximum(2, x), ([1, 2, 4],), ([0, 0.5, 1],)
    ),
    case(
        NUMBERS, "minimum(x, c) ties half", lambda x: mg.minimum(x, 2), ([1, 2, 4],), ([1, 0.5, 0],)
    ),
    case(
        NUMBERS, "minimum(c, x) ties half", lambda x: mg.minimum(2, x), ([1, 2, 4],), ([1, 0.5, 0],)
    ),
    # --- one operand ------------------------------------------------------------------------------
    case(SMOOTH, "exp", mg.exp, ([0, LN2],), ([1, 2],)),
    case(SMOOTH, "ln", mg.ln, ([1, 4],), ([1, 0.25],)),
    case(SMOOTH, "sin", mg.sin, ([0, math.pi],), ([1, -1],)),
    case(SMOOTH, "cos", mg.cos, ([math.pi / 2, -math.pi / 2],), ([-1, 1],)),
    case(SMOOTH, "tanh", mg.tanh, ([0, ATANH_HALF],), ([1, 0.75],)),
    case(SMOOTH, "sqr", mg.sqr, ([-3, 0, 2],), ([-6, 0, 4],)),
    case(SMOOTH, "sqrt", mg.sqrt, ([1, 4],), ([0.5, 0.25],)),
    case(SMOOTH, "recip", mg.recip, ([1, -2],), ([-1, -0.25],)),
    case(SMOOTH, "sigmoid", mg.sigmoid, ([0, LN3],), ([0.25, 0.1875],)),
    case(
        SMOOTH,
        "erf, exact constants",
        mg.erf,
        ([0, 1, -1],),
        ([1.1283791670955126, 0.4151074974205947, 0.4151074974205947],),
    ),
    case(SMOOTH, "sigmoid at ±800", mg.sigmoid, ([-800, 800],), ([0, 0],)),
    case(RELU, "relu'(0) is 0", mg.relu, ([-2, -0.0, 0, 3],), ([0, 0, 0, 1],)),
    case(
        RELU,
        "leaky_relu'(0) is the slope",
        lambda x: x.leaky_relu(0.125),
        ([-2, 0, 3],),
        ([0.125, 0.125, 1],),
    ),
    case(
        RELU,
        "slope 0 gives 0, not NaN",
        lambda x: x.leaky_relu(0),
        ([-INF, -2, 0, 3],),
        ([0, 0, 0, 1],),
        [INF, NAN, INF, 1],
        smooth=False,
    ),
    case(
        GELU,
        "silu, 16 digits",
        mg.silu,
        ([-1, 0.5, 2],),
        ([0.0723294881285132682, 0.7399611873026518092, 1.0907842487848954788],),
    ),
    case(
        GELU,
        "gelu, 16 digits",
        mg.gelu,
        ([-1, 0.5, 2],),
        ([-0.0829640838457825551, 0.8673699035346423116, 1.0860992566236183816],),
    ),
    case(
        GELU,
        "gelu_erf, 16 digits",
        mg.gelu_erf,
        ([-1, 0.5, 2],),
        ([-0.0833154705876862984, 0.8674951246561628425, 1.0852318010781968967],),
    ),
    *(
        case(GELU, f"{f.__name__} at ±1e13", f, ([-1e13, 1e13],), ([0, 1],), smooth=False)
        for f in (mg.silu, mg.gelu, mg.gelu_erf)
    ),
    *(
        case(STEPS, f"{f.__name__} is flat", f, ([-1.3, 0.4, 2.2],), ([0, 0, 0],))
        for f in (mg.floor, mg.ceil, mg.round, mg.sign)
    ),
    # --- powers, bounds ---------------------------------------------------------------------------
    case(POWERS, "neg", lambda x: -x, ([1, -2],), ([-1, -1],)),
    case(POWERS, "abs'(0) is 0", abs, ([-2, -0.0, 0, 3],), ([-1, 0, 0, 1],)),
    case(POWERS, "pow(scalar e)", lambda x: x**3, ([-2, 0, 3],), ([12, 0, 27],)),
    case(POWERS, "x^0 has slope 0 at x=0", lambda x: x**0, ([0, 2],), ([0, 0],)),
    case(
        POWERS,
        "pow(tensor)",
        lambda x, e: x**e,
        ([2, 3], [3, 2]),
        ([12, 6], [8 * LN2, 9 * LN3]),
    ),
    case(
        POWERS,
        "0·ln 0 is 0 here",
        lambda x, e: x**e,
        ([0, 0], [0, 2]),
        ([0, 0], [0, 0]),
        smooth=False,
    ),
    case(POWERS, "affine(mul, add)", lambda x: x.affine(-2, 5), ([1, 2],), ([-2, -2],)),
    case(
        POWERS,
        "clamp passes g AT a bound",
        lambda x: x.clamp(0, 1),
        ([-1, 0, 0.5, 1, 2],),
        ([0, 1, 1, 1, 0],),
    ),
    case(POWERS, "clamp without min", lambda x: x.clamp(max=1), ([-9, 1, 2],), ([1, 1, 0],)),
    case(POWERS, "clamp without max", lambda x: x.clamp(min=0), ([-9, 0, 2],), ([0, 1, 1],)),
    case(POWERS, "min==max is a constant", lambda x: x.clamp(1, 1), ([0, 1, 2],), ([0, 0, 0],)),
    # --- where ------------------------------------------------------------------------------------
    case(
        WHERE,
        "selects g, never multiplies by the mask",
        lambda a, b: mg.where(np.array([True, False]), a, b),
        ([1, NAN], [NAN, 2]),
        ([INF, 0], [0, INF]),
        [INF, INF],
        smooth=False,
    ),
    case(
        WHERE,
        "a scalar branch",
        lambda a: mg.where(np.array([True, False]), a, 7) + mg.where([False, True], 7.0, a),
        ([1, 2],),
        ([2, 0],),
    ),
    case(
        WHERE,
        "a mask that broadcasts",
        lambda a, b: mg.where(np.array([[True], [False]]), a, b),
        ([1, 2], 3),
        ([1, 10], 1100),
        [[1, 10], [100, 1000]],
    ),
]


@pytest.mark.parametrize("made, at, expected, seed, smooth", CASES)
def test_row(made, at, expected, seed, smooth) -> None:
    holds(made, at, expected, seed, smooth)


def test_a_row_that_does_not_hold_is_noticed() -> None:
    wrong = mg.elementwise(tex="y = x^2", partials={"x": (lambda x: 3 * x, "2x")})(lambda x: x * x)
    with pytest.raises(AssertionError, match="Not equal"):
        holds(mg.sqr, ([3.0],), ([6.000001],), None, False)
    with pytest.raises(AssertionError, match="elements differ"):
        holds(wrong, ([3.0],), ([9.0],), None, True)


@pytest.mark.parametrize("add", [lambda a, b: a + b, lambda a, b: b - a], ids=[BROADCAST] * 2)
def test_all_axes_are_reduced_in_one_reduction(add) -> None:
    a, b = leaf([[1], [2]], "a"), leaf(np.ones((4, 2, 3)), "b")
    [reduced] = [e for e in mg.walk(add(a, b), np.ones((4, 2, 3))) if isinstance(e, Reduced)]
    assert (reduced.axes, reduced.from_shape, reduced.to_shape) == ((0, 2), (4, 2, 3), (2, 1))


@pytest.mark.parametrize("f", [lambda x: x - 2, lambda x: 2 / x, lambda x: mg.maximum(2, x)])
def test_a_scalar_has_no_gradient_and_no_node(f) -> None:
    trace = mg.record(f(leaf([1.0, 3.0])).sum())
    assert [n.kind for n in trace.nodes] == ["leaf", "op", "op"], NUMBERS


def test_sigmoid_and_its_relatives_do_not_overflow() -> None:
    x = leaf([-800, 800])
    assert mg.sigmoid(x).data.tolist() == [0, 1], SMOOTH
    for f in (mg.silu, mg.gelu, mg.gelu_erf):
        assert f(leaf([-1e13, -INF, 1e13, INF])).data.tolist() == [0, 0, 1e13, INF], GELU
    assert x.leaky_relu(0).data.tolist() == leaf([-INF, 800]).leaky_relu(0).data.tolist(), RELU


@pytest.mark.parametrize("f", [mg.floor, mg.ceil, mg.round, mg.sign], ids=lambda f: f.__name__)
def test_a_step_says_that_the_gradient_stops_here(f) -> None:
    x = leaf([-1.3, 1.0, 2.5], "x")
    loss = f(x).sum()
    loss.backward()
    assert x.grad.tolist() == [0, 0, 0], STEPS
    assert [e.reason for e in mg.walk(loss) if isinstance(e, Stopped)] == ["zero slope"]
    assert "The gradient stops here: the slope of" in mg.record(loss).text()


def test_min_above_max_is_an_error() -> None:
    with pytest.raises(mg.ArgumentError, match=r"^clamp: min 2 is above max 1$"):
        leaf([1.0]).clamp(2, 1)
