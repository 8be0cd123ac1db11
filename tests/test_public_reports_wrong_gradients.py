"""Public bug reports of wrong gradients, by number: values, kinks, dtypes, edited arrays.

Each report's own input and right value first, then a few of its kind.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from rows import leaf

import minigrad as mg
from minigrad.events import Pulled, Seeded, Visited

INF, NAN = math.inf, math.nan


def slopes(y: mg.Tensor, *leaves: mg.Tensor, seed: object = None) -> list:
    """The gradients of y for a seed (ones by default), as lists."""
    g = np.ones(y.shape, y.dtype) if seed is None else np.array(seed, float)
    return [found.tolist() for found in mg.grad(y, leaves, g)]


# --- powers and branches --------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 10_000])  # in NumPy, and compiled
def test_R02_the_gradient_by_an_exponent_is_not_nan_where_the_base_is_zero(copies: int) -> None:
    x, b = leaf([0, 3] * copies), leaf([2, 2] * copies)
    by_x, by_b = mg.grad(mg.sum(x**b), [x, b])
    assert by_x.tolist() == [0, 6] * copies
    np.testing.assert_allclose(by_b, [0, 9.887510598012987] * copies, rtol=1e-15)


@pytest.mark.parametrize("e, slope", [(0, 0), (1, 1), (2, 0), (0.5, INF), (-1, -INF), (3, 0)])
@pytest.mark.parametrize("kind", [lambda e: e, float, np.float64, lambda e: mg.tensor(float(e))])
def test_R02_the_slope_of_a_power_at_zero(kind, e: float, slope: float) -> None:
    x = leaf([0.0, -0.0])
    assert slopes(x ** kind(e), x)[0][0] == slope
    assert abs(slopes(x ** kind(e), x)[0][1]) == abs(slope)


def test_R06_where_selects_and_the_op_that_makes_nan_is_named() -> None:
    x = leaf([-4, 9], "x")
    loss = mg.sum(mg.where(x > 0, mg.sqrt(x), 0))
    trace = mg.record(loss)
    passed = {trace.nodes[e.node].op: e.contribution for e in trace.events if isinstance(e, Pulled)}
    assert passed["where"].tolist() == [0, 1]
    np.testing.assert_array_equal(passed["sqrt"], [NAN, 1 / 6])
    named = [s for s in trace.text().split("\n\n") if "a finite gradient becomes NaN" in s]
    assert len(named) == 1 and "sqrt pulls back into x" in named[0]
    assert slopes(mg.sqrt(mg.where(x > 0, x, 1)), x) == [[0, 1 / 6]]


@pytest.mark.parametrize("other", [NAN, INF, 0.0])
def test_R06_a_branch_gets_exactly_zero_of_whatever_comes_from_above(other: float) -> None:
    a, b = leaf([1, 2]), leaf([other, other])
    assert slopes(mg.where([True, False], a, b), a, b, seed=[5, INF]) == [[5, 0], [0, INF]]
    assert slopes(mg.where([True, False], a, b), a, b, seed=[NAN, 5])[1] == [0, 5]


@pytest.mark.parametrize(
    "bounds, expected",
    [
        ((0, 1), [0, 1, 1, 1, 0]),
        ((1, 1), [0, 0, 0, 0, 0]),
        ((None, 1), [1, 1, 1, 1, 0]),
        ((0, None), [0, 1, 1, 1, 1]),
        ((None, None), [1, 1, 1, 1, 1]),
        ((-INF, INF), [1, 1, 1, 1, 1]),
    ],
)
def test_R12_clamp_treats_both_bounds_alike(bounds: tuple, expected: list) -> None:
    x = leaf([-1, 0, 0.5, 1, 2])
    assert slopes(x.clamp(*bounds), x) == [expected]
    assert mg.gradcheck(lambda x: x.clamp(*bounds), [x])


def test_R12_min_above_max_is_refused() -> None:
    with pytest.raises(mg.ArgumentError, match="^clamp: min 1 is above max 0$"):
        leaf([0.5]).clamp(1, 0)


@pytest.mark.parametrize(
    "made, expected",
    [
        (lambda x: x.leaky_relu(0), [0, 0, 0, 1]),
        (lambda x: x.leaky_relu(0.1), [0.1, 0.1, 0.1, 1]),
        (lambda x: x.leaky_relu(-0.5), [-0.5, -0.5, -0.5, 1]),
        (lambda x: x.leaky_relu(1), [1, 1, 1, 1]),
        (mg.abs, [-1, 0, 0, 1]),
        (mg.relu, [0, 0, 0, 1]),
        (mg.sign, [0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("copies", [1, 5000])
def test_R50_a_piece_is_chosen_by_the_input_and_minus_zero_is_zero(made, expected, copies) -> None:
    x = leaf([-2, 0.0, -0.0, 2] * copies)
    assert slopes(made(x), x) == [expected * copies]


# --- ties -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, sign", [("max", 1), ("min", -1)])
def test_R27_tied_extremes_share_a_total_of_one(name: str, sign: int) -> None:
    x = leaf(sign * np.array([4, 1, 4, 4]))
    assert slopes(getattr(x, name)(), x) == [[1 / 3, 0, 1 / 3, 1 / 3]]
    rows = leaf(sign * np.array([[2, 2], [1, 3]]))
    y = getattr(rows, name)(dim=-1, keepdim=True)
    assert slopes(y, rows, seed=[[1], [10]]) == [[[0.5, 0.5], [0, 10]]]


def test_R27_many_ties_in_half_precision_do_not_underflow() -> None:
    x = leaf(np.ones(70_000), dtype="float16")
    x.max().backward()
    assert x.grad.dtype == np.float16
    np.testing.assert_allclose(x.grad.astype(float), 1 / 70_000, rtol=0.03)


@pytest.mark.parametrize("made", [lambda x: x.norm(np.inf), lambda x: mg.maximum(x, x).max()])
def test_R27_other_ties_total_one_too(made) -> None:
    assert sum(slopes(made(x := leaf([3, 3, 1])), x)[0]) == 1


# --- dtypes and numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [2.5, np.float64(2.5), np.float32(2.5)])
def test_R42_a_gradient_keeps_the_dtype_of_its_tensor(factor) -> None:
    x = leaf([1, 2], dtype="float32")
    mg.sum(x * factor / 3).backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_allclose(x.grad, [0.8333333, 0.8333333], rtol=1e-7)


def test_R42_each_operand_of_a_mixed_product_has_its_own() -> None:
    a, b = leaf([1, 2], dtype="float32"), leaf([3, 4])
    by_a, by_b = mg.grad(mg.sum(a * b), [a, b])
    assert (by_a.dtype, by_a.tolist()) == (np.float32, [3, 4])
    assert (by_b.dtype, by_b.tolist()) == (np.float64, [1, 2])


@pytest.mark.parametrize("n", [-2, np.int64(-2), np.int32(-2), mg.tensor(np.array(-2))])
def test_R42_integers_do_not_leak_into_a_derivative(n) -> None:
    m = leaf(3)
    assert slopes(m * 2.0**n, m) == [0.25]
    assert slopes(m * mg.tensor(np.array(2)) ** n, m) == [0.25]
    assert slopes(m * mg.tensor(np.array(1)) / 4, m) == [0.25]


def test_R42_an_integer_leaf_is_refused_and_a_cast_to_integers_ends_the_gradient() -> None:
    with pytest.raises(mg.DtypeError, match="cannot require a gradient"):
        mg.tensor(np.array([1, 2]), requires_grad=True)
    x = leaf([1.5, 2.5], dtype="float32")
    through = x.cast(int).cast(float)
    assert not through.requires_grad and through.data.tolist() == [1, 2]
    assert "the gradient ends there" in mg.registry["cast"].kinks[0].words
    assert slopes(mg.sum(through * x), x) == [[1, 2]]


@pytest.mark.parametrize(
    "made, expected",
    [
        (lambda t: np.array([3.0, 4.0]) * t, [3, 4]),
        (lambda t: np.float64(2) - t, [-1, -1]),
        (lambda t: np.array([[1.0, 0], [0, 1]]) @ t, [1, 1]),
        (lambda t: np.float32(2) ** t, [1.3862943611198906, 2.772588722239781]),
        (lambda t: np.array([3, 4]) / t, [-3, -1]),
        (lambda t: np.float64(1) + t, [1, 1]),
        (lambda t: np.array(2.0) * t, [2, 2]),
    ],
)
def test_R40_an_ndarray_or_numpy_number_on_the_left_makes_one_tensor(made, expected) -> None:
    t = leaf([1, 2])
    assert type(made(t)) is mg.Tensor and made(t).shape == (2,)
    np.testing.assert_allclose(slopes(made(t), t)[0], expected, rtol=1e-15)


@pytest.mark.parametrize("ufunc", [np.maximum, np.add, np.exp])
def test_R40_a_numpy_function_raises_and_makes_no_object_array(ufunc) -> None:
    with pytest.raises(TypeError):
        ufunc(*[leaf([1, 2])] * ufunc.nin)


# --- what is edited after the forward, and by whom ------------------------------------------------


def test_R10_editing_an_input_between_forward_and_backward_changes_nothing() -> None:
    source, weights = np.array([1.0, 2]), np.array([3.0, 4])
    x = mg.tensor(source, requires_grad=True, name="x")
    loss = mg.sum(x * x + x * weights)
    source[:], weights[:] = 10, 10
    with pytest.raises(ValueError, match="read-only"):
        x.data[:] = 10
    loss.backward()
    assert x.grad.tolist() == [5, 8]


def test_R10_a_trace_keeps_showing_the_values_of_the_forward() -> None:
    x = leaf([1, 2], "x")
    loss = mg.sum(x * x)
    trace = mg.record(loss)
    before = trace.text()
    x.assign_([10, 10])
    assert trace.text() == before
    with pytest.raises(mg.GraphError, match="edited by assign_ after the forward pass"):
        loss.backward()


def test_R10_an_index_or_a_mask_is_copied_too() -> None:
    x, index, mask = leaf([1, 2]), np.array([0, 0]), np.array([True, False])
    loss = mg.sum(x.index_select(0, index) + x[index] + mg.where(mask, x, 0))
    index[:], mask[:] = 1, True
    assert slopes(loss, x) == [[5, 0]]


def beside_another_use(rule) -> tuple[mg.Tensor, mg.Tensor]:
    """A loss that uses t once through an identity with this rule, and once through 5t; and x."""
    identity = mg.elementwise(tex="y = x", partials={"x": (rule, "g")})(lambda x: x.copy())
    x = leaf([1, 1])
    t = x * 2
    return mg.sum(identity(t)) + mg.sum(5 * t), x


def test_R36_a_rule_that_edits_its_upstream_gradient_is_refused_and_corrupts_nobody() -> None:
    def spoil(g):
        g += 1
        return g

    (loss, x), told = beside_another_use(spoil), []
    with pytest.raises(mg.RuleError, match="input x: .* writes into an array it was only lent"):
        for event in mg.walk(loss):
            told.append(event)
    assert [e.gradient.tolist() for e in told if isinstance(e, Seeded)] == [1]
    assert [e.upstream.tolist() for e in told if isinstance(e, Visited)][-1] == [1, 1]
    assert x.grad is None


def test_R36_a_rule_may_edit_a_copy_or_reuse_its_own_array() -> None:
    room = np.zeros(2)

    def in_place(g):
        return np.add(g, 1, out=room)

    loss, x = beside_another_use(in_place)
    assert slopes(loss, x) == [[14, 14]]


def test_R46_rms_norm_applies_weight_and_eps_once_row_by_row() -> None:
    x, w = leaf([1, 2, 2]), leaf([2, 1, 3])
    by_x, by_w = mg.grad(x.rms_norm(w, eps=0.0), [x, w], [1, 0, 0])
    np.testing.assert_allclose(by_x, [1.0264005, -0.2566001, -0.2566001], atol=5e-8)
    np.testing.assert_allclose(by_w, [0.5773502691896258, 0, 0], rtol=1e-15)
    assert x.rms_norm(w, eps=1.0).data.tolist() == [1, 1, 3]
    by_x, by_w = mg.grad(x.rms_norm(w, eps=1.0), [x, w], [1, 0, 0])
    np.testing.assert_allclose(by_x, [0.9166666666666667, -1 / 6, -1 / 6], rtol=1e-14)
    assert by_w.tolist() == [0.5, 0, 0]
    rows = np.random.default_rng(0).normal(size=(2, 2, 3))
    many, g = leaf(rows), np.arange(12.0).reshape(2, 2, 3)
    by_many, by_weight = mg.grad(many.rms_norm(w), [many, w], g)
    single = [
        mg.grad((row := leaf(rows[i, j])).rms_norm(w), [row, w], g[i, j])
        for i, j in np.ndindex(2, 2)
    ]
    np.testing.assert_allclose(by_many.reshape(4, 3), [s[0] for s in single], rtol=1e-13)
    np.testing.assert_allclose(by_weight, np.sum([s[1] for s in single], axis=0), rtol=1e-13)
