"""Bad values, indices, dtypes and arguments are refused in one sentence and leave no trace."""

from __future__ import annotations

import numpy as np
import pytest
from refused import IMAGE, Call, X, refused

import minigrad as mg

NAN = float("nan")

# --- indices that point at no cell ----------------------------------------------------------------

OUT_OF_RANGE = [
    (
        lambda x: x.index_select(0, [0, 2]),
        "index_select: index 2 is out of range for dim 0 of size 2, whose cells are -2 … 1",
    ),
    (
        lambda x: x.index_select(1, [0, -4]),
        "index_select: index -4 is out of range for dim 1 of size 3, whose cells are -3 … 2",
    ),
    (
        lambda x: x.gather(0, [[0, 9, 0]]),
        "gather: index 9 is out of range for dim 0 of size 2, whose cells are -2 … 1",
    ),
    (
        lambda x: x.gather(-2, [[0, -3, 0]]),
        "gather: index -3 is out of range for dim -2 of size 2, whose cells are -2 … 1",
    ),
    (
        lambda x: x.index_add(0, [5], [[1, 2, 3]]),
        "index_add: index 5 is out of range for dim 0 of size 2, whose cells are -2 … 1",
    ),
    (
        lambda x: x.scatter_add(1, [[3]], [[1.0]]),
        "scatter_add: index 3 is out of range for dim 1 of size 3, whose cells are -3 … 2",
    ),
    (
        lambda x: mg.embedding([2], x),
        "embedding: index 2 is out of range for dim 0 of size 2, whose cells are -2 … 1",
    ),
    (
        lambda x: mg.cross_entropy(x, [0, 3]),
        "cross_entropy: index 3 is out of range for dim 1 of size 3, whose cells are -3 … 2",
    ),
    (
        lambda x: mg.nll_loss(x, [0, -100]),
        "nll_loss: index -100 is out of range for dim 1 of size 3, whose cells are -3 … 2",
    ),
    (
        lambda x: x[2],
        "getitem: index 2 is out of range for dim 0 of size 2, whose cells are -2 … 1",
    ),
    (
        lambda x: x[[0, -3]],
        "getitem: index -3 is out of range for dim 0 of size 2, whose cells are -2 … 1",
    ),
    (lambda x: x[0, 0, 0], "getitem: x[0, 0, 0] asks for 3 axes, but x (2, 3) has 2"),
    (lambda x: x.narrow(0, 1, 2), "narrow: 2 cells from 1 on are out of range for dim 0 of size 2"),
    (
        lambda x: x.narrow(0, -3, 1),
        "narrow: 1 cells from -3 on are out of range for dim 0 of size 2",
    ),
]


@pytest.mark.parametrize("call, sentence", OUT_OF_RANGE, ids=[s for _, s in OUT_OF_RANGE])
def test_an_index_out_of_range(call: Call, sentence: str) -> None:
    refused(call, mg.OutOfRangeError, sentence)


# --- dtypes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("index, dtype", [([[0.0, 1, 1]], "float64"), ([[True] * 3], "bool")])
@pytest.mark.parametrize("name", ["gather", "scatter_add", "embedding"])
def test_an_index_that_holds_no_whole_numbers(name: str, index, dtype: str) -> None:
    calls = {
        "gather": lambda x: x.gather(0, index),
        "scatter_add": lambda x: x.scatter_add(0, index, X),
        "embedding": lambda x: mg.embedding(index, x),
    }
    sentence = f"{name}: an index must hold whole numbers, not {dtype}"
    refused(calls[name], mg.DtypeError, sentence)


WHOLE = mg.tensor(np.array([[1, 2, 3], [4, 5, 6]]))
FLOATING = {
    **{name: lambda w, name=name: getattr(w, name)() for name in ("var", "std", "norm")},
    **{name: lambda w, name=name: getattr(w, name)(0) for name in ("softmax", "log_softmax")},
    "logsumexp": lambda w: w.logsumexp(),
    "rms_norm": lambda w: w.rms_norm(),
    "layer_norm": lambda w: w.layer_norm(),
    "cross_entropy": lambda w: mg.cross_entropy(w, [0, 1]),
    "nll_loss": lambda w: mg.nll_loss(w, [0, 1]),
    "mse_loss": lambda w: mg.mse_loss(w, w),
    "dropout": lambda w: w.dropout(seed=0),
    "max_pool2d": lambda w: w.reshape(1, 1, 2, 3).max_pool2d(2),
    "avg_pool2d": lambda w: w.reshape(1, 1, 2, 3).avg_pool2d(2),
}


