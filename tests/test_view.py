"""What people read: frames, formulas and the graph, asserted on their text form."""

from __future__ import annotations

import re

import numpy as np
import pygraphviz
import pytest

import minigrad as mg
from minigrad.view.dot import all_stats, dot
from minigrad.view.formula import bar_text, mathml, name_tex, named, plain
from minigrad.view.frame import frames
from minigrad.view.html import payload
from minigrad.view.parts import Cells, Grid, Letters, in_words, short
from minigrad.view.svg import svg
from minigrad.view.text import frame_text

AWKWARD = [
    "<lambda>",
    "<lambda> <map>",
    "<b>w</b>",
    "a<b>c",
    'loss & "x"',
    "back\\slash",
    "a:b",
    "&lt;",
    "n\nl",
]


def broadcast_case() -> mg.Trace:
    a = mg.tensor([[[-1, -0.5, 0], [0.5, 1, 1.5]]], requires_grad=True, name="a")
    b = mg.tensor([[[2, -1, 0.5]]], requires_grad=True, name="b")
    w = mg.tensor([[[0.3, -1.2, 0.7], [2, -0.5, 1.1]]], name="w")
    y = a * b
    z = y * w
    L = z.sum()
    return mg.record(L)


def grids(frame) -> dict[str, Grid]:
    return {part.kind: part for part in frame.parts if isinstance(part, Grid)}


def test_a_pull_shows_upstream_local_contribution_and_the_reduced_gradient() -> None:
    frame = frames(broadcast_case())[7]
    shown = grids(frame)
    assert list(shown) == ["upstream", "local", "contribution", "reduced"]
    np.testing.assert_allclose(shown["reduced"].array, [[[0.7, 0.1, 1.65]]], atol=1e-12)
    assert frame.tick == "mul → b"
    text = frame_text(frame)
    assert text.startswith("Step 8 of 10 · mul pulls back into b, its second input")
    assert "b was copied along axis 1" in text and "b̄ = ∑_axis 1 ȳ ⊙ a" in text
    assert "Σ axis 1" in text and "[[[0.7 0.1 1.65]]]" in text
    assert "✓ agrees" in text and "1 of 1 uses has arrived" in text


def test_the_sum_over_copies_is_written_as_products_of_shown_cells() -> None:
    reduced = grids(frames(broadcast_case())[7])["reduced"]
    assert reduced.sources == Letters("aBc", (("upstream", "abc"), ("local", "abc")))


def test_an_op_that_is_not_elementwise_shows_its_saved_values_and_small_jacobian() -> None:
    a = mg.tensor([[1.0, 2.0]], requires_grad=True)
    b = mg.tensor([[3.0], [4.0]], requires_grad=True)
    trace = mg.record((a @ b).sum())
    frame = next(f for f in frames(trace) if f.tick == "matmul → a")
    assert "local" not in grids(frame)
    assert frame.residuals is not None and frame.residuals.parts[0].key == "residual:b"
    assert frame.jacobian is not None and frame.jacobian.array.tolist() == [[3.0, 4.0]]
    sources = grids(frame)["contribution"].sources
    assert sources == Letters("ik", (("upstream", "ij"), ("residual:b", "kj")))


def test_sources_of_other_ops_come_from_the_jacobian() -> None:
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    frame = next(f for f in frames(mg.record(x.T.mean(dim=0).sum())) if f.tick.startswith("mean"))
    sources = grids(frame)["contribution"].sources
    assert sources == Cells("upstream", (((0.5, 0),), ((0.5, 1),), ((0.5, 0),), ((0.5, 1),)))


def test_a_leaf_used_twice_shows_both_contributions_when_it_is_reached() -> None:
    x = mg.tensor([2.0, 4.0, 9.0], requires_grad=True)
    y = x - x.mean()
    trace = mg.record(y, gradient=[1.0, 0.0, 0.0])
    last = frames(trace)[-1]
    added = [p.array for p in last.parts if isinstance(p, Grid) and p.kind == "added"]
    np.testing.assert_allclose(added, [[1, 0, 0], [-1 / 3] * 3])
    np.testing.assert_allclose(grids(last)["gradient"].array, [2 / 3, -1 / 3, -1 / 3])


def test_a_zero_slope_is_said_in_words() -> None:
    @mg.elementwise(tex=r"y = \lfloor x \rfloor", partials={"x": (lambda: 0.0, "0")})
    def floor(x):
        return np.floor(x)

    x = mg.tensor([1.5], requires_grad=True)
    text = mg.record(floor(x).sum()).text()
    assert "The gradient stops here: the slope of floor is 0 almost everywhere" in text


def test_numbers_are_part_of_the_ops_label() -> None:
    x = mg.tensor(3.0, requires_grad=True)
    drawn = dot(mg.record((2 - x) * 5))
    assert "sub 2 − →" in drawn and "mul × 5 →" in drawn
    assert drawn.count("->") == 2


def test_values_are_drawn_when_made_and_gradients_when_they_arrive() -> None:
    trace = broadcast_case()
    stats = all_stats(trace)
    b = [(s.start, s.hue) for s in stats[1]]
    assert b == [(0, "value"), (7, "grad")]
    assert stats[1][-1].text == "‖b‖ 2.29 · grad 1.8"


def test_x_times_x_draws_two_edges_and_shows_two_contributions() -> None:
    x = mg.tensor(3.0, requires_grad=True)
    trace = mg.record(x * x)
    assert dot(trace).count("n0 -> n1") == 2
    assert [f.tick for f in frames(trace)].count("mul → v0") + [
        f.tick for f in frames(trace)
    ].count("mul → x") == 2


