"""Tensor: a node people hold in their hands. Operators, constructors, backward(), no_grad."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .backward import gradients
from .errors import DtypeError, GraphError, ShapeError
from .graph import Node, Where, now
from .store import GradStore

Array = NDArray[Any]

_pauses: ContextVar[int] = ContextVar("minigrad_pauses", default=0)  # no_grad blocks around us


def recording() -> bool:
    """False inside `no_grad`."""
    return _pauses.get() == 0


class no_grad:
    """Record nothing inside: `with no_grad():`, or `@no_grad()` on a function or a generator.

    Nests, and holds for the current thread or async task only.
    """

    def __enter__(self) -> None:
        _pauses.set(_pauses.get() + 1)

    def __exit__(self, *error: object) -> None:
        _pauses.set(_pauses.get() - 1)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(fn):
            return _paused_generator(fn)
        if inspect.isasyncgenfunction(fn):
            raise GraphError("no_grad: an async generator is paused from inside, with no_grad()")
        if inspect.iscoroutinefunction(fn):

            @wraps(fn)
            async def wait(*args: Any, **kwargs: Any) -> Any:
                with no_grad():
                    return await fn(*args, **kwargs)

            return wait

        @wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with no_grad():
                return fn(*args, **kwargs)

        return call


def _paused_generator(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Off while the generator runs, on again while its consumer does."""

    @wraps(fn)
    def generate(*args: Any, **kwargs: Any) -> Any:
        source = fn(*args, **kwargs)
        resume = partial(next, source)
        while True:
            with no_grad():
                try:
                    item = resume()
                except StopIteration as stop:
                    return stop.value
            try:
                resume = partial(source.send, (yield item))
            except BaseException as thrown:  # throw() and close() too go on to the generator
                resume = partial(source.throw, thrown)

    return generate


class Tensor(Node):
    """An n-dimensional array that remembers how it was made. Make one with `minigrad.tensor`."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy arrays and scalars on the left leave the operator to us
    __hash__ = object.__hash__  # `==` compares elementwise; a tensor is a key by identity

    @property
    def data(self) -> Array:
        """The values, as a read-only view."""
        view: Array = self._value.view()
        view.flags.writeable = False
        return view

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def ndim(self) -> int:
        return self._value.ndim

    @property
    def size(self) -> int:
        return self._value.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._value.dtype

    @property
    def grad(self) -> Array | None:
        """A leaf's finished gradient, in its shape and dtype; None where nothing arrived."""
        return self._grad

    @property
    def requires_grad(self) -> bool:
        return self._tracked

    @property
    def is_leaf(self) -> bool:
        return self.card is None

    @property
    def op(self) -> str | None:
        """The name of the op that made this tensor; None for a leaf."""
        return self.card.name if self.card else None

    def numpy(self) -> Array:
        """A writable copy of the values."""
        return self._value.copy()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """What `numpy.asarray` sees: the values, without the graph."""
        return np.array(self._value, dtype=dtype) if copy is not False else self.data

    def item(self) -> float:
        """The value of a size-1 tensor as a Python number."""
        if self.size != 1:
            raise ShapeError(
                f"item: the tensor has shape {self.shape}; only a size-1 tensor is one number"
            )
        return self._value.item()  # type: ignore[no-any-return]

    def detach(self) -> Tensor:
        """The same values as a constant that remembers only, in words, that it was detached."""
        constant = Tensor(self._value, False, self.name, caller())
        constant.origin = ("detached", self.op or "")
        return constant

    def assign_(self, values: ArrayLike) -> Tensor:
        """Replace a leaf's values; graphs made before can no longer be walked."""
        if not self.is_leaf:
            raise GraphError(
                f"assign_: only a leaf can be assigned, this tensor is the result of {self.op}"
            )
        new = array_of(values, self.dtype, "assign_")
        if new.shape != self.shape:
            raise ShapeError(
                f"assign_: the values have shape {new.shape}, but the tensor has shape {self.shape}"
            )
        self._value = new
        self.version = now()
        return self

    def zero_grad(self) -> None:
        """Forget the gradient."""
        self._grad = None

    def backward(self, gradient: ArrayLike | Node | None = None) -> None:
        """Walk back from here and accumulate into `.grad` of every leaf.

        gradient: the seed, of this tensor's shape; ones by default for size 1. Raises GraphError,
        ShapeError, DtypeError or RuleError, and then no `.grad` has changed.
        """
        found = gradients(self, gradient)
        with np.errstate(all="ignore"):
            for leaf, g in found:
                leaf._grad = np.array(g) if leaf._grad is None else np.asarray(leaf._grad + g)

    def backward_into(self, store: GradStore, gradient: ArrayLike | Node | None = None) -> None:
        """As `backward`, but accumulate into `store`; touches no `.grad`."""
        found = gradients(self, gradient)
        with np.errstate(all="ignore"):
            for leaf, g in found:
                store.add(leaf, np.array(g))

    def __repr__(self) -> str:
        body = np.array2string(self._value, separator=", ", prefix="tensor(", threshold=50)
        facts = [f"name={self.name!r}"] if self.name else []
        facts += [f"dtype={self.dtype}"] if self.dtype != np.float64 else []
        facts += [f"op={self.op}"] if self.op else ["requires_grad=True"] if self._tracked else []
        return f"tensor({', '.join([body, *facts])})"

    def __len__(self) -> int:
        if not self.ndim:
            raise ShapeError("len: a scalar tensor has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise GraphError(
                f"copy: a result of {self.op} drags its whole graph along; copy x.detach(), or "
                "keep the run with mg.record(loss) and trace.save()"
            )
        return _rebuilt, (self._value, self._tracked, self.name, self._grad)


