"""The typed events of a walk: final, frozen, documented, with no I/O below them.

`node`, `input` and `source` are places on the tape, 0 … n-1 in creation order; `argnum` is the
place among an op's operands. Arrays are read-only and never rewritten, so an event can be kept,
drawn and compared for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, final, get_args

import numpy as np
from numpy.typing import NDArray

from .errors import TraceError

Array = NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class Seeded:
    """The walk starts at `node` with `gradient`: ones, or what was passed."""

    node: int
    gradient: Any


@final
@dataclass(frozen=True, slots=True)
class Visited:
    """The finished gradient of this op's result is taken out of the store: `upstream`."""

    node: int
    op: str
    upstream: Any


@final
@dataclass(frozen=True, slots=True)
class Pulled:
    """One rule ran: `upstream` came in at `node`, `contribution` goes to `input`.

    local: the local slope, None unless the op is elementwise. tex: the rule's formula.
    residuals: (name, array) of every saved value the rule read.
    """

    node: int
    input: int
    argnum: int
    upstream: Any
    local: Any
    contribution: Any
    tex: str
    residuals: tuple[tuple[str, Any], ...]


@final
@dataclass(frozen=True, slots=True)
class Reduced:
    """What broadcasting had copied along `axes` is summed, from `from_shape` to `to_shape`."""

    node: int
    input: int
    argnum: int
    axes: tuple[int, ...]
    from_shape: tuple[int, ...]
    to_shape: tuple[int, ...]
    gradient: Any


@final
@dataclass(frozen=True, slots=True)
class Accumulated:
    """`node` is the receiver: before + added = after; `arrived` of `expected` uses have reported.

    source, argnum: the op and operand it came through. before is zeros the first time.
    """

    node: int
    source: int
    argnum: int
    before: Any
    added: Any
    after: Any
    arrived: int
    expected: int


@final
@dataclass(frozen=True, slots=True)
class Recomputed:
    """The value of `node`, which checkpointing had dropped, is made again: it takes `bytes`."""

    node: int
    value: Any
    bytes: int


@final
@dataclass(frozen=True, slots=True)
class Released:
    """Nobody needs the value of `node` any more: `bytes` can be given back."""

    node: int
    bytes: int


@final
@dataclass(frozen=True, slots=True)
class Stopped:
    """The gradient does not go on from `node` into `input`.

    reason: "constant", "detached", "no_grad", or "zero slope", which stands in Pulled's place.
    """

    node: int
    input: int
    argnum: int
    reason: str


@final
@dataclass(frozen=True, slots=True)
class Reached:
    """The gradient of the leaf `node`, called `name`, is final."""

    node: int
    name: str
    gradient: Any


Event = (
    Seeded | Visited | Pulled | Reduced | Accumulated | Recomputed | Released | Stopped | Reached
)
_KINDS: dict[str, type[Event]] = {k.__name__: k for k in get_args(Event)}


# --- JSON out and in ------------------------------------------------------------------------------

WHOLE = 4096  # cells up to which an array is written whole
CORNER = 12  # rows and columns kept of a larger one


@dataclass(frozen=True, slots=True)
class Summary:
    """A large array in a trace: shape, a corner of its last two axes, min, max, mean, norm."""

    shape: tuple[int, ...]
    dtype: str
    corner: Array
    min: float
    max: float
    mean: float
    norm: float

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)


def summarise(array: Array) -> Summary:
    """The summary of a large array (shape, dtype, 12 × 12 corner, four numbers)."""
    flat = array.astype("f8", copy=False)
    corner = np.atleast_2d(flat[(0,) * max(array.ndim - 2, 0)])
    with np.errstate(all="ignore"):
        numbers = [
            float(f(flat)) for f in (np.min, np.max, np.mean, lambda a: np.sqrt((a * a).sum()))
        ]
    return Summary(array.shape, str(array.dtype), corner[:CORNER, :CORNER], *numbers)


