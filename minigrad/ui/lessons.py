"""The Lessons page: pick a lesson and a case, edit its inputs, step through it.

The URL says where you stand: `?lesson=…&case=…&step=…`. The stepper writes the step into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from ..errors import LessonError
from ..lesson import Case, Cell, Lesson, Run, lesson_files, read_lesson, run_case
from ..report import Report
from ..trace import Trace
from .address import TIGHT, asked, go, stand_at, step_of
from .stepper import stepper
from .tables import edit, letter_by_letter


@st.cache_data(show_spinner=False)
def _read(path: Path, changed: float) -> Lesson:
    return read_lesson(path)


def _lessons() -> list[Lesson]:
    """Every lesson; a file is read again when it has changed."""
    lessons = []
    for path in lesson_files():
        try:
            lessons.append(_read(path, path.stat().st_mtime))
        except (LessonError, OSError, ValueError) as problem:  # the others can still be taught
            st.warning(letter_by_letter(f"{path.name} is left out: {problem}"))
    return lessons


def page() -> None:
    """Draw the page."""
    st.html(TIGHT)
    lessons = _lessons()
    if not lessons:
        st.error("There is no lesson to show: the folder of lessons holds none that can be read.")
        return
    lesson = _chosen_lesson(lessons)
    case = _chosen_case(lesson)
    stand_at(st.query_params.to_dict())
    key = f"{lesson.slug}/{case.slug}"
    words, inputs = st.columns([5, 4], gap="large")
    first = next((n for n, cell in enumerate(case.cells) if cell.kind == "code"), len(case.cells))
    with words:
        for cell in (*lesson.intro, *case.cells[:first]):
            if cell.kind == "markdown":
                st.markdown(cell.text)
    run = run_case(lesson, case, _typed(key))
    with inputs:
        edited = _tables(run, key)
    if any(not np.array_equal(edited[name], _used(run, name)) for name in run.inputs):
        run = run_case(lesson, case, edited)
    _cells(case.cells[first:], run, key)


# --- inputs ---------------------------------------------------------------------------------------


def _typed(key: str) -> dict[str, Any]:
    """What was typed so far, by input name: known before the tables are drawn again."""
    names = st.session_state.get(f"{key}/inputs", ())
    return {
        n: st.session_state[f"{key}/{n}/good"]
        for n in names
        if f"{key}/{n}/good" in st.session_state
    }


def _used(run: Run, name: str) -> Any:
    return run.values.get(name, run.inputs[name])


def _tables(run: Run, key: str) -> Mapping[str, Any]:
    st.session_state[f"{key}/inputs"] = tuple(run.inputs)
    edited = {}
    with st.container(horizontal=True, gap="medium"):
        for name, default in run.inputs.items():
            with st.container(width="content"):
                edited[name] = edit(name, default, f"{key}/{name}")
    return edited


# --- where we are: the URL and the choices --------------------------------------------------------


def _chosen_lesson(lessons: list[Lesson]) -> Lesson:
    titles = {lesson.slug: lesson.title for lesson in lessons}
    wanted = asked("lesson", list(titles), "There is no lesson called", "this is the first one")
    head = st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    )
    title = head.container(width="content")
    chosen = head.selectbox(
        "Lesson",
        list(titles),
        format_func=lambda slug: titles[slug],
        key="lesson",
        label_visibility="collapsed",
        width=300,
    )
    title.header(titles[chosen])
    if chosen != wanted:
        st.session_state.pop("case", None)  # another lesson begins with its first case
        go(lesson=chosen)
    return next(lesson for lesson in lessons if lesson.slug == chosen)


def _chosen_case(lesson: Lesson) -> Case:
    titles = {c.slug: c.title for c in lesson.cases}
    wanted = asked("case", list(titles), "This lesson has no case called", "this is its first one")
    chosen = st.segmented_control(
        "Case",
        list(titles),
        format_func=lambda slug: titles[slug],
        key="case",
        required=True,
        label_visibility="collapsed",
    )
    if chosen and chosen != wanted:
        go(lesson=lesson.slug, case=chosen)
    return lesson.case(chosen) or lesson.cases[0]


# --- cells ----------------------------------------------------------------------------------------


def _cells(cells: tuple[Cell, ...], run: Run, key: str) -> None:
    """Prose as prose; a code cell as what it showed, or where it stopped."""
    if run.error is None and not any(run.outputs.values()):
        st.info("This case shows nothing yet: end a cell with mg.show(loss).")
    for cell in cells:
        if cell.kind == "markdown":
            st.markdown(cell.text)
            continue
        for n, said in enumerate(run.outputs.get(cell.number, ())):
            if isinstance(said, Trace):
                stepper(said, f"{key}/{cell.number}/{n}", step_of(said, "this case"))
            elif isinstance(said, Report):
                st.table(_rows(said))
            else:
                st.text(str(said))
        if run.error is not None and run.error[0] == cell.number:
            st.code(cell.text)
            words = letter_by_letter(f"This cell stops here. {run.error[1]}")
            st.error(words, icon=":material/error:")


def _rows(report: Report) -> list[dict[str, str]]:
    return [
        {
            "op": check.op,
            "input": check.name,
            "shape": "×".join(map(str, check.shape)) or "scalar",
            "gradient": ", ".join(f"{v + 0.0:.6g}" for v in check.analytic.ravel()[:16]),
            "max abs difference": f"{check.max_difference:.1e}",
            "verdict": f"{check.verdict.symbol} {check.verdict}",
        }
        for check in report.checks
    ]
