"""A user's own op is declared, called, checked and stepped like ours; a wrong one is told so."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.card import Op
from minigrad.domains import Cases
from minigrad.events import Accumulated, Pulled, Reduced


def leaf(values: object, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name)


@mg.elementwise(
    tex=r"y = x \tanh x",
    partials={"x": (lambda x: np.tanh(x) + x * (1 - np.tanh(x) ** 2), r"\tanh x + \dots")},
    reference=lambda x: x * np.tanh(x),
)
def soft_abs(x):
    """A smooth |x|."""
    return x * np.tanh(x)


@mg.op(
    tex=r"y = x^{\top} x",
    domain=Cases("a matrix", lambda rng: iter([((rng.normal(size=(3, 2)),), {})])),
    pulls={"x": (lambda g, x: x @ (g + g.T), r"x (\bar y + \bar y^{\top})")},
)
def gram(x):
    """The products of all pairs of columns."""
    return x.T @ x


@mg.elementwise(tex="y = x^3", partials={"x": (lambda x: 3.003 * x * x, "3 x^2")})
def wrong_cube(x):
    return x**3


# --- like ours ------------------------------------------------------------------------------------


@pytest.mark.parametrize("op, inputs", [(soft_abs, ("x",)), (gram, ("x",))])
def test_a_declared_op_is_callable_and_carries_its_card(op, inputs: tuple[str, ...]) -> None:
    x = leaf([[1.0, 2.0], [3.0, -1.0]])
    y = op(x)
    assert isinstance(y, mg.Tensor) and y.requires_grad
    assert isinstance(op.card, Op) and op.card.inputs == inputs
    assert y.op == op.card.name == op.__name__ and op.__doc__


def test_a_users_op_is_checked_like_ours_and_stays_out_of_the_registry() -> None:
    before = dict(mg.registry)
    assert mg.check_op(soft_abs) and mg.check_op(gram.card)
    assert not mg.check_op(wrong_cube)
    assert mg.registry == before and "soft_abs" not in mg.registry


def test_an_op_may_be_declared_again_even_under_the_name_of_ours() -> None:
    for factor in (2.0, 3.0):

        @mg.elementwise(tex="y = c x", partials={"x": (lambda k: k, "k")})
        def exp(x, *, k=factor):
            return k * x

        x = leaf(1.0)
        assert exp(x).item() == mg.grad(exp(x), [x])[0] == factor
    assert mg.exp(leaf(0.0)).item() == 1 and mg.registry["exp"] is mg.exp.card


def test_a_users_op_is_stepped_with_slope_residuals_and_check() -> None:
    x = leaf([[1.0, 2.0], [3.0, -1.0]])
    trace = mg.record(mg.sum(soft_abs(gram(x) / 10)))
    assert all(trace.checks) and len(trace.checks) == 5
    pulls = {trace.nodes[e.node].op: e for e in trace.events if isinstance(e, Pulled)}
    assert pulls["gram"].local is None and dict(pulls["gram"].residuals).keys() == {"x"}
    assert pulls["soft_abs"].local.shape == (2, 2)
    [step] = [s for s in trace.steps if s.kind == "pull" and trace.nodes[s.node].op == "gram"]
    assert step.check.op == "gram" and step.check.jacobian.shape == (4, 4)
    assert "gram pulls back into x" in trace.text()


def test_parameters_are_keyword_only_and_may_be_read_by_rules() -> None:
    @mg.elementwise(tex="y = k x", partials={"x": (lambda k: k, "k")})
    def scale(x, *, k=2.0):
        return k * x

    x = leaf([1.0, 2.0])
    assert mg.grad(mg.sum(scale(x)), [x])[0].tolist() == [2, 2]
    assert mg.grad(mg.sum(scale(x, k=5.0)), [x])[0].tolist() == [5, 5]
    assert scale.card.residuals((True,)) == ()
    for wrong in (lambda: scale(x, z=1), lambda: scale(), lambda: scale(x, 1.0, k=3.0)):
        with pytest.raises(mg.ArgumentError, match="^scale: "):
            wrong()


# --- a wrong one ----------------------------------------------------------------------------------


def test_a_wrong_op_is_blamed_at_its_own_step_and_its_damage_shows_at_the_leaves() -> None:
    x, w = leaf([0.5, 2.0]), leaf([1.0, 3.0], "w")
    trace = mg.record(mg.sum(mg.tanh(wrong_cube(mg.exp(x)) * w)))
    verdicts = {(c.op, c.name): bool(c) for c in trace.checks}
    assert verdicts == {
        ("sum", "x"): True,
        ("tanh", "x"): True,
        ("mul", "a"): True,
        ("mul", "b"): True,
        ("wrong_cube", "x"): False,
        ("exp", "x"): True,
        ("loss", "x"): False,  # downstream of the damage
        ("loss", "w"): True,  # not downstream
    }
    [blamed] = [
        s for s in trace.steps if s.check is not None and s.check.level == "op" and not s.check
    ]
    assert trace.nodes[blamed.node].op == "wrong_cube"
    assert "ratio 1.001" in blamed.check.note
    assert trace.text().count("✗") >= 1


@pytest.mark.parametrize("broadcasts", [False, True])
def test_nothing_is_summed_unless_the_card_says_that_it_broadcasts(broadcasts: bool) -> None:
    @mg.op(tex="y = x + 1", broadcasts=broadcasts, pulls={"x": (lambda g: g, "g")})
    def spread(x):
        return np.broadcast_to(x, (3, 2))

    x = leaf([1.0, 2.0])
    loss = mg.sum(spread(x))
    if broadcasts:
        loss.backward()
        assert x.grad.tolist() == [3, 3]
        return
    for start in (loss.backward, lambda: list(mg.walk(loss)), lambda: mg.record(loss)):
        with pytest.raises(mg.ShapeError) as problem:
            start()
        for word in ("spread, input x", "(3, 2)", "(2,)", "exactly"):
            assert word in str(problem.value)
    assert x.grad is None


@pytest.mark.parametrize("returned", [(3,), (1,), (), (2, 2), (2, 1)])
def test_a_contribution_of_the_wrong_shape_is_one_sentence(returned: tuple[int, ...]) -> None:
    @mg.op(tex="y = x", pulls={"x": (lambda g: np.ones(returned), "g")})
    def misshapen(x):
        return x * 1

    x, other = leaf([1.0, 2.0]), leaf([1.0, 2.0], "other")
    loss = mg.sum(other * 2 + misshapen(x))
    with pytest.raises(mg.ShapeError) as problem:
        loss.backward()
    sentence = str(problem.value)
    assert "misshapen, input x" in sentence and "\n" not in sentence
    assert str(returned) in sentence and "(2,)" in sentence
    assert x.grad is other.grad is None


@pytest.mark.parametrize(
    "shape, returned", [((2,), (3,)), ((2,), (2, 2)), ((), (3,)), ((1,), (3,))]
)
def test_an_elementwise_slope_must_fit_the_result(shape: tuple, returned: tuple) -> None:
    @mg.elementwise(tex="y = x", partials={"x": (lambda x: np.ones(returned), "1")})
    def crooked(x):
        return x * 1

    loss = mg.sum(crooked(leaf(np.ones(shape))))
    for start in (loss.backward, lambda: list(mg.walk(loss)), lambda: mg.record(loss)):
        with pytest.raises(mg.MinigradError, match="^crooked, input x: "):
            start()


def test_an_op_without_a_rule_for_a_tracked_input_fails_before_anything_is_written() -> None:
    @mg.op(tex="y = x[i]", pulls={"x": (lambda g, x_shape: np.zeros(x_shape), "g")})
    def half_known(x, z):
        return x + z

    x, z = leaf([1.0]), leaf([2.0], "z")
    mg.sum(half_known(x, mg.tensor([5.0]))).backward()  # z untracked: no rule is needed
    assert x.grad.tolist() == [0]
    with pytest.raises(mg.RuleError, match="^half_known: input z needs a gradient"):
        mg.sum(half_known(x, z) + x).backward()
    assert (x.grad.tolist(), z.grad) == ([0], None)


def test_a_rule_that_raises_is_named_with_its_op_and_input() -> None:
    @mg.elementwise(tex="y = x", partials={"x": (lambda x: [][1], "1")})
    def fragile(x):
        return x * 1

    x = leaf([1.0])
    with pytest.raises(mg.RuleError, match="^fragile, input x: the rule failed: .*range"):
        mg.sum(fragile(x)).backward()
    assert x.grad is None


# --- one rule for several inputs ------------------------------------------------------------------


def pair_op(calls: list):
    def both(g, a, b):
        calls.append(1)
        return g * b, g * a

    @mg.op(tex="y = a b", broadcasts=True, pulls={("a", "b"): (both, r"(\bar y b, \bar y a)")})
    def pair(a, b):
        return a * b

    return pair


def test_a_rule_for_several_inputs_runs_once_per_visit_and_pulls_once_per_input() -> None:
    calls: list[int] = []
    pair, a, b = pair_op(calls), leaf([2.0, 3.0], "a"), leaf([5.0, 7.0], "b")
    loss = mg.sum(pair(a, b))
    loss.backward()
    assert (a.grad.tolist(), b.grad.tolist(), len(calls)) == ([5, 7], [2, 3], 1)
    told = list(mg.walk(loss))
    assert len(calls) == 2
    assert [e.argnum for e in told if isinstance(e, Pulled)] == [0, 0, 1]
    assert [e.node for e in told if isinstance(e, Accumulated)] == [2, 0, 1]
    assert mg.check_op(pair)


def test_a_rule_for_several_inputs_serves_one_tracked_input_too() -> None:
    pair, a = pair_op([]), leaf([2.0, 3.0], "a")
    mg.sum(pair(a, np.array([5.0, 7.0]))).backward()
    assert a.grad.tolist() == [5, 7]


# --- elementwise operands that broadcast ----------------------------------------------------------


def test_a_users_elementwise_op_broadcasts_and_is_reduced() -> None:
    @mg.elementwise(
        tex="y = a b^2",
        partials={"a": (lambda b: b * b, "b^2"), "b": (lambda a, b: 2 * a * b, "2ab")},
    )
    def times_square(a, b):
        return a * b * b

    a, b = leaf(np.ones((2, 3)), "a"), leaf([[2.0], [3.0]], "b")
    events = list(mg.walk(mg.sum(times_square(a, b))))
    assert [e.axes for e in events if isinstance(e, Reduced)] == [(1,)]
    assert mg.grad(mg.sum(times_square(a, b)), [b])[0].tolist() == [[12], [18]]
    assert mg.check_op(times_square)


# --- declarations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["g", "y", "x_shape"])
def test_reserved_names_are_refused_as_operand_and_as_parameter(word: str) -> None:
    with pytest.raises(mg.CardError, match=f"{word} is reserved"):
        mg.elementwise(tex="", partials={})(eval(f"lambda {word}: 1"))
    with pytest.raises(mg.CardError, match=f"{word} is reserved"):
        mg.elementwise(tex="", partials={})(eval(f"lambda x, *, {word}=1: x"))


@pytest.mark.parametrize(
    "declare, partials, words",
    [
        (mg.elementwise, {"x": (lambda z: z, "")}, "the rule reads z"),
        (mg.elementwise, {"x": (lambda z_shape: 1, "")}, "the rule reads z_shape"),
        (mg.elementwise, {"x": (lambda x=1: x, "")}, "no defaults"),
        (mg.elementwise, {"x": (lambda *x: x, "")}, "plain parameters"),
        (mg.elementwise, {"z": (lambda x: x, "")}, "a rule for z, which is no operand"),
        (mg.elementwise, {("x", "k"): (lambda x: x, "")}, "belongs to one input"),
        (mg.op, {"x": (lambda x: x, "")}, "needs g"),
        (mg.op, {("x", "z"): (lambda g: g, "")}, "a rule for z, which is no operand"),
        (mg.op, {"k": (lambda g: g, "")}, "a rule for k, which is no operand"),
    ],
)
def test_a_wrong_declaration_is_refused_at_once(declare, partials: dict, words: str) -> None:
    key = "partials" if declare is mg.elementwise else "pulls"
    with pytest.raises(mg.CardError, match=words):

        @declare(tex="", **{key: partials})
        def broken(x, *, k=1):
            return x


def test_an_op_without_an_operand_is_refused() -> None:
    with pytest.raises(mg.CardError, match="at least one array operand"):
        mg.op(tex="", pulls={})(lambda *, k=1: k)
