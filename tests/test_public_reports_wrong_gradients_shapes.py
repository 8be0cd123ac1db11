"""Public bug reports of wrong gradients, by number: graphs, shapes, layouts and indices."""

from __future__ import annotations

import copy
import gc
import pickle
from pathlib import Path

import numpy as np
import pytest
from rows import leaf

import minigrad as mg
from minigrad.events import Accumulated, Pulled, Reached, Reduced, Visited


def slopes(y: mg.Tensor, *leaves: mg.Tensor, seed: object = None) -> list:
    """The gradients of y for a seed (ones by default), as lists."""
    g = np.ones(y.shape) if seed is None else np.array(seed, float)
    return [found.tolist() for found in mg.grad(y, leaves, g)]


# --- graphs ---------------------------------------------------------------------------------------


def chain(x: mg.Tensor, links: int) -> mg.Tensor:
    y = x
    for _ in range(links):
        y = y + 0.0001 * x
    return y


def test_R15_a_long_chain_needs_no_recursion(tmp_path: Path) -> None:
    x = leaf(1)
    y = chain(x, 20_000)
    y.backward()
    assert x.grad == pytest.approx(3, abs=1e-11)
    assert "op=add" in repr(y)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(mg.GraphError, match="drags its whole graph along"):
            duplicate(y)
    del y
    trace = mg.record(chain(x, 600), checks=False)
    trace.save(tmp_path / "run.json")
    assert len(mg.load_trace(tmp_path / "run.json").nodes) == len(trace.nodes) == 1201


def test_R23_a_second_backward_starts_from_fresh_interior_gradients() -> None:
    x = leaf(2)
    m = x * x
    y = m * x
    y.backward()
    y.backward()
    assert x.grad == 24
    x.zero_grad()
    y.backward()
    assert x.grad == 12
    x.zero_grad()
    h = x * x
    (3 * h).backward()
    (h * h).backward()
    assert x.grad == 44 and h.grad is None


def test_R23_a_walk_between_two_backwards_adds_nothing() -> None:
    x = leaf(2)
    y = x * x * x
    y.backward()
    assert [e.gradient for e in mg.walk(y) if isinstance(e, Reached)] == [12]
    assert mg.grad(y, [x])[0] == 12 and mg.record(y) and x.grad == 12


def test_R48_a_new_tensor_is_never_paired_with_a_dead_one() -> None:
    ids, store = [], mg.GradStore()
    gc.disable()
    try:
        for n in range(1000):
            x = leaf(np.full(n % 4 + 1, n), f"x{n}")
            loss = mg.sum(x * 2)
            [reached] = [e for e in mg.walk(loss) if isinstance(e, Reached)]
            assert (reached.name, reached.gradient.shape) == (f"x{n}", x.shape)
            assert store[x] is None
            loss.backward_into(store)
            ids += [x.id, loss.id]
    finally:
        gc.enable()
    assert ids == sorted(set(ids))


def test_R59_a_reused_interior_node_gets_every_path() -> None:
    x = leaf(3)
    y = x * x
    assert slopes(2 * y + y * y, x) == [120]
    a = leaf(0.5)
    b = a + a
    c = b * b
    assert slopes(c + c, a) == [8]


@pytest.mark.parametrize("fan", range(1, 33))
def test_R59_any_fan_out_counts_each_use_once_after_all_consumers(fan: int) -> None:
    x = leaf(1)
    y = x * 1
    loss = y * 1
    for k in range(2, fan + 1):
        loss = loss + y * k
    events = list(mg.walk(loss))
    assert events[-1].gradient == fan * (fan + 1) / 2
    visits = [e.node for e in events if isinstance(e, Visited)]
    assert len(visits) == len(set(visits)) == 2 * fan
    last_use = [n for n, e in enumerate(events) if isinstance(e, Accumulated) and e.node == 1]
    assert len(last_use) == fan
    assert last_use[-1] < next(
        n for n, e in enumerate(events) if getattr(e, "op", 0) and e.node == 1
    )


def test_R65_a_leaf_that_does_not_reach_the_loss_gets_none_and_its_check_is_zero() -> None:
    x, u = leaf([1, 2], "x"), leaf([9], "u")
    mg.sum(x).backward()
    assert (x.grad.tolist(), u.grad) == ([1, 1], None)
    assert mg.grad(mg.sum(x), [u]) == (None,)
    report = mg.gradcheck(lambda x, u: mg.sum(x), [x, u])
    assert report and [c.numeric.tolist() for c in report.checks][1] == [0]


