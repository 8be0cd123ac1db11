"""Every card in the registry keeps its promises, and a card that breaks one is caught."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.card import Op, Rule
from minigrad.domains import samples

CARDS = list(mg.registry.values())
every_card = pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)

RESIDUALS = {
    **dict.fromkeys(["add", "sub", "neg", "sum", "mean"], ()),
    **dict.fromkeys(["reshape", "transpose", "permute", "broadcast_to"], ()),
    **dict.fromkeys(["exp", "tanh", "sigmoid", "sqrt"], ("y",)),
    **dict.fromkeys(["ln", "relu", "sqr"], ("x",)),
    **dict.fromkeys(["mul", "matmul"], ("a", "b")),
    "div": ("b", "y"),
    "pow": ("x", "e", "y"),
    "max": ("x", "y"),
}


# --- the promises ---------------------------------------------------------------------------------


@every_card
def test_every_rule_and_the_forward_agree_with_the_numeric_check(card: Op) -> None:
    report = mg.check_op(card)
    assert report, report.table()
    assert {c.name for c in report.checks if c.level == "op"} == set(card.inputs)
    assert mg.check_op(card.name).verdicts == mg.check_op(card.function).verdicts


@every_card
def test_the_forward_equals_its_numpy_reference(card: Op) -> None:
    for operands, params in samples(card):
        result = card.function(*map(mg.tensor, operands), **params)
        expected = card.expected(operands, params)
        np.testing.assert_allclose(result.data, expected, rtol=1e-14, atol=1e-15, strict=True)


@every_card
def test_a_wrong_forward_is_caught_though_its_rule_matches_it(card: Op) -> None:
    report = mg.check_op(replace(card, reference=lambda *a: card.reference(*a) + 1e-9))
    assert not report
    assert {c.level for c in report.checks if not c} == {"forward"}


@every_card
def test_the_residuals_are_the_values_its_rules_name(card: Op) -> None:
    assert card.residuals((True,) * len(card.inputs)) == RESIDUALS[card.name]
    assert card.residuals((False,) * len(card.inputs)) == ()


@pytest.mark.parametrize("name", ["mul", "matmul"])
def test_what_only_an_untracked_operand_would_need_is_not_saved(name: str) -> None:
    assert mg.registry[name].residuals((True, False)) == ("b",)
    assert mg.registry[name].residuals((False, True)) == ("a",)


@every_card
def test_function_and_method_are_the_same_op(card: Op) -> None:
    for operands, params in samples(card):
        tensors = [mg.tensor(x, requires_grad=True) for x in operands]
        by_function = getattr(mg, card.name)(*tensors, **params)
        by_method = getattr(tensors[0], card.name)(*tensors[1:], **params)
        assert by_function.op == by_method.op == card.name
        np.testing.assert_array_equal(by_function.data, by_method.data, strict=True)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "matmul", "neg"])
def test_operator_and_function_are_the_same_op(name: str) -> None:
    card = mg.registry[{"truediv": "div"}.get(name, name)]
    operands = [mg.tensor(x, requires_grad=True) for x in next(samples(card))[0]]
    result = getattr(operator, name)(*operands)
    assert result.op == card.name
    np.testing.assert_array_equal(result.data, card.function(*operands).data, strict=True)


def test_dims_and_shapes_may_be_spread_or_passed_as_one() -> None:
    x = mg.tensor(np.arange(6.0).reshape(2, 3))
    for made in (x.reshape(3, 2), x.reshape((3, 2)), x.reshape(-1, 2), mg.reshape(x, (3, 2))):
        np.testing.assert_array_equal(made.data, np.arange(6.0).reshape(3, 2))
    for made in (x.T, x.permute(1, 0), x.permute((1, 0)), x.transpose(0, 1), x.transpose(-1, 0)):
        np.testing.assert_array_equal(made.data, x.data.T)
    np.testing.assert_array_equal(x.sum(0, True).data, x.sum(dim=0, keepdim=True).data)


# --- mutated cards: each mutation is one well-known bug -------------------------------------------

Mutation = Callable[[Op], Op]


def mutated(card: Op, change: Callable[[np.ndarray, tuple[int, ...]], np.ndarray]) -> Op:
    """The card with every contribution changed; `change` is told the input's shape too."""

    def broken(name: str, rule: Rule) -> Rule:
        def fn(g: Any, shape: Any, *values: Any) -> Any:
            if rule.g_at is None:
                return change(g * rule.fn(*values), shape)
            return change(rule.fn(*values[: rule.g_at], g, *values[rule.g_at :]), shape)

        return replace(rule, fn=fn, reads=(f"{name}_shape", *rule.reads), g_at=0)

    return replace(card, rules={name: broken(name, rule) for name, rule in card.rules.items()})


def unchanged(card: Op) -> Op:
    return mutated(card, lambda contribution, shape: contribution)


def off_by_a_thousandth(card: Op) -> Op:
    return mutated(card, lambda contribution, shape: 1.001 * contribution)


def cells_in_reverse(card: Op) -> Op:
    return mutated(card, lambda contribution, shape: np.flip(contribution))


def one_copy_instead_of_the_sum(card: Op) -> Op:
    def first_copy(contribution: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        lead = (0,) * (contribution.ndim - len(shape))
        return contribution[lead][tuple(slice(n) for n in shape)]

    return mutated(card, first_copy)


def swapped_inputs(card: Op) -> Op:
    first, second = card.inputs
    return replace(card, rules={first: card.rules[second], second: card.rules[first]})


def caught(card: Op) -> bool:
    """A wrong rule differs, or its contribution does not even fit."""
    try:
        return not mg.check_op(card)
    except (mg.ShapeError, mg.RuleError):
        return True


@every_card
def test_an_unchanged_mutant_passes(card: Op) -> None:
    assert not caught(unchanged(card))


@every_card
@pytest.mark.parametrize("mutation", [off_by_a_thousandth, cells_in_reverse])
def test_a_wrong_rule_is_caught(card: Op, mutation: Mutation) -> None:
    assert caught(mutation(card))


@pytest.mark.parametrize("card", [c for c in CARDS if c.broadcasts], ids=lambda c: c.name)
def test_a_missing_reduction_is_caught(card: Op) -> None:
    if len(card.inputs) == 2 or card.name == "broadcast_to":
        assert caught(one_copy_instead_of_the_sum(card))
        assert caught(replace(card, broadcasts=False))
    else:  # one operand: nothing is broadcast, so there is nothing to miss
        assert not caught(one_copy_instead_of_the_sum(card))


@pytest.mark.parametrize("name", ["sub", "mul", "div", "pow", "matmul"])
def test_swapped_inputs_are_caught(name: str) -> None:
    assert caught(swapped_inputs(mg.registry[name]))


def test_swapping_the_inputs_of_add_changes_nothing() -> None:
    assert not caught(swapped_inputs(mg.registry["add"]))


@pytest.mark.parametrize("axis, fine", [(0, True), (1, False)])
def test_a_gradient_copied_along_the_wrong_axis_is_caught(axis: int, fine: bool) -> None:
    def back(g: np.ndarray, dim: int) -> np.ndarray:
        return np.stack([g] * 3, axis=axis)

    card = mg.registry["sum"]
    wrong = replace(card.rules["x"], fn=back, reads=("dim",), g_at=0)
    square = replace(
        card.domain,
        draw=lambda rng: iter([((rng.normal(size=(3, 3)),), {"dim": 0, "keepdim": False})]),
    )
    assert caught(replace(card, rules={"x": wrong}, domain=square)) is not fine
