"""Where we are: the URL and the choices on a page agree; the stepper writes the step by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ..trace import Trace
from .tables import letter_by_letter

# Streamlit leaves wide margins; a stepper needs the room. Its own class names, nothing else.
# The tables' own toolbar would cover their names.
TIGHT = """<style>[data-testid="stElementToolbar"] { display: none; }
.stMainBlockContainer { padding: 0.7rem clamp(1rem, 3vw, 4rem) 3rem;
max-width: 1400px; margin: 0 auto; }</style>"""


def asked(name: str, slugs: list[str], unknown: str, instead: str) -> str:
    """What the URL asks for, put into the widget called `name` when the URL has changed."""
    wanted = st.query_params.get(name, slugs[0])
    if wanted not in slugs:
        st.warning(letter_by_letter(f"{unknown} “{wanted[:60]}”; {instead}."))
        wanted = slugs[0]
    if st.session_state.get("address") != _address(st.query_params.to_dict()):
        st.session_state[name] = wanted  # a link, or the browser's Back: the URL wins
    elif st.session_state.get(name) not in slugs:
        st.session_state[name] = wanted
    return wanted


def go(**where: str) -> None:
    """Say in the URL where we are; the step begins anew."""
    stand_at(where)  # first: the browser's Back may come before this run of the script ends
    st.query_params.from_dict(where)


def stand_at(where: Mapping[str, Any]) -> None:
    """Remember where the widgets stand."""
    st.session_state["address"] = _address(where)


def _address(where: Mapping[str, Any]) -> dict[str, Any]:
    """What the URL says apart from the step, which the stepper writes by itself."""
    return {**where, "step": ""}


def step_of(trace: Trace, what: str) -> int | None:
    """The step in the URL, 1-based; a word above the stepper if `what` has no such step."""
    wanted = st.query_params.get("step")
    if wanted is None:
        return None
    count = len(trace.steps)
    digits = wanted.isascii() and wanted.isdecimal() and len(wanted) < 10
    step = int(wanted) if digits else 0
    if not 1 <= step <= count:
        words = f"There is no step “{wanted[:20]}”: {what} has the steps 1 to {count}."
        st.warning(letter_by_letter(words))
    return min(max(step, 1), count)