def test_two_leaves_of_one_name_and_an_op_used_twice_stay_apart() -> None:
    w1 = mg.tensor(2.0, requires_grad=True, name="w")
    w2 = mg.tensor(3.0, requires_grad=True, name="w")
    graph = pygraphviz.AGraph(string=dot(mg.record(mg.relu(mg.relu(w1 * w2)))))
    assert len(graph.nodes()) == 5 and len(graph.edges()) == 4


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_are_shown_letter_by_letter(name: str) -> None:
    x = mg.tensor(2.0, requires_grad=True, name=name)
    made = payload(mg.record(x * x))
    shown = name.replace("\n", " ")
    texts = re.findall(r'class="name">([^<]*)<', made["svg"])
    escaped = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert escaped in texts
    for frame in made["frames"]:
        assert "<b>w</b>" not in frame["say"].replace("<b>&lt;b&gt;w&lt;/b&gt;</b>", "")
        assert "<lambda>" not in frame["say"] + frame["title"]


def test_an_op_made_from_a_lambda_is_drawn_by_its_name() -> None:
    strange = mg.elementwise(tex="y = 2x", partials={"x": (lambda: 2.0, "2")})(lambda x: 2 * x)
    x = mg.tensor(2.0, requires_grad=True)
    made = payload(mg.record(strange(x)))
    assert "&lt;lambda&gt; →" in made["svg"]


def test_every_formula_of_every_card_is_drawn_without_a_backslash() -> None:
    for card in mg.registry.values():
        words = {name: name_tex(name) for name in (*card.inputs, "y")}
        for tex in (card.tex, *(rule.tex for rule in card.rules.values())):
            drawn = mathml(named(tex, words))
            assert drawn.startswith("<math") and "\\" not in drawn, f"{card.name}: {tex}"
            assert "\\" not in plain(named(tex, words))


@pytest.mark.parametrize(
    "tex", [r"\notacommand{x}", r"\text{<script>1</script>}", "<img src=x>", r"\frac{1"]
)
def test_a_formula_that_cannot_be_drawn_is_shown_as_text(tex: str) -> None:
    drawn = mathml(tex)
    assert "<script" not in drawn and "<img" not in drawn
    assert drawn.startswith("<code>") or "\\" not in drawn


def test_names_in_formulas() -> None:
    assert plain(named(r"\bar Y B^{\top}", {"y": "z", "b": name_tex("w1")})) == "z̄w_1 ^⊤"
    assert plain(named(r"y \ln x", {"x": name_tex("<b>"), "y": "y"})) == "y ln <b>"
    assert "&lt;b&gt;" in mathml(name_tex("<b>"))
    assert [bar_text(n) for n in ("b", "x1", "bias")] == ["b\u0304", "x\u03041", "∂bias"]


def test_short_numbers() -> None:
    assert [short(v) for v in (0.0, -0.0, -1.25e-11, np.nan, np.inf, 1e6)] == [
        "0", "0", "−1.25e−11", "NaN", "∞", "1e6",
    ]  # fmt: skip


def test_the_svg_has_classes_instead_of_colours_and_the_same_layout_every_time() -> None:
    drawn = svg(dot(broadcast_case()))
    assert 'data-node="3"' in drawn and 'data-edge="3-1"' in drawn
    assert "fill=" not in drawn and "stroke=" not in drawn and "<title" not in drawn
    assert drawn == svg(dot(broadcast_case()))


def test_a_title_in_words() -> None:
    assert in_words(frames(broadcast_case())[3].title) == "the walk starts at L"


def test_where_the_gradient_does_not_go_on_is_said_with_the_reason() -> None:
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    h = (x * x).detach()
    with mg.no_grad():
        k = x * 3
    text = mg.record((x * h * k * mg.tensor([1.0, 1.0], name="one")).sum()).text()
    for sentence in (
        "Nothing goes on to h: it was detached.",
        "Nothing goes on to k: it was made inside no_grad.",
        "Nothing goes on to one: it is a constant.",
    ):
        assert sentence in text


def test_the_first_op_that_makes_nan_or_infinity_is_named() -> None:
    x = mg.tensor([-4.0, 9.0], requires_grad=True)
    made = [in_words(f.say) for f in frames(mg.record((mg.sqrt(x) * 2).sum()))]
    assert [n for n, words in enumerate(made) if "finite numbers become NaN" in words] == [0]
    y = mg.tensor([0.0, 4.0], requires_grad=True)
    pulled = [in_words(f.say) for f in frames(mg.record((mg.sqrt(y) * 2).sum()))]
    assert sum("a finite gradient becomes infinity" in words for words in pulled) == 1


def test_a_weight_used_in_many_layers_is_drawn_with_long_edges() -> None:
    x = mg.tensor([[1.0]], requires_grad=True)
    w = mg.tensor([[0.5]], requires_grad=True)
    y = x
    for _ in range(40):
        y = mg.tanh(y @ w)
    drawn = payload(mg.record(y.sum(), checks=False))["svg"]
    assert drawn.count('class="edge far tracked"') == 36
    assert drawn.count("data-edge=") == 40 * 3 + 1


def test_a_negative_scalar_fills_its_node_by_its_magnitude() -> None:
    x = mg.tensor(2.0, requires_grad=True)
    stats = all_stats(mg.record(x * -3))
    assert [s.strength for s in stats[0]] == pytest.approx([2 / 6, 1.0])
    assert all(0 <= s.strength <= 1 for node in stats for s in node)
