"""minigrad: see where a gradient comes from.

    import minigrad as mg

    x = mg.tensor([1.0, 2.0], requires_grad=True, name="x")
    loss = (x * x).sum()
    mg.show(loss)

Ops are functions here and methods of Tensor. What is heavy (drawing, lessons) loads on first use.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from . import operators as _operators  # noqa: F401  (puts the ops on Tensor)
from .backward import grad, walk
from .card import Kink, registry
from .check import check_op
from .checkpoint import checkpointing
from .errors import (
    ArgumentError,
    CardError,
    DomainError,
    DtypeError,
    GraphError,
    LessonError,
    MinigradError,
    OutOfRangeError,
    RuleError,
    ShapeError,
    TraceError,
)
from .gradcheck import gradcheck
from .kernels import select
from .op import elementwise, op
from .operators import split
from .store import GradStore
from .tensor import Tensor, no_grad, tensor
from .trace import Trace, record
from .trace_file import load_trace, save_trace

if TYPE_CHECKING:
    from . import lesson, optim
    from .view.show import show

__version__ = "0.1.0"

for _name, _card in registry.items():
    globals()[_name] = _card.function

_LATER = {
    "lesson": ("minigrad.lesson", None),
    "optim": ("minigrad.optim", None),
    "show": ("minigrad.view.show", "show"),
}

__all__ = [
    "ArgumentError",
    "CardError",
    "DomainError",
    "DtypeError",
    "GradStore",
    "GraphError",
    "Kink",
    "LessonError",
    "MinigradError",
    "OutOfRangeError",
    "RuleError",
    "ShapeError",
    "Tensor",
    "Trace",
    "TraceError",
    "check_op",
    "checkpointing",
    "elementwise",
    "grad",
    "gradcheck",
    "lesson",
    "load_trace",
    "no_grad",
    "op",
    "optim",
    "record",
    "registry",
    "select",
    "show",
    "split",
    "tensor",
    "walk",
    *registry,
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"minigrad has no {name}")
    module_name, attribute = _LATER[name]
    module = importlib.import_module(module_name)
    globals()[name] = getattr(module, attribute) if attribute else module
    return globals()[name]


# --- display: what a trace and a tensor can do once there is a view -------------------------------


def _to_html(self: Trace, path: str | os.PathLike[str], step: int = 0) -> None:
    """Write the stepper as one self-contained HTML file that opens from disk, at 0-based `step`."""
    from .view.html import to_html

    to_html(self, path, step)


def _text(self: Trace) -> str:
    """Every step as plain text."""
    from .view.text import trace_text

    return trace_text(self)


def _trace_html(self: Trace) -> str:
    from .view.html import notebook

    return notebook(self)


def _tensor_html(self: Tensor) -> str:
    from .view.show import tensor_html

    return tensor_html(self)


Trace.save = save_trace  # type: ignore[attr-defined]
Trace.to_html = _to_html  # type: ignore[attr-defined]
Trace.text = _text  # type: ignore[attr-defined]
Trace._repr_html_ = _trace_html  # type: ignore[attr-defined]
Tensor._repr_html_ = _tensor_html  # type: ignore[attr-defined]
