"""Declaring ops: `@elementwise` and `@op` turn a NumPy function and its rules into a card.

Ours are declared in `ops/` with the same two words that a user has. What contradicts itself is
refused at once, in one sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .card import Kink, Op, Rule, registry, required
from .errors import CardError

Kinks = str | Kink | Sequence[Kink]


def elementwise(
    *,
    tex: str,
    partials: Mapping[str, tuple[Callable[..., Any], str]],
    domain: Any = None,
    kinks: Kinks = (),
    symbol: str = "",
    cost: str = "memory",
    reference: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an elementwise op: a cell of the result depends on one cell of each operand.

    tex: the formula of the op. partials: input -> (rule, its formula); a rule without `g` is the
    local slope, a rule with `g` returns the contribution itself (write ops that SELECT this way: a
    dead cell then passes exactly 0 even when g is infinite or NaN). domain: where the op may be
    sampled (minigrad.domains), or a dict of that by operand; for a parameter, a tuple of values.
    kinks: the conventions at corners, in words, or as cases (`Kink`). symbol: how an operand that
    is a plain number is drawn ("×"). cost: "memory" (cheap to recompute) or "compute". reference: a
    NumPy forward to test this one against, parameters last. An operand without a rule is an index
    or a mask. Raises CardError when a rule names something that does not exist, or takes defaults.
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
        call=(),
        converts={},
        elementwise=True,
        broadcasts=True,
    )


def op(
    *,
    tex: str,
    pulls: Mapping[Any, tuple[Callable[..., Any], str]],
    domain: Any = None,
    kinks: Kinks = (),
    symbol: str = "",
    cost: str = "compute",
    broadcasts: bool = False,
    reference: Callable[..., Any] | None = None,
    sources: Callable[..., tuple[str, ...]] | None = None,
    call: tuple[str, ...] = (),
    converts: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare any other op. Fields as in `elementwise`, and:

    pulls: input -> (rule, its formula); a rule returns the contribution, exactly in the input's
    shape. A key may be a tuple of inputs whose rule returns a tuple of contributions.
    broadcasts=True: a contribution may come in a shape the input's shape broadcasts to, and the
    walk reduces it. sources: for ops that sum products of operand cells, their axes in letters,
    given the operands' shapes and the parameters: matmul of matrices answers ("ij", "jk", "ik"),
    operands then result. call: operands and parameters in the order of a call, where that is not
    operands first. converts: parameter -> what makes of a given value the one that is kept.

    An op declared from `def cat(*xs, …)` takes any number of operands; its one rule, `{"xs": …}`,
    pulls back into operand number `k` and may read `xs`, `xs_shape`, and `others` without its own.
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
        call=call,
        converts=converts or {},
        elementwise=False,
        broadcasts=broadcasts,
    )


def _declare(
    forward: Callable[..., Any],
    pulls: Mapping[Any, tuple[Callable[..., Any], str]],
    call: tuple[str, ...],
    kinks: Kinks,
    **facts: Any,
) -> Callable[..., Any]:
    name = getattr(forward, "__name__", None)
    if not isinstance(name, str):
        raise CardError(f"an op is declared from a function that has a name, not from {forward!r}")
    if not isinstance(facts["tex"], str):
        raise CardError(f"{name}: tex is the op's formula as text, not {facts['tex']!r}")
    if facts["cost"] not in ("memory", "compute"):
        raise CardError(f'{name}: cost is "memory" or "compute", not {facts["cost"]!r}')
    names = _names(name, forward, facts["elementwise"])
    everything = (*names["inputs"], *names["params"])
    _refuse_domain(name, facts["domain"], everything)
    if call and sorted(map(str, _several(call))) != sorted(everything):
        raise CardError(f"{name}: call= must name {', '.join(everything)}, each once")
    for word in facts["converts"]:
        if word not in names["params"]:
            raise CardError(f"{name}: converts names {word}, which is no parameter of the op")
    card = Op(
        name,
        forward,
        rules=_rules(name, pulls, names, facts["elementwise"]),
        order=call or everything,
        kinks=_kinks(name, kinks, everything),
        ours=(forward.__module__ or "").startswith("minigrad.ops."),
        **names,
        **facts,
    )
    if card.ours:
        registry[name] = card
    return card.function


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (tuple, list)) else [given]


def _kinks(name: str, kinks: Any, names: tuple[str, ...]) -> tuple[Kink, ...]:
    """The conventions, each as a Kink; words alone have no case."""
    found = tuple(Kink(k) if isinstance(k, str) else k for k in _several(kinks) if k != "")
    for kink in found:
        if not isinstance(kink, Kink):
            raise CardError(f"{name}: a kink is told in words or as a Kink, not as {kink!r}")
        for word in (*kink.at, *kink.slopes):
            if word not in names:
                raise CardError(f"{name}: a kink names {word}, which the op does not have")
    return found


def _names(name: str, forward: Callable[..., Any], elementwise: bool) -> dict[str, Any]:
    """Operands and parameters, read off the signature: operands are positional."""
    parameters = list(inspect.signature(forward).parameters.values())
    many = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    operands = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise CardError(f"{name}: parameters have names; **kwargs have none")
    if many and elementwise:
        raise CardError(
            f"{name}: the operands of an elementwise op have names; *{many[0]} have none"
        )
    if many and operands:
        raise CardError(f"{name}: *{many[0]} are all the operands, so {operands[0].name} cannot be")
    if not many and not operands:
        raise CardError(f"{name}: an op needs at least one array operand, declared positionally")
    params = {
        p.name: required if p.default is p.empty else p.default
        for p in parameters
        if p.kind is p.KEYWORD_ONLY
    }
    defaults = {p.name: p.default for p in operands if p.default is not p.empty}
    for operand, value in defaults.items():
        if not isinstance(value, (int, float)):
            raise CardError(f"{name}: an operand left out is a plain number; {operand} is {value}")
    inputs = tuple(many or [p.name for p in operands])
    for word in (*inputs, *params):
        taken = word in ("g", "y", "k", "others") if many else word in ("g", "y")
        if taken or word.endswith("_shape"):
            raise CardError(
                f"{name}: {word} is reserved for rules; rename the operand or parameter"
            )
    return {"inputs": inputs, "params": params, "defaults": defaults, "variadic": bool(many)}


def _rules(
    name: str, pulls: Mapping[Any, tuple[Callable[..., Any], str]], names: Any, elementwise: bool
) -> dict[str, Rule]:
    inputs, params = names["inputs"], names["params"]
    known = {*inputs, *params, "g", "y", *(f"{i}_shape" for i in inputs)}
    known |= {"k", "others"} if names["variadic"] else set()
    rules: dict[str, Rule] = {}
    if not isinstance(pulls, Mapping):
        raise CardError(f"{name}: the rules are a dict, input -> (rule, formula)")
    for key, pair in pulls.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], str)):
            raise CardError(f"{name}, input {key}: give (rule, formula), not {pair!r}")
        fn, rule_tex = pair
        targets = key if isinstance(key, tuple) else (key,)
        if elementwise and len(targets) > 1:
            raise CardError(
                f"{name}: a partial belongs to one input; {targets} needs @op and pulls="
            )
        rule = _rule(name, fn, rule_tex, targets, known)
        if not elementwise and not rule.takes_g:
            raise CardError(
                f"{name}, input {targets[0]}: a rule of @op needs g, the upstream gradient"
            )
        for target in targets:
            if target not in inputs:
                raise CardError(
                    f"{name}: there is a rule for {target}, which is no operand of the op"
                )
            rules[target] = rule
    return rules


def _refuse_domain(name: str, domain: Any, names: tuple[str, ...]) -> None:
    """A domain is None, an object that draws, or a dict of them; a parameter's is a tuple."""
    parts = domain if isinstance(domain, Mapping) else {}
    for key in parts:
        if key not in names:
            raise CardError(f"{name}: the domain names {key}, which is no operand of the op")
    for part in parts.values() if isinstance(domain, Mapping) else [domain]:
        if part is not None and not hasattr(part, "draw") and not isinstance(part, tuple):
            raise CardError(f"{name}: {part!r} is no domain; see minigrad.domains")


def _rule(
    name: str, fn: Callable[..., Any], tex: str, targets: tuple[str, ...], known: set[str]
) -> Rule:
    if isinstance(fn, np.ufunc):
        raise CardError(
            f"{name}, input {targets[0]}: name what it reads: lambda x: {fn.__name__}(x)"
        )
    if not callable(fn):
        raise CardError(f"{name}, input {targets[0]}: a rule is a function, not {fn!r}")
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError) as problem:
        raise CardError(
            f"{name}, input {targets[0]}: the parameters of {fn!r} cannot be read"
        ) from problem
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
