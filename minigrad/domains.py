"""Where an op may be sampled: real, positive, away_from(0), or cases of operands and parameters.

A Domain draws the cells of one operand; Cases draw whole calls. `samples` turns a card into calls
that `check_op`, the tests and the Ops page all use, so everything that is shown about an op was
also checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .card import Op, required
from .errors import CardError

Array = NDArray[Any]
Rng: TypeAlias = "np.random.Generator"  # in words: numpy.random is loaded when something is drawn
Sample = tuple[tuple[Array, ...], dict[str, Any]]  # operands and parameters of one call


@dataclass(frozen=True)
class Domain:
    """Where the cells of one operand may lie: in words, and as a draw of float64 cells."""

    words: str
    draw: Callable[[Rng, tuple[int, ...]], Array]


@dataclass(frozen=True)
class Cases:
    """Whole calls, for ops whose operands' shapes or parameters depend on each other."""

    words: str
    draw: Callable[[Rng], Iterator[Sample]]


real = Domain("every real number", lambda rng, shape: rng.normal(0, 1.5, shape))
positive = Domain("numbers above 0", lambda rng, shape: rng.uniform(0.1, 3, shape))


def away_from(point: float, by: float = 0.1) -> Domain:
    """Real numbers at least `by` away from `point`: a kink, or a pole."""

    def draw(rng: Rng, shape: tuple[int, ...]) -> Array:
        return point + rng.choice([-1.0, 1.0], shape) * rng.uniform(by, 3, shape)

    return Domain(f"real numbers except near {point:g}", draw)


def between(low: float, high: float) -> Domain:
    """Numbers from low to high."""
    return Domain(
        f"numbers between {low:g} and {high:g}", lambda rng, shape: rng.uniform(low, high, shape)
    )


flags = Domain("true or false", lambda rng, shape: rng.integers(0, 2, shape).astype(bool))


def calls(words: str, *given: tuple[tuple[int, ...], dict[str, Any]]) -> Cases:
    """Calls with one operand of real numbers: its shape, and the parameters."""

    def draw(rng: Rng) -> Iterator[Sample]:
        for shape, params in given:
            yield (rng.normal(size=shape),), params

    return Cases(words, draw)


def distinct(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Cells at least 0.1 apart from each other, for ops that pick an extreme."""
    count = int(np.prod(shape))
    return (rng.permutation(count) * 0.5 + rng.uniform(0, 0.4, count) - count / 4).reshape(shape)


_SHAPES: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    1: [((),), ((3,),), ((2, 3),), ((2, 1, 3),)],
    2: [
        ((), ()),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((2, 1), (1, 3)),
        ((1, 2, 3), (1, 1, 3)),
        ((), (2, 2)),
        ((2, 3), (3, 2)),
    ],
    3: [
        ((), (), ()),
        ((3,), (3,), (3,)),
        ((2, 3), (3,), (2, 1)),
        ((3,), (2, 1, 3), ()),
    ],
}


_FOR_OPS = [((2, 3), (3, 2))]  # shapes that elementwise ops cannot meet


def samples(card: Op, seed: int = 0) -> Iterator[Sample]:
    """Calls on the card's domain: scalars, matrices, broadcast pairs; or its own cases."""
    rng = np.random.default_rng(seed)
    if isinstance(card.domain, Cases):
        yield from card.domain.draw(rng)
        return
    given = card.domain if isinstance(card.domain, Mapping) else {}
    values = {name: given[name] for name in card.params if name in given}
    needed = [n for n, v in card.params.items() if v is required and n not in values]
    if needed:
        raise CardError(f"{card.name}: a domain= must say what the parameter {needed[0]} may be")
    count, suited = len(card.inputs), False
    for turn, shapes in enumerate(_SHAPES.get(count) or [((2, 3),) * count]):
        domains = [domain_of(card, name) for name in card.inputs]
        operands = tuple(d.draw(rng, s) for d, s in zip(domains, shapes, strict=True))
        params = {n: several[turn % len(several)] for n, several in values.items()}
        if _takes(card, operands, params) or (card.elementwise and shapes not in _FOR_OPS):
            suited = True
            yield operands, params
    if not suited:
        raise CardError(f"{card.name}: it takes none of the usual shapes, so it needs a domain=")


def _takes(card: Op, operands: tuple[Array, ...], params: dict[str, Any]) -> bool:
    try:
        card.forward(*(o.copy() for o in operands), **card.settle(params))
    except Exception:  # this shape is not for this op
        return False
    return True


def domain_of(card: Op, name: str) -> Domain:
    """The domain of one operand."""
    domain = card.domain.get(name) if isinstance(card.domain, Mapping) else card.domain
    return domain if isinstance(domain, Domain) else real
