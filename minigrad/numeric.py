"""Numeric slopes: central differences that know how far they can be trusted.

At one point a slope is measured at steps h and h/2 and extrapolated (Richardson 1911), which leaves
an error of order h⁴; the step is then made smaller while truncation dominates, or larger while
rounding does, and the measurement with the smallest error estimate wins. The estimate counts both:
what extrapolation changed, and eps · Σ|f| / h. A jump between the left and the right slope that
does not shrink with h is a kink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Line = Callable[[float], Array]  # t -> the outputs, flat float64, at x + t · direction

EPS = float(np.finfo(np.float64).eps)
FIRST = 2.0**-10  # the first step, for an element of size 1
FACTOR = 16.0  # from one step to the next
SMALLER, LARGER = 12, 2  # how often the step may shrink or grow


class Verdict(StrEnum):
    """What a comparison of analytic and numeric gradient says; see `judge`."""

    agrees = "agrees"
    kink = "kink"
    undecided = "undecided"
    undefined = "undefined"
    differs = "differs"

    @property
    def symbol(self) -> str:
        return {"agrees": "✓", "kink": "∧", "undecided": "?", "undefined": "?", "differs": "✗"}[
            self
        ]

    @property
    def fine(self) -> bool:
        """True for ✓ and ∧ only."""
        return self in (Verdict.agrees, Verdict.kink)


@dataclass(frozen=True, slots=True)
class Slope:
    """One measured slope: value, error estimate, both sides, and a kink `near` or `here`."""

    value: float
    error: float
    left: float
    right: float
    near: bool = False
    here: bool = False


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What may differ: atol + rtol · |numeric|, and the error estimate on top."""

    atol: float
    rtol: float


TOLERANCES = {
    "float64": Tolerance(1e-8, 1e-6),
    "float32": Tolerance(1e-5, 1e-4),
    "float16": Tolerance(1e-3, 1e-2),
}
STRICT = TOLERANCES["float64"]


def power_of_two(size: float) -> float:
    """The power of two near `size`, so that x ± h is as exact as can be."""
    return float(2.0 ** np.round(np.log2(size))) if np.isfinite(size) else 1.0


def _meet(weights: Array, outputs: Array) -> Array:
    """Σ weight · output per row of weights; what has weight 0 does not count, not even NaN."""
    with np.errstate(all="ignore"):
        met: Array = np.where(weights == 0, 0.0, weights * outputs).sum(axis=1)
    return met


class _Probe:
    """All measurements at one step h, for every row of weights."""

    def __init__(self, line: Line, here: Array, h: float, weights: Array, inner: float) -> None:
        far, near = (line(h), line(-h)), (line(h / 2), line(-h / 2))
        with np.errstate(all="ignore"):
            wide, tight = (far[0] - far[1]) / (2 * h), (near[0] - near[1]) / h
            value = (4 * tight - wide) / 3
            size = np.mean(np.abs([*far, *near]), axis=0)
            self.value = _meet(weights, value)
            self.truncation = _meet(np.abs(weights), np.abs(value - tight))
            self.rounding = _meet(np.abs(weights), 2 * EPS * size / h) + 2 * EPS * inner / h
            self.right = _meet(weights, (far[0] - here) / h)
            self.left = _meet(weights, (here - far[1]) / h)
            closer = _meet(weights, (near[0] + near[1] - 2 * here) / (h / 2))
            self.jump, self.closer = np.abs(self.right - self.left), np.abs(closer)
        self.error = self.truncation + self.rounding
        self.finite = np.isfinite(self.value) & np.isfinite(self.error)

    def jumps(self, tolerance: Tolerance) -> Array:
        """Where left and right slope differ by more than noise, and halving h does not help."""
        floor = tolerance.atol + 1e-5 * np.abs(self.value) + 20 * self.rounding
        stays: Array = self.finite & (self.jump > floor) & (self.closer > 0.75 * self.jump)
        return stays


def slopes(
    line: Line, here: Array, unit: float, weights: Array, tolerance: Tolerance, inner: float = 0.0
) -> list[Slope]:
    """Measure the slope of Σ weight · output along a line, for every row of `weights`.

    here: the outputs at t = 0. unit: the size of a step of 1 (a power of two). inner: how large the
    values on the way were, weighted by their gradients: their rounding reaches the result too.
    """
    first = _Probe(line, here, unit * FIRST, weights, inner)
    kinked = first.jumps(tolerance)
    if kinked.any():
        kinked &= _Probe(line, here, unit * FIRST / 4, weights, inner).jumps(tolerance)
    clean = first.finite & ~kinked
    value, error = np.where(clean, first.value, np.nan), np.where(clean, first.error, np.inf)

    def good() -> bool:
        return bool((error <= 0.1 * (tolerance.atol + tolerance.rtol * np.abs(value))).all())

    grow = first.finite.all() and not kinked.any() and (first.rounding > first.truncation).all()
    h = unit * FIRST
    for _ in range(LARGER if grow else SMALLER):
        if good():
            break
        h = h * FACTOR if grow else h / FACTOR
        probe = _Probe(line, here, h, weights, inner)
        better = probe.finite & (probe.error < error) & ~probe.jumps(tolerance)
        value, error = np.where(better, probe.value, value), np.where(better, probe.error, error)
        if probe.finite.all() and not grow and (probe.rounding > probe.truncation).all():
            if not kinked.any() or np.isfinite(value).all():
                break
    found = []
    for n in range(len(weights)):
        at_kink = bool(kinked[n] and not error[n] <= max(tolerance.atol, 0.1 * abs(value[n])))
        if at_kink:
            value[n], error[n] = first.value[n], first.rounding[n]
        found.append(
            Slope(
                float(value[n]),
                float(error[n]),
                float(first.left[n]),
                float(first.right[n]),
                near=bool(kinked[n]),
                here=at_kink,
            )
        )
    return found


def judge(analytic: float, slope: Slope, tolerance: Tolerance) -> Verdict:
    """The verdict on one element.

    ✓ agrees: |a - n| <= atol + rtol·|n| + error estimate. ∧ kink: a jump between left and right
    slope that does not shrink with h, and a value between them. ? undecided: the estimate is worse
    than a tenth of the slope. ? undefined: NaN, or infinite on both sides. ✗ differs: otherwise.
    """
    numeric, error = slope.value, slope.error
    if not np.isfinite(numeric):
        return Verdict.undefined
    decided = error <= max(tolerance.atol, 0.1 * abs(numeric))
    if not np.isfinite(analytic):
        return Verdict.differs if decided and not slope.here else Verdict.undefined
    allowed = tolerance.atol + tolerance.rtol * abs(numeric) + error
    if slope.here:
        low, high = sorted((slope.left, slope.right))
        return Verdict.kink if low - allowed <= analytic <= high + allowed else Verdict.differs
    if not decided:
        return Verdict.undecided
    if abs(analytic - numeric) <= allowed:
        return Verdict.kink if slope.near else Verdict.agrees
    return Verdict.differs
