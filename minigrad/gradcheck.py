"""gradcheck: a function that a person gives, called again and again on float64 copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .check import exact_gradients, widened
from .compare import Array, Function, check
from .errors import DtypeError, GraphError
from .graph import Node, label
from .report import Report
from .tensor import Tensor, no_grad, tensor


def gradcheck(fn: Callable[..., Any], inputs: Sequence[Tensor]) -> Report:
    """Check the gradients of `fn(*inputs)` against central differences.

    fn takes tensors and returns a tensor of any shape (anything but a scalar is weighted by fixed
    random numbers). It is called again on float64 copies, so the inputs are never touched. A
    function that answers differently twice gets no verdict but a note. Raises GraphError if no
    input requires a gradient, DtypeError if fn returns no tensor.
    """
    if isinstance(inputs, Node) or not all(isinstance(t, Tensor) for t in inputs):
        raise DtypeError("gradcheck: give the inputs as a list of tensors")
    wanted = [n for n, t in enumerate(inputs) if t.requires_grad]
    if not wanted:
        raise GraphError("gradcheck: no input has requires_grad=True, so there is nothing to check")
    title = getattr(fn, "__name__", "function")

    def call(values: Sequence[Array], tracked: bool) -> tuple[Tensor, list[Tensor]]:
        leaves = [
            tensor(v, requires_grad=tracked and n in wanted, name=label(inputs[n], n))
            for n, v in enumerate(values)
        ]
        result = fn(*leaves)
        if not isinstance(result, Tensor):
            raise DtypeError(f"gradcheck: {title} returned {type(result).__name__}, not a tensor")
        return result, leaves

    wide = [widened(t._value) for t in inputs]
    result, _ = call(wide, tracked=False)
    twice, _ = call(wide, tracked=False)
    if not np.array_equal(result._value, twice._value, equal_nan=True):
        return Report(
            title,
            (),
            "the function is not deterministic: it answers differently twice on the same input",
        )
    ones = result.size == 1
    seed = (
        np.ones(result.shape) if ones else np.random.default_rng(0).uniform(0.5, 1.5, result.shape)
    )

    def gradients_of(values: Sequence[Array]) -> tuple[list[Array], float]:
        loss, leaves = call(values, tracked=True)
        found, inner = exact_gradients(loss, seed) if loss.requires_grad else ({}, 0.0)
        zeros = [np.zeros(leaf.shape, leaf.dtype) for leaf in leaves]
        return [found.get(leaves[n].id, zeros[n]) for n in wanted], inner

    recorded, _ = gradients_of([t._value for t in inputs])
    exact, inner = gradients_of(wide)

    def function_of(n: int) -> Function:
        def f(changed: Array) -> Array:
            with no_grad():
                moved, _ = call([*wide[:n], changed, *wide[n + 1 :]], tracked=False)
            return moved._value.astype(np.float64).ravel()

        return f

    weights = seed.reshape(1, -1)
    return Report(
        title,
        tuple(
            check(
                "graph",
                title,
                label(inputs[n], n),
                function_of(n),
                wide[n],
                kept,
                [right],
                weights,
                inner,
            )
            for n, kept, right in zip(wanted, recorded, exact, strict=True)
        ),
    )
