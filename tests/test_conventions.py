"""Conventions: what a gradient is at kinks and edges, and beside numbers, ndarrays and dtypes."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import minigrad as mg

INF, NAN = np.inf, np.nan


def leaf(values: object, dtype: str | None = None) -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name="x", dtype=dtype)


def slopes(y: mg.Tensor, *leaves: mg.Tensor, seed: object = None) -> list:
    """The gradients of y for a seed (ones by default), as lists."""
    seed = np.ones(y.shape, y.dtype) if seed is None else seed
    return [g.tolist() for g in mg.grad(y, leaves, seed)]


# --- kinks and edges ------------------------------------------------------------------------------


def test_the_slope_of_relu_at_zero_is_zero_for_either_sign_of_zero() -> None:
    x = leaf([-2.0, -0.0, 0.0, 2.0])
    assert slopes(x.relu(), x) == [[0, 0, 0, 1]]


def test_a_dead_cell_of_relu_passes_exactly_zero_even_of_infinity_and_nan() -> None:
    x = leaf([-1.0, 0.0, 1.0])
    assert slopes(x.relu(), x, seed=[INF, NAN, INF]) == [[0, 0, INF]]


@pytest.mark.parametrize(
    "x, dim, seed, expected",
    [
        ([4, 1, 4, 4], None, 1, [1 / 3, 0, 1 / 3, 1 / 3]),
        ([[2, 2], [1, 3]], -1, [1, 10], [[0.5, 0.5], [0, 10]]),
        ([[2, 5], [2, 3]], 0, [4, 1], [[2, 1], [2, 0]]),
    ],
)
def test_tied_maxima_share_the_gradient_evenly(x: list, dim: int, seed: list, expected: list):
    x = leaf(x)
    assert slopes(x.max(dim=dim), x, seed=seed) == [expected]


def test_at_zero_sqrt_and_ln_have_the_slope_that_the_maths_gives() -> None:
    x = leaf([0.0, 4.0])
    assert slopes(x.sqrt(), x) == [[INF, 0.25]]
    assert slopes(x.ln(), x) == [[INF, 0.25]]
    assert x.ln().data[0] == -INF


@pytest.mark.parametrize("e, slope", [(0, 0), (1, 1), (2, 0), (0.5, INF), (-1, -INF)])
def test_the_slope_of_a_power_at_zero_by_its_base(e: float, slope: float) -> None:
    x = leaf([0.0])
    assert slopes(x**e, x) == [[slope]]
    assert slopes(x ** mg.tensor([float(e)]), x) == [[slope]]


def test_the_slopes_of_a_power_by_base_and_exponent() -> None:
    x, b = leaf([0.0, 3.0]), leaf([2.0, 2.0])
    by_x, by_b = slopes(x**b, x, b)
    assert by_x == [0, 6]
    assert by_b == pytest.approx([0, 9 * np.log(3)], abs=1e-12)


def test_the_slope_by_the_exponent_is_zero_at_base_zero_and_nan_below() -> None:
    x, b = leaf([0.0, 0.0, -2.0]), leaf([0.0, 2.0, 2.0])
    np.testing.assert_array_equal(slopes(x**b, b)[0], [0, 0, NAN])


def test_sigmoid_is_saturated_far_out_without_overflow() -> None:
    x = leaf([-800.0, -40.0, 0.0, 40.0, 800.0])
    y = x.sigmoid()
    np.testing.assert_allclose(y.data, [0, np.exp(-40), 0.5, 1, 1], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(slopes(y, x)[0], [0, np.exp(-40), 0.25, 0, 0], rtol=1e-12, atol=0)


def test_a_max_over_nothing_is_an_error_and_a_mean_over_nothing_is_nan() -> None:
    with pytest.raises(mg.DomainError, match=r"max: x \(0,\) has no cells"):
        leaf([]).max()
    empty = leaf([])
    assert np.isnan(empty.mean().item())
    assert slopes(empty.mean(), empty) == [[]]


# --- numbers and ndarrays on either side ----------------------------------------------------------


@pytest.mark.parametrize(
    "made, expected",
    [
        (lambda t: np.array([3.0, 4.0]) * t, [3, 4]),
        (lambda t: t * np.array([3.0, 4.0]), [3, 4]),
        (lambda t: np.float64(2) - t, [-1, -1]),
        (lambda t: 2 - t, [-1, -1]),
        (lambda t: 2 / t, [-2, -0.5]),
        (lambda t: np.array([[1.0, 0], [0, 1]]) @ t, [1, 1]),
        (lambda t: np.float32(2) ** t, [2 * np.log(2), 4 * np.log(2)]),
        (lambda t: t**2, [2, 4]),
        (lambda t: True * t, [1, 1]),
        (lambda t: mg.add(1, t), [1, 1]),
    ],
)
def test_a_number_or_ndarray_on_either_side_makes_one_tensor(made, expected: list) -> None:
    t = leaf([1.0, 2.0])
    y = made(t)
    assert isinstance(y, mg.Tensor) and y.shape == (2,)
    np.testing.assert_allclose(slopes(y, t)[0], expected, rtol=1e-12)


def test_a_plain_number_is_no_node_and_an_ndarray_is_a_constant() -> None:
    t = leaf([1.0, 2.0])
    assert [n.kind for n in mg.record(mg.sum(2 * t)).nodes] == ["leaf", "op", "op"]
    kinds = [n.kind for n in mg.record(mg.sum(np.ones(2) * t)).nodes]
    assert kinds == ["leaf", "constant", "op", "op"]


def test_a_numpy_function_refuses_a_tensor_rather_than_making_an_object_array() -> None:
    with pytest.raises(TypeError):
        np.maximum(np.ones(2), leaf([1.0, 2.0]))


@pytest.mark.parametrize("operate", [operator.add, operator.mul, operator.matmul])
@pytest.mark.parametrize("stranger", ["text", None, object(), 1j])
def test_a_stranger_as_an_operand_is_a_type_error(operate, stranger: object) -> None:
    with pytest.raises(TypeError):
        operate(leaf([1.0]), stranger)
    with pytest.raises(TypeError):
        operate(stranger, leaf([1.0]))


# --- dtypes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [2.5, np.float64(2.5)])
def test_a_number_does_not_widen_float32(factor: float) -> None:
    x = leaf([1, 2], "float32")
    mg.sum(x * factor / 3).backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_allclose(x.grad, [5 / 6, 5 / 6], rtol=1e-7)


@pytest.mark.parametrize("first, second", [("float32", "float64"), ("float16", "float32")])
def test_a_gradient_keeps_the_dtype_of_its_tensor(first: str, second: str) -> None:
    a, b = leaf([1.0, 2.0], first), leaf([3.0, 4.0], second)
    mg.sum(a * b).backward()
    assert (a.grad.dtype, b.grad.dtype) == (np.dtype(first), np.dtype(second))
    assert (a.grad.tolist(), b.grad.tolist()) == ([3, 4], [1, 2])


def test_every_array_in_a_float32_walk_is_float32() -> None:
    x = leaf([[1, 2], [3, 4]], "float32")
    loss = mg.sum(mg.tanh(x / 3).mean(dim=0) * 2 + x.max() ** 2)
    for event in mg.walk(loss):
        for name in ("gradient", "upstream", "local", "contribution", "added", "after"):
            array = getattr(event, name, None)
            assert array is None or array.dtype == np.float32, (name, event)


@pytest.mark.parametrize("n", [-2, np.int64(-2), mg.tensor(np.array(-2))])
def test_integers_do_not_leak_into_a_power(n: object) -> None:
    m, two = leaf(3.0), mg.tensor(np.array(2))
    loss = m * two**n
    loss.backward()
    assert m.grad.tolist() == 0.25


@pytest.mark.parametrize("values", [np.array([1, 2]), np.array([True])])
def test_integers_and_booleans_cannot_require_a_gradient(values: np.ndarray) -> None:
    with pytest.raises(mg.DtypeError, match=f"dtype {values.dtype} cannot require a gradient"):
        leaf(values)


def test_python_numbers_become_float64_and_arrays_keep_their_dtype() -> None:
    assert leaf([1, 2]).dtype == leaf(1).dtype == np.float64
    assert mg.tensor(np.array([1, 2])).dtype == np.int64
    assert leaf(np.float32([1])).dtype == np.float32


@pytest.mark.parametrize("values", ["text", [1, "a"], [1j], [[1], [1, 2]], None, {}])
def test_what_is_no_array_of_real_numbers_is_refused(values: object) -> None:
    with pytest.raises(mg.DtypeError, match="^tensor: "):
        mg.tensor(values)


MANY = np.full(1_000_000, 0.1, np.float32)


def test_float32_sums_accumulate_in_float64() -> None:
    x = leaf(MANY)
    assert x.sum().dtype == x.mean().dtype == np.float32
    assert x.sum().item() == pytest.approx(100_000, rel=1e-5)
    assert x.mean().item() == pytest.approx(0.1, rel=1e-5)


def test_a_float32_broadcast_reduction_accumulates_in_float64() -> None:
    b = leaf([0.0], "float32")
    y = b + np.zeros(MANY.shape, np.float32)
    assert mg.grad(y, [b], MANY)[0].item() == pytest.approx(100_000, rel=1e-5)


def test_a_naive_float32_sum_would_be_noticed() -> None:
    assert MANY.cumsum(dtype=np.float32)[-1] != pytest.approx(100_000, rel=1e-5)
