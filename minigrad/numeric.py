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


class _Search:
    """The best measurement so far, and what was seen of a jump, for every row of weights."""

    def __init__(self, rows: int, tolerance: Tolerance) -> None:
        self.tolerance = tolerance
        self.value, self.error = np.full(rows, np.nan), np.full(rows, np.inf)
        self.left, self.right = np.full(rows, np.nan), np.full(rows, np.nan)
        self.jump, self.growth = np.full(rows, np.nan), np.full(rows, 1.0)  # from step to step
        self.previous: _Probe | None = None
        self.surprised = False  # by the last step: the next one must tell who was right

    def take(self, probe: _Probe) -> None:
        """Keep what is better; where two steps contradict each other, trust both less."""
        jumps, error = probe.jumps(self.tolerance), probe.error
        if self.previous is not None:
            with np.errstate(all="ignore"):
                apart = np.abs(probe.value - self.previous.value)
                surprise = (apart > error + self.previous.error) & ~jumps
            surprise &= ~self.previous.jumps(self.tolerance)
            self.surprised = bool(surprise.any())
            error = np.where(surprise, 3 * apart, error)
            noise = 3 * apart / FACTOR  # what the larger step, too, must have had of it
            self.error = np.where(surprise, np.maximum(self.error, noise), self.error)
        with np.errstate(all="ignore"):  # a step too small to see the jump that was seen before
            blind = 20 * probe.rounding > self.jump
        better = probe.finite & ~jumps & ~blind & (error < self.error)
        self.value = np.where(better, probe.value, self.value)
        self.error = np.where(better, error, self.error)
        sharp = jumps & (probe.rounding < 1e-4 * probe.jump)
        self.left = np.where(sharp, probe.left, self.left)
        self.right = np.where(sharp, probe.right, self.right)
        with np.errstate(all="ignore"):
            grown = probe.jump / np.where(np.isnan(self.jump), probe.jump, self.jump)
        self.growth = np.where(sharp, grown, self.growth)
        self.jump = np.where(sharp, probe.jump, self.jump)
        self.previous = probe

    def good(self) -> bool:
        """Whether every row is known far better than the tolerance asks."""
        allowed = self.tolerance.atol + self.tolerance.rtol * np.abs(self.value)
        return bool((self.error <= 0.1 * allowed).all())

    def slope(self, n: int, kinked: bool) -> Slope:
        """What is known of row n. kinked: a jump was seen at the first steps."""
        value, error = float(self.value[n]), float(self.error[n])
        left, right = float(self.left[n]), float(self.right[n])
        if not kinked or error <= max(self.tolerance.atol, 0.1 * abs(value)):
            return Slope(value, error, left, right, near=kinked)
        if self.growth[n] > 2:  # 16 where the function itself jumps, 4 for a root
            return Slope(np.nan, np.inf, left, right)
        middle = (left + right) / 2
        if self.growth[n] < 0.8:  # it does shrink, only slowly: a steep bend
            return Slope(middle, float(self.jump[n]), left, right)
        return Slope(middle, 0.0, left, right, near=True, here=True)


def slopes(
    line: Line,
    here: Array,
    unit: float,
    weights: Array,
    tolerance: Tolerance,
    inner: float = 0.0,
    size: float = 1.0,
) -> list[Slope]:
    """Measure the slope of Σ weight · output along a line, for every row of `weights`.

    here: the outputs at t = 0. unit: the size of a step of 1 (a power of two). inner: how large the
    values on the way were, weighted by their gradients: their rounding reaches the result too.
    size: of a tiny element; steps that fit it are tried last.
    """

    def probe(h: float) -> _Probe:
        return _Probe(line, here, h, weights, inner)

    search, h = _Search(len(weights), tolerance), unit * FIRST
    first = probe(h)
    search.take(first)
    kinked = first.jumps(tolerance)
    if kinked.any():
        kinked &= probe(h / 4).jumps(tolerance)
    grow = first.finite.all() and not kinked.any() and (first.rounding > first.truncation).all()
    for _ in range(LARGER if grow else SMALLER):
        if search.good():
            break
        h = h * FACTOR if grow else h / FACTOR
        search.take(tried := probe(h))
        worse = tried.finite.all() and (tried.rounding > tried.truncation).all()
        if worse and not grow and not kinked.any() and not search.surprised:
            break
    if not search.good() and 0 < size < FIRST:
        search.previous = None
        for step in (size * FIRST, size * FIRST / FACTOR):
            search.take(probe(step))
    return [search.slope(n, bool(kinked[n])) for n in range(len(weights))]


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
