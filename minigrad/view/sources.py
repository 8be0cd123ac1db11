"""Sources: which cells a cell of a grid is made of, to light them up and write out the sum."""

from __future__ import annotations

from ..compare import Check
from ..events import Pulled, Summary, number_out
from ..graph import TapeNode
from ..trace import Trace
from .parts import Cells, Letters

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def axes(ndim: int, of: int | None = None) -> str:
    """Letters for the last `ndim` of `of` axes."""
    return ALPHABET[(of or ndim) - ndim : (of or ndim)]


def reduction(from_ndim: int, reduced: tuple[int, ...], to_ndim: int) -> tuple[str, str]:
    """Letters of the result and of what is summed: a summed axis that stays is a capital."""
    full = axes(from_ndim)
    kept = "".join(c.upper() if n in reduced else c for n, c in enumerate(full))
    return kept[from_ndim - to_ndim :], full


def made_of(trace: Trace, node: TapeNode) -> Letters | Cells | None:
    """Where each cell of an op's result comes from."""
    keys = [f"operand{k}" for k in range(len(node.inputs))]
    if node.sources:
        return Letters(node.sources[-1], tuple(zip(keys, node.sources[:-1], strict=True)))
    checks = [c for c in trace.checks if c.level == "op" and c.node == node.id]
    if checks and checks[0].jacobian is not None:  # not elementwise; exact where the op is linear
        if node.residuals or len(node.inputs) > 1:
            return None
        rows = checks[0].jacobian
        return Cells(
            "operand0",
            tuple(tuple((float(c), i) for i, c in enumerate(row) if c) for row in rows),
        )
    if not _elementwise(trace, node):
        return None
    ndim = len(node.value.shape)
    factors = tuple(
        (key, axes(len(trace.nodes[i].value.shape), ndim))
        if isinstance(i, int)
        else (f"={number_out(i)}", "")
        for key, i in zip(keys, node.inputs, strict=True)
    )
    return Letters(axes(ndim), factors, apply=node.op, infix=node.symbol or None)


def _elementwise(trace: Trace, node: TapeNode) -> bool:
    pulls = (e for e in trace.events if isinstance(e, Pulled) and e.node == node.id)
    first = next(pulls, None)
    return first is not None and first.local is not None


def from_letters(node: TapeNode, pulled: Pulled) -> Letters | None:
    """For a sum of products, such as matmul: the upstream row and the other operand's column."""
    if not node.sources:
        return None
    *operands, result = node.sources
    own = operands[pulled.argnum]
    lead = len(pulled.contribution.shape) - len(own)
    others = [
        (f"residual:{word}", operands[k])
        for k, word in enumerate(node.operands)
        if k != pulled.argnum
    ]
    return Letters(result[: max(lead, 0)] + own, (("upstream", result), *others))


def from_jacobian(check: Check | None, pulled: Pulled) -> Cells | None:
    if check is None or check.jacobian is None or isinstance(check.jacobian, Summary):
        return None
    if check.shape != pulled.contribution.shape:
        return None
    columns = check.jacobian.T
    return Cells(
        "upstream", tuple(tuple((float(c), r) for r, c in enumerate(col) if c) for col in columns)
    )
