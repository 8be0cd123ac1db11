"""How the tests call a card: any number of operands, leaves wherever there is a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.card import Op
from minigrad.domains import Cases


def called(
    card: Op, operands: Sequence[Any], params: Mapping[str, Any], dtypes: Sequence[str] = ()
) -> tuple[mg.Tensor, list[mg.Tensor]]:
    """The op's result, and the leaves it was made of: those of its operands that have a rule.

    dtypes: of the leaves, in turn; float64 where there is none. A `Tensor` is used as it is.
    """
    used = card.taking(len(operands))
    tensors, leaves = [], []
    for n, (name, operand) in enumerate(zip(used.inputs, operands, strict=True)):
        if isinstance(operand, mg.Tensor):
            made = operand
        elif name in used.rules:
            dtype = dtypes[n % len(dtypes)] if dtypes else "float64"
            made = mg.tensor(operand, requires_grad=True, name=name, dtype=dtype)
        else:
            made = mg.tensor(np.asarray(operand))
        tensors.append(made)
        leaves += [made] if name in used.rules else []
    given = (
        {card.inputs[0]: tensors} if card.variadic else dict(zip(card.inputs, tensors, strict=True))
    )
    return card.function(**given, **params), leaves


def on(card: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Op:
    """The card with one call as its whole domain."""
    return replace(card, domain=Cases("drawn", lambda rng: iter([(tuple(operands), dict(params))])))
