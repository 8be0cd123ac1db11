"""Op: one card per op: what it computes, how its gradient is pulled back, what that saves.

A card is declared once, with `@elementwise` or `@op`, and read by everybody: the engine runs it,
the checker samples its domain, the stepper shows its formulas. The parameter names of a rule say
what is saved for backward: an input's name, a parameter's name, `y` for the output, `x_shape` for
only the shape of x; `g` is the upstream gradient. Naming a value is what saves it; nothing else
does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from typing import Any

import numpy as np

from .errors import ArgumentError, CardError

Values = Mapping[str, Any]
registry: dict[str, Op] = {}  # our own ops by name; a user's op is never entered


def _unloaded(card: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise NotImplementedError("minigrad.operators, which applies cards to tensors, is not loaded")


apply: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _unloaded  # set by operators.py


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
    def is_zero(self) -> bool:
        """True if the slope is 0 everywhere: the gradient stops here."""
        if self.reads or self.takes_g:
            return False
        try:
            slope = self.fn()
        except Exception:  # told as a RuleError where the rule is run
            return False
        return np.ndim(slope) == 0 and bool(slope == 0)


@dataclass(frozen=True, eq=False)
class Op:
    """The card of one op; see `elementwise` and `op` for what each field means."""

    name: str
    forward: Callable[..., Any]
    inputs: tuple[str, ...]
    params: Mapping[str, Any]  # name -> default, or `required`
    rules: Mapping[str, Rule]  # input -> the rule that pulls back into it
    tex: str
    domain: Any
    elementwise: bool
    broadcasts: bool
    cost: str
    kinks: str = ""
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
        return call

    def residuals(self, tracked: tuple[bool, ...]) -> tuple[str, ...]:
        """Names of the values kept for backward when exactly the `tracked` inputs need one."""
        needed = [name for name, on in zip(self.inputs, tracked, strict=True) if on]
        read = {word for name in needed if name in self.rules for word in self.rules[name].reads}
        return tuple(name for name in (*self.inputs, "y") if name in read)

    def bind(self, args: tuple[Any, ...], kwargs: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Split a call into operands and parameters, in PyTorch's order.

        A lone parameter may be spread: `reshape(x, 2, 3)`. Raises ArgumentError.
        """
        count = len(self.inputs)
        if len(args) == count and not kwargs and not self.params:
            return args, {}
        named = dict(kwargs)
        operands = list(args[:count])
        for name in self.inputs[len(operands) :]:
            if name not in named:
                raise ArgumentError(f"{self.name}: the operand {name} is missing")
            operands.append(named.pop(name))
        extra, params = args[count:], dict(self.params)
        if len(params) == 1 and len(extra) > 1:
            extra = (extra,)
        if len(extra) > len(params):
            takes = f"{count} operand{'s' * (count != 1)} and the parameters ({', '.join(params)})"
            raise ArgumentError(f"{self.name}: takes {takes}, got {len(args)} positional arguments")
        given = dict(zip(params, extra, strict=False))
        for name, value in named.items():
            if name not in params:
                raise ArgumentError(f"{self.name}: there is no parameter {name}")
            if name in given:
                raise ArgumentError(f"{self.name}: the parameter {name} is given twice")
            given[name] = value
        params |= given
        missing = [name for name, value in params.items() if value is required]
        if missing:
            raise ArgumentError(f"{self.name}: the parameter {missing[0]} is missing")
        return tuple(operands), params


required: Any = ...  # the default of a parameter that must be given


