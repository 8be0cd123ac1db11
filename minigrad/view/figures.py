"""What is plotted of an op, as numbers: a curve with its slopes, heat maps, or its Jacobian."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..card import Op
from ..check import check_input
from ..domains import Cases, domain_of, samples
from ..numeric import Verdict
from ..pull import on_arrays, run_forward, saved, slope_of, value_of
from ..store import GradStore
from .sheet import call_in_words, called, given_in_words, leaves, smallest

Array = NDArray[Any]

WIDEST = 4.0  # no axis goes further from 0
POINTS = 400  # of a curve; even, so that no point falls on 0
DOTS = 32  # numeric slopes drawn on top of it; none falls on a whole or a half number
GRID = 81  # cells of a heat map, across and up
CELLS = 12  # rows and columns of a Jacobian


@dataclass(frozen=True, kw_only=True)
class Curve:
    """An op of one input over an interval, NaN where a line breaks.

    at, numeric: places, and the numeric slopes measured there. kinks: the conventions of the card,
    as (place, slope). window: what the y axis shows. note: the parameters.
    """

    input: str
    x: Array
    y: Array
    slope: Array
    at: Array
    numeric: Array
    kinks: tuple[tuple[float, float], ...]
    window: tuple[float, float]
    note: str


@dataclass(frozen=True, kw_only=True)
class Map:
    """A value for every pair of two operands: y itself, or a slope; `values[up, across]`.

    limit: where the colours are full. beyond: whether values lie further below, further above.
    """

    name: str
    across: str
    up: str
    spans: tuple[tuple[float, float], tuple[float, float]]
    values: Array
    limit: float
    beyond: tuple[bool, bool]
    note: str


@dataclass(frozen=True, kw_only=True)
class Jacobian:
    """How each cell of y answers to each cell of one input, for one call.

    rows, columns: the cells' indices, as text. note: the call, and what is left out.
    """

    input: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Array
    note: str


Figure = Curve | Map | Jacobian


def figures(card: Op) -> tuple[Figure, ...]:
    """What is plotted: depends on how many inputs an elementwise op has; else the Jacobians."""
    tracked = all(name in card.rules for name in card.inputs)
    if card.elementwise and tracked and len(card.inputs) == 1:
        return (curve(card),)
    if card.elementwise and tracked and len(card.inputs) == 2:
        return tuple(maps(card))
    return tuple(jacobians(card))


# --- elementwise ops ------------------------------------------------------------------------------


def _span(card: Op, argnum: int) -> tuple[float, float]:
    """From where to where an operand is drawn: its domain, as far as it is near 0."""
    if isinstance(card.domain, Cases):
        cells = np.concatenate([np.ravel(operands[argnum]) for operands, _ in samples(card)])
    else:
        rng = np.random.default_rng(0)
        cells = domain_of(card, card.inputs[argnum]).draw(rng, (POINTS,))
    low, high = np.floor(10 * cells.min()) / 10, np.ceil(10 * cells.max()) / 10
    return float(max(low, -WIDEST)), float(min(high, WIDEST))


def _params(card: Op) -> dict[str, Any]:
    """The parameters of the first sample."""
    _, given = next(iter(samples(card)))
    return card.settle(given)


def curve(card: Op) -> Curve:
    """An elementwise op of one input, with the slope by its rule and by central differences."""
    (name,) = card.inputs
    params, (low, high) = _params(card), _span(card, 0)
    x = np.linspace(low, high, POINTS)
    y, slope = _evaluated(card, [x], params, name)
    window = _window(np.concatenate([y, slope]))
    at = low + (high - low) * (np.arange(DOTS) + 0.5) / DOTS
    return Curve(
        input=name,
        x=x,
        y=_broken(y, window),
        slope=_broken(slope, window),
        at=at,
        numeric=np.array([_measured(card, place, params)[0] for place in at]),
        kinks=tuple(_kinks(card, params, (low, high))),
        window=window,
        note=given_in_words(params),
    )


def _measured(card: Op, place: float, params: Any) -> tuple[float, bool]:
    """The numeric slope at one place, and whether a kink lies there; then it is NaN."""
    check = check_input(card, [np.asarray(place)], params, 0, np.ones(()))
    kinked = check.verdict is Verdict.kink
    return (np.nan if kinked or check.numeric is None else float(check.numeric)), kinked


def _evaluated(card: Op, operands: list[Array], params: Any, name: str) -> tuple[Array, Array]:
    """The value, and the slope by the rule of one input."""
    y = run_forward(card, operands, params).astype(np.float64)
    rule = card.rules[name]
    values = saved(card, rule, on_arrays(card, operands, y, params), value_of)
    with np.errstate(all="ignore"):  # poles are drawn as what they are
        slope = slope_of(card, name, rule, np.ones_like(y), values)
    assert slope is not None
    return y, np.array(slope)


def _window(values: Array) -> tuple[float, float]:
    """From where to where the y axis goes: everything, unless a pole would flatten the rest."""
    finite = values[np.isfinite(values)]
    low, high = finite.min(), finite.max()
    inner_low, inner_high = np.percentile(finite, [10, 90])
    room = inner_high - inner_low
    if room and high - low > 4 * room:
        low, high = max(low, inner_low - room / 2), min(high, inner_high + room / 2)
    margin = 0.06 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _broken(values: Array, window: tuple[float, float]) -> Array:
    """NaN where a line must not be drawn on: far outside the window, and at a jump."""
    height = window[1] - window[0]
    kept = np.where(np.abs(values - sum(window) / 2) > 2 * height, np.nan, values)
    steps = np.pad(np.abs(np.diff(kept)), 1, mode="edge")
    jumps = steps[1:-1] > 10 * np.maximum(steps[:-2], steps[2:]) + 0.02 * height
    kept[1:][jumps] = np.nan
    return kept


def _kinks(
    card: Op, params: dict[str, Any], span: tuple[float, float]
) -> Iterator[tuple[float, float]]:
    """The conventions at the corners that these parameters have inside the span."""
    (name,) = card.inputs
    for kink in card.kinks:
        given = card.settle({n: v for n, v in kink.at.items() if n != name})
        if name not in kink.at or name not in kink.slopes or given != params:
            continue
        for x, slope in zip(np.ravel(kink.at[name]), np.ravel(kink.slopes[name]), strict=True):
            if span[0] <= x <= span[1] and _measured(card, x, params)[1]:
                yield float(x), float(slope)


def maps(card: Op) -> Iterator[Map]:
    """An elementwise op of two inputs: y, and the slope by each of them."""
    across, up = card.inputs
    params, spans = _params(card), (_span(card, 0), _span(card, 1))
    a, b = (np.linspace(*span, GRID) for span in spans)
    for name in ("y", across, up):
        y, slope = _evaluated(
            card, [a[None, :], b[:, None]], params, across if name == "y" else name
        )
        values = np.broadcast_to(y if name == "y" else slope, (GRID, GRID))
        finite = values[np.isfinite(values)]
        limit = _limit(np.abs(finite))
        yield Map(
            name="y" if name == "y" else f"slope by {name}",
            across=across,
            up=up,
            spans=spans,
            values=values,
            limit=limit,
            beyond=(bool(np.any(finite < -limit)), bool(np.any(finite > limit))),
            note=given_in_words(params),
        )


def _limit(sizes: Array) -> float:
    """The largest size; a round number that most stay below, if a pole would pale all others."""
    most = float(sizes.max(initial=0))
    usual = float(np.percentile(sizes, 95)) if sizes.size else 0.0
    if not 0 < 2 * usual < most:
        return most or 1.0
    digit = 10 ** np.floor(np.log10(usual))
    return float(digit * np.round(usual / digit))


# --- all other ops --------------------------------------------------------------------------------


def jacobians(card: Op) -> Iterator[Jacobian]:
    """The Jacobian of each input that has a rule, for the smallest sample that shows something."""
    operands, params = smallest(card, CELLS)
    xs = leaves(card, operands)
    y = called(card, xs, params)
    if not y.requires_grad:
        return
    rows = {x.id: np.zeros((y.size, x.size)) for x in xs}
    for cell in range(y.size):
        seed = np.zeros(y.size)
        seed[cell] = 1
        store = GradStore()
        y.backward_into(store, seed.reshape(y.shape))
        for x in xs:
            gradient = store[x]
            if gradient is not None:
                rows[x.id][cell] = gradient.ravel()
    for x in xs:
        if not x.requires_grad:
            continue
        whole = y.size <= CELLS and x.size <= CELLS
        left_out = "" if whole else f"; the first {CELLS} × {CELLS} of {y.size} × {x.size} cells"
        yield Jacobian(
            input=str(x.name),
            rows=_indices(y.shape),
            columns=_indices(x.shape),
            values=rows[x.id][:CELLS, :CELLS],
            note=call_in_words(card, operands, params) + left_out,
        )


def _indices(shape: Sequence[int]) -> tuple[str, ...]:
    """`0,1`: the indices of the first cells; nothing for a scalar."""
    cells = list(np.ndindex(*shape))[:CELLS]
    return tuple(",".join(map(str, cell)) for cell in cells)