@pytest.mark.parametrize("name", FLOATING)
def test_whole_numbers_where_floating_ones_are_needed(name: str) -> None:
    sentence = f"{name}: x must hold floating numbers, not int64"
    refused(lambda x: FLOATING[name](WHOLE), mg.DtypeError, sentence)


def test_whole_numbers_are_never_cut_off_elsewhere() -> None:
    assert mg.erf(WHOLE).data[0, 0] == pytest.approx(0.8427007929497149, rel=1e-15)
    assert mg.mean(WHOLE).item() == 3.5
    assert mg.cumsum(np.array([True, True, False]), 0).data.tolist() == [1, 2, 2]
    assert mg.prod(np.array([100, 100], np.int8)).item() == 10_000
    assert mg.mse_loss(WHOLE, WHOLE.cast(float) + 0.5).item() == 0.25


DTYPES = [
    (
        lambda x: mg.where([1, 0, 1], x, 0),
        "where: mask must hold truth values, not int64; compare, as in x > 0",
    ),
    (
        lambda x: mg.where(x, x, 0),
        "where: mask must hold truth values, not float64; compare, as in x > 0",
    ),
    (lambda x: x.index_select(0, ["a"]), "index_select: the values must be real numbers, not <U1"),
    (lambda x: mg.exp(1j), "exp: the values must be real numbers, not complex128"),
    (lambda x: mg.cat([x, "a"]), "cat: the values must be real numbers, not <U1"),
]


@pytest.mark.parametrize("call, sentence", DTYPES, ids=[s for _, s in DTYPES])
def test_a_dtype_that_breaks_a_rule(call: Call, sentence: str) -> None:
    refused(call, mg.DtypeError, sentence)


# --- numbers and words ----------------------------------------------------------------------------

NUMBERS = {
    ("leaky_relu", "slope"): lambda x, v: x.leaky_relu(v),
    ("elu", "alpha"): lambda x, v: x.elu(v),
    ("affine", "mul"): lambda x, v: x.affine(v, 1),
    ("affine", "add"): lambda x, v: x.affine(1, v),
    ("clamp", "min"): lambda x, v: x.clamp(v),
    ("clamp", "max"): lambda x, v: x.clamp(0, v),
    ("rms_norm", "eps"): lambda x, v: x.rms_norm(eps=v),
    ("layer_norm", "eps"): lambda x, v: x.layer_norm(eps=v),
    ("norm", "p"): lambda x, v: x.norm(v),
    ("var", "correction"): lambda x, v: x.var(correction=v),
    ("std", "correction"): lambda x, v: x.std(correction=v),
    ("dropout", "p"): lambda x, v: x.dropout(v, seed=0),
    ("pad", "value"): lambda x, v: x.pad((1, 1), v),
    ("index_add", "alpha"): lambda x, v: x.index_add(0, [0], [[1, 2, 3]], alpha=v),
}


@pytest.mark.parametrize("value", ["a", True, NAN, 1j, np.ones((2, 2)), {}], ids=repr)
@pytest.mark.parametrize("name, word", NUMBERS)
def test_what_is_no_number(name: str, word: str, value) -> None:
    shown = "array([[1., 1.], [1., 1.]])" if isinstance(value, np.ndarray) else repr(value)
    sentence = f"{name}: {word} must be a number, not {shown}"
    refused(lambda x: NUMBERS[name, word](x, value), mg.ArgumentError, sentence)