@pytest.mark.parametrize("dim", [0, -1])
def test_R65_an_unused_piece_of_a_split_gives_zeros(dim: int) -> None:
    x = leaf([[1, 2], [3, 4]])
    first, _ = x.split(1, dim)
    assert slopes(mg.sum(first), x) == [[[1, 1], [0, 0]] if dim == 0 else [[1, 0], [1, 0]]]


def test_R67_the_two_contributions_of_centering_are_visible() -> None:
    x = leaf([2, 4, 9], "x")
    y = x - x.mean()
    np.testing.assert_allclose(slopes(y, x)[0], [0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(slopes(y, x, seed=[1, 0, 0])[0], [2 / 3, -1 / 3, -1 / 3], rtol=1e-15)
    added = [e.added for e in mg.walk(y, [1, 0, 0]) if isinstance(e, Accumulated) and e.node == 0]
    np.testing.assert_allclose(added, [[1, 0, 0], [-1 / 3] * 3], rtol=1e-15)
    z = leaf([2, 7])
    assert slopes(mg.sum(z.max() + z), z) == [[1, 3]]


# --- broadcasting, nothing, vectors ---------------------------------------------------------------


def test_R55_a_broadcast_gradient_is_reduced_and_both_stages_are_told() -> None:
    a, b = leaf([[1], [2]], "a"), leaf([[10, 20, 30]], "b")
    loss = mg.sum(a * b)
    assert slopes(loss, a, b) == [[[60], [60]], [[3, 3, 3]]]
    events = list(mg.walk(loss))
    pulled = [e.contribution.tolist() for e in events if isinstance(e, Pulled)][1:]
    assert pulled == [[[10, 20, 30], [10, 20, 30]], [[1, 1, 1], [2, 2, 2]]]
    told = [(e.axes, e.from_shape, e.to_shape) for e in events if isinstance(e, Reduced)]
    assert told == [((1,), (2, 3), (2, 1)), ((0,), (2, 3), (1, 3))]
    c, d = leaf(np.ones(3)), leaf(np.ones((2, 1, 3)))
    assert slopes(mg.sum(c + d), c, d) == [[2, 2, 2], [[[1, 1, 1]], [[1, 1, 1]]]]


def test_R30_nothing_keeps_its_graph_and_its_shapes() -> None:
    a, b = leaf(np.ones((4, 0))), leaf(np.ones((4, 1)))
    loss = mg.sum(a + b)
    by_a, by_b = mg.grad(loss, [a, b])
    assert loss.item() == 0 and by_a.shape == (4, 0)
    np.testing.assert_array_equal(by_b, np.zeros((4, 1)), strict=True)
    p, q = leaf(np.ones((3, 0))), leaf(np.ones((0, 2)))
    np.testing.assert_array_equal((p @ q).data, np.zeros((3, 2)), strict=True)
    assert [g.shape for g in mg.grad(mg.sum(p @ q), [p, q])] == [(3, 0), (0, 2)]


@pytest.mark.parametrize(
    "made, value",
    [
        (mg.sum, 0),
        (mg.prod, 1),
        (mg.mean, np.nan),
        (mg.norm, 0),
        (mg.logsumexp, -np.inf),
        (lambda x: mg.sum(x.softmax(0)), 0),
        (lambda x: mg.sum(x.cumsum(0) * x[::-1] + mg.cat([x, x.copy()])[:0]), 0),
    ],
)
def test_R30_an_empty_reduction_has_a_value_and_an_empty_gradient(made, value: float) -> None:
    x = leaf([])
    np.testing.assert_equal(made(x).item(), value)
    assert mg.grad(made(x), [x])[0].shape == (0,)
    assert mg.gradcheck(made, [x])


@pytest.mark.parametrize("name", ["max", "min"])
def test_R30_an_empty_extreme_is_a_clear_error(name: str) -> None:
    with pytest.raises(mg.DomainError, match=rf"^{name}: x \(2, 0\) has no cells along dim 1"):
        getattr(leaf(np.ones((2, 0))), name)(1)
    assert getattr(leaf(np.ones((2, 0))), name)(0).shape == (0,)


def test_R44_matmul_with_a_vector_is_outer_and_transposed_products() -> None:
    a, v = leaf([[1, 2, 3], [4, 5, 6]]), leaf([1, 0, -1])
    assert slopes(a @ v, a, v, seed=[1, 10]) == [[[1, 0, -1], [10, 0, -10]], [41, 52, 63]]
    u, m = leaf([1, 2]), leaf([[1, 0, 2], [3, 1, 0]])
    assert slopes(u @ m, u, m, seed=[1, 2, 3]) == [[7, 5], [[1, 2, 3], [2, 4, 6]]]
    p, q = leaf([1, 2, 3]), leaf([4, 5, 6])
    assert slopes(p @ q, p, q) == [[4, 5, 6], [1, 2, 3]]


def test_R44_a_vector_with_a_batch_of_matrices() -> None:
    batch, v = leaf([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]), leaf([1, 10])
    by_batch, by_v = slopes(batch @ v, batch, v, seed=[[1, 2], [3, 4]])
    assert by_batch == [[[1, 10], [2, 20]], [[3, 30], [4, 40]]]
    assert by_v == [1 + 6 + 15 + 28, 2 + 8 + 18 + 32]
    by_v, by_batch = slopes(v @ batch, v, batch, seed=[[1, 2], [3, 4]])
    assert by_v == [1 + 4 + 15 + 24, 3 + 8 + 21 + 32]
    assert by_batch == [[[1, 2], [10, 20]], [[3, 4], [30, 40]]]


# --- layouts and indices --------------------------------------------------------------------------


def read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


NINE = np.arange(9.0).reshape(3, 3) + 1
LAYOUTS = {
    "transposed": NINE.T,
    "reversed": NINE[::-1, ::-1],
    "read-only": read_only(NINE),
    "stride 0": np.broadcast_to([[2.0]], (3, 3)),
    "strided": np.arange(1, 82.0).reshape(9, 9)[::3, ::3] / 10,
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_R21_any_layout_as_leaf_upstream_and_argument_is_like_its_copy(layout) -> None:
    double = mg.elementwise(tex="y = x^2", partials={"x": (lambda x: 2 * x, "2x")})(lambda x: x * x)
    found = []
    for array in (layout, np.array(layout, order="C")):
        x = mg.tensor(array, requires_grad=True)
        y = double(x) @ array + x * array
        found.append([y.data, mg.grad(y, [x], array)[0]])
        assert mg.gradcheck(lambda x, array=array: double(x) @ array, [x])
    for ours, right in zip(*found, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-15)


def test_R21_a_shared_cell_is_not_moved_together() -> None:
    m, v = leaf([[1, 2], [3, 4]]), mg.tensor(np.broadcast_to([2.0], (2,)), requires_grad=True)
    [_, check] = mg.gradcheck(lambda m, v: mg.sum(m @ v), [m, v]).checks
    assert check and check.analytic.tolist() == [4, 6]
    np.testing.assert_allclose(check.numeric, [4, 6], rtol=1e-9)


@pytest.mark.parametrize(
    "pick",
    [
        lambda x: x.gather(0, [2, 0, 2, 2]),
        lambda x: x.index_select(0, [2, 0, -1, 2]),
        lambda x: x[[2, 0, 2, -1]],
        lambda x: mg.embedding([2, 0, 2, 2], x.unsqueeze(1)).squeeze(1),
    ],
)
def test_R61_repeated_indices_add(pick) -> None:
    x = leaf([5, 7, 9])
    assert slopes(pick(x), x, seed=[1, 2, 3, 4]) == [[2, 0, 8]]


def test_R61_index_add_and_scatter_add_add_forward_and_select_back() -> None:
    base, source = leaf(np.zeros((3, 2))), leaf([[1, 2], [3, 4]])
    weights = [[1, 2], [3, 4], [5, 6]]
    for y in (
        base.index_add(0, [1, 1], source),
        base.scatter_add(0, [[1, 1], [1, 1]], source),
    ):
        assert y.data.tolist() == [[0, 0], [4, 6], [0, 0]]
        assert slopes(y, base, source, seed=weights) == [weights, [[3, 4], [3, 4]]]
    y = base.index_add(0, [1, 1], source, alpha=-2)
    assert y.data[1].tolist() == [-8, -12]
    assert slopes(y, source, seed=weights) == [[[-6, -8], [-6, -8]]]


def test_R61_whole_numbers_are_added_to_as_floating_ones() -> None:
    whole, source = mg.tensor(np.array([1, 2])), leaf([0.5, 0.25])
    assert whole.index_add(0, [0, 0], source).data.tolist() == [1.75, 2]
    assert whole.scatter_add(0, [1, 1], source).data.tolist() == [1, 2.75]
