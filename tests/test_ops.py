"""Every card in the registry keeps its promises."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np
import pytest
from calling import called

import minigrad as mg
from minigrad.card import Op
from minigrad.domains import samples
from minigrad.events import Pulled

CARDS = list(mg.registry.values())
every_card = pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)

# What the maths of each rule needs, written by hand; of two operands where any number may come.
RESIDUALS: dict[str, tuple[str, ...]] = {
    # slopes that are constants, or the op's own numbers
    **dict.fromkeys(["add", "sub", "neg", "affine", "copy"], ()),
    **dict.fromkeys(["floor", "ceil", "round", "sign"], ()),
    # dy = y dx, (1 + y) dx, (1 - y²) dx, y (1 - y) dx, dx / 2y, -y² dx, (1 + y²) dx
    **dict.fromkeys(["exp", "expm1", "tanh", "sigmoid", "sqrt", "recip", "tan"], ("y",)),
    # slopes that the operand itself decides
    **dict.fromkeys(["abs", "clamp", "sqr", "ln", "log1p", "erf"], ("x",)),
    **dict.fromkeys(["sin", "cos", "atan", "sinh", "cosh"], ("x",)),
    **dict.fromkeys(["softplus", "relu", "leaky_relu", "elu", "silu", "gelu", "gelu_erf"], ("x",)),
    # two operands: the slope by one holds the other
    **dict.fromkeys(["mul", "maximum", "minimum", "matmul", "outer"], ("a", "b")),
    "hypot": ("a", "b", "y"),
    "div": ("b", "y"),
    "pow": ("x", "e", "y"),
    "where": ("mask",),
    "einsum": ("x0", "x1"),
    "conv2d": ("x", "weight"),
    # copies and places: only shapes and parameters
    **dict.fromkeys(["sum", "mean", "cumsum", "avg_pool2d", "dropout"], ()),
    **dict.fromkeys(["cast", "reshape", "transpose", "permute", "squeeze", "unsqueeze"], ()),
    **dict.fromkeys(["flip", "narrow", "broadcast_to", "repeat", "pad", "cat", "stack"], ()),
    "getitem": (),
    # the index is read again
    **dict.fromkeys(
        ["index_select", "embedding", "gather", "index_add", "scatter_add"], ("index",)
    ),
    # who was the extreme, and how large the others were
    **dict.fromkeys(["max", "min", "max_pool2d", "std", "norm", "logsumexp"], ("x", "y")),
    **dict.fromkeys(["prod", "cumprod", "var"], ("x",)),
    **dict.fromkeys(["softmax", "log_softmax"], ("y",)),
    "nll_loss": ("target",),
    **dict.fromkeys(["cross_entropy", "mse_loss"], ("x", "target")),
    "binary_cross_entropy_with_logits": ("x", "target"),
    **dict.fromkeys(["rms_norm", "layer_norm"], ("x", "weight")),
}


# --- rules and forwards ---------------------------------------------------------------------------


@every_card
def test_every_rule_and_the_forward_agree_with_the_numeric_check(card: Op) -> None:
    report = mg.check_op(card)
    assert report, report.table()
    used = [card.taking(len(operands)) for operands, _ in samples(card)]
    rules = {name for spread in used for name in spread.rules}
    assert {c.name for c in report.checks if c.level == "op"} == rules
    assert {c.level for c in report.checks} == {"op", "forward"}


def test_an_op_is_checked_by_name_by_function_and_by_card() -> None:
    for card in (mg.registry["tanh"], mg.registry["cat"]):
        verdicts = mg.check_op(card).verdicts
        assert mg.check_op(card.name).verdicts == mg.check_op(card.function).verdicts == verdicts


@every_card
def test_the_forward_equals_its_numpy_reference(card: Op) -> None:
    for operands, params in samples(card):
        result, _ = called(card, operands, params)
        expected = card.taking(len(operands)).expected(operands, params)
        np.testing.assert_allclose(result.data, expected, rtol=1e-14, atol=1e-15, strict=True)


@every_card
def test_a_wrong_forward_is_caught_though_its_rule_matches_it(card: Op) -> None:
    report = mg.check_op(replace(card, reference=lambda *a: card.reference(*a) + 1e-9))
    assert not report
    assert {c.level for c in report.checks if not c} == {"forward"}


# --- residuals ------------------------------------------------------------------------------------


def test_the_table_of_residuals_is_complete() -> None:
    assert RESIDUALS.keys() == mg.registry.keys()


@every_card
def test_the_residuals_are_the_values_its_rules_name(card: Op) -> None:
    used = card.taking(2)
    assert used.residuals((True,) * len(used.inputs)) == RESIDUALS[card.name]
    assert used.residuals((False,) * len(used.inputs)) == ()


def read_by_a_walk(y: mg.Tensor) -> set[str]:
    pulled = [e for e in mg.walk(y, np.ones(y.shape)) if isinstance(e, Pulled)]
    return {name for event in pulled for name, _ in event.residuals}


@every_card
def test_a_walk_reads_the_residuals_of_its_tracked_operands_and_nothing_else(card: Op) -> None:
    operands, params = next(samples(card))
    used = card.taking(len(operands))
    for alone in (None, *used.rules):
        tracked = [n in used.rules and alone in (None, n) for n in used.inputs]
        leaves = [
            mg.tensor(np.asarray(o), requires_grad=on)
            for o, on in zip(operands, tracked, strict=True)
        ]
        y, _ = called(card, leaves, params)
        assert read_by_a_walk(y) == set(used.residuals(tuple(tracked)))


@pytest.mark.parametrize("name", ["mul", "matmul", "outer", "conv2d", "einsum"])
def test_what_only_an_untracked_operand_would_need_is_not_saved(name: str) -> None:
    card = mg.registry[name].taking(2)
    first, second, *rest = card.inputs
    assert card.residuals((True, False, *[False] * len(rest))) == (second,)
    assert card.residuals((False, True, *[False] * len(rest))) == (first,)


# --- how ops are called ---------------------------------------------------------------------------


@every_card
def test_function_and_method_are_the_same_op(card: Op) -> None:
    if card.variadic:
        assert not hasattr(mg.Tensor, card.name)
        return
    own = next(name for name in card.order if name in card.rules)
    for operands, params in samples(card):
        by_function, _ = called(card, operands, params)
        given = dict(zip(card.inputs, map(mg.tensor, operands), strict=True))
        given |= card.settle(params)
        rest = [given[name] for name in card.order if name != own]
        by_position = getattr(given[own], card.name)(*rest)
        by_name = getattr(given.pop(own), card.name)(**given)
        for method in (by_position, by_name):
            np.testing.assert_array_equal(by_function.data, method.data, strict=True)
    assert by_function.op == card.name and getattr(mg, card.name) is card.function


OPERATORS = ["add", "sub", "mul", "truediv", "pow", "matmul", "neg", "abs"]


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_and_function_are_the_same_op(name: str) -> None:
    card = mg.registry[{"truediv": "div"}.get(name, name)]
    operands = [mg.tensor(x, requires_grad=True) for x in next(samples(card))[0]]
    result = getattr(operator, name)(*operands)
    assert result.op == card.name
    np.testing.assert_array_equal(result.data, card.function(*operands).data, strict=True)
    if len(operands) == 2:
        array, tensor = (operands[n].data for n in (0, 1))
        swapped = getattr(operator, name)(array, mg.tensor(tensor, requires_grad=True))
        np.testing.assert_array_equal(swapped.data, result.data, strict=True)


def test_dims_and_shapes_may_be_spread_or_passed_as_one() -> None:
    x = mg.tensor(np.arange(6.0).reshape(2, 3))
    for made in (x.reshape(3, 2), x.reshape((3, 2)), x.reshape(-1, 2), mg.reshape(x, (3, 2))):
        np.testing.assert_array_equal(made.data, np.arange(6.0).reshape(3, 2))
    for made in (x.T, x.permute(1, 0), x.permute((1, 0)), x.transpose(0, 1), x.transpose(-1, 0)):
        np.testing.assert_array_equal(made.data, x.data.T)
    for made in (x.flip(0, 1), x.flip((0, 1)), x.flip(dims=(0, -1))):
        np.testing.assert_array_equal(made.data, x.data[::-1, ::-1])
    np.testing.assert_array_equal(x.repeat(2, 1).data, np.tile(x.data, (2, 1)))
    np.testing.assert_array_equal(x.broadcast_to(4, 2, 3).data, x.broadcast_to((4, 2, 3)).data)
    np.testing.assert_array_equal(x.sum(0, True).data, x.sum(dim=0, keepdim=True).data)