REDUCED = {
    "mse_loss": lambda x, r: mg.mse_loss(x, X, reduction=r),
    "binary_cross_entropy_with_logits": lambda x, r: x.binary_cross_entropy_with_logits(X, r),
    "cross_entropy": lambda x, r: mg.cross_entropy(x, [0, 1], reduction=r),
    "nll_loss": lambda x, r: mg.nll_loss(x, [0, 1], reduction=r),
}


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("word", ["avg", 1])
def test_a_reduction_that_does_not_exist(name: str, word) -> None:
    sentence = f'{name}: reduction is "mean", "sum" or "none", not {word!r}'
    refused(lambda x: REDUCED[name](x, word), mg.ArgumentError, sentence)


ARGUMENTS = [
    (lambda x: x.clamp(2, 1), "clamp: min 2 is above max 1"),
    (lambda x: x.norm(0.5), "norm: p must be a number from 1 on, not 0.5"),
    (lambda x: x.rms_norm(eps=-1), "rms_norm: eps must be a number from 0 on, not -1"),
    (lambda x: x.dropout(2, seed=0), "dropout: p must be a probability from 0 to 1, not 2"),
    (lambda x: x.dropout(0.5), "dropout: the parameter seed is missing"),
    (lambda x: x.dropout(seed=1.5), "dropout: seed must be a whole number from 0 on, not 1.5"),
    (lambda x: x.softmax(), "softmax: the parameter dim is missing"),
    (lambda x: x.affine(2), "affine: the parameter add is missing"),
    (lambda x: mg.max_pool2d(IMAGE), "max_pool2d: the parameter kernel_size is missing"),
    (lambda x: x.sum(axis=0), "sum: there is no axis; it takes (x, dim, keepdim)"),
    (lambda x: x.sum(0, True, 1), "sum: takes (x, dim, keepdim), got 4 positional arguments"),
    (lambda x: x.relu(0.1), "relu: takes (x), got 2 positional arguments"),
    (lambda x: x.exp(x=x), "exp: x is given twice"),
    (lambda x: mg.add(x), "add: the operand b is missing"),
    (lambda x: mg.cat([]), "cat: at least one operand is needed"),
    (
        lambda x: x.cast(complex),
        "cast: the parameter dtype: complex128 does not hold real numbers of at most 64 bits",
    ),
    (
        lambda x: x[0.5],
        "getitem: the parameter key: 0.5 is no index; use ints, slices, None, … or arrays of them",
    ),
    (
        lambda x: x[[0.0, 1.0]],
        "getitem: the parameter key: an index must hold whole numbers or truth values, not float64",
    ),
    (
        lambda x: x[[[0], [0, 1]]],
        "getitem: the parameter key: [[0], [0, 1]] is no index; its rows differ in length",
    ),
    (lambda x: mg.einsum("ij,jk", x), "einsum: 'ij,jk' names 2 operands, but 1 were given"),
    (
        lambda x: mg.einsum("ij->k", x),
        "einsum: the result 'k' of 'ij->k' must name letters of the operands once",
    ),
    (
        lambda x: mg.einsum("ij->ii", x),
        "einsum: the result 'ii' of 'ij->ii' must name letters of the operands once",
    ),
    (lambda x: mg.einsum("i!->i", x), "einsum: 'i!->i' may hold letters, commas, one -> and ..."),
    (lambda x: mg.einsum(x, x), "einsum: the equation is a text such as 'ij,jk->ik', not Tensor"),
]


@pytest.mark.parametrize("call, sentence", ARGUMENTS, ids=[s for _, s in ARGUMENTS])
def test_an_argument_that_breaks_a_rule(call: Call, sentence: str) -> None:
    refused(call, mg.ArgumentError, sentence)


@pytest.mark.parametrize("name", ["max", "min"])
def test_an_extreme_of_nothing(name: str) -> None:
    rule = "x (0, 3) has no cells along dim 0, and nothing has no extreme"
    refused(lambda x: getattr(x[:0], name)(0), mg.DomainError, f"{name}: {rule}")


def test_two_tensors_side_by_side_where_a_list_is_meant() -> None:
    shown = "tensor([[0., 1., 2.], [3., 4., 5.]], name='x', requires_grad=True)"
    rule = f"dim {shown} is no axis of x (2, 3), whose axes are 0 … 1"
    refused(lambda x: mg.cat(x, x), mg.ShapeError, f"cat: {rule}")