def number_out(value: float) -> float | str:
    """A number for JSON; NaN and infinities are strings."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def number_in(value: object) -> float:
    """The inverse of `number_out`. Raises TraceError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        if value not in ("NaN", "Infinity", "-Infinity"):
            raise TraceError(f"a number was expected in the trace, found {str(value)[:40]!r}")
        return float(str(value))
    return float(value)


def array_out(array: Any, full: bool = False) -> dict[str, Any]:
    """An array as JSON: {"shape", "dtype", "data"}; a corner above 4,096 cells unless `full`."""
    if not isinstance(array, Summary) and (full or array.size <= WHOLE):
        flat = array.ravel()
        cells = (flat.astype(np.uint8) if flat.dtype == bool else flat).tolist()
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            cells = [number_out(c) for c in cells]
        return {"shape": list(array.shape), "dtype": str(array.dtype), "data": cells}
    s = array if isinstance(array, Summary) else summarise(array)
    return {
        "shape": list(s.shape),
        "dtype": s.dtype,
        "corner": [number_out(c) for c in s.corner.ravel().tolist()],
        "corner_shape": list(s.corner.shape),
        **{n: number_out(getattr(s, n)) for n in ("min", "max", "mean", "norm")},
    }


_DTYPES = {"bool", *(f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64))}
_DTYPES |= {"float16", "float32", "float64"}


def array_in(data: Any) -> Array | Summary:
    """The inverse of `array_out`. Raises TraceError when shape, dtype and data do not fit."""
    try:
        shape, dtype = tuple(int(n) for n in data["shape"]), data["dtype"]
        if dtype not in _DTYPES or any(n < 0 for n in shape):
            raise TraceError(
                f"the trace holds an array of dtype {str(dtype)[:20]!r} and shape {shape}"
            )
        if "data" in data:
            array = np.array([number_in(c) for c in data["data"]], "f8")
            array = array.astype(dtype).reshape(shape)
            array.flags.writeable = False
            return array
        corner = np.array([number_in(c) for c in data["corner"]], "f8")
        numbers = [number_in(data[n]) for n in ("min", "max", "mean", "norm")]
        return Summary(shape, dtype, corner.reshape(data["corner_shape"]), *numbers)
    except TraceError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise TraceError(f"the trace holds a malformed array: {problem}") from problem


def _out(value: Any, full: bool) -> Any:
    if isinstance(value, (np.ndarray, Summary)):
        return array_out(value, full)
    if isinstance(value, tuple):
        return [_out(v, full) for v in value]
    return value


def event_out(event: Event, full: bool = False) -> dict[str, Any]:
    """An event as JSON: its fields, and its type under "event"."""
    row = {f.name: _out(getattr(event, f.name), full) for f in fields(event)}
    return {"event": type(event).__name__, **row}


def _in(value: Any) -> Any:
    if isinstance(value, Mapping):
        return array_in(value)
    if isinstance(value, list):
        return tuple(_in(v) for v in value)
    return value


_FIELD_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "str": str,
    "Any": (np.ndarray, Summary, type(None)),
}


def event_in(data: Any) -> Event:
    """The inverse of `event_out`. Raises TraceError for an unknown event or a wrong field."""
    kind = _KINDS.get(str(data.get("event"))) if isinstance(data, Mapping) else None
    if kind is None:
        raise TraceError(f"the trace holds an unknown event: {str(data)[:60]}")
    row = {name: _in(value) for name, value in data.items() if name != "event"}
    expected = {f.name: _FIELD_TYPES.get(str(f.type), tuple) for f in fields(kind)}
    if row.keys() != expected.keys():
        raise TraceError(
            f"the event {kind.__name__} has the fields {sorted(row)}, not {sorted(expected)}"
        )
    for name, wanted in expected.items():
        if not isinstance(row[name], wanted) or isinstance(row[name], bool):
            raise TraceError(f"the field {name} of the event {kind.__name__} has the wrong type")
    return kind(**row)
