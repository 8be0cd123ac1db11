"""A row of a reference table as cases: what is computed, and the gradients it must have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.events import Reached

Made = Callable[..., mg.Tensor]


def leaf(values: Any, name: str | None = None, dtype: Any = float) -> mg.Tensor:
    return mg.tensor(np.array(values, dtype), requires_grad=True, name=name)


def case(
    row: str,
    beware: str,
    made: Made,
    at: Sequence[Any],
    expected: Sequence[Any],
    seed: Any = None,
    smooth: bool = True,
):
    """`made` of leaves `at` these values has these gradients; seed: ones if left out.

    smooth: a numeric check can confirm it. The id of the case quotes the row.
    """
    return pytest.param(made, at, expected, seed, smooth, id=f"{row}: {beware}")


def holds(made: Made, at: Sequence[Any], expected: Sequence[Any], seed: Any, smooth: bool) -> None:
    """Silent walk, told walk, numeric check and stepper agree on the gradients that are right."""
    leaves = [leaf(values, f"x{n}") for n, values in enumerate(at)]
    y = made(*leaves)
    g = np.ones(y.shape) if seed is None else np.array(seed, float)
    told = {e.name: e.gradient for e in mg.walk(y, g) if isinstance(e, Reached)}
    for n, (found, right) in enumerate(zip(mg.grad(y, leaves, g), expected, strict=True)):
        for gradient in (found, told[f"x{n}"]):
            np.testing.assert_allclose(
                gradient, np.array(right, float), rtol=2e-15, atol=1e-300, strict=True
            )
    if smooth:
        trace = mg.record(y, g)
        assert all(trace.checks), [c.note for c in trace.checks if not c]
        assert f"· {y.op} makes" in trace.text()
