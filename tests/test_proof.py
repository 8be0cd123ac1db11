"""The proof: every card keeps its promises on drawn shapes, layouts and dtypes, and at kinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from calling import called, on
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
from minigrad.card import Op
from minigrad.domains import domain_of, samples

CARDS = list(mg.registry.values())
every_card = pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
elementwise = pytest.mark.parametrize(
    "card", [c for c in CARDS if c.elementwise], ids=lambda c: c.name
)
others = pytest.mark.parametrize(
    "card", [c for c in CARDS if not c.elementwise], ids=lambda c: c.name
)


def calm(examples: int) -> Callable[..., Any]:
    return settings(deadline=None, derandomize=True, max_examples=examples)


# --- layouts --------------------------------------------------------------------------------------


def reversed_view(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.flip(np.flip(x).copy()))


def strided_view(x: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * n + 1 for n in x.shape], x.dtype)
    view = wide[(..., *(slice(1, None, 2) for _ in x.shape))]
    view[...] = x
    return view


def transposed_view(x: np.ndarray) -> np.ndarray:
    return np.array(x.T, order="C").T


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS = [reversed_view, strided_view, transposed_view, read_only, np.copy]
layouts = st.lists(st.sampled_from(LAYOUTS), min_size=4, max_size=4)


def test_the_views_hold_the_same_cells_in_another_layout() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for view in LAYOUTS:
        np.testing.assert_array_equal(view(x), x, strict=True)
        assert view(x[0, 0, ...]).shape == () and view(x[:0]).shape == (0, 3)
    strides = [view(x).strides for view in LAYOUTS]
    assert strides[:3] == [(-24, -8), (112, 16), (8, 16)]
    assert not read_only(x).flags.writeable


def laid_out(card: Op, operands: Any, views: list[Any]) -> list[mg.Tensor]:
    """Tensors whose values lie in memory as given: results of ops do, though leaves are copies."""
    used = card.taking(len(operands))
    return [
        mg.Tensor(views[n % len(views)](np.asarray(o)), name in used.rules, name, None)
        for n, (o, name) in enumerate(zip(operands, used.inputs, strict=True))
    ]


def assert_layouts_do_not_matter(
    card: Op, operands: Any, params: Mapping[str, Any], views: list[Any], g: np.ndarray
) -> None:
    """Forward and gradients equal those of contiguous copies; g arrives straight, or as a view."""
    y, leaves = called(card, operands, params)
    expected = [y.data, *mg.grad(y, leaves, g)]
    z, again = called(card, laid_out(card, operands, views), params)
    turned, g_turned = z.flip(tuple(range(z.ndim))).T, np.flip(g).T
    for found in (mg.grad(z, again, views[-1](g)), mg.grad(turned, again, g_turned)):
        for ours, theirs in zip([z.data, *found], expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13, strict=True)


# --- elementwise: any shapes that broadcast, any layouts ------------------------------------------


def cells_of(card: Op, shapes: Any, rng: np.random.Generator) -> list[np.ndarray]:
    """Cells of the card's domain; where kinks lie inside it, on a grid that keeps away from them.

    The bounds of clamp are whole tenths, and the kinks of maximum and minimum are ties.
    """
    cells = [domain_of(card, n).draw(rng, s) for n, s in zip(card.inputs, shapes, strict=True)]
    if card.name in ("clamp", "maximum", "minimum"):
        return [np.round(x, 1) + (0.05 if n == 0 else 0) for n, x in enumerate(cells)]
    return cells


def params_of(card: Op, draw: Any) -> dict[str, Any]:
    given = card.domain if isinstance(card.domain, Mapping) else {}
    return {n: draw(st.sampled_from(given[n])) for n in card.params if n in given}


@elementwise
@calm(25)
@given(st.data())
def test_elementwise_ops_on_any_shapes_and_layouts(card: Op, data: st.DataObject) -> None:
    count = len(card.inputs)
    shapes, whole = data.draw(
        hnp.mutually_broadcastable_shapes(
            num_shapes=count, min_dims=0, max_dims=3, min_side=0, max_side=3
        )
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    operands = cells_of(card, shapes, rng)
    params = params_of(card, data.draw)
    y, leaves = called(card, operands, params)
    expected = card.expected(tuple(operands), params)
    np.testing.assert_allclose(y.data, expected, rtol=1e-13, atol=1e-14, strict=True)
    assert y.shape == whole
    g = rng.normal(size=whole)
    assert [found.shape for found in mg.grad(y, leaves, g)] == [x.shape for x in leaves]
    assert_layouts_do_not_matter(card, operands, params, data.draw(layouts), g)
    report = mg.check_op(on(card, operands, params))
    assert report, report.table()


# --- all other ops: their own samples, in any layout ----------------------------------------------


@others
@calm(10)
@given(layouts)
def test_other_ops_on_any_layouts(card: Op, views: list[Any]) -> None:
    for operands, params in samples(card):
        y, _ = called(card, operands, params)
        g = np.random.default_rng(1).normal(size=y.shape)
        assert_layouts_do_not_matter(card, operands, params, views, g)


# --- conventions ----------------------------------------------------------------------------------

KINKS = [(card, kink) for card in CARDS for kink in card.kinks if kink.at]


@pytest.mark.parametrize("card, kink", KINKS, ids=[f"{c.name}-{k.words}" for c, k in KINKS])
def test_the_convention_at_a_kink_is_what_its_words_say(card: Op, kink: mg.Kink) -> None:
    operands = [
        np.asarray(kink.at[name], float if name in card.rules else None) for name in card.inputs
    ]
    params = {name: kink.at[name] for name in card.params if name in kink.at}
    assert kink.slopes and {*kink.at} <= {*card.inputs, *card.params}
    y, leaves = called(card, operands, params)
    by_name = dict(zip([x.name for x in leaves], mg.grad(y, leaves, np.ones(y.shape)), strict=True))
    for name, slopes in kink.slopes.items():
        expected = np.broadcast_to(np.asarray(slopes, float), by_name[name].shape)
        np.testing.assert_array_equal(by_name[name], expected)
