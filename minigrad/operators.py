"""Cards applied to tensors; operators and methods of Tensor: one list, from the registry."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from . import card as cards
from . import ops as _ops  # noqa: F401  (declares our cards)
from .axes import axis_of, is_whole, sizes_of
from .card import Op, registry
from .checkpoint import drops, in_graphs
from .errors import ShapeError
from .graph import Node
from .pull import run_forward
from .tensor import Tensor, array_of, caller, recording

NUMBERS = (numbers.Real, np.bool_)
OPERANDS = (Node, float, int, np.ndarray, numbers.Real, np.bool_, list, tuple)


def _apply(card: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    operands, params = card.bind(args, kwargs)
    if card.variadic:
        card = card.taking(len(operands))
    inputs: list[Node | float] = []
    values: list[Any] = []
    tracked = False
    for place, operand in enumerate(operands):
        if not isinstance(operand, Node):
            operand = _operand(card, card.inputs[place], operand, operands)
        if isinstance(operand, Node):
            tracked = tracked or operand._tracked
            values.append(operand._value)
            if operand._dropped:
                operand = in_graphs(operand)
        else:
            values.append(operand)
        inputs.append(operand)
    y = run_forward(card, values, params)
    result = Tensor(y, False, None, caller())
    if tracked and recording() and y.dtype.kind == "f":
        result._tracked = True
        result.record(card, tuple(inputs), params)
        result._dropped = drops(result)
    else:
        result.origin = ("no_grad" if tracked and not recording() else "constant", card.name)
    return result


def _operand(card: Op, name: str, operand: Any, operands: tuple[Any, ...]) -> Node | float:
    """A plain number, where the op may have one beside an array, else a constant."""
    if name not in card.rules:  # an index or a mask, called what the card calls it
        return Tensor(array_of(operand, None, card.name, whole=True), False, name, None)
    number = isinstance(operand, NUMBERS) and not all(isinstance(o, NUMBERS) for o in operands)
    if number and ((card.elementwise and len(card.inputs) > 1) or name in card.defaults):
        plain: Any = operand.item() if isinstance(operand, np.generic) else operand
        return plain if isinstance(plain, (int, float)) else float(plain)
    return Tensor(array_of(operand, None, card.name), False, None, None)


cards.apply = _apply


def split(x: Tensor, size: int | list[int] | tuple[int, ...], dim: int = 0) -> tuple[Any, ...]:
    """x cut along dim into pieces of `size` cells, the last one smaller, or of the sizes given.

    Every piece is a `narrow`, so each op still has one result. Raises ShapeError.
    """
    x = x if isinstance(x, Tensor) else Tensor(array_of(x, None, "split"), False, None, None)
    whole = x.shape[axis_of("split", dim, x.shape)]
    if isinstance(size, (list, tuple)):
        sizes = list(sizes_of("split", size))
    elif is_whole(size) and size > 0:
        sizes = [min(size, whole - start) for start in range(0, whole, size)]
    else:
        raise ShapeError(f"split: size {size!r} must be a whole number above 0, or several sizes")
    if sum(sizes) != whole or min(sizes, default=0) < 0:
        raise ShapeError(f"split: sizes {sizes} must add up to the size {whole} of dim {dim}")
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    narrow = registry["narrow"]
    return tuple(_apply(narrow, (x, dim, s, n), {}) for s, n in zip(starts, sizes, strict=True))


# --- operators and methods: one list, from the registry -------------------------------------------


def _method(card: Op) -> Callable[..., Any]:
    """The op as a method: the tensor is its first operand that can get a gradient."""
    own = next(name for name in card.order if name in card.rules)
    place = card.order.index(own)

    @wraps(card.forward)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if len(args) < place:
            return _apply(card, args, {own: self, **kwargs})
        return _apply(card, (*args[:place], self, *args[place:]), kwargs)

    return method


def _operator(card: Op, swapped: bool) -> Callable[..., Any]:
    def operate(self: Tensor, other: Any) -> Any:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return _apply(card, (other, self) if swapped else (self, other), {})

    return operate


for _name, _card in registry.items():
    if not _card.variadic:
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
setattr(Tensor, "__abs__", _method(registry["abs"]))  # noqa: B010
setattr(Tensor, "split", split)  # noqa: B010


def _comparison(compare: Callable[[Any, Any], Any], name: str) -> Callable[..., Any]:
    def operate(self: Tensor, other: Any) -> Any:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        given: Any = other._value if isinstance(other, Node) else array_of(other, None, name)
        try:
            answer = compare(self._value, given)
        except ValueError as problem:
            shapes = f"{self.shape} and {given.shape}"
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


def _getitem(self: Tensor, key: Any) -> Any:
    """x[key]: ints, slices, None, …, index arrays and masks; repeats add."""
    return _apply(registry["getitem"], (self, key if isinstance(key, tuple) else (key,)), {})


setattr(Tensor, "__getitem__", _getitem)  # noqa: B010


def _rows(self: Tensor) -> Iterator[Any]:
    """The tensor row by row. Raises ShapeError for a scalar."""
    return (_getitem(self, n) for n in range(len(self)))


setattr(Tensor, "__iter__", _rows)  # noqa: B010


def _transposed(self: Tensor) -> Any:
    """The tensor with its axes in reverse order."""
    return _apply(registry["permute"], (self, tuple(range(self.ndim))[::-1]), {})


Tensor.T = property(_transposed)  # type: ignore[attr-defined]
