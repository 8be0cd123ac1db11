"""The page that opens from disk, and what notebooks show: complete, offline, and safe."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

import minigrad as mg
from minigrad.view.html import page, payload, summary


def a_trace(name: str = "x") -> mg.Trace:
    x = mg.tensor([1.0, 2.0], requires_grad=True, name=name)
    return mg.record((x * x).sum())


def test_the_page_is_one_file_without_the_network(tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    a_trace().to_html(file)
    text = file.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[\w./-]+", text))
    assert addresses <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1998/Math/MathML",
        "http://www.w3.org/1999/xlink",
    }
    assert "<link" not in text and "import(" not in text and "fetch(" not in text


def test_a_name_cannot_end_the_script_it_stands_in() -> None:
    text = page(a_trace("</script><script>alert(1)</script>"))
    assert "<script>alert" not in text
    data = re.search(r'id="trace">(.*?)</script>', text, re.S)
    assert data is not None
    assert json.loads(data[1])["nodes"][0]["name"] == "</script><script>alert(1)</script>"


def test_a_trace_read_from_a_file_gives_the_same_stepper(tmp_path: Path) -> None:
    trace = a_trace()
    trace.save(tmp_path / "run.json")
    assert payload(mg.load_trace(tmp_path / "run.json")) == payload(trace)


def test_the_summary_counts_and_names_the_gravest_verdict() -> None:
    assert summary(a_trace())["text"] == "4 of 4 checks agree"
    x = mg.tensor([0.0, 1.0], requires_grad=True)
    kinked = summary(mg.record(mg.relu(x).sum()))
    assert kinked["verdict"] == "kink" and kinked["text"] == "3 of 3 checks agree, 2 at a kink"

    @mg.elementwise(tex="y = 2x", partials={"x": (lambda: 3.0, "3")})
    def wrong(x):
        return 2 * x

    broken = summary(mg.record(wrong(x).sum()))
    assert broken["verdict"] == "differs" and broken["text"] == "1 of 3 checks agree"


def test_a_notebook_that_ends_in_show_holds_the_stepper() -> None:
    code = (
        "import minigrad as mg\nx = mg.tensor([1.0, 2.0], requires_grad=True)\nL = (x * x).sum()\n"
    )
    cells = [nbformat.v4.new_code_cell(code + last) for last in ("mg.show(L)", "L", "x")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    first, second, third = (cell.outputs[-1]["data"] for cell in notebook.cells)
    for data in (first, second):
        assert data["text/html"].startswith("<iframe srcdoc=") and "stepper" in data["text/html"]
    assert "Step 1 of 7 · mul makes v1" in first["text/plain"]
    assert "tensor(5." in second["text/plain"]
    assert "<table>" in third["text/html"] and "<td>2</td>" in third["text/html"]


def test_a_tensor_in_a_notebook_escapes_its_name() -> None:
    assert "<img" not in mg.tensor([1.0], name="<img src=x>")._repr_html_()


def test_an_empty_array_is_stepped_like_any_other() -> None:
    x = mg.tensor([], requires_grad=True, name="x")
    trace = mg.record(x.sum())
    assert all(trace.checks)
    assert payload(trace)["arrays"][0]["data"] == []
    assert "the walk starts" in trace.text()
