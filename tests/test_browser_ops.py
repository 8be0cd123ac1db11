"""The Ops page and the file of all ops in a real browser: find, read, try, share, get it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from stepper_page import Stepper, type_into

import minigrad as mg
from minigrad.view.sheets_html import to_html

SMALL = """root => {
    const scale = (matrix) => (matrix ? Math.hypot(matrix.a, matrix.b) : 1);
    const size = (e) => scale(e.getScreenCTM?.()) * parseFloat(getComputedStyle(e).fontSize);
    const isText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    return [...root.querySelectorAll("*:not(style, math *)")]
        .filter((e) => isText(e) && e.checkVisibility() && size(e) < 12.9)
        .map((e) => e.outerHTML);
}"""


def sheet(page, name: str):
    """The sheet of an op, once it is there."""
    found = page.locator(f'article[data-op="{name}"]')
    found.wait_for()
    return found


def test_search_choose_back_and_the_next_page(tab, app) -> None:
    tab.goto(f"{app}/ops")
    field = tab.get_by_test_id("search")
    entries = tab.locator("li[data-op]")
    entries.first.wait_for()
    assert entries.count() == len(mg.registry)
    field.fill("loss")
    assert {"nll_loss", "cross_entropy"} <= set(tab.locator("li:visible b").all_inner_texts())
    field.fill("no such thing <b>")
    tab.get_by_text("No op matches “no such thing <b>”.").wait_for()
    field.fill("tanh")
    field.press("Enter")
    sheet(tab, "tanh")
    assert tab.url.endswith("/ops?op=tanh")
    tab.get_by_test_id("matches").get_by_role("link", name="sigmoid").click()
    sheet(tab, "sigmoid")
    tab.go_back()
    sheet(tab, "tanh")
    tab.get_by_role("link", name="All ops").click()
    entries.first.wait_for()
    tab.wait_for_url("**/ops")
    tab.get_by_role("link", name="Lessons").click()
    tab.get_by_role("heading", name="1 · The reference table").wait_for()


def test_an_op_has_an_address_of_its_own_with_its_step(tab, app) -> None:
    tab.goto(f"{app}/ops?op=tanh&step=3")
    drawn = sheet(tab, "tanh")
    assert drawn.get_by_test_id("saves").inner_text() == "y"
    assert drawn.locator("figure.curve svg text", has_text="slope, numeric").is_visible()
    assert "✓ agrees" in drawn.get_by_test_id("verdict").inner_text()
    stepper = Stepper(tab)
    stepper.wait_for_step(2)
    stepper.press("ArrowRight")
    stepper.wait_for_step(3)
    tab.wait_for_url("**op=tanh&step=4")


def test_a_wrong_address_is_one_sentence_and_the_page_lives(tab, app) -> None:
    tab.goto(f"{app}/ops?op=<nope>")
    tab.get_by_text("There is no op called “<nope>”").wait_for()
    tab.locator('li[data-op="mul"] a').click()
    sheet(tab, "mul")
    tab.goto(f"{app}/ops?op=add&example=99")
    tab.get_by_text("This op has no example “99”").wait_for()
    Stepper(tab)


def test_a_wrong_index_is_said_beside_its_field_and_nothing_is_lost(tab, app) -> None:
    tab.goto(f"{app}/ops?op=index_select")
    sheet(tab, "index_select")
    stepper = Stepper(tab)
    tables = tab.locator('[data-testid="stDataFrame"]')
    type_into(tab, tables.nth(1), "9")
    tab.get_by_text("index 9 is out of range").wait_for()
    assert stepper.steps == 4
    type_into(tab, tables.nth(1), "1.5")
    tab.get_by_text("index: a cell must be a whole number, not 1.5").wait_for()
    type_into(tab, tables.nth(1), "1")
    tab.get_by_text("a whole number").wait_for(state="detached")
    Stepper(tab)


@pytest.mark.parametrize(("name", "scheme"), [("gelu", "light"), ("mul", "dark")])
def test_nothing_overflows_and_text_is_large_enough(browser, app, name, scheme) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{app}/ops?op={name}")
    root = sheet(page, name)
    for width in (600, 900, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator("body").evaluate("e => e.scrollWidth - e.clientWidth") <= 0
        assert root.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
        assert root.evaluate(SMALL) == []
    red, green, blue = root.locator("h2").evaluate(
        "e => getComputedStyle(e).color.match(/[\\d.]+/g).map(Number).slice(0, 3)"
    )
    context.close()
    assert (red + green + blue > 384) == (scheme == "dark")


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("ops") / "ops.html"
    with pytest.MonkeyPatch.context() as patch:
        few = {name: mg.registry[name] for name in ("tanh", "mul", "softmax")}
        patch.setattr("minigrad.view.sheets_html.registry", few)
        patch.setattr("minigrad.view.sheet_html.registry", few)
        to_html(path)
    return path


def test_the_file_searches_and_steps_from_disk_offline(tab, file) -> None:
    tab.context.set_offline(True)
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(file.as_uri())
    field = tab.get_by_test_id("search")
    field.fill("hyperbolic")
    assert tab.locator("article:visible").count() == 1
    field.fill("zebra")
    tab.get_by_text("No op matches “zebra”.").wait_for()
    field.fill("")
    tab.get_by_test_id("matches").get_by_role("link", name="softmax").click()
    assert tab.url.endswith("#softmax")
    tab.locator("#softmax summary").click()
    stepper = Stepper(tab)
    stepper.press("ArrowRight")
    stepper.wait_for_step(1)
    assert tab.get_by_test_id("stepper").count() == 1
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
