"""Einstein summation: every product of cells, its axes named by letters, as one op.

The rule of an operand is an einsum again: its letters are asked of the upstream gradient and the
other operands. A letter that only this operand has was summed alone, so its gradient is copied.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Shape
from ..domains import Cases, Rng, Sample
from ..errors import ArgumentError, ShapeError
from ..op import op


def terms(equation: Any, shapes: tuple[Shape, ...]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; `...` becomes letters that are not in use.

    Raises ArgumentError for an equation that cannot be read, ShapeError if it does not fit.
    """
    if not isinstance(equation, str):
        raise ArgumentError(
            f"einsum: the equation is a text such as 'ij,jk->ik', not {type(equation).__name__}"
        )
    left, arrow, result = equation.replace(" ", "").partition("->")
    operands = left.split(",")
    if len(operands) != len(shapes):
        raise ArgumentError(
            f"einsum: '{equation}' names {len(operands)} operands, but {len(shapes)} were given"
        )
    named = [term.replace("...", "", 1) for term in (*operands, result)]
    if not all(c in string.ascii_letters for term in named for c in term):
        raise ArgumentError(f"einsum: '{equation}' may hold letters, commas, one -> and ...")
    unused = [c for c in reversed(string.ascii_letters) if c not in "".join(named)]
    dots = max(
        [len(s) - len(n) for s, n, t in zip(shapes, named, operands, strict=False) if "..." in t],
        default=0,
    )
    found = []
    for k, (term, own, shape) in enumerate(zip(operands, named, shapes, strict=False)):
        extra = len(shape) - len(own) if "..." in term else 0
        if extra < 0 or len(own) + extra != len(shape):
            raise ShapeError(f"einsum: '{term}' in '{equation}' does not fit x{k} {shape}")
        found.append(term.replace("...", "".join(unused[dots - extra : dots])))
    if arrow:
        out = result.replace("...", "".join(unused[:dots]))
    else:
        once = sorted(c for c in "".join(named[:-1]) if left.count(c) == 1)
        out = "".join(unused[:dots]) + "".join(once)
    if len(set(out)) < len(out) or not set(out) <= set("".join(found)):
        raise ArgumentError(
            f"einsum: the result '{result}' of '{equation}' must name letters of the operands once"
        )
    _refuse_sizes(equation, found, shapes)
    return found, out


def _refuse_sizes(equation: str, letters: list[str], shapes: tuple[Shape, ...]) -> None:
    sizes: dict[str, int] = {}
    for term, shape in zip(letters, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            if sizes.setdefault(letter, size) == 1:
                sizes[letter] = size
            if size not in (1, sizes[letter]):
                raise ShapeError(
                    f"einsum: in '{equation}' the letter {letter} has the sizes {sizes[letter]} "
                    f"and {size}"
                )


def all_letters(equation: str, shapes: tuple[Shape, ...]) -> tuple[str, ...]:
    """The letters of the operands, then of the result."""
    letters, out = terms(equation, shapes)
    return (*letters, out)


def summed(letters: list[str], out: str, arrays: tuple[Any, ...]) -> Array:
    """The einsum in the dtype of the arrays; low precision is accumulated in float64."""
    kept = np.result_type(*arrays)
    wide = [np.asarray(a, np.float64 if kept.kind == "f" else None) for a in arrays]
    y = np.einsum(f"{','.join(letters)}->{out}", *wide, optimize=len(arrays) > 2)
    return np.asarray(y).astype(kept, copy=False)


def pull_einsum(
    g: Array, k: int, xs_shape: tuple[Shape, ...], others: tuple[Array, ...], equation: str
) -> Array:
    """The letters of operand k, asked of g and the other operands."""
    letters, out = terms(equation, xs_shape)
    own, rest = letters[k], letters[:k] + letters[k + 1 :]
    once = "".join(dict.fromkeys(own))
    there = "".join(c for c in once if c in out or c in "".join(rest))
    back = summed([out, *rest], there, (g, *others))
    found = dict(zip(there, back.shape, strict=True))
    sizes = {  # an axis of size 1 elsewhere meets a longer one here
        c: n if found.get(c, 1) == 1 else found[c] for c, n in zip(own, xs_shape[k], strict=True)
    }
    back = back.reshape([found.get(c, 1) for c in once])
    back = np.broadcast_to(back, [sizes[c] for c in once])
    if once == own:
        return back
    diagonal = np.zeros([sizes[c] for c in own], back.dtype)
    grid = dict(zip(once, np.ogrid[tuple(slice(sizes[c]) for c in once)], strict=True))
    diagonal[tuple(grid[c] for c in own)] = back
    return diagonal


def _cases(rng: Rng) -> Iterator[Sample]:
    rows: list[tuple[Any, ...]] = [
        ("ij,jk->ik", (2, 3), (3, 2)),
        ("i,j->ij", (2,), (3,)),
        ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
        ("ij->j", (2, 3)),
        ("ii->i", (3, 3)),
        ("ii", (3, 3)),
        ("ij,ij,ij->i", (2, 3), (2, 3), (2, 3)),
        ("...i,i->...", (2, 2, 3), (3,)),
        ("...ij,...jk->...ik", (2, 2, 3), (1, 3, 2)),
        ("ij,k->j", (2, 3), (2,)),
    ]
    for equation, *shapes in rows:
        yield tuple(rng.normal(size=shape) for shape in shapes), {"equation": equation}


@op(
    tex=r"y = \text{einsum}(xs)",
    call=("equation", "xs"),
    broadcasts=True,
    sources=lambda *shapes, equation: all_letters(equation, shapes),
    domain=Cases("an equation, and operands whose letters have equal sizes", _cases),
    pulls={
        "xs": (
            lambda g, k, xs_shape, others, equation: pull_einsum(g, k, xs_shape, others, equation),
            r"\text{einsum}(\bar y, \text{the others})",
        )
    },
    reference=lambda xs, equation: np.einsum(equation, *xs),
)
def einsum(*xs: Any, equation: str) -> Any:
    """Sum of products of cells, their axes named by letters: einsum("ij,jk->ik", a, b)."""
    letters, out = terms(equation, tuple(np.shape(x) for x in xs))
    return summed(letters, out, xs)
