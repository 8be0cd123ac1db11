"""Card: what is written about one op, read by engine, checker, docs, pages and tests.

A card says what the op computes, how its gradient is pulled back, and what that saves. The
parameter names of a rule say what is saved for backward: an input's name, a parameter's name, `y`
for the output, `x_shape` for only the shape of x; `g` is the upstream gradient. Naming a value is
what saves it; nothing else does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import islice
from typing import Any

import numpy as np

from .errors import ArgumentError

Values = Mapping[str, Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]  # operands and parameters
NOTHING: dict[str, Any] = {}  # the parameters of an op without any
required: Any = inspect.Parameter.empty  # the default of a parameter that must be given
registry: dict[str, Op] = {}  # our own ops by name; a user's op is never entered


def _unloaded(card: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise NotImplementedError("minigrad.operators, which applies cards to tensors, is not loaded")


apply: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _unloaded  # set by operators.py


@dataclass(frozen=True)
class Kink:
    """The convention at one corner or edge: in words, and as a case that is checked.

    at: operands and parameters of one call. slopes: what each input gets there for an upstream
    gradient of ones.
    """

    words: str
    at: Values = field(default_factory=dict)
    slopes: Values = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Rule:
    """One backward rule: `fn` pulls the upstream gradient back into `inputs`.

    `reads` are the names of `fn`'s parameters without `g`. An elementwise rule without `g` is the
    local slope; every other rule returns the contribution itself.
    """

    fn: Callable[..., Any]
    tex: str
    inputs: tuple[str, ...]
    reads: tuple[str, ...]
    g_at: int | None  # where among its parameters `g` stands; None for a local slope

    @property
    def takes_g(self) -> bool:
        return self.g_at is not None

    @cached_property
    def constant(self) -> float | None:
        """The slope, if it is the same number everywhere."""
        if self.reads or self.takes_g:
            return None
        try:
            slope = self.fn()
        except Exception:  # told as a RuleError where the rule is run
            return None
        return float(slope) if isinstance(slope, (int, float)) else None

    @property
    def is_zero(self) -> bool:
        """True if the slope is 0 everywhere: the gradient stops here."""
        return self.constant == 0

    def for_one_of(self, many: str, names: tuple[str, ...], k: int) -> Rule:
        """The rule of operand k, where an op takes any number of operands called `many`.

        Such a rule reads `xs` or `xs_shape` as tuples, `others` without its own, and its own `k`.
        """
        groups: dict[str, tuple[str, ...]] = {
            many: names,
            f"{many}_shape": tuple(f"{name}_shape" for name in names),
            "others": names[:k] + names[k + 1 :],
            "k": (),
        }
        words = [groups.get(word, (word,)) for word in self.reads]

        def fn(g: Any, *values: Any) -> Any:
            rest = iter(values)
            arguments: list[Any] = []
            for word, group in zip(self.reads, words, strict=True):
                taken = tuple(islice(rest, len(group)))
                arguments.append(k if word == "k" else taken if word in groups else taken[0])
            arguments.insert(self.g_at or 0, g)
            return self.fn(*arguments)

        flat = tuple(name for group in words for name in group)
        return Rule(fn, self.tex, (names[k],), flat, 0)


@dataclass(frozen=True, eq=False)
class Op:
    """The card of one op; see `elementwise` and `op` for what each field means."""

    name: str
    forward: Callable[..., Any]
    inputs: tuple[str, ...]
    params: Values  # name -> default, or `required`
    rules: Mapping[str, Rule]  # input -> the rule that pulls back into it
    tex: str
    domain: Any
    elementwise: bool
    broadcasts: bool
    cost: str
    order: tuple[str, ...]  # inputs and parameters as a call names them
    defaults: Mapping[str, float] = field(default_factory=dict)  # of operands that may be left out
    converts: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)  # parameters
    variadic: bool = False  # its one operand stands for any number of them
    kinks: tuple[Kink, ...] = ()
    symbol: str = ""
    reference: Callable[..., Any] | None = None
    sources: Callable[..., tuple[str, ...]] | None = None
    ours: bool = False

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The op as people call it, on tensors; its `.card` is this card."""

        @wraps(self.forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            return apply(self, args, kwargs)

        call.card = self  # type: ignore[attr-defined]
        call.__signature__ = self.signature  # type: ignore[attr-defined]
        return call

    @cached_property
    def plain(self) -> bool:
        """True if a call is just the operands: no parameters, none left out, a fixed number."""
        return not (self.params or self.defaults or self.variadic)

    @property
    def signature(self) -> inspect.Signature:
        """How the op is called: operands and parameters in PyTorch's order, with defaults."""
        given = {**self.defaults, **{n: v for n, v in self.params.items() if v is not required}}
        rows: list[inspect.Parameter] = []
        kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
        for name in self.order:
            default = given.get(name, inspect.Parameter.empty)
            if rows and rows[-1].default is not default is inspect.Parameter.empty:
                kind = inspect.Parameter.KEYWORD_ONLY  # nothing optional may stand before it
            rows.append(inspect.Parameter(name, kind, default=default))
        return inspect.Signature(rows)

    def residuals(self, tracked: tuple[bool, ...]) -> tuple[str, ...]:
        """Names of the values kept for backward when exactly the `tracked` inputs need one."""
        needed = [name for name, on in zip(self.inputs, tracked, strict=True) if on]
        read = {word for name in needed if name in self.rules for word in self.rules[name].reads}
        return tuple(name for name in (*self.inputs, "y") if name in read)

    @cached_property
    def _places(self) -> dict[Rule, tuple[tuple[str, Any], ...]]:
        return {}

    def places(self, rule: Rule) -> tuple[tuple[str, Any], ...]:
        """Where each value that a rule reads is found: ("operand", 0), ("param", name), …"""
        found = self._places.get(rule)
        if found is None:
            found = self._places[rule] = tuple(map(self._place, rule.reads))
        return found

    def _place(self, word: str) -> tuple[str, Any]:
        if word == "y":
            return "y", None
        if word in self.params:
            return "param", word
        if word.endswith("_shape"):
            return "shape", self.inputs.index(word.removesuffix("_shape"))
        return "operand", self.inputs.index(word)

    def expected(self, operands: tuple[Any, ...], params: Values) -> Any:
        """What the NumPy reference answers; the parameters follow the operands."""
        assert self.reference is not None
        return np.asarray(self.reference(*operands, *{**self.params, **params}.values()))

    # --- any number of operands -------------------------------------------------------------------

    @cached_property
    def _by_count(self) -> dict[int, Op]:
        return {}

    def taking(self, count: int) -> Op:
        """This card; for an op of any number of operands, its card for exactly `count` of them."""
        if not self.variadic:
            return self
        if count not in self._by_count:
            self._by_count[count] = self._spread(count)
        return self._by_count[count]

    def _spread(self, count: int) -> Op:
        """Operands `xs` become x0, x1, …; each gets a rule of its own."""
        (many,) = self.inputs
        names = tuple(f"{many[:-1]}{k}" for k in range(count))

        def reference(*values: Any) -> Any:
            assert self.reference is not None
            return self.reference(values[:count], *values[count:])

        return replace(
            self,
            inputs=names,
            rules={n: self.rules[many].for_one_of(many, names, k) for k, n in enumerate(names)},
            tex=self.tex.replace(many, ", ".join(names)),
            reference=None if self.reference is None else reference,
            variadic=False,
        )

    # --- calls ------------------------------------------------------------------------------------

    def bind(self, args: tuple[Any, ...], kwargs: Values) -> Call:
        """Split a call into operands and parameters. None stands for a default.

        What comes last may be spread: `reshape(x, 2, 3)`, `einsum("ij,j->i", a, b)`. Raises
        ArgumentError.
        """
        if self.plain and len(args) == len(self.inputs) and not kwargs:
            return args, NOTHING
        spread = len(self.params) == 1 if self.order[-1] in self.params else self.variadic
        if spread and len(args) > len(self.order):
            last = len(self.order) - 1
            args = (*args[:last], args[last:])
        if len(args) > len(self.order):
            raise ArgumentError(
                f"{self.name}: takes ({', '.join(self.order)}), got {len(args)} positional "
                "arguments"
            )
        given = dict(zip(self.order, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.order:
                raise ArgumentError(
                    f"{self.name}: there is no {name}; it takes ({', '.join(self.order)})"
                )
            if name in given:
                raise ArgumentError(f"{self.name}: {name} is given twice")
            given[name] = value
        operands = [self._operand(name, given.get(name)) for name in self.inputs]
        if self.variadic:
            (many,) = operands
            operands = list(many) if isinstance(many, (tuple, list)) else [many]
            if not operands:
                raise ArgumentError(f"{self.name}: at least one operand is needed")
        return tuple(operands), self.settle(given)

    def settle(self, given: Values) -> dict[str, Any]:
        """The parameters of a call, all of them: defaults put in, lists and arrays copied.

        Raises ArgumentError.
        """
        params = {}
        for name, default in self.params.items():
            value = given.get(name)
            value = default if value is None else value
            if value is required:
                raise ArgumentError(f"{self.name}: the parameter {name} is missing")
            try:
                params[name] = self.converts.get(name, _kept)(value)
            except Exception as problem:  # whatever a stranger's conversion does
                raise ArgumentError(f"{self.name}: the parameter {name}: {problem}") from problem
        return params

    def _operand(self, name: str, value: Any) -> Any:
        if value is None and name not in self.defaults:
            raise ArgumentError(f"{self.name}: the operand {name} is missing")
        return self.defaults[name] if value is None else value


def _kept(value: Any) -> Any:
    """A parameter that nobody else can change any more."""
    if isinstance(value, (list, tuple)):
        return tuple(_kept(v) for v in value)
    if isinstance(value, dict):
        return {key: _kept(v) for key, v in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value