def elementwise(
    *,
    tex: str,
    partials: Mapping[str, tuple[Callable[..., Any], str]],
    domain: Any = None,
    kinks: str = "",
    symbol: str = "",
    cost: str = "memory",
    reference: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an elementwise op: a cell of the result depends on one cell of each operand.

    tex: the formula of the op. partials: input -> (rule, its formula); a rule without `g` is the
    local slope, a rule with `g` returns the contribution itself (write ops that SELECT this way: a
    dead cell then passes exactly 0 even when g is infinite or NaN). domain: where the op may be
    sampled (minigrad.domains). kinks: the convention at corners, in words. symbol: how an operand
    that is a plain number is drawn ("×"). cost: "memory" (cheap to recompute) or "compute".
    reference: a NumPy forward to test this one against. Raises CardError when a rule names
    something that does not exist, or takes defaults.
    """

    return partial(
        _declare,
        pulls=partials,
        tex=tex,
        domain=domain,
        kinks=kinks,
        symbol=symbol,
        cost=cost,
        reference=reference,
        sources=None,
        elementwise=True,
        broadcasts=True,
    )


def op(
    *,
    tex: str,
    pulls: Mapping[Any, tuple[Callable[..., Any], str]],
    domain: Any = None,
    kinks: str = "",
    symbol: str = "",
    cost: str = "compute",
    broadcasts: bool = False,
    reference: Callable[..., Any] | None = None,
    sources: Callable[..., tuple[str, ...]] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare any other op. Fields as in `elementwise`, and:

    pulls: input -> (rule, its formula); a rule returns the contribution, exactly in the input's
    shape. A key may be a tuple of inputs whose rule returns a tuple of contributions.
    broadcasts=True: a contribution may come in a shape the input's shape broadcasts to, and the
    walk reduces it. sources: for ops that sum products of operand cells, their axes in letters,
    given the operands' shapes: matmul of matrices answers ("ij", "jk", "ik"), operands then result.
    """

    return partial(
        _declare,
        pulls=pulls,
        tex=tex,
        domain=domain,
        kinks=kinks,
        symbol=symbol,
        cost=cost,
        reference=reference,
        sources=sources,
        elementwise=False,
        broadcasts=broadcasts,
    )


def _declare(
    forward: Callable[..., Any], pulls: Mapping[Any, tuple[Callable[..., Any], str]], **facts: Any
) -> Callable[..., Any]:
    name = getattr(forward, "__name__", None)
    if not isinstance(name, str):
        raise CardError(f"an op is declared from a function that has a name, not from {forward!r}")
    parameters = list(inspect.signature(forward).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise CardError(f"{name}: operands and parameters have names; *args and **kwargs have none")
    if not isinstance(facts["tex"], str):
        raise CardError(f"{name}: tex is the op's formula as text, not {facts['tex']!r}")
    _refuse_domain(name, facts["domain"], parameters)
    inputs = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    params = {
        p.name: required if p.default is p.empty else p.default
        for p in parameters
        if p.kind is p.KEYWORD_ONLY
    }
    if not inputs:
        raise CardError(f"{name}: an op needs at least one array operand, declared positionally")
    for word in (*inputs, *params):
        if word in ("g", "y") or word.endswith("_shape"):
            raise CardError(
                f"{name}: {word} is reserved for rules; rename the operand or parameter"
            )
    if facts["cost"] not in ("memory", "compute"):
        raise CardError(f'{name}: cost is "memory" or "compute", not {facts["cost"]!r}')
    known = {*inputs, *params, "g", "y", *(f"{i}_shape" for i in inputs)}
    rules: dict[str, Rule] = {}
    if not isinstance(pulls, Mapping):
        raise CardError(f"{name}: the rules are a dict, input -> (rule, formula)")
    for key, pair in pulls.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], str)):
            raise CardError(f"{name}, input {key}: give (rule, formula), not {pair!r}")
        fn, rule_tex = pair
        targets = key if isinstance(key, tuple) else (key,)
        if facts["elementwise"] and len(targets) > 1:
            raise CardError(
                f"{name}: a partial belongs to one input; {targets} needs @op and pulls="
            )
        rule = _rule(name, fn, rule_tex, targets, known)
        if not facts["elementwise"] and not rule.takes_g:
            raise CardError(
                f"{name}, input {targets[0]}: a rule of @op needs g, the upstream gradient"
            )
        for target in targets:
            if target not in inputs:
                raise CardError(
                    f"{name}: there is a rule for {target}, which is no operand of the op"
                )
            rules[target] = rule
    ours = (forward.__module__ or "").startswith("minigrad.ops.")
    card = Op(name, forward, inputs, params, rules, ours=ours, **facts)
    if ours:
        registry[name] = card
    return card.function


def _refuse_domain(name: str, domain: Any, parameters: list[inspect.Parameter]) -> None:
    """A domain is None, an object that draws, or a dict of them by operand."""
    parts = domain if isinstance(domain, Mapping) else {}
    for key in parts:
        if key not in [p.name for p in parameters]:
            raise CardError(f"{name}: the domain names {key}, which is no operand of the op")
    for part in parts.values() if isinstance(domain, Mapping) else [domain]:
        if part is not None and not hasattr(part, "draw"):
            raise CardError(f"{name}: {part!r} is no domain; see minigrad.domains")


def _rule(
    name: str, fn: Callable[..., Any], tex: str, targets: tuple[str, ...], known: set[str]
) -> Rule:
    if isinstance(fn, np.ufunc):
        raise CardError(
            f"{name}, input {targets[0]}: name what it reads: lambda x: {fn.__name__}(x)"
        )
    parameters = inspect.signature(fn).parameters.values()
    for p in parameters:
        if p.default is not p.empty or p.kind is not p.POSITIONAL_OR_KEYWORD:
            raise CardError(
                f"{name}, input {targets[0]}: a rule takes plain parameters, no defaults"
            )
        if p.name not in known:
            raise CardError(
                f"{name}, input {targets[0]}: the rule reads {p.name}, which the op does not have; "
                f"it may read {', '.join(sorted(known))}"
            )
    names = [p.name for p in parameters]
    reads = tuple(n for n in names if n != "g")
    return Rule(fn, tex, targets, reads, names.index("g") if "g" in names else None)