def _rebuilt(value: Array, tracked: bool, name: str | None, gradient: Array | None) -> Tensor:
    leaf = Tensor(value.copy(), tracked, name, None)
    leaf._grad = None if gradient is None else gradient.copy()
    return leaf


def array_of(values: Any, dtype: DTypeLike | None, who: str, whole: bool = False) -> Array:
    """A fresh C-contiguous array: Python numbers become float64, arrays keep their dtype.

    whole: Python's whole numbers stay whole, for an index.
    """
    if isinstance(values, Node):
        values = values._value
    known = isinstance(values, (np.ndarray, np.generic))
    try:
        with np.errstate(all="ignore"):
            array = np.array(values, dtype=dtype, order="C")
    except (ValueError, TypeError, OverflowError) as problem:
        said = " ".join(str(problem).split())
        raise DtypeError(f"{who}: the values are no array of numbers: {said}") from problem
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"{who}: the values must be real numbers, not {array.dtype}")
    if array.dtype.itemsize > 8 or not array.dtype.isnative:
        array = array.astype(f"{array.dtype.kind}{min(array.dtype.itemsize, 8)}")
    if not (known or whole) and dtype is None and array.dtype.kind in "iu":
        array = array.astype(np.float64)
    return array


def tensor(
    data: Any, requires_grad: bool = False, name: str | None = None, dtype: DTypeLike | None = None
) -> Tensor:
    """A leaf (requires_grad=True) or a constant, from numbers, nested lists or an array.

    Python numbers become float64, arrays keep their dtype unless `dtype` says otherwise. Raises
    DtypeError for anything that is no array of real numbers, and for integers or booleans that
    should get a gradient.
    """
    array = array_of(data, dtype, "tensor")
    if requires_grad and array.dtype.kind != "f":
        raise DtypeError(
            f"tensor: {name or 'a tensor'} of dtype {array.dtype} cannot require a gradient; "
            "use dtype=float"
        )
    return Tensor(array, requires_grad, None if name is None else str(name), caller())


def caller() -> Where | None:
    """Code object and instruction of the first frame outside minigrad."""
    frame = sys._getframe(2)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("minigrad."):
            return frame.f_code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return None
