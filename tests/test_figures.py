"""Figures of an op: curves, maps and Jacobians as numbers, then as one picture for both themes."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import minigrad as mg
from minigrad.card import Op
from minigrad.view.figures import Curve, Jacobian, Map, figures
from minigrad.view.plot import plot
from minigrad.view.sheet import smallest

CARDS = list(mg.registry.values())


# --- figures --------------------------------------------------------------------------------------


def kinds(name: str) -> list[type]:
    return [type(figure) for figure in figures(mg.registry[name])]


def test_what_is_plotted_depends_on_the_inputs() -> None:
    assert kinds("tanh") == [Curve]
    assert kinds("mul") == [Map, Map, Map]
    assert kinds("where") == [Jacobian, Jacobian]
    assert kinds("matmul") == [Jacobian, Jacobian]
    assert kinds("embedding") == [Jacobian]


@pytest.mark.parametrize(
    "card", [c for c in CARDS if c.elementwise and len(c.inputs) == 1], ids=lambda card: card.name
)
def test_the_numeric_slopes_lie_on_the_curve(card: Op) -> None:
    (curve,) = figures(card)
    between = np.interp(curve.at, curve.x, curve.slope)
    known = np.isfinite(curve.numeric) & np.isfinite(between)
    assert known.sum() > 10
    height = curve.window[1] - curve.window[0]
    inside = known & (np.abs(between) < height)
    assert np.max(np.abs(between - curve.numeric)[inside]) < 0.02 * height


def test_a_line_breaks_at_a_pole_and_at_a_jump_and_keeps_to_the_domain() -> None:
    (curve,) = figures(mg.registry["recip"])
    assert np.isnan(curve.y[np.abs(curve.x) < 0.02]).all()
    assert curve.window[1] - curve.window[0] < 40
    (floor,) = figures(mg.registry["floor"])
    assert np.isnan(floor.y).sum() == 7
    (ln,) = figures(mg.registry["ln"])
    assert ln.x.min() > 0


def test_the_convention_at_a_kink_is_drawn() -> None:
    (curve,) = figures(mg.registry["abs"])
    assert set(curve.kinks) == {(0.0, 0.0)}


def test_a_map_is_the_op_and_its_slopes() -> None:
    y, by_a, by_b = figures(mg.registry["mul"])
    assert (y.name, by_a.name, by_b.name) == ("y", "slope by a", "slope by b")
    side = np.linspace(-4, 4, 81)
    assert np.allclose(y.values, side[:, None] * side)
    assert np.allclose(by_a.values, side[:, None]) and np.allclose(by_b.values, side)
    assert y.limit == 16 and y.beyond == (False, False)


def test_the_jacobian_of_softmax_is_the_known_one() -> None:
    (jacobian,) = figures(mg.registry["softmax"])
    ((x,), _) = smallest(mg.registry["softmax"])
    y = np.exp(x) / np.exp(x).sum()
    assert np.allclose(jacobian.values, np.diag(y) - np.outer(y, y))
    assert jacobian.rows == ("0", "1", "2") and jacobian.note == "x 3, dim = 0"


# --- SVG ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tanh", "mul", "softmax"])
def test_a_plot_is_labelled_themed_and_the_same_each_time(name: str) -> None:
    figure = figures(mg.registry[name])[0]
    picture = plot(figure, name)
    assert picture == plot(figure, name)
    texts = {t.text for t in ElementTree.fromstring(picture).iter() if t.tag.endswith("text")}
    wanted = {
        "tanh": {"x", "y and its slope", "y", "slope, rule", "slope, numeric"},
        "mul": {"a", "b", "−16", "16"},
        "softmax": {"cell of x", "cell of y"},
    }
    assert wanted[name] <= texts
    assert "var(--ink" in picture and not re.search(r"(?<!, )#1b2430", picture)
    assert "<style" not in picture and "<metadata" not in picture and "http://purl" not in picture
    sizes = [float(s) for s in re.findall(r"font-size: ([\d.]+)px", picture)]
    assert sizes and min(sizes) >= 13


def test_a_slope_beyond_the_colours_is_said() -> None:
    _, by_a, _ = figures(mg.registry["div"])
    assert by_a.beyond == (True, True)
    assert "≥ " in plot(by_a, "div")
