"""The proof, along axes: drawn shapes down to 0-d and size 0, and drawn dims, for every op."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from calling import called, on
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
from minigrad.card import Op
from minigrad.domains import distinct

Draw = Callable[..., Any]
Drawn = tuple[list[Any], dict[str, Any]]  # operands and parameters
Shape = tuple[int, ...]

any_shape = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
with_an_axis = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)


def normal(shape: Shape) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(0, 1.5, shape)


def axis(draw: Draw, shape: Shape, extra: int = 0) -> int:
    """An axis of the shape, counted from either end."""
    n = len(shape) + extra
    return draw(st.integers(-n, n - 1))


def resized(shape: Shape, dim: int, size: int) -> Shape:
    """The shape with another size along dim."""
    return tuple(size if n == dim % len(shape) else s for n, s in enumerate(shape))


def index(draw: Draw, size: int, shape: Shape) -> np.ndarray:
    """Whole numbers that point at cells 0 … size - 1, some of them from the end."""
    return draw(hnp.arrays(int, shape, elements=st.integers(-size, max(size - 1, 0))))


# --- what is drawn for each op --------------------------------------------------------------------


def over_axes(**more: st.SearchStrategy) -> Callable[[Draw], Drawn]:
    def drawn(draw: Draw) -> Drawn:
        shape = draw(any_shape)
        one = st.integers(-len(shape), len(shape) - 1) if shape else st.none()
        dim = draw(st.none() | one | hnp.valid_tuple_axes(len(shape)))
        params = {name: draw(values) for name, values in more.items()}
        cells = distinct(np.random.default_rng(1), shape)
        return [cells], {**params, "dim": dim, "keepdim": draw(st.booleans())}

    return drawn


def along_one(draw: Draw) -> Drawn:
    shape = draw(with_an_axis)
    return [normal(shape)], {"dim": axis(draw, shape)}


def index_select(draw: Draw) -> Drawn:
    shape = draw(with_an_axis)
    dim = axis(draw, shape)
    count = draw(st.integers(0, 4)) if shape[dim] else 0
    return [normal(shape), index(draw, shape[dim], (count,))], {"dim": dim}


def index_add(draw: Draw) -> Drawn:
    (x, places), params = index_select(draw)
    source = normal(resized(x.shape, params["dim"], len(places)))
    return [x, places, source], {**params, "alpha": draw(st.sampled_from([1, -2, 0.5]))}


def gather(draw: Draw) -> Drawn:
    shape = draw(with_an_axis)
    dim = axis(draw, shape)
    smaller = tuple(draw(st.integers(0, s)) for s in shape)
    sizes = resized(smaller, dim, draw(st.integers(0, 4)) if shape[dim] else 0)
    return [normal(shape), index(draw, shape[dim], sizes)], {"dim": dim}


def scatter_add(draw: Draw) -> Drawn:
    (x, places), params = gather(draw)
    return [x, places, normal(tuple(draw(st.integers(n, n + 1)) for n in places.shape))], params


def cat(draw: Draw) -> Drawn:
    shape = draw(with_an_axis)
    dim = axis(draw, shape)
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    return [normal(resized(shape, dim, n)) + n for n in sizes], {"dim": dim}


def stack(draw: Draw) -> Drawn:
    shape = draw(any_shape)
    count = draw(st.integers(1, 3))
    return [normal(shape) + k for k in range(count)], {"dim": axis(draw, shape, 1)}


def narrow(draw: Draw) -> Drawn:
    shape = draw(with_an_axis)
    dim = axis(draw, shape)
    start = draw(st.integers(0, shape[dim]))
    length = draw(st.integers(0, shape[dim] - start))
    start -= shape[dim] if start < shape[dim] and draw(st.booleans()) else 0
    return [normal(shape)], {"dim": dim, "start": start, "length": length}


def two_axes(draw: Draw) -> Drawn:
    shape = draw(with_an_axis)
    return [normal(shape)], {"dim0": axis(draw, shape), "dim1": axis(draw, shape)}


def in_order(draw: Draw) -> Drawn:
    shape = draw(any_shape)
    dims = draw(st.permutations(range(len(shape))))
    return [normal(shape)], {"dims": tuple(d - len(shape) * draw(st.booleans()) for d in dims)}


def some_axes(draw: Draw) -> Drawn:
    shape = draw(any_shape)
    return [normal(shape)], {"dims": draw(hnp.valid_tuple_axes(len(shape)))}


def squeeze(draw: Draw) -> Drawn:
    shape = draw(any_shape)
    ones = [n for n, s in enumerate(shape) if s == 1]
    dim = draw(st.none() | st.sets(st.sampled_from(ones)).map(tuple) if ones else st.none())
    return [normal(shape)], {"dim": dim}


def unsqueeze(draw: Draw) -> Drawn:
    shape = draw(any_shape)
    return [normal(shape)], {"dim": axis(draw, shape, 1)}


def reshape(draw: Draw) -> Drawn:
    shape = draw(any_shape)
    sizes = draw(st.permutations([*shape, 1]))
    if 0 not in shape and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return [normal(shape)], {"shape": tuple(sizes)}


def broadcast_to(draw: Draw) -> Drawn:
    (shape,), whole = draw(hnp.mutually_broadcastable_shapes(num_shapes=1, min_side=0, max_dims=3))
    return [normal(shape)], {"shape": whole}


def repeat(draw: Draw) -> Drawn:
    shape = draw(any_shape)
    count = len(shape) + draw(st.integers(0, 1))
    return [normal(shape)], {"sizes": tuple(draw(st.integers(0, 3)) for _ in range(count))}


def pad(draw: Draw) -> Drawn:
    shape = draw(with_an_axis)  # NumPy pads no scalar
    axes = draw(st.integers(0, len(shape)))
    widths = tuple(draw(st.integers(0, 2)) for _ in range(2 * axes))
    return [normal(shape)], {"pad": widths, "value": draw(st.sampled_from([0.0, 1.5]))}


def matmul(draw: Draw) -> Drawn:
    signature = hnp.mutually_broadcastable_shapes(
        signature=np.matmul.signature, min_side=0, max_side=3, max_dims=2
    )
    a, b = draw(signature)[0]
    return [normal(a), normal(b) + 1], {}


def outer(draw: Draw) -> Drawn:
    return [normal((draw(st.integers(0, 3)),)), normal((draw(st.integers(0, 3)),)) + 1], {}


DRAWN: dict[str, Callable[[Draw], Drawn]] = {
    **dict.fromkeys(["sum", "mean", "prod", "max", "min", "logsumexp"], over_axes()),
    **dict.fromkeys(["var", "std"], over_axes(correction=st.sampled_from([0, 1, 0.5]))),
    "norm": over_axes(p=st.sampled_from([1, 2, 3, np.inf])),
    **dict.fromkeys(["cumsum", "cumprod", "softmax", "log_softmax"], along_one),
    **{f.__name__: f for f in (index_select, index_add, gather, scatter_add, cat, stack, narrow)},
    **{f.__name__: f for f in (squeeze, unsqueeze, reshape, broadcast_to, repeat, pad)},
    **{f.__name__: f for f in (matmul, outer)},
    "transpose": two_axes,
    "permute": in_order,
    "flip": some_axes,
}
# Their shapes depend on more than an axis: proved on the samples of their domains.
SAMPLED = {"cast", "getitem", "embedding", "einsum", "conv2d", "max_pool2d", "avg_pool2d"}
SAMPLED |= {"nll_loss", "cross_entropy", "mse_loss", "binary_cross_entropy_with_logits"}
SAMPLED |= {"rms_norm", "layer_norm", "dropout"}


# --- what is proved -------------------------------------------------------------------------------


def test_every_op_along_axes_is_drawn_for() -> None:
    assert {c.name for c in mg.registry.values() if not c.elementwise} - SAMPLED == set(DRAWN)


def reduced_sizes(shape: Shape, dim: int | tuple[int, ...] | None) -> list[int]:
    axes = range(len(shape)) if dim is None else np.atleast_1d(np.array(dim, int))
    return [shape[axis] for axis in axes]


def placed(name: str, operands: list[Any], dim: int) -> np.ndarray:
    """The definitions of gather and scatter_add, cell by cell."""
    x, places = operands[:2]
    y = np.zeros(places.shape) if name == "gather" else x.copy()
    for at in np.ndindex(places.shape):
        there = list(at)
        there[dim] = places[at]
        if name == "gather":
            y[at] = x[tuple(there)]
        else:
            y[tuple(there)] += operands[2][at]
    return y


def expected(card: Op, operands: list[Any], params: dict[str, Any]) -> np.ndarray:
    if card.name in ("gather", "scatter_add"):
        return placed(card.name, operands, **params)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy warns of a mean over nothing
        return card.taking(len(operands)).expected(tuple(operands), params)


@pytest.mark.parametrize("name", DRAWN)
@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.data())
def test_ops_on_drawn_shapes_and_axes(name: str, data: st.DataObject) -> None:
    card, (operands, params) = mg.registry[name], DRAWN[name](data.draw)
    if name in ("max", "min") and 0 in reduced_sizes(operands[0].shape, params["dim"]):
        with pytest.raises(mg.DomainError, match=f"^{name}: .* nothing has no extreme"):
            called(card, operands, params)
        return
    y, leaves = called(card, operands, params)
    np.testing.assert_allclose(
        y.data, expected(card, operands, params), rtol=1e-12, atol=1e-13, strict=True
    )
    found = mg.grad(y, leaves, normal(y.shape))
    assert [g.shape for g in found] == [x.shape for x in leaves]
    if np.isfinite(y.data).all():  # NaN and infinity have no slope that could be measured
        report = mg.check_op(on(replace(card, reference=None), operands, params))
        assert report, report.table()
