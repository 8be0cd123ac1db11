"""Shapes: 0-d, size 0, broadcasting, reductions, vectors in matmul, and odd memory layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg

calm = settings(deadline=None, max_examples=60)
Shape = tuple[int, ...]


def leaf(values: object, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name)


def numbers(shape: Shape, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def summed_copies(gradient: np.ndarray, shape: Shape) -> np.ndarray:
    """What each cell of `shape` gets back from its copies, counted one by one."""
    cells = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    copies = np.broadcast_to(cells, gradient.shape).ravel()
    return np.bincount(copies, gradient.ravel(), cells.size).astype(float).reshape(shape)


# --- broadcasting ---------------------------------------------------------------------------------

two_shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=4)


@calm
@given(two_shapes)
def test_broadcast_gradients_are_summed_over_the_copies(shapes: hnp.BroadcastableShapes) -> None:
    (left, right), whole = shapes
    a, b, g = leaf(numbers(left, 1), "a"), leaf(numbers(right, 2), "b"), numbers(whole, 3)
    for found in (mg.grad(a * b, [a, b], g), reached(a * b, [a, b], g)):
        by_a, by_b = summed_copies(g * b.data, left), summed_copies(g * a.data, right)
        np.testing.assert_allclose(found[0], by_a, atol=1e-13, strict=True)
        np.testing.assert_allclose(found[1], by_b, atol=1e-13, strict=True)


def reached(y: mg.Tensor, leaves: list[mg.Tensor], g: np.ndarray) -> list[np.ndarray]:
    """The gradients that the walk narrates."""
    found = {e.name: e.gradient for e in mg.walk(y, g) if type(e).__name__ == "Reached"}
    return [found[x.name] for x in leaves]


@calm
@given(two_shapes)
def test_broadcast_to_is_the_same_as_implicit_broadcasting(shapes: hnp.BroadcastableShapes):
    (left, _), whole = shapes
    x, g = leaf(numbers(left)), numbers(whole, 1)
    y = x.broadcast_to(whole)
    np.testing.assert_array_equal(y.data, np.broadcast_to(x.data, whole), strict=True)
    np.testing.assert_allclose(mg.grad(y, [x], g)[0], summed_copies(g, left), atol=1e-13)


def test_size_one_axes_come_back_as_size_one() -> None:
    a, b = leaf([[1.0], [2.0]], "a"), leaf([[10.0, 20.0, 30.0]], "b")
    mg.sum(a * b).backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([[60], [60]], [[3, 3, 3]])
    c, d = leaf(np.ones(3), "c"), leaf(np.ones((2, 1, 3)), "d")
    mg.sum(c + d).backward()
    assert (c.grad.tolist(), d.grad.shape) == ([2, 2, 2], (2, 1, 3))


def test_shapes_that_do_not_meet_are_one_sentence_with_both_shapes() -> None:
    with pytest.raises(mg.ShapeError) as problem:
        leaf(np.ones((2, 3))) + leaf(np.ones((2, 4)))
    assert str(problem.value) == (
        "add: a (2, 3) and b (2, 4) do not meet: at axis -1 the sizes 3 and 4 differ, "
        "and neither is 1"
    )


# --- reductions -----------------------------------------------------------------------------------


@st.composite
def reductions(draw) -> tuple[Shape, object, bool]:
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=3))
    axes = st.integers(-len(shape), len(shape) - 1)
    one_or_none = st.none() | axes if shape else st.none()
    several = hnp.valid_tuple_axes(len(shape))
    return shape, draw(one_or_none | several), draw(st.booleans())


@calm
@given(reductions())
def test_reductions_copy_their_gradient_back(call: tuple[Shape, object, bool]) -> None:
    shape, dim, keepdim = call
    x = leaf(numbers(shape))
    whole = np.sum(x.data, axis=dim, keepdims=True)
    count = x.size // whole.size
    largest = x.data == np.max(x.data, axis=dim, keepdims=True)
    for name, weight in [("sum", 1.0), ("mean", 1 / count), ("max", largest)]:
        y = getattr(x, name)(dim=dim, keepdim=keepdim)
        expected = getattr(np, name)(x.data, axis=dim, keepdims=keepdim)
        np.testing.assert_allclose(y.data, expected, atol=1e-14, strict=True)
        g = numbers(y.shape, 1)
        by_x = np.broadcast_to(g.reshape(whole.shape), shape) * weight
        np.testing.assert_allclose(mg.grad(y, [x], g)[0], by_x, atol=1e-14, strict=True)


@pytest.mark.parametrize("dim", [2, -3, (0, 0), (0, -2), 0.5, "0", True])
@pytest.mark.parametrize("name", ["sum", "mean", "max"])
def test_an_axis_that_is_not_there_or_named_twice_is_refused(name: str, dim: object) -> None:
    with pytest.raises(mg.ShapeError, match=rf"^{name}: dim .* of x \(2, 3\)"):
        getattr(leaf(np.ones((2, 3))), name)(dim=dim)


def test_centering_shows_direct_and_mean_contributions() -> None:
    x = leaf([2.0, 4.0, 9.0])
    y = x - x.mean()
    np.testing.assert_allclose(mg.grad(y, [x], [1, 1, 1])[0], 0, atol=1e-15)
    np.testing.assert_allclose(mg.grad(y, [x], [1, 0, 0])[0], [2 / 3, -1 / 3, -1 / 3])
    z = leaf([2.0, 7.0])
    assert mg.grad(mg.sum(z.max() + z), [z])[0].tolist() == [1, 3]


# --- scalars and nothing --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["neg", "exp", "ln", "sqr", "sqrt", "tanh", "sigmoid", "relu"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1)])
def test_an_elementwise_op_keeps_shapes_down_to_scalars_and_nothing(name: str, shape: Shape):
    x = leaf(np.ones(shape))
    y = getattr(mg, name)(x)
    y.backward(np.ones(shape))
    assert type(y.data) is type(x.grad) is np.ndarray
    assert y.shape == x.grad.shape == shape


def test_a_scalar_with_a_scalar_is_a_scalar() -> None:
    a, b = leaf(3.0, "a"), leaf(4.0, "b")
    for y in (a + b, a * b, a / b, a**b, 2 * a, a.sum(), a.mean(), a.max(), a.reshape(())):
        assert y.shape == () and type(y.data) is np.ndarray
    assert all(g.shape == () for g in mg.grad(a * b, [a, b]))


def test_adding_nothing_to_a_column_gives_the_column_zeros() -> None:
    a, b = leaf(np.ones((4, 0)), "a"), leaf(np.ones((4, 1)), "b")
    loss = mg.sum(a + b)
    loss.backward()
    assert (loss.item(), a.grad.shape) == (0, (4, 0))
    np.testing.assert_array_equal(b.grad, np.zeros((4, 1)), strict=True)


def test_an_empty_matrix_product_is_zeros() -> None:
    a, b = leaf(np.ones((3, 0)), "a"), leaf(np.ones((0, 2)), "b")
    np.testing.assert_array_equal((a @ b).data, np.zeros((3, 2)), strict=True)
    assert [g.shape for g in mg.grad(mg.sum(a @ b), [a, b])] == [(3, 0), (0, 2)]


def test_the_numeric_check_of_nothing_is_fine() -> None:
    empty = leaf(np.ones((0,)))
    assert mg.gradcheck(lambda x: mg.sum(x * x), [empty])
    assert all(mg.record(mg.sum(empty * empty)).checks)


# --- matmul ---------------------------------------------------------------------------------------


def test_matmul_with_a_vector_on_either_side() -> None:
    a, v = leaf([[1, 2, 3], [4, 5, 6]], "a"), leaf([1, 0, -1], "v")
    by_a, by_v = mg.grad(a @ v, [a, v], [1, 10])
    assert (by_a.tolist(), by_v.tolist()) == ([[1, 0, -1], [10, 0, -10]], [41, 52, 63])
    u, m = leaf([1, 2], "u"), leaf([[1, 0, 2], [3, 1, 0]], "m")
    by_u, by_m = mg.grad(u @ m, [u, m], [1, 2, 3])
    assert (by_u.tolist(), by_m.tolist()) == ([7, 5], [[1, 2, 3], [2, 4, 6]])
    p, q = leaf([1, 2, 3], "p"), leaf([4, 5, 6], "q")
    assert [g.tolist() for g in mg.grad(p @ q, [p, q])] == [[4, 5, 6], [1, 2, 3]]


@pytest.mark.parametrize(
    "a, b, words",
    [
        ((2, 3), (4, 5), "a's last size 3 must equal b's second-last size 4"),
        ((2, 3), (4,), "a's last size 3 must equal b's only size 4"),
        ((2, 2, 3), (3, 3, 2), r"their batch axes \(2,\) and \(3,\) must be equal or 1"),
        ((), (3,), r"a \(\) and b \(3,\) must have axes"),
    ],
)
def test_matrices_that_do_not_meet_are_refused_in_one_sentence(a: Shape, b: Shape, words: str):
    with pytest.raises(mg.ShapeError, match=f"^matmul: .*{words}"):
        leaf(np.ones(a)) @ leaf(np.ones(b))


# --- memory layouts -------------------------------------------------------------------------------


def read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


LAYOUTS = {
    "transposed": numbers((3, 3)).T,
    "reversed": numbers((3, 3))[::-1, ::-1],
    "strided": numbers((6, 9))[::2, ::3],
    "stride 0": np.broadcast_to(numbers((3,)), (3, 3)),
    "read-only": read_only(numbers((3, 3))),
    "fortran": np.asfortranarray(numbers((3, 3))),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_any_layout_gives_what_its_contiguous_copy_gives(layout: np.ndarray) -> None:
    results = []
    for array in (layout, np.array(layout, order="C")):
        x, w = leaf(array), leaf(numbers((3, 3), 1), "w")
        y = mg.tanh(x.T @ w) + array * x
        results.append([y.data, *mg.grad(y, [x, w], array)])
    for ours, expected in zip(*results, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-14)


def test_a_leaf_made_from_a_broadcast_array_has_cells_of_its_own() -> None:
    m, v = leaf([[1, 2], [3, 4]], "m"), leaf(np.broadcast_to([2.0], (2,)), "v")
    report = mg.gradcheck(lambda m, v: mg.sum(m @ v), [m, v])
    assert report
    assert report.checks[1].analytic.tolist() == [4, 6]
    np.testing.assert_allclose(report.checks[1].numeric, [4, 6], atol=1e-9)
