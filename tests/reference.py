"""The reference table: four cases, eight gradients, and how to build them in any dtype."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import minigrad as mg

SIX = (0.3, -1.2, 0.7, 2.0, -0.5, 1.1)
RISING = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5)
FALLING = (1.0, 0.75, 0.5, 0.25, 0.0, -0.25)


@dataclass(frozen=True)
class Case:
    """sum((x0 `op` x1) * weight), and the gradient expected for x0 and x1."""

    name: str
    op: str
    weight: np.ndarray
    inputs: tuple[np.ndarray, np.ndarray]
    expected: tuple[np.ndarray, np.ndarray]

    def loss(self, x0: mg.Tensor, x1: mg.Tensor) -> mg.Tensor:
        """The function of the case, on two tensors of its shapes."""
        made = x0 * x1 if self.op == "mul" else x0 @ x1
        return mg.sum(made * self.weight.astype(x0.dtype))

    def leaves(self, dtype: str = "float64") -> list[mg.Tensor]:
        """x0 and x1 as fresh leaves."""
        return [
            mg.tensor(x, requires_grad=True, name=f"x{n}", dtype=dtype)
            for n, x in enumerate(self.inputs)
        ]


def _case(name: str, op: str, weight: tuple, *pairs: tuple) -> Case:
    """Each pair is (shape, data, expected gradient) of one input; weight is (shape, data)."""
    array = [np.reshape(data, shape) for shape, data, _ in pairs]
    expected = [np.reshape(gradient, shape) for shape, _, gradient in pairs]
    return Case(name, op, np.reshape(weight[1], weight[0]), tuple(array), tuple(expected))


CASES = (
    _case(
        "mul",
        "mul",
        ((1, 2, 3), SIX),
        ((1, 2, 3), RISING, (0.3, -0.9, 0.35, 0.5, -0.0, -0.275)),
        ((1, 2, 3), FALLING, (-0.3, 0.6, 0.0, 1.0, -0.5, 1.65)),
    ),
    _case(
        "mul broadcast [1,1,3]",
        "mul",
        ((1, 2, 3), SIX),
        ((1, 2, 3), RISING, (0.6, 1.2, 0.35, 4.0, 0.5, 0.55)),
        ((1, 1, 3), (2.0, -1.0, 0.5), (0.7, 0.1, 1.65)),
    ),
    _case(
        "matmul",
        "matmul",
        ((1, 2, 2), (0.3, -1.2, 0.7, 2.0)),
        ((1, 2, 3), RISING, (-0.6, -0.15, 0.3, 2.2, 0.85, -0.5)),
        ((1, 3, 2), FALLING, (0.05, 2.2, 0.55, 2.6, 1.05, 3.0)),
    ),
    _case(
        "matmul batch-broadcast",
        "matmul",
        ((2, 2, 2), (0.3, -1.2, 0.7, 2.0, 1.0, 0.5, -0.5, 1.5)),
        (
            (2, 2, 3),
            (*RISING, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
            (-0.6, -0.15, 0.3, 2.2, 0.85, -0.5, 1.375, 0.625, -0.125, 0.625, 0.125, -0.375),
        ),
        ((1, 3, 2), FALLING, (0.3, 8.45, 1.05, 9.85, 1.8, 11.25)),
    ),
)
