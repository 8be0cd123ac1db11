"""Lessons: percent-format Python files, read into cells and run cell by cell.

A `# ` heading is the lesson's title, each `## ` heading begins a case. What stands before the first
case (imports, prose) belongs to all of them. A cell may call `input`, which is an editable table in
the app and its default elsewhere.
"""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import LessonError
from .paths import LESSONS
from .tensor import Tensor

Array = NDArray[Any]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|infinity|nan)", re.I | re.A)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: kind is "markdown" or "code"; number is its place in the file."""

    kind: str
    text: str
    number: int


@dataclass(frozen=True, slots=True)
class Case:
    """A part of a lesson that ends in a stepper."""

    title: str
    cells: tuple[Cell, ...]

    @property
    def slug(self) -> str:
        """The title as it stands in a URL: `mul-broadcast-1-1-3`."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson file: `intro` is shared by all cases."""

    slug: str
    title: str
    intro: tuple[Cell, ...]
    cases: tuple[Case, ...]

    def case(self, slug: str | None) -> Case | None:
        """The case with that slug, if there is one."""
        return next((c for c in self.cases if c.slug == slug), None)


@dataclass
class Run:
    """One run of a case.

    values: what was typed, by input name. inputs: what the case asked for, with defaults. outputs:
    what each cell showed, by cell number. error: the cell that failed, and the sentence.
    """

    values: Mapping[str, Array]
    inputs: dict[str, Array] = field(default_factory=dict)
    outputs: dict[int, list[Any]] = field(default_factory=dict)
    error: tuple[int, str] | None = None
    cell: int = 0  # the one that runs

    def say(self, what: Any) -> None:
        """Add to what the running cell shows: text, a trace, a report."""
        self.outputs.setdefault(self.cell, []).append(what)


_active: ContextVar[Run | None] = ContextVar("minigrad_lesson", default=None)


def active() -> Run | None:
    """The run that is under way in this thread, if any."""
    return _active.get()


def input(name: str, default: ArrayLike) -> Array:
    """An array that the reader may edit: a table in the app, `default` everywhere else (float64).

    The shape is fixed by `default`. Raises LessonError if a case asks for the same name twice.
    """
    values = np.array(default, dtype=np.float64)
    run = _active.get()
    if run is None:
        return values
    if name in run.inputs:
        raise LessonError(
            f"the input {name} is asked for twice in one case; give each input its own name"
        )
    run.inputs[name] = values
    typed = run.values.get(name)
    return (
        values
        if typed is None or typed.shape != values.shape
        else np.array(typed, dtype=np.float64)
    )


# --- reading --------------------------------------------------------------------------------------


def lesson_files() -> list[Path]:
    """The lesson files, in order."""
    return sorted(LESSONS.glob("[0-9]*.py"))


def read_lesson(path: Path) -> Lesson:
    """Read a percent-format file. Raises LessonError if it has no title or no case."""
    import jupytext

    notebook = jupytext.read(path)
    cells = [Cell(c["cell_type"], c["source"], n) for n, c in enumerate(notebook["cells"])]
    title, intro, cases = "", [], []  # type: str, list[Cell], list[tuple[str, list[Cell]]]
    for cell in cells:
        heading, _, rest = cell.text.partition("\n")
        if cell.kind == "markdown" and heading.startswith("# "):
            title, cell = heading[2:].strip(), Cell(cell.kind, rest.strip(), cell.number)
        elif cell.kind == "markdown" and heading.startswith("## "):
            cases.append((heading[3:].strip(), []))
            cell = Cell(cell.kind, rest.strip(), cell.number)
        if cell.text:
            (cases[-1][1] if cases else intro).append(cell)
    if not title or not cases:
        raise LessonError(f"{path.name}: a lesson needs a `# ` title and at least one `## ` case")
    return Lesson(path.stem, title, tuple(intro), tuple(Case(t, tuple(c)) for t, c in cases))


# --- running --------------------------------------------------------------------------------------


def run_case(lesson: Lesson, case: Case, values: Mapping[str, Array] | None = None) -> Run:
    """Run the intro and one case in a namespace of its own; stops at the first error."""
    run = Run(values or {})
    namespace: dict[str, Any] = {"__name__": f"lesson_{lesson.slug}"}
    with running(run):
        for cell in (*lesson.intro, *case.cells):
            if cell.kind == "code" and not _run_cell(lesson, cell, namespace, run):
                break
    return run


@contextmanager
def running(run: Run) -> Iterator[None]:
    """Give everything shown or printed in this thread to `run`."""
    token = _active.set(run)
    try:
        yield
    finally:
        _active.reset(token)


def _run_cell(lesson: Lesson, cell: Cell, namespace: dict[str, Any], run: Run) -> bool:
    run.cell = cell.number
    file = f"{lesson.slug} · cell {cell.number}"
    linecache.cache[file] = (len(cell.text), None, cell.text.splitlines(keepends=True), file)
    namespace["print"] = lambda *words: run.say(" ".join(map(str, words)))
    try:
        statements, last = _split(ast.parse(cell.text, file))
        exec(compile(statements, file, "exec"), namespace)
        value = eval(compile(last, file, "eval"), namespace) if last else None
    except Exception as problem:  # a lesson's mistake is shown beside its cell, the page lives on
        lines = [
            f.lineno for f in traceback.extract_tb(problem.__traceback__) if f.filename == file
        ]
        where = f"Line {lines[-1]}: " if lines else ""
        run.error = (cell.number, f"{where}{type(problem).__name__}: {problem}")
        return False
    if value is not None:
        run.say(repr(value) if isinstance(value, Tensor) else value)
    return True


def _split(tree: ast.Module) -> tuple[ast.Module, ast.Expression | None]:
    """The cell's statements, and its last expression, which is what the cell shows."""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        return ast.Module(tree.body[:-1], []), ast.Expression(tree.body[-1].value)
    return tree, None


def parse_table(name: str, rows: Sequence[Sequence[Any]], shape: tuple[int, ...]) -> Array:
    """Typed cells as an array of `shape`. Raises LessonError naming the first wrong cell."""
    numbers = np.zeros(len(rows) * len(rows[0]) if rows else 0)
    flat = [cell for row in rows for cell in row]
    for k, typed in enumerate(flat):
        place = ", ".join(map(str, np.unravel_index(k, shape))) if shape else ""
        where = f"{name}[{place}]" if place else name
        text = "" if typed is None or typed != typed else str(typed).strip().replace("−", "-")
        if not text:
            raise LessonError(f"{where} is empty; type a number, such as 0.5")
        if not _NUMBER.fullmatch(text):
            raise LessonError(
                f"{where}: “{text[:40]}” is not a number; type one such as 0.5 or -1e-3"
            )
        numbers[k] = float(text)
        if not np.isfinite(numbers[k]):
            raise LessonError(
                f"{where} is {text}; type a finite number, a gradient through {text} says nothing"
            )
    return numbers.reshape(shape)
