"""One gradient beside its numeric slope: Check, the verdict on one input."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numeric import STRICT, TOLERANCES, Slope, Tolerance, Verdict, judge, power_of_two, slopes

Array = NDArray[Any]
Function = Callable[[Array], Array]  # one operand -> the outputs, flat float64

CELLS = 2000  # above this many elements, random directions are checked
DIRECTIONS = 8
SECONDS = 10.0  # budget for one input


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison. level: "op" (this op alone) or "graph" (the loss by a leaf).

    analytic, numeric, error, difference: arrays of the input's shape (numeric, error and difference
    are None when only random directions were compared). cells: a verdict per element, flat. index:
    the worst element. note: one sentence. node, input, argnum: places on the tape, where there is
    one. jacobian: d output / d input, flat by flat, if small.
    """

    level: str
    op: str
    name: str
    shape: tuple[int, ...]
    verdict: Verdict
    analytic: Array
    numeric: Array | None
    error: Array | None
    cells: tuple[Verdict, ...]
    index: tuple[int, ...]
    max_difference: float
    note: str = ""
    node: int | None = None
    input: int | None = None
    argnum: int | None = None
    jacobian: Array | None = None

    def __bool__(self) -> bool:
        return self.verdict.fine

    @property
    def difference(self) -> Array | None:
        """|analytic - numeric|, element by element."""
        if self.numeric is None:
            return None
        return distance(self.analytic.astype(np.float64), self.numeric)


GRAVITY = {v: n for n, v in enumerate(Verdict)}  # agrees is the least


# --- comparing one input --------------------------------------------------------------------------


def distance(a: Array, b: Array) -> Array:
    """|a - b|, 0 where both are the same infinity or both NaN."""
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.where(same, 0.0, np.abs(a - b))


@dataclass(frozen=True)
class _Question:
    """Is a gradient of Σ weight · f at x right? One gradient is asked about per row of weights.

    inner: how large the values inside f are, weighted by their gradients; see `numeric.slopes`.
    """

    f: Function
    x: Array
    here: Array
    weights: Array
    inner: float
    tolerance: Tolerance = STRICT

    def along(
        self, direction: Array, unit: float, analytic: Sequence[float], size: float = 1.0
    ) -> tuple[list[Verdict], Slope]:
        """The verdicts along one direction, and the first row's measured slope."""

        def line(t: float) -> Array:
            return self.f(self.x + t * direction)

        def measured(step: float) -> list[Slope]:
            rest = (self.weights, self.tolerance, self.inner, size)
            return slopes(line, self.here, step, *rest)

        found = measured(unit)
        verdicts = [judge(a, s, self.tolerance) for a, s in zip(analytic, found, strict=True)]
        if Verdict.differs in verdicts:  # blame only what another step confirms
            for n, other in enumerate(measured(unit * 0.37)):
                apart = 3 * abs(found[n].value - other.value)
                apart = apart if np.isfinite(apart) else np.inf
                if verdicts[n] is Verdict.differs and not found[n].here and apart > found[n].error:
                    verdicts[n] = judge(analytic[n], replace(found[n], error=apart), self.tolerance)
        return verdicts, found[0]


def compare(
    f: Function, x: Array, analytic: Sequence[Array], weights: Array, inner: float = 0.0
) -> tuple[list[list[Verdict]], Array | None, Array | None, float]:
    """Compare gradients of Σ weight · f(x), one per row of `weights`, with numeric slopes.

    Returns a verdict per element (or per random direction) for every row; numeric slopes and their
    errors for the first row (None if directions were used); and the largest difference of the first
    row. x is left as it was.
    """
    x = np.array(x, np.float64)
    start = time.perf_counter()
    ask = _Question(f, x, f(x), weights, inner)
    seconds = time.perf_counter() - start
    cells: list[list[Verdict]] = [[] for _ in analytic]
    whole = x.size <= CELLS and 4 * x.size * seconds <= SECONDS
    numeric, error, worst = np.zeros(x.shape), np.zeros(x.shape), 0.0
    rng = np.random.default_rng(0)
    for k in range(x.size if whole else DIRECTIONS):
        if whole:
            size = abs(float(x.flat[k]))
            direction, unit = np.zeros(x.shape), power_of_two(max(1.0, size))
            direction.flat[k] = 1.0
            slope = [float(a.flat[k]) for a in analytic]
        else:
            direction = rng.choice([-1.0, 1.0], x.shape) * np.maximum(1.0, 1e-6 * np.abs(x))
            size, unit = 1.0, 1.0
            slope = [float(np.sum(a * direction)) for a in analytic]
        verdicts, first = ask.along(direction, unit, slope, size)
        worst = max(worst, abs(slope[0] - first.value))
        if whole:
            numeric.flat[k], error.flat[k] = first.value, first.error
        for row, verdict in zip(cells, verdicts, strict=True):
            row.append(verdict)
    return (cells, numeric, error, worst) if whole else (cells, None, None, worst)


