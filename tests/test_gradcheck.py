"""gradcheck as a whole: functions that are not deterministic, large inputs, what is left behind."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.numeric import Verdict


def leaf(values: object, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name)


def square_off_by(factor: float):
    @mg.elementwise(tex="y = x^2", partials={"x": (lambda x: factor * 2 * x, "2x")})
    def square(x):
        return x * x

    return square


def only(fn, at: object):
    """The one check of a function of one tensor."""
    [check] = mg.gradcheck(fn, [leaf(at)]).checks
    return check


# --- functions that answer differently twice ------------------------------------------------------


def with_fresh_mask():
    rng = np.random.default_rng(0)
    return lambda x: mg.sum(x * rng.integers(0, 3, x.shape).astype(float))


def with_counter():
    calls = []
    return lambda x: mg.sum(x * x) + float(len(calls) if calls.append(1) is None else 0)


@pytest.mark.parametrize("make", [with_fresh_mask, with_counter])
def test_a_function_that_is_not_deterministic_gets_no_verdict(make) -> None:
    report = mg.gradcheck(make(), [leaf([1.0, 2.0, 3.0])])
    assert not report and report.checks == () and report.worst is None
    assert "not deterministic" in report.table()


def test_an_op_that_is_not_deterministic_is_undecided_at_its_step() -> None:
    rng = np.random.default_rng(0)

    @mg.elementwise(tex="", partials={"x": (lambda: 1.0, "1")})
    def jitter(x):
        return x + rng.normal(size=np.shape(x))

    checks = {c.op: c for c in mg.record(mg.sum(jitter(leaf([1.0])))).checks}
    assert checks["jitter"].verdict is Verdict.undecided
    assert "not deterministic" in checks["jitter"].note
    assert checks["sum"]


def test_a_fixed_mask_is_deterministic() -> None:
    check = only(lambda x: mg.sum(x * np.array([0.0, 2.0, 2.0])), [1.0, 2.0, 3.0])
    assert check and check.analytic.tolist() == [0, 2, 2]
    np.testing.assert_allclose(check.numeric, [0, 2, 2], atol=1e-9)


# --- large inputs, and what is left behind --------------------------------------------------------


@pytest.mark.parametrize("factor, fine", [(1.0, True), (1.001, False)])
def test_above_2000_elements_random_directions_are_compared(factor: float, fine: bool) -> None:
    wrong = square_off_by(factor)
    check = only(lambda x: mg.sum(wrong(x)), np.linspace(-2, 3, 2001))
    assert bool(check) is fine and check.numeric is None
    sentence = "8 random directions were compared: one by one, 2001 elements are too many"
    assert sentence in check.note
    assert ("of 8 random directions differ" in check.note) is not fine


def test_one_wrong_element_of_many_is_caught_by_random_directions() -> None:
    def one_off(g, x_shape):
        g = np.broadcast_to(g, x_shape).copy()
        g[777] *= 1.5
        return g

    off = mg.op(tex="", pulls={"x": (one_off, "")})(lambda x: np.sum(x))
    assert not only(off, np.linspace(-2, 3, 3000))


def test_inputs_and_their_gradients_are_left_as_they_were() -> None:
    x = leaf([1.0, 2.0, 3.0])
    (x.sum()).backward()
    before = x.data.tolist(), x.grad.tolist(), x.version
    assert mg.gradcheck(lambda t: mg.sum(t * t), [x])
    mg.record(mg.sum(x * x))
    assert (x.data.tolist(), x.grad.tolist(), x.version) == before
    with pytest.raises(ZeroDivisionError):
        mg.gradcheck(lambda t: 1 / 0, [x])
    assert (x.data.tolist(), x.grad.tolist(), x.version) == before


def test_gradcheck_needs_an_input_that_requires_a_gradient_and_a_tensor_back() -> None:
    with pytest.raises(mg.GraphError, match="nothing to check"):
        mg.gradcheck(mg.sum, [mg.tensor([1.0])])
    with pytest.raises(mg.DtypeError, match="returned float, not a tensor"):
        mg.gradcheck(lambda x: 1.0, [leaf([1.0])])


def test_an_unused_input_has_gradient_zero_and_agrees() -> None:
    report = mg.gradcheck(lambda x, u: mg.sum(x * x), [leaf([1.0]), leaf([9.0], name="u")])
    assert report and report.checks[1].analytic.tolist() == [0]


def test_a_slow_function_gets_random_directions_too_and_the_reason(monkeypatch) -> None:
    monkeypatch.setattr("minigrad.compare.SECONDS", 0.0)
    report = mg.gradcheck(lambda x: (x * x).sum(), [mg.tensor([1.0, 2.0], requires_grad=True)])
    assert report and "one by one, 2 elements take too long" in report.checks[0].note
