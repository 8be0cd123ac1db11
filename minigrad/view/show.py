"""`show`: the stepper wherever it runs, in a lesson, in a notebook, or as text."""

from __future__ import annotations

import sys
from html import escape

from .. import lesson
from ..tensor import Tensor
from ..trace import Trace, record
from .html import notebook
from .parts import shape_text, short
from .text import trace_text

CELLS = 400  # of a tensor shown as a table in a notebook


def show(what: Tensor | Trace) -> None:
    """Show the stepper for a loss, recorded now, or for a trace.

    In the app it appears below the lesson's cell, in a notebook as the cell's output, elsewhere as
    text.
    """
    trace = what if isinstance(what, Trace) else record(what)
    run = lesson.active()
    if run is not None:
        run.say(trace)
    elif _in_notebook():
        from IPython.display import publish_display_data

        publish_display_data(
            {  # type: ignore[no-untyped-call]
                "text/plain": trace_text(trace),
                "text/html": notebook(trace),
            }
        )
    else:
        print(trace_text(trace))


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def tensor_html(tensor: Tensor) -> str:
    """A notebook's view of a tensor: the stepper for a size-1 result, else its values."""
    if tensor.requires_grad and not tensor.is_leaf and tensor.size == 1:
        return notebook(record(tensor))
    head = f"<b>{escape(tensor.name or 'tensor')}</b> {shape_text(tensor.shape)} {tensor.dtype}"
    if not 0 < tensor.size <= CELLS:
        return f"<p>{head}</p><pre>{escape(repr(tensor))}</pre>"
    columns = tensor.shape[-1] if tensor.ndim else 1
    rows = tensor.data.reshape(-1, columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{short(float(v), 4)}</td>' for v in row)}</tr>" for row in rows
    )
    return f"<p>{head}</p><table>{body}</table>"
