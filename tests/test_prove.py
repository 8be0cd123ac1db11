"""The proof of a card: it holds for ours, and each kind of broken promise makes it fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import minigrad as mg
from minigrad.__main__ import main
from minigrad.prove import proof_table, prove

TANH = mg.registry["tanh"]


@pytest.mark.parametrize(
    "name",
    ["tanh", "relu", "silu", "gelu", "gelu_erf", "mul", "where", "gather", "einsum", "conv2d"],
)
def test_the_proof_of_our_ops_holds(name: str) -> None:
    proof = prove(mg.registry[name])
    assert proof, proof.faults
    assert proof.checks >= 4 and proof.forward < 1e-14
    assert (proof.kernel is not None) == mg.registry[name].elementwise


def faults(card) -> str:
    proof = prove(card)
    assert not proof
    return "; ".join(proof.faults)


def test_a_wrong_rule_is_a_fault() -> None:
    rule = replace(TANH.rules["x"], fn=lambda y: 1 - y)
    assert "elements differ" in faults(replace(TANH, rules={"x": rule}))


def test_a_wrong_forward_is_a_fault() -> None:
    assert "reference" in faults(replace(TANH, reference=np.sinh))


def test_a_missing_reference_is_a_fault() -> None:
    assert "no reference" in faults(replace(TANH, reference=None))


def test_a_rule_that_is_not_compiled_is_a_fault() -> None:
    def slowly(y):
        result = 1 - y * y
        return result

    rule = replace(TANH.rules["x"], fn=slowly)
    assert "more than one expression" in faults(replace(TANH, rules={"x": rule}))


def test_a_compiled_rule_that_differs_from_numpy_is_a_fault(monkeypatch) -> None:
    original = mg.kernels.fused

    def off(*args):
        kernel = original(*args)

        def add(into):
            kernel(into)
            into *= 1 + 1e-14

        return add

    monkeypatch.setattr(mg.kernels, "fused", off)
    assert "compiled rule and NumPy differ by" in faults(TANH)


def test_a_residual_that_is_read_but_not_named_is_a_fault() -> None:
    class Forgetful(mg.card.Op):
        def residuals(self, tracked):
            return ()

    told = {n: getattr(TANH, n) for n in TANH.__dataclass_fields__}
    assert "a walk read ['y'], but the card names []" in faults(Forgetful(**told))


@pytest.mark.parametrize("slope, fine", [(0, True), (1, False), (0.5, False)])
def test_a_convention_that_does_not_hold_is_a_fault(slope: float, fine: bool) -> None:
    kink = mg.Kink("at x = 0 the slope is what it is", {"x": 0.0}, {"x": slope})
    card = replace(mg.registry["relu"], kinks=(kink,))
    assert bool(prove(card)) is fine
    if not fine:
        assert "at x = 0 the slope is what it is: x got 0.0" in faults(card)


def test_the_table_has_a_line_per_op_and_one_per_fault() -> None:
    lines = proof_table([prove(TANH), prove(replace(TANH, reference=np.sinh))]).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("✓  tanh") and lines[2].startswith("✗  tanh")
    assert lines[3].startswith("   tanh: forward:")


def test_the_whole_proof_on_the_command_line(capsys) -> None:
    assert main(["check", "--all", "tanh", "cat"]) == 0
    said = capsys.readouterr().out
    assert "max |y − ref|" in said and "✓  cat" in said and "✓ every check agrees" in said


def test_a_strangers_wrong_op_fails_on_the_command_line(tmp_path, capsys) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import minigrad as mg\n"
        "@mg.elementwise(tex='y = x^3', partials={'x': (lambda x: 2 * x * x, '2x^2')})\n"
        "def cube(x):\n    return x ** 3\n"
    )
    assert main(["check", "--all", str(file)]) == 1
    assert "✗  cube" in capsys.readouterr().out
