"""How ops are called: PyTorch's order, keywords, defaults, any number of operands, brackets."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad.indices import Key

X = np.arange(6.0).reshape(2, 3)


def leaf(values, name: str | None = None) -> mg.Tensor:
    return mg.tensor(np.array(values, float), requires_grad=True, name=name)


@pytest.mark.parametrize(
    "name, signature",
    [
        ("index_select", "(x, dim, index)"),
        ("gather", "(x, dim, index)"),
        ("index_add", "(x, dim, index, source, alpha=1)"),
        ("scatter_add", "(x, dim, index, src)"),
        ("where", "(mask, a, b)"),
        ("cat", "(xs, dim=0)"),
        ("einsum", "(equation, xs)"),
        ("clamp", "(x, min=-inf, max=inf)"),
        ("dropout", "(x, p=0.5, *, seed)"),
        ("conv2d", "(x, weight, bias=0.0, stride=1, padding=0, dilation=1, groups=1)"),
        ("layer_norm", "(x, weight=1.0, bias=0.0, eps=1e-05)"),
        ("var", "(x, dim=None, correction=1, keepdim=False)"),
        ("narrow", "(x, dim, start, length)"),
    ],
)
def test_a_signature_is_how_the_op_is_called(name: str, signature: str) -> None:
    assert str(inspect.signature(getattr(mg, name))) == signature


def test_arrays_and_parameters_interleave_and_may_be_named() -> None:
    x = leaf(X)
    for y in (
        mg.index_select(x, 1, [2, 0]),
        mg.index_select(x, dim=1, index=[2, 0]),
        x.index_select(1, [2, 0]),
        x.index_select(dim=1, index=np.array([2, 0])),
    ):
        np.testing.assert_array_equal(y.data, X[:, [2, 0]])


def test_the_method_belongs_to_the_operand_that_gets_a_gradient() -> None:
    x, mask = leaf(X), X > 2
    for y in (x.where(mask, 0.0), x.where(mask=mask, b=0.0), mg.where(mask, x, 0.0)):
        np.testing.assert_array_equal(y.data, np.where(mask, X, 0))
        (g,) = mg.grad(y.sum(), [x])
        np.testing.assert_array_equal(g, mask.astype(float))
    assert not hasattr(x, "cat") and not hasattr(x, "einsum")


def test_none_stands_for_a_default() -> None:
    np.testing.assert_array_equal(mg.clamp(X, None, 2.0).data, np.minimum(X, 2))
    np.testing.assert_array_equal(mg.clamp(X, 2.0).data, np.maximum(X, 2))
    np.testing.assert_array_equal(mg.sum(X, None, True).data, [[15.0]])
    image, kernel = np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2))
    assert mg.conv2d(image, kernel, None, 1, 1).shape == (1, 1, 3, 3)


def test_any_number_of_operands() -> None:
    a, b = leaf([1, 2], "a"), leaf([3], "b")
    for joined in (mg.cat((a, b, a)), mg.cat([a, b, a], dim=-1), mg.cat([a, b, a], 0)):
        assert joined.data.tolist() == [1, 2, 3, 1, 2]
    weights = [1.0, 10, 100, 1000, 10000]
    got = mg.grad(joined, [a, b], weights)
    assert [g.tolist() for g in got] == [[1001, 10010], [100]]
    for y in (mg.einsum("i,i->", a, a), mg.einsum("i,i->", [a, a])):
        assert y.item() == 5
    assert mg.einsum("i->", a).item() == 3


def test_an_operand_of_many_saves_only_what_the_others_need() -> None:
    card = mg.registry["einsum"].taking(3)
    assert card.inputs == ("x0", "x1", "x2")
    assert card.residuals((True, False, False)) == ("x1", "x2")
    assert mg.registry["cat"].taking(2).residuals((True, True)) == ()


def test_no_operand_at_all_is_one_sentence() -> None:
    with pytest.raises(mg.ArgumentError, match="^cat: at least one operand is needed$"):
        mg.cat([])


# --- nothing, and size 1 --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["index_select", "index_add", "gather", "embedding", "getitem"])
def test_an_empty_index_picks_nothing_and_gives_zeros(name: str) -> None:
    x, none = leaf(X, "x"), np.zeros((0, 3))
    y = {
        "index_select": lambda: mg.index_select(x, 0, []),
        "index_add": lambda: mg.index_add(x, 0, [], none) * 0.0,
        "gather": lambda: mg.gather(x, 0, np.zeros((0, 3), int)),
        "embedding": lambda: mg.embedding([], x),
        "getitem": lambda: x[[]],
    }[name]()
    assert mg.grad(mg.sum(y), [x])[0].tolist() == np.zeros((2, 3)).tolist()


def test_a_summed_letter_of_size_1_is_broadcast_and_reduced_again() -> None:
    a, b = leaf([1, 2, 3]), leaf([10])
    got = mg.grad(mg.einsum("i,i->", a, b), [a, b])
    assert [g.tolist() for g in got] == [[10, 10, 10], [6]]


def test_a_convolution_of_no_images_gives_a_kernel_zeros() -> None:
    weight = leaf(np.ones((2, 2, 2, 1)))
    y = mg.conv2d(np.zeros((0, 2, 3, 2)), weight)
    assert y.shape == (0, 2, 2, 2)
    assert not mg.grad(mg.sum(y), [weight])[0].any()


# --- split ----------------------------------------------------------------------------------------


def test_split_cuts_into_pieces_and_an_unused_piece_gets_zeros() -> None:
    x = leaf([1, 2, 3, 4, 5])
    assert [p.shape for p in mg.split(x, 2)] == [(2,), (2,), (1,)]
    first, _ = x.split([2, 3])
    (first * 10).sum().backward()
    assert x.grad.tolist() == [10, 10, 0, 0, 0]
    assert [p.op for p in leaf(X).split(1, dim=-1)] == ["narrow"] * 3


@pytest.mark.parametrize(
    "size, dim, words",
    [
        (0, 0, "size 0 must be a whole number above 0"),
        (1.5, 0, "size 1.5 must be a whole number"),
        ([1, 2], 0, r"sizes \[1, 2\] must add up to the size 2 of dim 0"),
        (1, 2, "dim 2 is no axis of x"),
    ],
)
def test_a_split_that_cannot_be_is_one_sentence(size, dim: int, words: str) -> None:
    with pytest.raises(mg.ShapeError, match=f"^split: {words}"):
        mg.split(leaf(X), size, dim)


# --- brackets -------------------------------------------------------------------------------------

KEYS = [
    1,
    -1,
    slice(None),
    slice(None, None, -1),
    slice(5, 0, -2),
    slice(1, 1),
    None,
    ...,
    (..., 0),
    (slice(None), None, 1),
    (0, ..., slice(None, None, 2)),
    [0, 0, -1],
    ([0, 1], [2, -3]),
    (slice(None), [[0, 1], [2, 2]]),
    (None, [1, 1], ...),
    np.array([True, False]),
    X > 2,
    (..., np.array([True, False, True])),
    np.array([], int),
    mg.tensor(np.array([1, 0])),
    np.int64(1),
    True,
]


@pytest.mark.parametrize("key", KEYS, ids=lambda k: str(Key(k)) or "()")
def test_brackets_mean_what_they_mean_in_numpy_and_repeats_add(key) -> None:
    x = leaf(X)
    plain = np.asarray(key) if isinstance(key, mg.Tensor) else key
    y = x[key]
    np.testing.assert_array_equal(y.data, X[plain], strict=True)
    g = np.random.default_rng(0).normal(size=y.shape)
    expected = np.zeros(X.shape)
    np.add.at(expected, plain, g)
    np.testing.assert_allclose(mg.grad(y, [x], g)[0], expected, rtol=1e-15)


def test_a_key_is_written_as_it_was_typed() -> None:
    key = Key((slice(1, None), slice(None, None, -2), None, ..., -1, [0, 2]))
    assert str(key) == "1:, ::-2, None, …, -1, [0, 2]"


def test_a_key_is_copied_when_it_is_used() -> None:
    x, index = leaf([1, 2, 3]), np.array([0, 1])
    y = x[index]
    index[:] = 2
    assert mg.grad(y.sum(), [x])[0].tolist() == [1, 1, 0]


def test_iterating_yields_rows_and_ends() -> None:
    assert [row.data.tolist() for row in leaf(X)] == X.tolist()


@pytest.mark.parametrize(
    "key, words",
    [
        (2, "index 2 is out of range for dim 0 of size 2, whose cells are -2 … 1"),
        ((0, -4), "index -4 is out of range for dim 1 of size 3"),
        ([[0, 9]], "index 9 is out of range for dim 0 of size 2"),
        ((0, 0, 0), r"x\[0, 0, 0\] asks for 3 axes, but x \(2, 3\) has 2"),
        ((..., ...), "holds … twice"),
    ],
)
def test_a_key_that_points_at_no_cell_is_an_index_error(key, words: str) -> None:
    with pytest.raises(IndexError, match=f"^getitem: .*{words}"):
        leaf(X)[key]


@pytest.mark.parametrize(
    "key, kind, words",
    [
        (0.5, TypeError, "0.5 is no index"),
        ("a", TypeError, "whole numbers or truth values"),
        ([0.0, 1.0], TypeError, "whole numbers or truth values, not float64"),
        (slice(0.5, 2), TypeError, "a slice is made of whole numbers, not 0.5"),
        (slice(None, None, 0), TypeError, "a slice cannot have step 0"),
        (np.ones(3, bool), ValueError, r"a mask of shape \(3,\) does not fit"),
    ],
)
def test_a_key_of_the_wrong_kind_is_one_sentence(key, kind: type, words: str) -> None:
    with pytest.raises(kind, match=f"^getitem: .*{words}") as problem:
        leaf(X)[key]
    assert isinstance(problem.value, mg.MinigradError)
