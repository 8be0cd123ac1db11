"""Lessons are programs: every case runs, ends in a stepper, and every gradient in it is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.lesson import Lesson, lesson_files, parse_table, read_lesson, run_case
from minigrad.report import Report

LESSONS = [read_lesson(path) for path in lesson_files()]
CASES = [(lesson, case) for lesson in LESSONS for case in lesson.cases]


def shown(run, kind):
    return [said for cell in run.outputs.values() for said in cell if isinstance(said, kind)]


def written(tmp_path: Path, code: str) -> Lesson:
    path = tmp_path / "09_test.py"
    head = "# %% [markdown]\n# # A title\n\n# %%\nimport minigrad as mg\n\n"
    head += "# %% [markdown]\n# ## one\n\n"
    path.write_text(f"{head}# %%\n{code}")
    return read_lesson(path)


def test_the_three_lessons_and_their_cases() -> None:
    assert [(lesson.slug, [c.title for c in lesson.cases]) for lesson in LESSONS] == [
        (
            "01_the_reference_table",
            ["mul", "mul broadcast [1,1,3]", "matmul", "matmul batch-broadcast"],
        ),
        ("02_chain_rule", ["numbers", "a tanh neuron"]),
        (
            "03_fan_out_and_broadcasting",
            ["x*x + x", "x - mean(x)", "a bias added to a batch"],
        ),
    ]
    assert LESSONS[0].cases[1].slug == "mul-broadcast-1-1-3"


@pytest.mark.parametrize(("lesson", "case"), CASES, ids=lambda part: part.slug)
def test_every_case_ends_in_a_stepper_whose_checks_agree(lesson, case) -> None:
    run = run_case(lesson, case)
    assert run.error is None
    (trace,) = shown(run, mg.Trace)
    assert trace.checks and all(trace.checks)
    assert all(shown(run, Report))
    assert run.inputs


@pytest.mark.parametrize("path", lesson_files(), ids=lambda path: path.stem)
def test_a_lesson_is_also_a_plain_program(path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Step 1 of" in done.stdout


def test_the_reference_lesson_shows_the_reference_gradients() -> None:
    from reference import CASES as EXPECTED

    for case, expected in zip(LESSONS[0].cases, EXPECTED, strict=True):
        (report,) = shown(run_case(LESSONS[0], case), Report)
        for check, gradient in zip(report.checks, expected.expected, strict=True):
            np.testing.assert_allclose(check.analytic.ravel(), np.ravel(gradient), atol=1e-12)
            assert check.max_difference <= 1e-9


def test_what_is_typed_replaces_the_default_and_nothing_else() -> None:
    lesson = LESSONS[2]
    run = run_case(lesson, lesson.cases[0], {"x": np.array(5.0)})
    (trace,) = shown(run, mg.Trace)
    assert trace.nodes[0].value == 5.0
    assert run.inputs["x"] == 3.0
    (again,) = shown(run_case(lesson, lesson.cases[0]), mg.Trace)
    assert again.nodes[0].value == 3.0


def test_a_mistake_in_a_cell_is_said_at_that_cell(tmp_path: Path) -> None:
    lesson = written(
        tmp_path, "print('before')\nmg.tensor([1.0, 2.0]) + mg.tensor([1.0, 2.0, 3.0])\n"
    )
    run = run_case(lesson, lesson.cases[0])
    assert run.error is not None
    cell, sentence = run.error
    assert cell == lesson.cases[0].cells[0].number
    assert "the sizes 2 and 3 differ" in sentence
    assert run.outputs[cell] == ["before"]


def test_one_name_for_two_inputs_is_refused(tmp_path: Path) -> None:
    lesson = written(tmp_path, "mg.lesson.input('a', 1)\nmg.lesson.input('a', 2)\n")
    run = run_case(lesson, lesson.cases[0])
    assert run.error is not None and "asked for twice" in run.error[1]


def test_a_file_without_a_case_is_no_lesson(tmp_path: Path) -> None:
    path = tmp_path / "08_empty.py"
    path.write_text("# %% [markdown]\n# # Only a title\n")
    with pytest.raises(mg.LessonError, match="at least one"):
        read_lesson(path)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([["1", "abc"]], r"b\[0, 1\]: “abc” is not a number"),
        ([["1", ""]], r"b\[0, 1\] is empty"),
        ([[None, "1"]], r"b\[0, 0\] is empty"),
        ([["nan", "1"]], r"b\[0, 0\] is nan; type a finite number"),
        ([["1", "-inf"]], r"b\[0, 1\] is -inf"),
        ([["1", "__import__('os')"]], "is not a number"),
    ],
)
def test_a_cell_that_is_no_number_is_named(rows, sentence) -> None:
    with pytest.raises(mg.LessonError, match=sentence):
        parse_table("b", rows, (1, 2))


def test_typed_numbers_keep_their_shape() -> None:
    assert parse_table("b", [["1", "−2.5"]], (1, 1, 2)).tolist() == [[[1.0, -2.5]]]
    assert parse_table("b", [["3"]], ()).tolist() == 3.0


def broken_formulas(text: str) -> list[str]:
    """Lines on which a formula is left open: Markdown reads the next one as something else."""
    return [line for line in text.splitlines() if line.count("$") % 2]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_no_formula_of_a_lesson_is_broken_across_lines(lesson) -> None:
    cells = [*lesson.intro, *(cell for case in lesson.cases for cell in case.cells)]
    assert [line for c in cells if c.kind == "markdown" for line in broken_formulas(c.text)] == []


def test_a_formula_broken_across_lines_would_be_noticed() -> None:
    assert broken_formulas("its slope $y' = 1\n- y^2$ is near 0")
