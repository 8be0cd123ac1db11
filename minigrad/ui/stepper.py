"""The stepper as a Streamlit component: the module and style that HTML files use too."""

from __future__ import annotations

from typing import Any

import streamlit as st

from ..paths import ASSETS
from ..trace import Trace
from ..view.html import payload

NAME = "minigrad_stepper"


def _mount() -> Any:
    """The component, registered once per session's script run; Streamlit keeps one of each name."""
    return st.components.v2.component(
        NAME,
        css=(ASSETS / "stepper.css").read_text(encoding="utf-8"),
        js=(ASSETS / "stepper.js").read_text(encoding="utf-8"),
    )


def stepper(trace: Trace, key: str, step: int | None) -> None:
    """Mount the stepper for a trace. step: 1-based, as the URL has it; None for the first."""
    _mount()(key=key, data={"payload": payload(trace), "step": step, "url": True})
