"""Cards applied to tensors; operators and methods of Tensor: one list, from the registry."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from . import op as cards
from . import ops as _ops  # noqa: F401  (declares our cards)
from .errors import ShapeError
from .graph import Node
from .op import Op, registry
from .pull import run_forward
from .tensor import Tensor, array_of, caller, recording


def _apply(card: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    operands, params = card.bind(args, kwargs)
    inputs: list[Node | float] = []
    tracked = False
    for operand in operands:
        if isinstance(operand, Node):
            inputs.append(operand)
            tracked = tracked or operand._tracked
        elif isinstance(operand, (numbers.Real, np.bool_)) and len(operands) > 1:
            plain: Any = operand.item() if isinstance(operand, np.generic) else operand
            inputs.append(plain if isinstance(plain, (int, float)) else float(plain))
        else:
            inputs.append(Tensor(array_of(operand, None, card.name), False, None, caller()))
    values = [i._value if isinstance(i, Node) else i for i in inputs]
    result = Tensor(run_forward(card, values, params), False, None, caller())
    if tracked and recording() and result.dtype.kind == "f":
        result._tracked = True
        result.record(card, tuple(inputs), params)
    else:
        result.origin = ("no_grad" if tracked and not recording() else "constant", card.name)
    return result


cards.apply = _apply


# --- operators and methods: one list, from the registry -------------------------------------------


def _method(card: Op) -> Callable[..., Any]:
    @wraps(card.forward)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _apply(card, (self, *args), kwargs)

    return method


def _operator(card: Op, swapped: bool) -> Callable[..., Any]:
    def operate(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (Node, numbers.Real, np.ndarray, np.bool_, list, tuple)):
            return NotImplemented
        return _apply(card, (other, self) if swapped else (self, other), {})

    return operate


for _name, _card in registry.items():
    setattr(Tensor, _name, _method(_card))
for _sign, _name in {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "pow": "pow",
    "matmul": "matmul",
}.items():
    setattr(Tensor, f"__{_sign}__", _operator(registry[_name], swapped=False))
    setattr(Tensor, f"__r{_sign}__", _operator(registry[_name], swapped=True))
setattr(Tensor, "__neg__", _method(registry["neg"]))  # noqa: B010


def _comparison(compare: Callable[[Any, Any], Any], name: str) -> Callable[..., Any]:
    def operate(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (Node, numbers.Real, np.ndarray, np.bool_, list, tuple)):
            return NotImplemented
        given: Any = other._value if isinstance(other, Node) else other
        try:
            answer = compare(self._value, given)
        except ValueError as problem:
            shapes = f"{self.shape} and {np.shape(given)}"
            raise ShapeError(f"{name}: the shapes {shapes} do not meet") from problem
        result = Tensor(np.asarray(answer), False, None, caller())
        result.origin = ("constant", name)
        return result

    return operate


for _name, _compare in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    setattr(Tensor, f"__{_name}__", _comparison(_compare, _name))


def _transposed(self: Tensor) -> Any:
    """The tensor with its axes in reverse order."""
    return _apply(registry["permute"], (self, tuple(range(self.ndim))[::-1]), {})


Tensor.T = property(_transposed)  # type: ignore[attr-defined]
