"""Backward: seeds, accumulation, stores, and values edited after the forward."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.events import Seeded, Visited


def leaf(values: object, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name)


# --- seeds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_a_loss_of_size_one_is_seeded_with_ones_of_its_shape(shape: tuple[int, ...]) -> None:
    x = leaf(np.full(shape, 3.0))
    loss = x * x
    assert next(mg.walk(loss)).gradient.shape == shape
    loss.backward()
    np.testing.assert_array_equal(x.grad, np.full(shape, 6.0), strict=True)


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 2)])
def test_anything_larger_needs_a_gradient(shape: tuple[int, ...]) -> None:
    y = leaf(np.ones(shape)) * 2
    for start in (y.backward, lambda: mg.walk(y), lambda: mg.grad(y, []), lambda: mg.record(y)):
        with pytest.raises(mg.ShapeError, match="pass gradient= of shape"):
            start()


@pytest.mark.parametrize("seed", [1.0, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]])
def test_a_seed_of_the_wrong_shape_is_refused_with_both_shapes(seed: object) -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(mg.ShapeError) as problem:
        (x * x).backward(seed)
    assert "(2,)" in str(problem.value) and str(np.shape(seed)) in str(problem.value)
    assert x.grad is None


@pytest.mark.parametrize("seed", [["a", "b"], [1j, 1], [None, None]])
def test_a_seed_that_is_no_number_is_refused(seed: object) -> None:
    with pytest.raises(mg.DtypeError, match="real numbers"):
        (leaf([1.0, 2.0]) * 1).backward(seed)


def test_a_seed_may_be_a_list_an_array_or_a_tensor_and_is_copied() -> None:
    x, seed = leaf([1.0, 2.0]), np.array([1.0, 10.0])
    for given in ([1, 10], seed, mg.tensor(seed)):
        assert mg.grad(x * x, [x], given)[0].tolist() == [2, 40]
    events = mg.walk(x * x, seed)
    seed[:] = 99
    assert next(events).gradient.tolist() == [1, 10]


def test_backward_from_what_needs_no_gradient_says_so() -> None:
    with pytest.raises(mg.GraphError, match="no tensor with requires_grad=True"):
        mg.sum(mg.tensor([1.0]) * 2).backward()


def test_a_leaf_may_be_its_own_loss() -> None:
    x = leaf(5.0)
    x.backward()
    assert x.grad == 1


# --- accumulating ---------------------------------------------------------------------------------


def test_a_second_backward_accumulates_in_leaves_with_fresh_interior_gradients() -> None:
    x = leaf(2.0)
    y = x * x * x
    y.backward()
    y.backward()
    assert x.grad == 24
    x.zero_grad()
    assert x.grad is None
    y.backward()
    assert x.grad == 12


def test_two_losses_with_a_common_part_accumulate() -> None:
    x = leaf(2.0)
    h = x * x
    (3 * h).backward()
    (h * h).backward()
    assert x.grad == 44


def test_accumulating_does_not_rewrite_a_gradient_someone_holds() -> None:
    x = leaf([2.0])
    (x * x).backward()
    held = x.grad
    (x * x).backward()
    assert (held.tolist(), x.grad.tolist()) == ([4], [8])


def test_grad_gives_none_where_unreachable_and_touches_nothing() -> None:
    x, u = leaf([1.0, 2.0]), leaf([9.0], "u")
    h = x * x
    by_x, by_u, by_h, by_w = mg.grad(mg.sum(h * 3), [x, u, h, mg.tensor(1.0)])
    assert (by_x.tolist(), by_u, by_h.tolist(), by_w) == ([6, 12], None, [3, 3], None)
    assert x.grad is u.grad is h.grad is None


def test_an_unused_leaf_keeps_none() -> None:
    x, u = leaf([1.0, 2.0]), leaf([9.0], "u")
    mg.sum(x).backward()
    assert (x.grad.tolist(), u.grad) == ([1, 1], None)


def test_a_store_collects_several_losses_and_answers_none_elsewhere() -> None:
    x, u, store = leaf(2.0), leaf(9.0, "u"), mg.GradStore()
    h = x * x
    (3 * h).backward_into(store)
    (h * h).backward_into(store)
    assert store[x] == 44
    assert store[u] is store[h] is x.grad is None
    assert x in store and u not in store and len(store) == 1


# --- values edited after the forward --------------------------------------------------------------


def test_editing_the_source_array_does_not_reach_the_tensor() -> None:
    source = np.array([1.0, 2.0])
    x = leaf(source)
    loss = mg.sum(x * x)
    source[:] = 10
    loss.backward()
    assert x.grad.tolist() == [2, 4]


def test_editing_an_ndarray_operand_does_not_reach_the_graph() -> None:
    x, w = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    loss = mg.sum(x * w)
    w[:] = 10
    loss.backward()
    assert x.grad.tolist() == [3, 4]


def test_data_is_a_read_only_view_and_numpy_is_a_copy() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        x.data[:] = 10
    x.numpy()[:] = 10
    assert x.data.tolist() == [1, 2]


def test_a_graph_made_before_assign_can_no_longer_be_walked() -> None:
    x = leaf([1.0, 2.0], "weights")
    loss = mg.sum(x * x)
    x.assign_([5, 6])
    for start in (loss.backward, lambda: list(mg.walk(loss)), lambda: mg.record(loss)):
        with pytest.raises(mg.GraphError, match="^mul: weights of shape .* edited by assign_"):
            start()
    assert x.grad is None
    mg.sum(x * x).backward()
    assert x.grad.tolist() == [10, 12]


def test_assign_takes_the_same_shape_only_and_keeps_the_dtype() -> None:
    x = mg.tensor([1, 2], requires_grad=True, dtype="float32")
    assert x.assign_(np.array([3.0, 4.0])) is x
    assert (x.dtype, x.data.tolist()) == (np.float32, [3, 4])
    with pytest.raises(mg.ShapeError, match=r"shape \(3,\).* shape \(2,\)"):
        x.assign_([1, 2, 3])
    with pytest.raises(mg.GraphError, match="only a leaf"):
        (x * 2).assign_([1, 2])


def test_a_rule_that_writes_into_its_upstream_gradient_is_refused() -> None:
    def spoil(g):
        g += 1
        return g

    @mg.elementwise(tex="y = x", partials={"x": (spoil, "g")})
    def custom(x):
        return x.copy()

    x = leaf([1.0, 1.0])
    t = x * 2
    loss = mg.sum(custom(t)) + mg.sum(5 * t)
    with pytest.raises(mg.RuleError, match="custom, input x: .* writes into an array"):
        loss.backward()
    assert x.grad is None
    told = []
    with pytest.raises(mg.RuleError):
        for event in mg.walk(loss):
            told.append(event)
    assert [e.gradient.tolist() for e in told if isinstance(e, Seeded)] == [1]
    upstream = [e.upstream.tolist() for e in told if isinstance(e, Visited)]
    assert upstream[-1] == [1, 1] and upstream[0] == 1
