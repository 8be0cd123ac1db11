"""Every op has a complete sheet, and everything on it comes from its card."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import minigrad as mg
from minigrad import __main__ as cli
from minigrad.card import Kink, Op
from minigrad.domains import samples
from minigrad.view.figures import figures
from minigrad.view.formula import mathml
from minigrad.view.sheet import (
    SIGNS,
    call_in_words,
    recorded,
    sheet_of,
    sheet_text,
    smallest,
    verdict,
)
from minigrad.view.sheet_html import index_html, sheet_html

CARDS = list(mg.registry.values())


def drawn_as_text(tex: str) -> bool:
    return "<code>" in mathml(tex)


def lacks(card: Op) -> list[str]:
    """What an op's page could not show for want of it on the card."""
    formulas = {"formula": card.tex} | {f"rule of {n}": r.tex for n, r in card.rules.items()}
    missing = [name for name, tex in formulas.items() if not tex.strip()]
    missing += [f"drawable {name}" for name, tex in formulas.items() if drawn_as_text(tex)]
    if not (card.forward.__doc__ or "").strip():
        missing.append("docstring")
    if card.reference is None:
        missing.append("reference")
    try:
        if not list(samples(card)):
            missing.append("samples")
        elif not figures(card):
            missing.append("plot or Jacobian")
    except mg.MinigradError as problem:
        missing.append(f"samples: {problem}")
    return missing


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_card_lacks_nothing(card: Op) -> None:
    assert lacks(card) == []


def silent(x):
    return x


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"tex": " "}, "formula"),
        ({"tex": r"\notacommand{x}"}, "drawable formula"),
        ({"reference": None}, "reference"),
        ({"forward": silent}, "docstring"),
        ({"params": {"dim": ...}}, "samples"),
        ({"rules": {}}, "plot or Jacobian"),
        ({"rules": {"x": replace(mg.registry["tanh"].rules["x"], tex="")}}, "rule of x"),
    ],
)
def test_a_card_that_lacks_something_is_noticed(change, missing: str) -> None:
    broken = replace(mg.registry["tanh"], **change)
    assert any(words.startswith(missing) for words in lacks(broken))


# --- sheets ---------------------------------------------------------------------------------------


def test_a_sheet_as_text() -> None:
    assert sheet_text(sheet_of(mg.registry["relu"])).splitlines() == [
        "relu   y = max(x,0)",
        "    x where it is above 0, else 0.",
        "    mg.relu(x)   x.relu()",
        "    slope by x: [x > 0]   (saves x)",
        "    domain: x: real numbers except near 0",
        "    elementwise: a cell of y depends on one cell of each input",
        "    cost: memory: cheap to make again",
        "    kinks: at x = 0 the slope is 0",
    ]


def test_a_sheet_with_an_index_and_parameters() -> None:
    text = sheet_text(sheet_of(mg.registry["index_select"]))
    assert "mg.index_select(x, dim, index)   x.index_select(dim, index)" in text
    assert "(saves index)" in text
    assert "index: index or mask, no gradient" in text
    assert "parameters: dim" in text


@pytest.mark.parametrize("name", SIGNS)
def test_an_operator_on_a_sheet_is_that_op(name: str) -> None:
    operands = {word: mg.tensor(np.eye(2) + 1, requires_grad=True) for word in ("a", "b", "x", "e")}
    written = sheet_of(mg.registry[name]).calls[-1]
    assert eval(written, {}, operands).op == name


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_the_sheet_says_what_the_card_says(card: Op) -> None:
    page = sheet_html(card)
    assert ElementTree.fromstring(page.replace("&#x27;", "'")) is not None, "well-formed"
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and all(i.startswith(card.name) for i in ids)
    for kink in card.kinks:
        assert kink.words.replace("<", "&lt;").replace(">", "&gt;") in page
    assert page.count("<tr data-input=") == len(card.inputs)
    assert page.count("<svg") == len(figures(card))
    assert 'class="verdict agrees"' in page


def test_a_wrong_rule_is_said_on_its_sheet() -> None:
    @mg.elementwise(tex="y = 2x", partials={"x": (lambda: 2.1, "2")})
    def twice(x):
        """Twice x."""
        return 2 * x

    word, sentence = verdict(twice.card)
    assert word == "differs" and "ratio 1.05" in sentence
    (curve,) = figures(twice.card)
    assert np.allclose(curve.slope, 2.1) and np.allclose(curve.numeric, 2)


