"""Reading a stepper in a browser page, by its data-testids."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


class Stepper:
    """The first stepper of a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.get_by_test_id("stepper").first
        self.root.wait_for(timeout=30_000)

    def part(self, testid: str) -> Locator:
        return self.root.get_by_test_id(testid)

    @property
    def step(self) -> int:
        return int(self.root.get_attribute("data-step") or -1)

    @property
    def steps(self) -> int:
        return int(self.root.get_attribute("data-steps") or -1)

    @property
    def phase(self) -> str | None:
        return self.root.get_attribute("data-phase")

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def wait_for_step(self, step: int) -> None:
        self.page.locator(f'[data-testid=stepper][data-step="{step}"]').wait_for()

    def numbers(self, testid: str) -> list[float]:
        """The cells of a grid in order, in full precision."""
        cells = self.part(testid).locator("td[data-value]")
        return [float(cell.get_attribute("data-value") or "nan") for cell in cells.all()]

    def state(self) -> dict[str, object]:
        """Everything a step says, to compare two visits."""
        shown = "upstream local contribution reduced numeric difference gradient seed".split()
        return {
            "step": self.step,
            "label": self.part("step-label").inner_text(),
            "card": self.part("step-card").inner_text(),
            **{name: self.numbers(name) for name in shown},
        }

    def positions(self) -> list[list[int]]:
        """Where the graph's nodes are, relative to the graph."""
        return self.part("graph").evaluate(
            """graph => [...graph.querySelectorAll("[data-node] path")].map(path => {
                const box = path.getBoundingClientRect(), frame = graph.getBoundingClientRect();
                return [box.x + box.width / 2 - frame.x, box.y + box.height / 2 - frame.y]
                    .map(Math.round);
            })"""
        )


def type_into(page: Page, table: Locator, text: str) -> None:
    """Type into a table of Streamlit, which is a canvas: last column, first row.

    Its editor is opened, filled and left.
    """
    table.locator("canvas").first.wait_for()
    table.scroll_into_view_if_needed()
    editor = page.locator("#portal textarea, #portal input").first
    for _ in range(20):  # its code is loaded when it is first wanted
        box = table.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] - 30, box["y"] + 52)
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        if editor.is_visible():
            break
        page.keyboard.press("Escape")
    editor.fill(text)
    page.keyboard.press("Enter")
