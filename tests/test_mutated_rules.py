"""Every rule of every card, made wrong in the ways rules are wrong: the numeric check sees it.

What it cannot see for a reason of mathematics is listed with that reason, and tested too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.card import Op, Rule
from minigrad.domains import Cases
from minigrad.ops import indexing, normalise, softmax

Change = Callable[[Any, tuple[int, ...]], Any]

CARDS = list(mg.registry.values())
RULES = [(card, name) for card in CARDS for name in card.rules]
every_rule = pytest.mark.parametrize("card, name", RULES, ids=[f"{c.name}-{n}" for c, n in RULES])


def mutated(card: Op, name: str, change: Change) -> Op:
    """The card with one rule's contribution changed; `change` is told the operand's shape too."""
    rule = card.rules[name]
    more = ("k", f"{name}_shape") if card.variadic else (f"{name}_shape",)

    def fn(g: Any, *values: Any) -> Any:
        own, read = values[: len(more)], values[len(more) :]
        shape = own[1][own[0]] if card.variadic else own[0]
        if rule.g_at is None:
            return change(g * rule.fn(*read), shape)
        return change(rule.fn(*read[: rule.g_at], g, *read[rule.g_at :]), shape)

    broken = replace(rule, fn=fn, reads=(*more, *rule.reads), g_at=0)
    return replace(card, rules={**card.rules, name: broken})


def caught(card: Op) -> bool:
    """A wrong rule differs, or its contribution does not even fit."""
    try:
        return not mg.check_op(card)
    except (mg.ShapeError, mg.RuleError):
        return True


# --- a factor, and an order of cells --------------------------------------------------------------

FLAT = {"floor", "ceil", "round", "sign"}  # the slope is 0: so is 1.001 · 0, and 0 reversed


@every_rule
def test_an_unchanged_mutant_passes(card: Op, name: str) -> None:
    assert not caught(mutated(card, name, lambda contribution, shape: contribution))


@every_rule
def test_a_rule_off_by_a_thousandth_is_caught(card: Op, name: str) -> None:
    wrong = mutated(card, name, lambda contribution, shape: 1.001 * contribution)
    assert caught(wrong) is (card.name not in FLAT)


@every_rule
def test_cells_in_reverse_order_are_caught(card: Op, name: str) -> None:
    wrong = mutated(card, name, lambda contribution, shape: np.flip(contribution))
    assert caught(wrong) is (card.name not in FLAT)


@pytest.mark.parametrize("name", sorted(FLAT))
def test_a_slope_of_a_thousandth_where_it_is_zero_is_caught(name: str) -> None:
    assert caught(mutated(mg.registry[name], "x", lambda contribution, shape: contribution + 1e-3))


# --- swapped inputs -------------------------------------------------------------------------------

SWAPS = [(card, a, b) for card in CARDS for a, b in combinations(card.rules, 2)]
SYMMETRIC = {"add"}  # both slopes are 1


@pytest.mark.parametrize("card, a, b", SWAPS, ids=[f"{c.name}-{a}-{b}" for c, a, b in SWAPS])
def test_swapped_inputs_are_caught(card: Op, a: str, b: str) -> None:
    wrong = replace(card, rules={**card.rules, a: card.rules[b], b: card.rules[a]})
    assert caught(wrong) is (card.name not in SYMMETRIC)


@pytest.mark.parametrize("name", [c.name for c in CARDS if c.variadic])
def test_the_rule_of_a_neighbour_among_many_operands_is_caught(name: str) -> None:
    card = mg.registry[name]
    rule = card.rules["xs"]

    def neighbours(g: Any, shapes: tuple, k: int, *rest: Any) -> Any:
        return rule.fn(g, (k + 1) % len(shapes), *rest)

    assert rule.reads[0] == "k"
    wrong = replace(rule, fn=neighbours, reads=("xs_shape", *rule.reads))
    assert caught(replace(card, rules={"xs": wrong}))


# --- a wrong axis ---------------------------------------------------------------------------------

INDEX = np.array([[0, 2, 0], [1, 1, 2], [2, 0, 0]])
SQUARE: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    # operands, as sizes of real numbers or as arrays, and parameters: every axis has 3 cells
    **dict.fromkeys(["sum", "mean", "prod", "max", "min"], (((3, 3),), {"dim": 0})),
    **dict.fromkeys(["var", "std", "norm", "logsumexp"], (((3, 3),), {"dim": 0})),
    **dict.fromkeys(["cumsum", "cumprod", "softmax", "log_softmax"], (((3, 3),), {"dim": 0})),
    "index_select": (((3, 3), INDEX[0]), {"dim": 0}),
    "gather": (((3, 3), INDEX), {"dim": 0}),
    "index_add": (((3, 3), INDEX[0], (3, 3)), {"dim": 0}),
    "scatter_add": (((3, 3), INDEX, (3, 3)), {"dim": 0}),
    "cat": (((3, 3), (3, 3), (3, 3)), {"dim": 0}),
    "stack": (((3, 3), (3, 3), (3, 3)), {"dim": 0}),
    "narrow": (((3, 3),), {"dim": 0, "start": 1, "length": 2}),
    "flip": (((3, 3),), {"dims": (0,)}),
    "permute": (((3, 3, 3),), {"dims": (2, 0, 1)}),
    "transpose": (((3, 3, 3),), {"dim0": 0, "dim1": 1}),
    "einsum": (((3, 3), (3, 3)), {"equation": "ij,jk->ik"}),
    "pad": (((3, 3),), {"pad": (1, 1, 0, 2)}),
    "conv2d": (((1, 1, 3, 3), (1, 1, 2, 2), (1,)), {"dilation": (1, 2), "padding": (0, 1)}),
    "max_pool2d": (((1, 1, 3, 3),), {"kernel_size": (1, 3)}),
    "avg_pool2d": (((1, 1, 3, 3),), {"kernel_size": (1, 3)}),
}
NAME_AXES = {"dim", "dim0", "dim1", "dims", "equation", "pad", "dilation", "padding", "kernel_size"}
ON_AXES = [(c, n) for c, n in RULES if NAME_AXES & {*c.rules[n].reads}]


def on_squares(card: Op, operands: tuple[Any, ...], params: dict[str, Any]) -> Op:
    def draw(rng: np.random.Generator):
        yield tuple(rng.normal(size=o) if isinstance(o, tuple) else o for o in operands), params

    return replace(card, domain=Cases("squares", draw))


def another(word: str, value: Any) -> Any:
    """The same parameter, with other axes in it."""
    if word == "equation":
        return value.translate(str.maketrans("ij", "ji"))[:3] + value[3:]
    if word in ("pad", "dilation", "padding", "kernel_size"):
        return value[::-1] if isinstance(value, tuple) else value
    return (value + 1) % 3 if isinstance(value, int) else tuple((d + 1) % 3 for d in value)


@pytest.mark.parametrize("card, name", ON_AXES, ids=[f"{c.name}-{n}" for c, n in ON_AXES])
def test_a_rule_along_another_axis_is_caught(card: Op, name: str) -> None:
    square, rule = on_squares(card, *SQUARE[card.name]), card.rules[name]
    reads = [word for word in rule.reads if word != "g"]

    def turned(g: Any, *values: Any) -> Any:
        values = [
            another(w, v) if w in NAME_AXES else v for w, v in zip(reads, values, strict=True)
        ]
        return rule.fn(*values[: rule.g_at], g, *values[rule.g_at :])

    wrong = replace(rule, fn=turned, g_at=0)
    assert not caught(square)
    assert caught(replace(square, rules={**card.rules, name: wrong}))


# Their axes are not named but implied: the rule is run on transposed squares instead.
IMPLIED = {
    "rms_norm": (((3, 3), (3,)), {}),
    "layer_norm": (((3, 3), (3,), (3,)), {}),
    "nll_loss": (((3, 3), INDEX[0]), {}),
    "cross_entropy": (((3, 3), INDEX[0]), {}),
    "embedding": ((INDEX[0], (3, 3)), {}),
    "matmul": (((3, 3), (3, 3)), {}),
    "outer": (((3,), (3,)), {}),
}


@pytest.mark.parametrize("name", IMPLIED)
def test_a_rule_on_transposed_operands_is_caught(name: str) -> None:
    square = on_squares(mg.registry[name], *IMPLIED[name])
    assert not caught(square)

    def transposed(rule: Rule) -> Rule:
        def fn(*values: Any) -> Any:
            turned = (v.T if isinstance(v, np.ndarray) else v for v in values)
            return rule.fn(*turned).T

        return replace(rule, fn=fn)

    for key, rule in square.rules.items():
        assert caught(replace(square, rules={**square.rules, key: transposed(rule)}))


def test_every_op_with_an_axis_has_a_mutant_along_another_one() -> None:
    """Squeeze and unsqueeze have a dim, but their rules read only the shape of x: no axis there."""
    have = {c.name for c in CARDS if NAME_AXES & {*c.params}}
    assert {c.name for c, _ in ON_AXES} == have - {"squeeze", "unsqueeze"} == set(SQUARE)


# --- a missing reduction --------------------------------------------------------------------------


def first_copy(contribution: Any, shape: tuple[int, ...]) -> Any:
    """One of the copies that broadcasting made, where their sum is due."""
    lead = (0,) * (contribution.ndim - len(shape))
    return contribution[lead][tuple(slice(n) for n in shape)]


REDUCED = [
    (c, n)
    for c, n in RULES
    if c.broadcasts and (len(c.inputs) > 1 or c.variadic or not c.elementwise)
]


@pytest.mark.parametrize("card, name", REDUCED, ids=[f"{c.name}-{n}" for c, n in REDUCED])
def test_a_missing_reduction_is_caught(card: Op, name: str) -> None:
    assert caught(mutated(card, name, first_copy))
    assert caught(replace(card, broadcasts=False))


def test_with_one_operand_there_is_no_reduction_to_miss() -> None:
    alone = [c for c in CARDS if c.elementwise and len(c.inputs) == 1]
    assert {(c.name, "x") for c in alone} == {
        (c.name, n) for c, n in RULES if c.broadcasts and (c, n) not in REDUCED
    }
    for card in alone[::8]:
        assert not caught(mutated(card, "x", first_copy))


@pytest.mark.parametrize(
    "name, operand, fn",
    [
        ("repeat", "x", lambda g, x_shape: first_copy(g, x_shape)),
        ("conv2d", "bias", lambda g, bias_shape: g[0, :, 0, 0]),
        ("layer_norm", "bias", lambda g, bias_shape: first_copy(g, bias_shape)),
    ],
)
def test_a_rule_that_sums_by_itself_and_forgets_it_is_caught(name: str, operand: str, fn) -> None:
    card = mg.registry[name]
    wrong = replace(card.rules[operand], fn=fn)
    assert caught(replace(card, rules={**card.rules, operand: wrong}))


@pytest.mark.parametrize(
    "module, helper, wrong, names",
    [
        (normalise, "summed_to", first_copy, ["rms_norm", "layer_norm"]),
        (normalise, "mean_of", lambda x, axes: x, ["rms_norm", "layer_norm"]),
        (softmax, "sum_along", lambda x, dim: x, ["softmax", "log_softmax"]),
        (
            indexing,
            "added_at",  # the last of several wins, where their sum is due
            lambda shape, place, g: assigned_at(shape, place, g),
            ["getitem", "index_select", "embedding", "gather"],
        ),
    ],
    ids=["summed_to", "mean_of", "sum_along", "added_at"],
)
def test_a_helper_that_does_not_sum_is_caught(
    module: Any, helper: str, wrong: Callable[..., Any], names: list[str], monkeypatch
) -> None:
    monkeypatch.setattr(module, helper, wrong)
    for name in names:
        assert caught(mg.registry[name])


def assigned_at(shape: tuple[int, ...], place: Any, g: Any) -> Any:
    back = np.zeros(shape)
    back[place] = g
    return back
