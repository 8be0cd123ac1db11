"""The real app in a real browser: walk a lesson, edit it, share it, and get it wrong."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from stepper_page import Stepper, type_into

BROADCAST = "/?lesson=01_the_reference_table&case=mul-broadcast-1-1-3"
PULL_X1 = 7  # mul → x1


def near(values):
    return pytest.approx(values, abs=1e-12)


def test_the_first_lesson_opens_with_the_first_step(tab, app) -> None:
    tab.goto(app)
    stepper = Stepper(tab)
    assert (stepper.step, stepper.steps, stepper.phase) == (0, 10, "forward")
    assert "1 · The reference table" in tab.get_by_role("heading").first.inner_text()
    tab.get_by_role("table").filter(has_text="max abs difference").wait_for()


def test_the_broadcast_case_by_keyboard_there_and_back(tab, app) -> None:
    tab.goto(app + BROADCAST)
    stepper = Stepper(tab)
    there, places = [stepper.state()], [stepper.positions()]
    for step in range(1, stepper.steps):
        stepper.press("ArrowRight")
        stepper.wait_for_step(step)
        there.append(stepper.state())
        places.append(stepper.positions())
    stepper.press("ArrowRight")
    assert stepper.step == stepper.steps - 1, "the last step is the last"
    assert all(p == places[0] for p in places), "nodes never move"

    pulled = there[PULL_X1]
    assert pulled["upstream"] == near([0.3, -1.2, 0.7, 2.0, -0.5, 1.1])
    assert pulled["local"] == near([-1.0, -0.5, 0.0, 0.5, 1.0, 1.5])
    assert pulled["contribution"] == near([-0.3, 0.6, 0.0, 1.0, -0.5, 1.65])
    assert pulled["reduced"] == near([0.7, 0.1, 1.65])
    assert pulled["numeric"] == pytest.approx([0.7, 0.1, 1.65], abs=1e-9)
    assert max(pulled["difference"]) <= 1e-9
    assert "axis 1" in pulled["card"] and "agrees" in pulled["card"]
    assert pulled["label"].startswith("Step 8 of 10")

    back = [stepper.state()]
    for step in reversed(range(stepper.steps - 1)):
        stepper.press("ArrowLeft")
        stepper.wait_for_step(step)
        back.append(stepper.state())
    assert back[::-1] == there


def test_home_end_space_and_the_buttons(tab, app) -> None:
    tab.goto(app + BROADCAST)
    stepper = Stepper(tab)
    stepper.press("End")
    stepper.wait_for_step(9)
    assert stepper.part("next").is_disabled() and stepper.part("last").is_disabled()
    stepper.press("Home")
    stepper.wait_for_step(0)
    stepper.part("next").click()
    stepper.part("last").click()
    stepper.part("prev").click()
    stepper.wait_for_step(8)
    stepper.part("first").click()
    stepper.wait_for_step(0)
    stepper.part("timeline").get_by_role("button", name="mul → x1").click()
    stepper.wait_for_step(PULL_X1)
    stepper.part("first").click()
    stepper.part("graph").click(position={"x": 5, "y": 5})
    stepper.press("Space")
    stepper.wait_for_step(1)
    stepper.press("Space")
    held = stepper.step
    tab.wait_for_timeout(1500)
    assert stepper.step == held, "space pauses"


def test_a_click_on_a_node_goes_to_its_step_and_a_reload_stays_there(tab, app) -> None:
    tab.goto(app + BROADCAST)
    stepper = Stepper(tab)
    stepper.part("graph").locator('[data-node="4"]').click()
    stepper.wait_for_step(1)
    stepper.press("End")
    stepper.press("ArrowLeft")
    stepper.wait_for_step(8)
    assert "step=9" in tab.url and "case=mul-broadcast-1-1-3" in tab.url
    tab.reload()
    again = Stepper(tab)
    again.wait_for_step(8)


def test_hovering_a_cell_writes_out_its_sum(tab, app) -> None:
    tab.goto(f"{app}{BROADCAST}&step=8")
    stepper = Stepper(tab)
    said = stepper.part("explain")
    expect(said).to_contain_text("0.3·(−1) + 2·0.5 = −0.3 + 1 = 0.7")
    stepper.part("reduced").locator('[data-index="0,0,2"]').hover()
    expect(said).to_contain_text("0.7·0 + 1.1·1.5 = 0 + 1.65 = 1.65")


def test_a_matrix_product_is_written_as_row_times_column(tab, app) -> None:
    tab.goto(f"{app}/?lesson=01_the_reference_table&case=matmul")
    stepper = Stepper(tab)
    stepper.part("timeline").get_by_role("button", name="matmul → x0").click()
    stepper.part("contribution").locator('[data-index="0,1,0"]').hover()
    expect(stepper.part("explain")).to_contain_text("0.7·1 + 2·0.75 = 0.7 + 1.5 = 2.2")
    assert stepper.part("residuals").is_visible() and stepper.part("local").count() == 0


def test_editing_an_input_records_again_at_once(tab, app) -> None:
    tab.goto(f"{app}/?lesson=03_fan_out_and_broadcasting&case=x-x-x&step=8")
    stepper = Stepper(tab)
    assert stepper.numbers("gradient") == near([7.0])
    type_into_the_first_cell(tab, "5")
    tab.locator('[data-testid=gradient] td[data-value="11"]').wait_for()
    assert stepper.step == 7


@pytest.mark.parametrize(
    ("typed", "sentence"), [("abc", "“abc” is not a number"), ("nan", "type a finite number")]
)
def test_a_wrong_number_is_named_beside_its_table_and_nothing_is_lost(
    tab, app, typed, sentence
) -> None:
    tab.goto(f"{app}/?lesson=03_fan_out_and_broadcasting&case=x-x-x&step=8")
    stepper = Stepper(tab)
    type_into_the_first_cell(tab, typed)
    tab.get_by_text(sentence).wait_for()
    assert stepper.numbers("gradient") == near([7.0])
    stepper.part("first").click()
    stepper.wait_for_step(0)


def type_into_the_first_cell(tab, text: str) -> None:
    """Into the last column of the first row of the first table."""
    type_into(tab, tab.locator('[data-testid="stDataFrame"]').first, text)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?lesson=nope", "There is no lesson called “nope”"),
        ("?lesson=02_chain_rule&case=nope", "This lesson has no case called “nope”"),
        ("?lesson=02_chain_rule&step=9999", "There is no step “9999”"),
        ("?lesson=02_chain_rule&step=<b>", "There is no step “<b>”"),
    ],
)
def test_a_wrong_address_is_said_and_the_page_lives(tab, app, query, sentence) -> None:
    tab.goto(f"{app}/{query}")
    stepper = Stepper(tab)
    tab.get_by_text(sentence).first.wait_for()
    stepper.press("Home")
    stepper.press("ArrowRight")
    stepper.wait_for_step(1)


def test_typing_in_a_field_does_not_step(tab, app) -> None:
    tab.goto(app + BROADCAST)
    stepper = Stepper(tab)
    tab.get_by_role("combobox").first.focus()
    stepper.press("ArrowRight")
    tab.wait_for_timeout(200)
    assert stepper.step == 0


@pytest.mark.parametrize("width", [390, 600, 900, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_at_any_width(browser, app, width, scheme) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{app}{BROADCAST}&step=8")
    stepper = Stepper(page)
    over = stepper.root.evaluate("e => e.scrollWidth - e.clientWidth")
    small = stepper.root.evaluate(
        "e => [...e.querySelectorAll('*')].filter(n => n.childNodes.length && "
        "[...n.childNodes].some(c => c.nodeType === 3 && c.data.trim()) && !n.closest('svg, math')"
        " && parseFloat(getComputedStyle(n).fontSize) < 13).map(n => n.outerHTML.slice(0, 80))"
    )
    theme = stepper.root.get_attribute("data-theme")
    context.close()
    assert over <= 0
    assert small == []
    assert theme == scheme


def choose(tab, title: str) -> None:
    """Pick a lesson in the list at the top."""
    tab.get_by_role("combobox").first.click()
    tab.get_by_role("option", name=title).click()
    tab.get_by_role("heading", name=title).wait_for()


def test_one_lesson_after_the_other_and_back(tab, app) -> None:
    tab.goto(app)
    Stepper(tab)
    choose(tab, "2 · The chain rule")
    choose(tab, "3 · Fan-out and broadcasting")
    choose(tab, "1 · The reference table")
    tab.get_by_role("radio", name="matmul", exact=True).click()
    tab.wait_for_url("**case=matmul*")
    tab.go_back()
    tab.wait_for_url(lambda url: "case=matmul" not in url)
    tab.get_by_role("radio", name="mul", exact=True).and_(
        tab.locator("[aria-checked=true]")
    ).wait_for()
    tab.go_back()
    tab.get_by_role("heading", name="3 · Fan-out and broadcasting").wait_for()


def test_arrows_step_right_after_a_case_was_chosen(tab, app) -> None:
    tab.goto(app)
    Stepper(tab)
    tab.get_by_role("radio", name="matmul", exact=True).click()
    tab.wait_for_url("**case=matmul*")
    stepper = Stepper(tab)
    stepper.part("timeline").get_by_role("button", name="matmul → x0").wait_for()
    stepper.press("ArrowRight")
    stepper.wait_for_step(1)


def test_what_was_typed_is_still_there_after_another_case(tab, app) -> None:
    tab.goto(f"{app}/?lesson=03_fan_out_and_broadcasting&case=x-x-x&step=8")
    Stepper(tab)
    type_into_the_first_cell(tab, "5")
    tab.locator('[data-testid=gradient] td[data-value="11"]').wait_for()
    tab.get_by_role("radio", name="x - mean(x)").click()
    tab.wait_for_url("**case=x-mean-x*")
    tab.get_by_role("radio", name="x*x + x").click()
    tab.wait_for_url("**case=x-x-x*")
    tab.get_by_test_id("timeline").get_by_role("button", name="add → square").wait_for()
    seen = tab.locator('[data-testid=gradient] td[data-value="11"]')
    for _ in range(50):  # the stepper of this case may just be replaced by a new one
        tab.keyboard.press("End")
        tab.wait_for_timeout(200)
        if seen.is_visible():
            break
    assert seen.is_visible()


def test_a_huge_number_is_drawn_and_can_be_taken_back(tab, app) -> None:
    tab.goto(f"{app}/?lesson=02_chain_rule&case=numbers&step=12")
    Stepper(tab)
    for text, gradient in (("1e160", "e+161"), ("2", "-24")):
        type_into_the_first_cell(tab, text)
        tab.locator(f'[data-testid=gradient] td[data-value*="{gradient}"]').wait_for()


def test_a_case_left_and_chosen_again_at_once_agrees_with_its_address(tab, app) -> None:
    tab.goto(f"{app}/?lesson=03_fan_out_and_broadcasting&case=x-x-x&step=8")
    Stepper(tab)
    tab.get_by_role("radio", name="x - mean(x)").click()
    tab.get_by_role("radio", name="x*x + x").click()
    tab.wait_for_timeout(3000)
    tab.get_by_test_id("timeline").get_by_role("button", name="add → square").wait_for()

    def agrees(step: int) -> bool:
        return f"step={step + 1}" in tab.url or (step == 0 and "step=" not in tab.url)

    for _ in range(100):  # a slow machine needs longer, but then they must agree
        if agrees(Stepper(tab).step):
            break
        tab.wait_for_timeout(200)
    step = Stepper(tab).step
    assert agrees(step)
    tab.reload()
    Stepper(tab).wait_for_step(step)
