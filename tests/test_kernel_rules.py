"""Any rule runs on large arrays: compiled where it can be, in NumPy otherwise, and it says why."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import kernels

SHAPE = (4, 5, 6)
ROOT = Path(mg.__file__).parent.parent


@pytest.fixture(autouse=True)
def every_array_is_large(monkeypatch) -> None:
    monkeypatch.setattr(kernels, "LARGE", 1)


# --- values that are not ordinary -----------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_infinity_and_nan_are_reduced_as_in_numpy(bad: float) -> None:
    values = np.ones(SHAPE)
    values[1, 2, 3] = bad
    a = mg.tensor(values, requires_grad=True, name="a")
    b = mg.tensor(np.ones(6), requires_grad=True, name="b")
    expected = values.sum(axis=(0, 1))
    np.testing.assert_array_equal(mg.grad(mg.sum(a * b), [b])[0], expected)


def test_a_dead_cell_passes_zero_of_an_infinite_upstream_in_a_kernel_too() -> None:
    x = mg.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    assert mg.grad(x.relu(), [x], [np.inf, np.nan, np.inf])[0].tolist() == [0, 0, np.inf]


def test_a_million_float32_rows_are_reduced_without_loss() -> None:
    b = mg.tensor([[1.0]], requires_grad=True, dtype="float32")
    rows = np.full((1_000_000, 1), 0.1, np.float32)
    assert mg.grad(mg.sum(b * rows), [b])[0].item() == pytest.approx(100_000, rel=1e-6)


# --- rules of users -------------------------------------------------------------------------------


def gradient_of(op, *more) -> np.ndarray:
    x = mg.tensor(np.full(SHAPE, 3.0), requires_grad=True)
    return mg.grad(mg.sum(op(x, *more)), [x])[0]


@pytest.mark.parametrize("space", [{}, {"__name__": "somewhere"}], ids=["bare", "named"])
def test_a_rule_without_source_runs_in_numpy_and_says_why(space: dict) -> None:
    exec("rule = lambda x: 2 * x\ndef square(x): return x * x", space)
    square = mg.elementwise(tex="", partials={"x": (space["rule"], "")})(space["square"])
    np.testing.assert_array_equal(gradient_of(square), np.full(SHAPE, 6.0))
    rule = square.card.rules["x"]
    assert "source" in kernels.why_not(rule.fn, rule.reads, rule.takes_g)
    ours = mg.registry["sqr"].rules["x"]
    assert kernels.why_not(ours.fn, ours.reads, ours.takes_g) is None


def test_a_rule_that_does_not_compile_runs_in_numpy_and_says_why() -> None:
    @mg.elementwise(tex="", partials={"x": (lambda x: np.clip(x, 0.0, 2.0), "")})
    def clipped(x):
        return x * x

    np.testing.assert_array_equal(gradient_of(clipped), np.full(SHAPE, 2.0))
    rule = clipped.card.rules["x"]
    assert kernels.why_not(rule.fn, rule.reads, rule.takes_g)


def test_a_rule_that_reads_a_shape_runs_in_numpy() -> None:
    @mg.elementwise(tex="", partials={"x": (lambda g, x_shape: g * x_shape[0], "")})
    def by_rows(x):
        return x * x.shape[0]

    np.testing.assert_array_equal(gradient_of(by_rows), np.full(SHAPE, 4.0))


def test_rules_of_one_text_with_different_constants_are_different_kernels() -> None:
    def scaled(factor: float):
        @mg.elementwise(tex="", partials={"x": (lambda x: factor * x, "")})
        def op(x):
            return factor * x * x / 2

        return op

    assert [gradient_of(scaled(f)).max() for f in (2.0, 5.0, np.inf)] == [6, 15, np.inf]


@pytest.mark.parametrize("k", [2.0, 5])
def test_a_parameter_is_read_by_the_kernel(k: float) -> None:
    @mg.elementwise(tex="", partials={"x": (lambda x, rate: rate * x, "")})
    def scaled(x, *, rate=1.0):
        return rate * x * x / 2

    x = mg.tensor(np.full(SHAPE, 3.0), requires_grad=True)
    assert mg.grad(mg.sum(scaled(x, rate=k)), [x])[0].max() == 3 * k


@pytest.mark.parametrize("broadcast", [False, True])
def test_any_operand_name_works_even_one_the_kernel_might_use(broadcast: bool) -> None:
    @mg.elementwise(
        tex="", partials={"i": (lambda k, out: k * out, ""), "out": (lambda i, k: k * i, "")}
    )
    def product(i, out, *, k=2.0):
        return k * i * out

    i = mg.tensor(np.full(SHAPE, 3.0), requires_grad=True)
    out = mg.tensor(np.full(SHAPE[-1:] if broadcast else SHAPE, 5.0), requires_grad=True)
    by_i, by_out = mg.grad(mg.sum(product(i, out)), [i, out])
    assert (by_i.max(), by_out.max()) == (10, 6 * (20 if broadcast else 1))


# --- the generated file ---------------------------------------------------------------------------


def test_a_kernel_is_written_once_under_the_name_of_its_text(tmp_path: Path, monkeypatch) -> None:
    def forget() -> None:
        monkeypatch.setattr(kernels, "_modules", {})
        monkeypatch.setattr(kernels, "_ready", {})

    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path))
    forget()
    gradient_of(mg.tanh)
    [file] = tmp_path.glob("kernel_*.py")
    before = file.stat().st_mtime_ns
    forget()
    gradient_of(mg.tanh)
    assert [f.stat().st_mtime_ns for f in tmp_path.glob("kernel_*.py")] == [before]
    gradient_of(mg.sqr)
    assert len(list(tmp_path.glob("kernel_*.py"))) == 2
    assert not list(tmp_path.glob("*.py.*"))


def test_a_second_process_uses_the_kernels_of_the_first(tmp_path: Path) -> None:
    program = (
        "import numpy as np, minigrad as mg\n"
        "from minigrad import kernels\n"
        "kernels.LARGE = 1\n"
        "x, b = (mg.tensor(np.ones(n), requires_grad=True) for n in (6, 1))\n"
        "print(*mg.grad(mg.sum(mg.exp(x) * b), [x, b]))"
    )
    environment = {**os.environ, "MINIGRAD_CACHE": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        for _ in range(2)
    ]
    assert [r.returncode for r in runs] == [0, 0], runs[-1].stderr[-500:]
    assert runs[0].stdout == runs[1].stdout != ""


def test_a_folder_that_cannot_be_written_to_does_not_matter(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path / "file" / "folder"))
    monkeypatch.setattr(kernels, "_modules", {})
    np.testing.assert_array_equal(gradient_of(mg.sqr), np.full(SHAPE, 6.0))
