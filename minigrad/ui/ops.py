"""The Ops page: find an op, read its sheet, try it: edit the inputs and step through it.

The URL says where you stand: `?op=…&example=…&step=…`. Without an op it lists all of them.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from math import prod
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import streamlit as st

from ..card import Op, registry
from ..domains import samples
from ..errors import ArgumentError, MinigradError
from ..paths import ASSETS
from ..trace import Trace, record
from ..view.sheet import call_in_words, called, leaves, neat, pattern, smallest, without_source
from ..view.sheet_html import index_html, sheet_html
from .address import TIGHT, asked, go, stand_at, step_of
from .stepper import stepper
from .tables import edit, letter_by_letter

NAME = "minigrad_ops"
MOST = 4096  # cells of a result that is stepped through
LARGEST = 10**6  # product of the whole numbers typed as one parameter
LONGEST = 1000  # a single one of them, but for a seed
EDITABLE = (bool, int, float, str, tuple, type(None))  # parameters that fit a field


def page() -> None:
    """Draw the page."""
    st.html(TIGHT)
    name = _chosen_op()
    _sheet(name)
    if name:
        _try_it(registry[name])


# --- find an op, read its sheet -------------------------------------------------------------------


def _chosen_op() -> str:
    """The op in the URL; nothing if there is none."""
    wanted = st.query_params.get("op", "")
    if wanted and wanted not in registry:
        words = f"There is no op called “{wanted[:60]}”; here are all of them."
        st.warning(letter_by_letter(words))
        return ""
    return wanted


def _sheet(name: str) -> None:
    """Search, links, and the sheet: one component, whose links change the URL."""
    mount = st.components.v2.component(
        NAME,
        css=(ASSETS / "ops.css").read_text(encoding="utf-8"),
        js=(ASSETS / "ops.js").read_text(encoding="utf-8"),
    )
    mount(key=NAME, data={"html": _markup(name)}, on_go_change=_follow)


@st.cache_data(show_spinner=False)
def _markup(name: str) -> str:
    """What the component shows; an op is drawn and checked once."""
    index = index_html(lambda op: f"?op={op}" if op else "?", name)
    return index + sheet_html(registry[name]) if name else f"<h2>Ops</h2>{index}"


def _follow() -> None:
    """A link was pressed."""
    href = st.session_state[NAME]["go"] or ""
    name = parse_qs(href.lstrip("?")).get("op", [""])[0]
    st.query_params.from_dict({"op": name} if name else {})


# --- try it ---------------------------------------------------------------------------------------


def _try_it(card: Op) -> None:
    """One of the card's own samples, its operands, parameters and upstream gradient to edit."""
    st.subheader("Try it")
    examples = _examples(card)
    titles = {str(n): call_in_words(card, *sample) for n, sample in enumerate(examples, 1)}
    wanted = asked("example", list(titles), "This op has no example", "this is its first one")
    chosen = st.selectbox(
        "Example", list(titles), format_func=lambda slug: titles[slug], key="example", width=520
    )
    if chosen != wanted:
        go(op=card.name, example=chosen)
    stand_at(st.query_params.to_dict())
    operands, params = examples[int(chosen) - 1]
    key = f"{card.name}/{chosen}"
    trace: Trace | None
    fields = st.container(horizontal=True, gap="medium")
    beside = st.container()
    try:
        with fields:
            tables = _operands(card, operands, key)
            given = _params(card, params, key)
            y = called(card, leaves(card, tables), given)
            if y.size > MOST:
                raise ArgumentError(
                    f"{card.name}: the result has {y.size} cells; at most {MOST} are stepped here"
                )
            if y.requires_grad:
                with st.container(width="content"):
                    g = edit("g", pattern(y.shape), f"{key}/g/{y.shape}")
        if not y.requires_grad:
            beside.info(letter_by_letter(f"{card.name}: no gradient flows back from {y!r}."))
            return
        trace = st.session_state[f"{key}/trace"] = without_source(record(y, g))
    except MinigradError as problem:
        trace = st.session_state.get(f"{key}/trace")
        kept = ". Below are the last values that could be used." if trace else ""
        beside.error(letter_by_letter(f"{problem}{kept}"), icon=":material/error:")
    if trace is not None:
        stepper(trace, key, step_of(trace, "this example"))


@st.cache_data(show_spinner=False)
def _drawn(name: str) -> list[tuple[Any, ...]]:
    card = registry[name]
    return [smallest(card), *((neat(operands), params) for operands, params in samples(card))]


def _examples(card: Op) -> list[tuple[Any, ...]]:
    """The samples of the card, the one of its plots first; those without cells are left out."""
    found: dict[str, tuple[Any, ...]] = {}
    for operands, params in _drawn(card.name):
        if all(np.size(o) for o in operands):
            found.setdefault(call_in_words(card, operands, params), (operands, params))
    return list(found.values())


def _operands(card: Op, operands: tuple[Any, ...], key: str) -> list[Any]:
    """A table for each operand; whole numbers and truth values stay what they are."""
    names = card.taking(len(operands)).inputs
    tables = []
    for name, operand in zip(names, operands, strict=True):
        with st.container(width="content"):
            array = np.asarray(operand)
            typed = edit(name, array.astype(np.float64), f"{key}/{name}")
            tables.append(_as_before(name, array, typed))
    return tables


def _as_before(name: str, array: Any, typed: Any) -> Any:
    """The typed numbers in the kind of the array. Raises ArgumentError if they are not."""
    if array.dtype.kind == "f":
        return typed
    kind = "0 or 1" if array.dtype.kind == "b" else "a whole number"
    with np.errstate(invalid="ignore"):  # a number too large to be whole is told below
        wrong = np.flatnonzero(typed.astype(array.dtype) != typed)
    if wrong.size:
        raise ArgumentError(f"{name}: a cell must be {kind}, not {typed.ravel()[wrong[0]]:g}")
    return typed.astype(array.dtype)


def _params(card: Op, params: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A field for each parameter that fits one. Raises ArgumentError for what cannot be read."""
    given = {}
    for name, value in card.settle(params).items():
        if not isinstance(value, EDITABLE) or not _simple(value):
            given[name] = value
        elif isinstance(value, bool):
            given[name] = st.toggle(name, value, key=f"{key}/{name}")
        else:
            text = st.text_input(name, str(value), key=f"{key}/{name}", width=130)
            given[name] = text if isinstance(value, str) else _read(name, text)
    return given


def _simple(value: Any) -> bool:
    """Whether a value comes back when it is written out and read."""
    return not isinstance(value, tuple) or all(isinstance(v, int) for v in value)


def _read(name: str, text: str) -> Any:
    """A typed value. Raises ArgumentError for what is none, or would make a giant result."""
    try:
        endless = text.strip().lstrip("+-") in ("inf", "nan")
        value = float(text) if endless else literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError) as problem:
        raise ArgumentError(
            f"{name}: “{text[:40]}” is no value; type a number, (0, 1) or None"
        ) from problem
    sizes = value if isinstance(value, tuple) else (value,)
    whole = [abs(v) for v in sizes if isinstance(v, int)]
    if name != "seed" and (
        prod(n or 1 for n in whole) > LARGEST or max(whole, default=0) > LONGEST
    ):
        raise ArgumentError(f"{name}: “{text[:40]}” is too large to step through here")
    return value
