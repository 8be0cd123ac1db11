"""The pieces a frame is made of: words, grids, signs, and where each cell of a grid comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..events import Summary
from .formula import plain

PREFIXES = "kMGTPE"  # of bytes, each a thousand of the one before


@dataclass(frozen=True, slots=True)
class Name:
    """What a person, or a card, called something: shown bold, and never read as markup."""

    text: str


@dataclass(frozen=True, slots=True)
class Math:
    """A formula in LaTeX."""

    tex: str


Text = tuple[str | Name | Math, ...]


def in_words(text: Text) -> str:
    """A text without any markup."""
    return "".join(
        s if isinstance(s, str) else s.text if isinstance(s, Name) else plain(s.tex) for s in text
    )


@dataclass(frozen=True, slots=True)
class Letters:
    """A result cell as a sum of products, its axes named by letters.

    The cell fixes the letters of `out`; letters that only `factors` (grid key, letters) have are
    summed over, and an axis of size 1 always has index 0. apply: the name of an op instead of a
    product, infix: its sign.
    """

    out: str
    factors: tuple[tuple[str, str], ...]
    apply: str | None = None
    infix: str | None = None


@dataclass(frozen=True, slots=True)
class Cells:
    """A result cell as Σ coefficient · cell of the grid `of`: (coefficient, flat index) pairs."""

    of: str
    cells: tuple[tuple[tuple[float, int], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """An array to look at: kind is its place, key what sources call it, hue its colour."""

    kind: str
    caption: Text
    array: Any
    hue: str
    key: str = ""
    symbol: str = ""
    note: Text = ()
    sources: Letters | Cells | None = None
    marks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Sign:
    """What stands between two grids, and a word below it."""

    sign: str
    under: str = ""


Part = Grid | Sign


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Grids under a title and a note: the saved values, or the ledger."""

    title: Text
    note: Text = ()
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The numeric check beside a step: verdict, grids, rows of facts, and sentences."""

    verdict: str
    symbol: str
    numeric: Grid | None
    difference: Grid | None
    rows: tuple[tuple[Text, Text], ...]
    notes: tuple[Text, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What one step shows. tick: its name on the timeline. nodes, edges: what is lit."""

    step: int
    steps: int
    phase: str
    kind: str
    tick: str
    title: Text
    say: Text
    nodes: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    parts: tuple[Part, ...]
    residuals: Panel | None = None
    jacobian: Grid | None = None
    proof: Proof | None = None
    ledger: Panel | None = None
    lines: tuple[int, ...] = ()


def short(value: float, digits: int = 3) -> str:
    """A number in a few significant digits, with a real minus sign."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value + 0.0:.{digits}g}"
    mantissa, _, exponent = text.partition("e")
    return (f"{mantissa}e{int(exponent)}" if exponent else text).replace("-", "−")


def param_text(value: Any) -> str:
    """A parameter as people write it: 2, 0.5, (0, 1), mean, 1:3."""
    if isinstance(value, float):
        return short(value, 6)
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(param_text, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return str(value)


def size_of(array: Any) -> float:
    """How large an array is: the number itself, or its Euclidean norm."""
    if isinstance(array, Summary):
        return array.norm
    flat = array.astype("f8").ravel()
    if flat.size == 1:
        return float(flat[0])
    largest = float(np.max(np.abs(flat), initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    with np.errstate(all="ignore"):  # scaled, so that no square overflows
        return largest * float(np.sqrt(np.square(flat / largest).sum()))


def bytes_text(count: int) -> str:
    """A number of bytes as people write it: 96 bytes, 1.2 kB, 34 MB."""
    if count < 1000:
        return "1 byte" if count == 1 else f"{count} bytes"
    scaled, power = float(count), 0
    while scaled >= 999.5 and power < len(PREFIXES):
        scaled, power = scaled / 1000, power + 1
    digits = 1 if scaled < 9.95 else 0
    return f"{scaled:.{digits}f} {PREFIXES[power - 1]}B"


def shape_text(shape: tuple[int, ...]) -> str:
    """2×3, or scalar."""
    return "×".join(map(str, shape)) if shape else "scalar"
