"""The maths that kernels bring along: as exact as NumPy's, at every edge, on any threads."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import kernels

EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    709.78,
    709.79,
    -708.5,
    -745.1,
    -745.2,
    1e-300,
    5e-324,
    1e300,
    -1e300,
]
ODD = [np.inf, -np.inf, np.nan]


@pytest.fixture(autouse=True)
def every_array_is_large(monkeypatch) -> None:
    monkeypatch.setattr(kernels, "LARGE", 1)


def in_one_pass(name: str, *operands: np.ndarray) -> np.ndarray:
    """The forward of an op, by its compiled loop."""
    card = mg.registry[name]
    y = kernels.forward(card.forward, card.inputs, operands)
    assert y is not None, f"{name} has no compiled forward"
    return y


def test_exp_is_at_most_one_unit_in_the_last_place_off() -> None:
    x = np.concatenate([np.random.default_rng(0).uniform(-708, 709.7, 200_000), EDGES])
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.longdouble)).astype(np.float64)
        apart = np.abs(in_one_pass("exp", x) - exact) / np.spacing(exact)
    assert np.nanmax(np.where(np.isinf(exact), 0, apart)) <= 1


def test_exp_at_the_edges_is_what_numpy_says() -> None:
    x = np.array(EDGES + ODD)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(in_one_pass("exp", x), np.exp(x), rtol=3e-16)


LOOPS = ["exp", "sigmoid", "silu", "gelu", "gelu_erf", "erf"]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_forward_in_one_pass_is_the_forward(name: str, dtype: str) -> None:
    rng, limits = np.random.default_rng(1), np.finfo(dtype)
    with np.errstate(all="ignore"):
        x = np.concatenate([rng.normal(0, 3, 5000), [1000, -1000, 40, -40], EDGES, ODD])
        x = x.astype(dtype)
        expected = np.asarray(mg.registry[name].forward(x.astype(np.float64))).astype(dtype)
    found, tight = in_one_pass(name, x), 8 * float(limits.eps)
    tiny = 10 * float(limits.tiny)
    np.testing.assert_allclose(found, expected, rtol=tight, atol=tiny, strict=True)


def test_one_step_alone_gets_no_loop() -> None:
    for name in ("tanh", "add", "sqr", "neg", "sin"):
        card = mg.registry[name]
        assert kernels.forward(card.forward, card.inputs, [np.ones(9)] * len(card.inputs)) is None


def test_what_a_loop_cannot_take_runs_in_numpy() -> None:
    card = mg.registry["gelu"]
    grid = np.ones((4, 6))
    for x in (grid[:, ::2], grid.T, np.ones(4, np.float16), np.ones(4, int)):
        assert kernels.forward(card.forward, card.inputs, [x]) is None
        assert mg.gelu(x).shape == x.shape


def test_the_bits_do_not_depend_on_the_number_of_threads(monkeypatch) -> None:
    x = np.random.default_rng(2).normal(0, 2, 5 * kernels.CHUNK + 7)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(kernels, "THREADS", threads)
        leaf = mg.tensor(x, requires_grad=True)
        y = mg.gelu(leaf)
        found.append((y.data.copy(), *mg.grad(y, [leaf], x[::-1])))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_call_that_is_written_twice_is_made_once() -> None:
    from minigrad.kernel_source import kernel_source

    rule = mg.registry["silu"].rules["x"]
    text = kernel_source(rule.fn, rule.reads, rule.takes_g)
    body = text[text.index("def flat") : text.index("def accumulate")]
    assert body.count("logistic(x)") == 1


def test_the_switch_turns_the_loops_off(monkeypatch) -> None:
    monkeypatch.setenv("MINIGRAD_JIT", "0")
    card = mg.registry["gelu"]
    assert kernels.forward(card.forward, card.inputs, [np.ones(9)]) is None
