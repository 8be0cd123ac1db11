"""The exported page in a real browser, from disk and with the network off."""

from __future__ import annotations

from pathlib import Path

import pytest
from stepper_page import Stepper

import minigrad as mg


def exported(folder: Path, name: str = "b") -> str:
    a = mg.tensor([[[-1, -0.5, 0], [0.5, 1, 1.5]]], requires_grad=True, name="a")
    b = mg.tensor([[[2, -1, 0.5]]], requires_grad=True, name=name)
    w = mg.tensor([[[0.3, -1.2, 0.7], [2, -0.5, 1.1]]], name="w")
    L = (a * b * w).sum()
    file = folder / "run.html"
    mg.record(L).to_html(file)
    return file.as_uri()


def test_the_page_from_disk_steps_through_the_same_case_offline(tab, tmp_path: Path) -> None:
    tab.context.set_offline(True)
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(exported(tmp_path))
    stepper = Stepper(tab)
    for step in range(1, 8):
        stepper.press("ArrowRight")
        stepper.wait_for_step(step)
    assert stepper.numbers("upstream") == pytest.approx([0.3, -1.2, 0.7, 2.0, -0.5, 1.1])
    assert stepper.numbers("reduced") == pytest.approx([0.7, 0.1, 1.65])
    assert "agrees" in stepper.part("verdict").inner_text()
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def test_a_hostile_name_is_text_everywhere(tab, tmp_path: Path) -> None:
    name = '<img src=x onerror="window.hacked = 1">'
    tab.goto(exported(tmp_path, name))
    stepper = Stepper(tab)
    for step in range(1, stepper.steps):
        stepper.press("ArrowRight")
        stepper.wait_for_step(step)
        stepper.part("explain")
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("img").count() == 0
    stepper.part("timeline").get_by_role("button", name=f"mul → {name}").click()
    assert name in stepper.part("step-label").inner_text()


def test_an_empty_array_and_nan_are_shown(tab, tmp_path: Path) -> None:
    x = mg.tensor([], requires_grad=True, name="x")
    y = mg.tensor([0.0, 4.0], requires_grad=True, name="y")
    L = x.sum() + mg.sqrt(y).sum()
    file = tmp_path / "run.html"
    mg.record(L).to_html(file)
    tab.goto(file.as_uri())
    stepper = Stepper(tab)
    stepper.part("timeline").get_by_role("button", name="sqrt → y").click()
    assert stepper.numbers("local") == [float("inf"), 0.25]
    assert "undefined" in stepper.part("verdict").inner_text()
    stepper.part("timeline").get_by_role("button", name="x done").click()
    assert "empty" in stepper.part("gradient").inner_text()