def _gravest(verdicts: Sequence[Verdict]) -> Verdict:
    return max(verdicts, key=GRAVITY.__getitem__, default=Verdict.agrees)


def worst_index(
    cells: Sequence[Verdict], difference: Array | None, shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The worst element: gravest verdict, then largest difference."""
    if difference is None or not difference.size:
        return ()
    flat = np.nan_to_num(difference.ravel(), nan=np.inf)
    worst = max(range(flat.size), key=lambda k: (GRAVITY[cells[k]], flat[k]))
    return tuple(int(n) for n in np.unravel_index(worst, shape))


def _sentence(
    cells: Sequence[Verdict],
    analytic: Array,
    numeric: Array | None,
    index: tuple[int, ...],
    name: str,
) -> str:
    """What differs, where, and by which ratio."""
    wrong = sum(v is Verdict.differs for v in cells)
    if not wrong:
        return ""
    if numeric is None:
        return f"{wrong} of {len(cells)} random directions differ"
    a, n = float(analytic[index]), float(numeric[index])
    place = f"{name}[{', '.join(map(str, index))}]" if index else name
    ratio = f", ratio {a / n:.6g}" if n and np.isfinite(a) else ""
    worst = f"worst at {place}: analytic {a:.6g}, numeric {n:.6g}{ratio}"
    return f"{wrong} of {len(cells)} elements differ, {worst}"


def check(
    level: str,
    op: str,
    name: str,
    f: Function,
    x: Array,
    recorded: Array,
    exact: Sequence[Array],
    weights: Array,
    inner: float = 0.0,
    called: str | None = None,
    **places: Any,
) -> Check:
    """Judge the gradient of one input.

    exact: float64 gradients per row of weights. recorded: what the walk gave. inner: see
    `numeric.slopes`. called: what the graph calls the input.
    """
    if not np.array_equal(f(x), f(x), equal_nan=True):
        return Check(
            level=level,
            op=op,
            name=name,
            shape=x.shape,
            verdict=Verdict.undecided,
            analytic=recorded,
            numeric=None,
            error=None,
            cells=(),
            index=(),
            max_difference=float("nan"),
            note="it is not deterministic: it answers differently twice on the same input",
            **places,
        )
    cells, numeric, error, largest = compare(f, x, exact, weights, inner)
    shown, notes = cells[0], []
    verdict = _gravest(shown)
    difference = None if numeric is None else distance(recorded.astype(np.float64), numeric)
    index = worst_index(shown, difference, x.shape)
    if verdict is Verdict.differs:
        notes.append(_sentence(shown, exact[0], numeric, index, called or name))
    for probe in cells[1:]:
        if verdict.fine and _gravest(probe) is Verdict.differs:
            verdict = Verdict.differs
            wrong = sum(v is Verdict.differs for v in probe)
            notes.append(
                "right for this upstream gradient only: with a random one "
                f"{wrong} of {len(probe)} elements differ"
            )
    if numeric is None:
        notes.append(
            f"{len(shown)} random directions were compared: one by one, {x.size} elements "
            f"{'are too many' if x.size > CELLS else 'take too long'}"
        )
    elif difference is not None:
        largest = float(np.max(difference, initial=0.0))
    if verdict.fine:
        told, note = _against_float64(recorded, exact[0], level)
        verdict, notes = told or verdict, [*notes, *([note] if note else [])]
    return Check(
        level=level,
        op=op,
        name=name,
        shape=x.shape,
        verdict=verdict,
        analytic=recorded,
        numeric=numeric,
        error=error,
        cells=tuple(shown),
        index=index,
        max_difference=largest,
        note="; ".join(notes),
        **places,
    )


def _against_float64(recorded: Array, exact: Array, level: str) -> tuple[Verdict | None, str]:
    """What the walk gave beside the same rules in float64: alike, less precise, or wrong."""
    low = TOLERANCES.get(str(recorded.dtype), STRICT)
    apart = distance(recorded.astype(np.float64), exact)
    with np.errstate(all="ignore"):
        far = apart > low.atol + low.rtol * np.abs(exact)
    if not far.any():
        return None, ""
    scale = float(np.max(np.abs(exact), initial=0.0, where=np.isfinite(exact)))
    wrong = np.isfinite(recorded) & (apart > 0.1 * scale)
    if low is STRICT or (level == "op" and wrong.any()):
        return Verdict.differs, "the walk gave something else than the same rule run in float64"
    return None, f"precision lost: right in float64, but {recorded.dtype} is too coarse here"