def test_hostile_words_on_a_card_are_text() -> None:
    @mg.elementwise(
        tex="y = x", partials={"x": (lambda: 1.0, "1")}, kinks=Kink("<img src=x onerror=alert(1)>")
    )
    def plain(x):
        """<script>alert(1)</script>"""
        return x

    page = sheet_html(plain.card)
    assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page


def test_the_index_finds_ops_by_family_words_and_formula() -> None:
    page = index_html(lambda name: f"?op={name}")
    entries = dict(re.findall(r'<li data-words="([^"]*)" data-op="([^"]*)"', page))
    found = {op: words for words, op in entries.items()}
    assert found.keys() == mg.registry.keys()
    assert "loss" in found["cross_entropy"] and "activations" in found["tanh"]
    assert "1 − y^2" in found["tanh"] and "hyperbolic" in found["tanh"]


# --- try it, and the file of all ops --------------------------------------------------------------


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_the_example_steps_and_every_check_agrees(card: Op) -> None:
    trace = recorded(card, *smallest(card))
    assert trace.checks and all(trace.checks) and trace.source is None
    assert trace.nodes[-1].name == "y"


def test_a_call_in_words() -> None:
    assert call_in_words(mg.registry["sum"], [np.ones((2, 3))], {"dim": -1, "keepdim": True}) == (
        "x 2×3, dim = -1, keepdim"
    )
    assert call_in_words(
        mg.registry["getitem"], [np.ones(4)], {"key": (slice(1, 3), ..., None)}
    ).endswith("key = (1:3, …, None)")


def test_the_file_of_all_ops_is_whole_and_needs_no_network(tmp_path: Path, monkeypatch, capsys):
    few = {name: mg.registry[name] for name in ("tanh", "mul", "cat")}
    monkeypatch.setattr("minigrad.view.sheets_html.registry", few)
    monkeypatch.setattr("minigrad.view.sheet_html.registry", few)
    monkeypatch.setattr(cli, "registry", few)
    file = tmp_path / "ops.html"
    assert cli.main(["ops", "--html", str(file)]) == 0
    assert "3 ops" in capsys.readouterr().out
    page = file.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert page.count('<article class="sheet"') == page.count("<details>") == 3
    outside = set(re.findall(r'(?:src|href)="(https?:[^"]*)"|url\((https?:[^)]*)\)', page))
    assert outside == set()
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("minigrad.view.sheets_html.page", lambda said: "")
    assert cli.main(["ops", "--html", str(tmp_path / "no" / "ops.html")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "ops.html" in said


# --- the page, without a browser ------------------------------------------------------------------


def ops_page() -> None:
    from minigrad.ui import ops

    ops.page()


def visit(name: str) -> AppTest:
    page = AppTest.from_function(ops_page, default_timeout=30)
    page.query_params["op"] = name
    return page.run()


ONE_PER_FAMILY = {sheet_of(card).family: card.name for card in CARDS}.values()


@pytest.mark.parametrize("name", ONE_PER_FAMILY)
def test_the_first_and_the_last_example_can_be_tried(name: str) -> None:
    page = visit(name)
    assert not page.exception and not page.error and not page.warning
    last = page.selectbox[0].options[-1]
    page.selectbox[0].select(last).run()
    assert not page.exception and not page.error and not page.warning
    assert page.query_params["example"] == str(len(page.selectbox[0].options))


@pytest.mark.parametrize(
    ("op", "typed", "sentence"),
    [
        ("sum", "7", "dim 7 is no axis of x"),
        ("sum", "abc", "“abc” is no value"),
        ("sum", "__import__('os')", "is no value"),
        ("repeat", "(1000, 2)", "at most 4096 are stepped here"),
        ("repeat", "(10000, 10000, 10000)", "too large to step through here"),
    ],
)
def test_a_wrong_parameter_is_said_and_nothing_is_lost(op: str, typed: str, sentence: str) -> None:
    page = visit(op)
    page.text_input[0].set_value(typed).run()
    (error,) = page.error
    said = error.value.replace("\\", "")
    assert sentence in said and "the last values" in said and not page.exception
