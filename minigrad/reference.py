"""The reference table: four small graphs whose eight gradients are known.

`python -m minigrad check` prints it, the first lesson steps through it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .gradcheck import gradcheck
from .report import Report
from .tensor import Tensor, tensor

A = [[[-1.0, -0.5, 0.0], [0.5, 1.0, 1.5]]]


@dataclass(frozen=True)
class Case:
    """sum(op(x0, x1) · weight) for two inputs, and the gradients by both."""

    name: str
    op: Callable[[Any, Any], Any]
    inputs: tuple[Any, Any]
    weight: Any
    expected: tuple[Any, Any]

    def leaves(self, dtype: DTypeLike = np.float64) -> list[Tensor]:
        """Fresh leaves x0 and x1."""
        return [
            tensor(values, requires_grad=True, name=f"x{n}", dtype=dtype)
            for n, values in enumerate(self.inputs)
        ]

    def loss(self, x0: Tensor, x1: Tensor) -> Any:
        """The weighted sum, in the inputs' dtype."""
        return (self.op(x0, x1) * np.asarray(self.weight, x0.dtype)).sum()

    def check(self, dtype: DTypeLike = np.float64) -> Report:
        """The gradients of both inputs against central differences."""
        report = gradcheck(self.loss, self.leaves(dtype))
        return Report(self.name, report.checks, report.note)


CASES = (
    Case(
        name="mul",
        op=lambda a, b: a * b,
        inputs=(A, [[[1.0, 0.75, 0.5], [0.25, 0.0, -0.25]]]),
        weight=[[[0.3, -1.2, 0.7], [2.0, -0.5, 1.1]]],
        expected=(
            [[[0.3, -0.9, 0.35], [0.5, 0.0, -0.275]]],
            [[[-0.3, 0.6, 0.0], [1.0, -0.5, 1.65]]],
        ),
    ),
    Case(
        name="mul broadcast [1,1,3]",
        op=lambda a, b: a * b,
        inputs=(A, [[[2.0, -1.0, 0.5]]]),
        weight=[[[0.3, -1.2, 0.7], [2.0, -0.5, 1.1]]],
        expected=([[[0.6, 1.2, 0.35], [4.0, 0.5, 0.55]]], [[[0.7, 0.1, 1.65]]]),
    ),
    Case(
        name="matmul",
        op=lambda a, b: a @ b,
        inputs=(A, [[[1.0, 0.75], [0.5, 0.25], [0.0, -0.25]]]),
        weight=[[[0.3, -1.2], [0.7, 2.0]]],
        expected=(
            [[[-0.6, -0.15, 0.3], [2.2, 0.85, -0.5]]],
            [[[0.05, 2.2], [0.55, 2.6], [1.05, 3.0]]],
        ),
    ),
    Case(
        name="matmul batch-broadcast",
        op=lambda a, b: a @ b,
        inputs=(
            [[[-1.0, -0.5, 0.0], [0.5, 1.0, 1.5]], [[2.0, 2.5, 3.0], [3.5, 4.0, 4.5]]],
            [[[1.0, 0.75], [0.5, 0.25], [0.0, -0.25]]],
        ),
        weight=[[[0.3, -1.2], [0.7, 2.0]], [[1.0, 0.5], [-0.5, 1.5]]],
        expected=(
            [
                [[-0.6, -0.15, 0.3], [2.2, 0.85, -0.5]],
                [[1.375, 0.625, -0.125], [0.625, 0.125, -0.375]],
            ],
            [[[0.3, 8.45], [1.05, 9.85], [1.8, 11.25]]],
        ),
    ),
)


def worst_error(case: Case, report: Report) -> float:
    """How far the gradients are from the expected ones."""
    pairs = zip(report.checks, case.expected, strict=True)
    return max(float(np.max(np.abs(c.analytic - np.asarray(e)))) for c, e in pairs)
