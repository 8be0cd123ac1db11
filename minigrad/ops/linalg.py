"""Linear algebra: products of matrices, batches that broadcast, and vectors on either side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import Shape
from ..domains import Cases, Rng, Sample
from ..errors import ShapeError
from ..op import op

Array = NDArray[Any]

# A vector on the left is a matrix of one row, on the right one of one column; the axis that adds is
# dropped from the result again. So each rule is the matrix rule between two changes of view.


def as_row(a: Array) -> Array:
    return a[None, :] if a.ndim == 1 else a


def as_column(b: Array) -> Array:
    return b[:, None] if b.ndim == 1 else b


def as_matrix(g: Array, a_shape: Shape, b_shape: Shape) -> Array:
    """The upstream gradient with the axes that vectors had dropped."""
    g = g[..., None] if len(b_shape) == 1 else g
    return np.expand_dims(g, -2) if len(a_shape) == 1 else g


def pull_left(g: Array, a_shape: Shape, b: Array) -> Array:
    grad = as_matrix(g, a_shape, b.shape) @ as_column(b).mT
    return grad[..., 0, :] if len(a_shape) == 1 else grad


def pull_right(g: Array, a: Array, b_shape: Shape) -> Array:
    grad = as_row(a).mT @ as_matrix(g, a.shape, b_shape)
    return grad[..., 0] if len(b_shape) == 1 else grad


def letters(a: Shape, b: Shape) -> tuple[str, str, str]:
    """The axes of both operands and the result, in letters: ("ik", "kj", "ij") for matrices."""
    batch = "abcdefgh"[: max(len(a), len(b)) - 2] if max(len(a), len(b)) > 2 else ""
    row, column = "i" * (len(a) > 1), "j" * (len(b) > 1)
    left = batch[len(batch) - max(len(a) - 2, 0) :] + row + "k"
    right = batch[len(batch) - max(len(b) - 2, 0) :] + "k" + column
    return left, right, batch + row + column


def _cases(rng: Rng) -> Iterator[Sample]:
    for a, b in [
        ((2, 3), (3, 2)),
        ((2, 2, 3), (1, 3, 2)),
        ((2, 3), (2, 3, 4)),
        ((2, 1, 2, 3), (3, 3, 1)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 4, 3), (3,)),
        ((3,), (2, 3, 4)),
    ]:
        yield (rng.normal(size=a), rng.normal(size=b)), {}


@op(
    tex="Y = A B",
    symbol="@",
    broadcasts=True,
    sources=letters,
    reference=np.matmul,
    domain=Cases("matrices, batches that broadcast, vectors", _cases),
    pulls={
        "a": (lambda g, a_shape, b: pull_left(g, a_shape, b), r"\bar Y B^{\top}"),
        "b": (lambda g, a, b_shape: pull_right(g, a, b_shape), r"A^{\top} \bar Y"),
    },
)
def matmul(a: Any, b: Any) -> Any:
    """The matrix product a b over the last two axes; batches broadcast, vectors are fine."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        raise ShapeError(
            f"matmul: a {np.shape(a)} and b {np.shape(b)} must have axes; use * with a scalar"
        )
    middle = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != middle:
        which = "second-last" if b.ndim > 1 else "only"
        raise ShapeError(
            f"matmul: a {a.shape} and b {b.shape} do not meet: a's last size {a.shape[-1]} must "
            f"equal b's {which} size {middle}"
        )
    try:
        return np.matmul(a, b)
    except ValueError as problem:
        raise ShapeError(
            f"matmul: a {a.shape} and b {b.shape} do not meet: their batch axes {a.shape[:-2]} and "
            f"{b.shape[:-2]} must be equal or 1"
        ) from problem


@op(
    tex=r"Y = a b^{\top}",
    sources=lambda a, b: ("i", "j", "ij"),
    reference=np.outer,
    domain=Cases(
        "two vectors",
        lambda rng: (
            ((rng.normal(size=n), rng.normal(size=m)), {}) for n, m in [(3, 2), (1, 4), (2, 2)]
        ),
    ),
    pulls={
        "a": (lambda g, b: g @ b, r"\bar Y b"),
        "b": (lambda g, a: a @ g, r"\bar Y^{\top} a"),
    },
)
def outer(a: Any, b: Any) -> Any:
    """The matrix of all products a_i b_j of two vectors."""
    if np.ndim(a) != 1 or np.ndim(b) != 1:
        raise ShapeError(f"outer: a {np.shape(a)} and b {np.shape(b)} must be vectors")
    return np.multiply.outer(a, b)
