"""Hard cases of ops that somebody tried to break: each was wrong once."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg

T = mg.tensor


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int8", "int64"])
@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu", "gelu_erf", "exp", "sinh", "tanh"])
def test_real_maths_on_whole_numbers_is_done_in_float64(name: str, dtype: str) -> None:
    y = getattr(mg, name)(T(np.array([3, 12], dtype)))
    np.testing.assert_array_equal(y.data, getattr(mg, name)(T([3.0, 12.0])).data, strict=True)


def test_what_stays_whole_stays_whole() -> None:
    x = T(np.array([3, -2], np.int8))
    for y in (mg.abs(x), x * x, x + x, mg.maximum(x, x), mg.relu(x)):
        assert y.dtype == np.int8


@pytest.mark.parametrize("dtype, large", [("float16", 4e4), ("float32", 2e38), ("float64", 1e308)])
def test_gelu_erf_of_a_large_number_is_that_number(dtype: str, large: float) -> None:
    x = T(np.array([large], dtype))
    assert mg.gelu_erf(x).data == x.data


def test_a_window_of_nothing_but_minus_infinity_gives_the_padding_no_gradient() -> None:
    x = T(np.full((1, 1, 2, 2), -np.inf), requires_grad=True)
    mg.max_pool2d(x, 2, 2, 1).backward(np.ones((1, 1, 2, 2)))
    assert x.grad.tolist() == [[[[1, 1], [1, 1]]]]


def test_plain_numbers_on_both_sides_are_computed_as_arrays() -> None:
    assert mg.div(1, 0).item() == np.inf
    assert mg.pow(10.0, 400).item() == np.inf
    assert np.isnan(mg.pow(-8, 1 / 3).item())


def test_a_scalar_has_no_rows() -> None:
    with pytest.raises(mg.ShapeError, match="a scalar tensor has no length"):
        list(T(3.0))


@pytest.mark.parametrize("shape", [(2, 0), (0, 3)])
def test_normalising_nothing_is_quiet(shape: tuple[int, ...]) -> None:
    assert mg.layer_norm(T(np.ones(shape))).shape == mg.rms_norm(T(np.ones(shape))).shape == shape


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda x: mg.pad(T(3.0), (1, 2)), ValueError, "pad: pad"),
        (lambda x: mg.pad(T(np.array([1], np.uint8)), (1, 1), 0.5), TypeError, "pad: value 0.5"),
        (lambda x: mg.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 0, 2))), ValueError, "conv2d: "),
        (lambda x: x[2**70], IndexError, "getitem: index 1180591620717411303424 is out of range"),
        (lambda x: x < [1, [2]], TypeError, "lt: "),
        (lambda x: x == ["a"], TypeError, "eq: "),
        (lambda x: T([300], dtype=np.uint8), TypeError, "tensor: "),
        (lambda x: mg.reshape(x, T([[1.0], [2.0]])), ValueError, "reshape: "),
    ],
)
def test_what_cannot_be_is_one_sentence(call, kind: type, words: str) -> None:
    with pytest.raises(kind, match=f"^{words}") as problem:
        call(T([1.0, 2.0]))
    assert isinstance(problem.value, mg.MinigradError) and "\n" not in str(problem.value)


@pytest.mark.parametrize(
    "facts, words",
    [
        ({"kinks": 3}, "a kink is told in words"),
        ({"kinks": mg.Kink("w", {"zz": 1})}, "a kink names zz"),
        ({"call": 3}, "call= must name x, k"),
        ({"call": ("x", 3)}, "call= must name x, k"),
        ({"converts": {"zz": int}}, "converts names zz"),
        ({"pulls": {"x": (3, "1")}}, "a rule is a function, not 3"),
        ({"pulls": {"x": (max, "1")}}, "the parameters of .* cannot be read"),
    ],
)
def test_a_card_that_contradicts_itself_is_one_sentence(facts: dict, words: str) -> None:
    with pytest.raises(mg.CardError, match=f"^odd.*{words}"):

        @mg.op(**{"tex": "y = x", "pulls": {"x": (lambda g: g, "g")}, **facts})
        def odd(x, *, k=1):
            return x


def test_kinks_told_in_several_words_are_all_kept() -> None:
    @mg.elementwise(tex="y", partials={}, kinks=["at 0 it is 0", "at 1 it is 1"])
    def odd(x):
        return x

    assert [kink.words for kink in odd.card.kinks] == ["at 0 it is 0", "at 1 it is 1"]


def test_a_parameter_is_kept_as_it_was() -> None:
    @mg.op(tex="y = q x", pulls={"x": (lambda g, q: g * q["a"], "q g")})
    def scaled(x, *, q):
        return x * q["a"]

    x, q = T([1.0], requires_grad=True), {"a": 2.0}
    y = scaled(x, q=q)
    q["a"] = 100.0
    assert mg.grad(y, [x])[0].tolist() == [2]
