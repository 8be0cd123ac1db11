"""The memory lane in a real browser, from disk: read it at two steps, click it, fold it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from stepper_page import Stepper

import minigrad as mg


def exported(folder: Path, rows: int) -> str:
    """tanh, then exp, then a sum: 16 bytes a row and result."""
    x = mg.tensor(np.ones((rows, 2)), requires_grad=True, name="x")
    file = folder / "run.html"
    mg.record(mg.sum(mg.exp(mg.tanh(x))), checks=False).to_html(file)
    return file.as_uri()


def boxes(memory) -> list[dict]:
    """Where the parts of the lane are that must not move."""
    return [p.bounding_box() for p in memory.locator(".policy, .swatch, .lane, .peak").all()]


def test_the_lane_is_read_at_two_steps_and_clicked(tab, tmp_path: Path) -> None:
    tab.goto(exported(tmp_path, 100))
    stepper = Stepper(tab)
    memory = stepper.part("memory")
    assert "save all: peak 3.2 kB at step 3, now 1.6 kB" in memory.inner_text()
    places = boxes(memory)
    label = memory.get_by_role("img").get_attribute("aria-label") or ""
    assert "save all: peak 3.2 kB at step 3; recompute: peak 3.2 kB at step 2" in label
    stepper.press("End")
    stepper.wait_for_step(stepper.steps - 1)
    assert "now 0 bytes" in memory.inner_text()
    assert boxes(memory) == places
    lane = memory.locator(".lane").bounding_box()
    scrub = stepper.part("scrub").bounding_box()
    assert lane and scrub and (lane["x"], lane["width"]) == (scrub["x"], scrub["width"])
    tab.mouse.click(lane["x"] + lane["width"] / 2, lane["y"] + 40)
    stepper.wait_for_step(round((stepper.steps - 1) / 2))
    tab.mouse.click(lane["x"] + 1, lane["y"] + 40)
    stepper.wait_for_step(0)


def test_a_few_bytes_are_folded_until_they_are_asked_for(tab, tmp_path: Path) -> None:
    tab.goto(exported(tmp_path, 2))
    stepper = Stepper(tab)
    memory = stepper.part("memory")
    assert "recompute: peak 64 bytes" in memory.inner_text()
    assert not memory.locator(".lane").is_visible()
    memory.locator("summary").click()
    assert memory.locator(".lane").is_visible()
    stepper.press("ArrowRight")
    stepper.wait_for_step(1)
    assert memory.locator(".lane").is_visible()


def test_without_bytes_there_is_no_lane(tab, tmp_path: Path) -> None:
    x = mg.tensor(1.0, requires_grad=True)
    file = tmp_path / "run.html"
    mg.record(x, checks=False).to_html(file)
    tab.goto(file.as_uri())
    assert Stepper(tab).part("memory").count() == 0
