"""Precision: gradients keep their tensor's dtype, sums lose nothing, and nothing overflows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calling import called

import minigrad as mg
from minigrad.card import Op
from minigrad.domains import samples

CARDS = list(mg.registry.values())

# --- dtypes ---------------------------------------------------------------------------------------

DTYPES = ["float16", "float32", "float64"]


def assert_close(found: np.ndarray, expected: np.ndarray, dtype: Any) -> None:
    eps = max(np.finfo(dtype).eps, np.finfo(found.dtype).eps)
    size = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(
        found.astype(np.float64), expected, rtol=32 * eps, atol=8 * eps * size
    )


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@pytest.mark.parametrize("first", range(4))
def test_a_gradient_keeps_the_dtype_of_its_tensor_and_is_close(card: Op, first: int) -> None:
    """One dtype for all operands, or, at last, a different one for each."""
    dtypes = DTYPES[first : first + 1] or DTYPES
    for operands, params in samples(card):
        if card.name == "cast":
            params = {"dtype": dtypes[0]}
        y, leaves = called(card, operands, params, dtypes)
        rounded = [
            np.asarray(o).astype(dtypes[n % len(dtypes)]) if np.asarray(o).dtype.kind == "f" else o
            for n, o in enumerate(operands)
        ]
        if len(dtypes) == 1:
            assert y.dtype == dtypes[0]
        z, wide = called(
            card, rounded, {**params, **({"dtype": "float64"} if "dtype" in params else {})}
        )
        assert y.dtype.kind == "f"
        coarsest = min((x.dtype for x in leaves), key=lambda d: d.itemsize)
        assert_close(y.data, z.data, coarsest)
        g = np.random.default_rng(2).normal(size=y.shape).astype(y.dtype)
        for x, ours, theirs in zip(
            leaves, mg.grad(y, leaves, g), mg.grad(z, wide, g.astype(float)), strict=True
        ):
            assert ours.dtype == x.dtype
            assert_close(ours, theirs, coarsest)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("card", [c for c in CARDS if c.defaults], ids=lambda c: c.name)
def test_an_operand_left_out_is_its_default_and_changes_no_dtype(card: Op, dtype: str) -> None:
    operands, params = next(samples(card))
    given = [n for n in card.inputs if n not in card.defaults]
    arrays = [o for n, o in zip(card.inputs, operands, strict=True) if n in given]
    leaves = [mg.tensor(o, requires_grad=True, dtype=dtype) for o in arrays]
    y = card.function(*leaves, **params)
    filled = [*(x.data for x in leaves), *(np.asarray(v, dtype) for v in card.defaults.values())]
    np.testing.assert_array_equal(y.data, card.function(*filled, **params).data, strict=True)
    assert y.dtype == dtype
    assert [g.dtype for g in mg.grad(y, leaves, np.ones(y.shape))] == [dtype] * len(leaves)


# --- far out --------------------------------------------------------------------------------------

FAR = [-np.inf, -1000.0, 1000.0, np.inf]
FAR_OUT: dict[str, tuple[list[float], list[float]]] = {  # values and slopes there
    "sigmoid": ([0, 0, 1, 1], [0, 0, 0, 0]),
    "tanh": ([-1, -1, 1, 1], [0, 0, 0, 0]),
    "erf": ([-1, -1, 1, 1], [0, 0, 0, 0]),
    **dict.fromkeys(
        ["softplus", "relu", "silu", "gelu", "gelu_erf"], ([0, 0, 1000, np.inf], [0, 0, 1, 1])
    ),
    "elu": ([-1, -1, 1000, np.inf], [0, 0, 1, 1]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FAR_OUT)
def test_far_out_nothing_overflows_and_infinity_is_the_limit(name: str, dtype: str) -> None:
    x = mg.tensor(FAR, requires_grad=True, dtype=dtype)
    y = getattr(mg, name)(x)
    values, slopes = FAR_OUT[name]
    np.testing.assert_array_equal(y.data, np.array(values, dtype), strict=True)
    np.testing.assert_array_equal(mg.grad(y, [x], np.ones(4))[0], np.array(slopes, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name, params, values, slopes",
    [
        ("softmax", {"dim": 0}, [0, 0, 1], [0, 0, 0]),
        ("log_softmax", {"dim": 0}, [-np.inf, -2000, 0], [1, 1, -2]),
        ("logsumexp", {}, 1000, [0, 0, 1]),
        ("cross_entropy", {"target": 1}, 2000, [0, -1, 1]),
        ("cross_entropy", {"target": 2}, 0, [0, 0, 0]),
    ],
)
def test_rows_far_apart_and_masked_cells_do_not_overflow(
    name: str, params: dict, values: list, slopes: list, dtype: str
) -> None:
    x = mg.tensor([-np.inf, -1000.0, 1000.0], requires_grad=True, dtype=dtype)
    y = getattr(mg, name)(x, **params)
    np.testing.assert_array_equal(y.data, np.array(values, dtype), strict=True)
    np.testing.assert_array_equal(mg.grad(y, [x], np.ones(y.shape))[0], np.array(slopes, dtype))


# --- many cells in float32 ------------------------------------------------------------------------

MANY = 300_000
TENTH = np.full((MANY, 2), 0.1, np.float32)
ONES, ZEROS = np.ones((MANY, 2), np.float32), np.zeros(MANY, int)
SUMS: dict[str, Callable[[mg.Tensor], mg.Tensor]] = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0) * MANY,
    "norm": lambda x: x.norm(p=1, dim=0),
    "var": lambda x: mg.cat([x, -x]).var(0, correction=0) * 10 * MANY,
    "cumsum": lambda x: x.cumsum(0)[-1],
    "einsum": lambda x: mg.einsum("ij->j", x),
    "einsum of two": lambda x: mg.einsum("ij,i->j", x, ONES[:, 0]),
    "mse_loss": lambda x: mg.mse_loss(x, 0 * x, reduction="sum") * 5,
    "index_add": lambda x: mg.index_add(np.zeros((1, 2), "f4"), 0, ZEROS, x),
    "avg_pool2d": lambda x: mg.avg_pool2d(x.reshape(1, 1, 300, 2000), (300, 2000)) * MANY,
}
PULLS: dict[str, Callable[[mg.Tensor], mg.Tensor]] = {
    "mul": lambda w: w * ONES,
    "broadcast_to": lambda w: w.broadcast_to(MANY, 2),
    "repeat": lambda w: w.reshape(1, 2).repeat(MANY, 1),
    "getitem": lambda w: w.reshape(1, 2)[ZEROS],
    "embedding": lambda w: mg.embedding(ZEROS, w.reshape(1, 2)),
    "index_select": lambda w: w.reshape(1, 2).index_select(0, ZEROS),
    "einsum": lambda w: mg.einsum("ij,j->ij", ONES, w),
    "layer_norm": lambda w: mg.layer_norm(TENTH, ONES[0], w),
    "rms_norm": lambda w: mg.rms_norm(ONES, w, eps=0.0),
    "conv2d": lambda w: mg.conv2d(ONES[:, :1, None, None], ONES[:2, :1, None, None], w).reshape(
        MANY, 2
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_float32_sums_accumulate_in_float64(name: str) -> None:
    y = SUMS[name](mg.tensor(TENTH))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.data, MANY / 10, rtol=1e-6)


@pytest.mark.parametrize("name", PULLS)
def test_what_comes_back_to_one_float32_cell_is_accumulated_in_float64(name: str) -> None:
    w = mg.tensor([1.0, 1.0], requires_grad=True, dtype="float32")
    y = PULLS[name](w)
    assert y.shape == TENTH.shape and y.dtype == np.float32
    np.testing.assert_allclose(mg.grad(y, [w], TENTH)[0], MANY / 10, rtol=1e-6)


def test_a_naive_float32_sum_would_be_noticed() -> None:
    assert np.einsum("ij->j", TENTH)[0] != pytest.approx(MANY / 10, rel=1e-4)
