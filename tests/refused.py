"""Bad input is refused: one sentence, of the right kind, and nothing else has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rows import leaf

import minigrad as mg

X, V = np.arange(6.0).reshape(2, 3), np.array([1.0, 2, 3])
IMAGE, KERNEL = np.ones((1, 2, 4, 4)), np.ones((3, 2, 2, 2))
STANDARD = {
    mg.ShapeError: ValueError,
    mg.DomainError: ValueError,
    mg.DtypeError: TypeError,
    mg.ArgumentError: TypeError,
    mg.OutOfRangeError: IndexError,
}
Call = Callable[[mg.Tensor], Any]


def refused(call: Call, kind: type[mg.MinigradError], sentence: str) -> None:
    """`call` of a leaf holding X raises exactly this; leaf, graph and arrays stay as they were."""
    x, arrays = leaf(X, "x"), (X, V, IMAGE, KERNEL)
    copies = [array.copy() for array in arrays]
    loss = mg.sum(x * x)
    told = [repr(event) for event in mg.walk(loss)]
    with pytest.raises(STANDARD[kind]) as problem:
        call(x)
    assert type(problem.value) is kind
    assert str(problem.value) == sentence
    assert "\n" not in sentence and ". " not in sentence
    assert (x.data.tolist(), x.grad, x.version) == (X.tolist(), None, 0)
    assert [repr(event) for event in mg.walk(loss)] == told
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
