"""Editable tables: an array a reader may change, cell by cell, with its complaint beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from ..errors import LessonError
from ..lesson import parse_table
from ..view.parts import shape_text

Array = NDArray[Any]


def edit(name: str, default: Array, key: str) -> Array:
    """A table for one input.

    What is typed wrongly is named below it, and the last good values stay in use.
    """
    if not default.size:
        st.caption(
            f"**{letter_by_letter(name)}** · {shape_text(default.shape)} · empty, nothing to edit"
        )
        return default
    base, kept = f"{key}/base", f"{key}/good"
    if key not in st.session_state:  # drawn anew: begin with what was typed last
        st.session_state[base] = st.session_state.get(kept, default)
    start: Array = st.session_state[base]
    columns = default.shape[-1] if default.ndim else 1
    rows = start.reshape(-1, columns)
    lead = default.shape[:-1]
    frame = pd.DataFrame(
        [[_written(v) for v in row] for row in rows],
        index=[_row(name, np.unravel_index(n, lead) if lead else ()) for n in range(len(rows))],
        columns=[str(n) for n in range(columns)] if default.ndim else ["value"],
    )
    st.caption(f"**{letter_by_letter(name)}** · {shape_text(default.shape)}")
    edited = st.data_editor(
        frame,
        key=key,
        num_rows="fixed",
        width="content",
        column_config={c: st.column_config.TextColumn(c, width=72) for c in frame.columns},
    )
    try:
        st.session_state[kept] = parse_table(name, edited.to_numpy().tolist(), default.shape)
    except LessonError as problem:
        st.error(
            f"{letter_by_letter(str(problem))}. The last good values stay in use.",
            icon=":material/error:",
        )
    good: Array = st.session_state.get(kept, default)
    return good


def _written(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


def _row(name: str, place: tuple[Any, ...]) -> str:
    return f"{name}[{', '.join(str(int(p)) for p in place)}]" if place else name


def letter_by_letter(text: str) -> str:
    """Text that Markdown shows letter by letter."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]()#+-.!$<>|~:&" else c for c in text)
