"""The reference table comes out exactly: by every way to a gradient, and by the numeric check."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from reference import CASES, Case

import minigrad as mg
from minigrad.events import Reached

Pair = list[np.ndarray]


def by_backward(case: Case, leaves: list[mg.Tensor]) -> Pair:
    case.loss(*leaves).backward()
    return [x.grad for x in leaves]


def by_grad(case: Case, leaves: list[mg.Tensor]) -> Pair:
    return list(mg.grad(case.loss(*leaves), leaves))


def by_store(case: Case, leaves: list[mg.Tensor]) -> Pair:
    store = mg.GradStore()
    case.loss(*leaves).backward_into(store)
    return [store[x] for x in leaves]


def reached(events: list) -> Pair:
    found = {e.name: e.gradient for e in events if isinstance(e, Reached)}
    return [found["x0"], found["x1"]]


def by_walk(case: Case, leaves: list[mg.Tensor]) -> Pair:
    return reached(list(mg.walk(case.loss(*leaves))))


def by_record(case: Case, leaves: list[mg.Tensor]) -> Pair:
    return reached(mg.record(case.loss(*leaves)).events)


every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
every_way = pytest.mark.parametrize("way", [by_backward, by_grad, by_store, by_walk, by_record])


def furthest(case: Case, way: Callable[[Case, list[mg.Tensor]], Pair]) -> float:
    """The largest difference from the expected gradients, shapes being equal."""
    pairs = list(zip(way(case, case.leaves()), case.expected, strict=True))
    assert all(g.shape == wanted.shape for g, wanted in pairs)
    return max(np.abs(g - wanted).max() for g, wanted in pairs)


@every_case
@every_way
def test_all_gradients_equal_the_expected_ones(case: Case, way: Callable) -> None:
    assert furthest(case, way) <= 1e-12


@every_way
def test_a_mutated_expectation_would_be_noticed(way: Callable) -> None:
    good = CASES[1]
    wrong = (good.expected[0], good.expected[1] + np.array([0, 1e-9, 0]))
    assert furthest(Case(good.name, good.op, good.weight, good.inputs, wrong), way) > 1e-12


@every_case
@pytest.mark.parametrize("dtype, within", [("float64", 1e-9), ("float32", 1e-5)])
def test_gradcheck_is_within_the_limit(case: Case, dtype: str, within: float) -> None:
    report = mg.gradcheck(case.loss, case.leaves(dtype))
    assert report
    assert [c.analytic.dtype for c in report.checks] == [np.dtype(dtype)] * 2
    assert max(c.max_difference for c in report.checks) <= within


@every_case
@pytest.mark.parametrize("dtype, within", [("float64", 1e-9), ("float32", 1e-5)])
def test_every_check_of_record_is_within_the_limit(case: Case, dtype: str, within: float) -> None:
    trace = mg.record(case.loss(*case.leaves(dtype)))
    assert [c.level for c in trace.checks] == ["op"] * 4 + ["graph"] * 2
    assert all(trace.checks)
    assert max(c.max_difference for c in trace.checks) <= within


def test_the_numeric_check_fails_for_a_gradient_that_is_off_by_a_thousandth() -> None:
    @mg.elementwise(
        tex="y = a b",
        partials={"a": (lambda b: 1.001 * b, "b"), "b": (lambda a: a, "a")},
    )
    def almost_mul(a, b):
        return a * b

    x0, x1 = CASES[1].leaves()
    report = mg.gradcheck(lambda a, b: mg.sum(almost_mul(a, b) * CASES[1].weight), [x0, x1])
    assert not report
    assert [bool(c) for c in report.checks] == [False, True]


@every_case
def test_the_table_has_a_line_per_input_with_op_shape_and_difference(case: Case) -> None:
    lines = mg.gradcheck(case.loss, case.leaves()).table().splitlines()
    assert len(lines) == 3
    for line, name, x in zip(lines[1:], ("x0", "x1"), case.inputs, strict=True):
        assert name in line and str(list(x.shape)) in line and "✓" in line
