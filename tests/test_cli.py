"""The command line prints the tables, fails when a check fails, and complains in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import minigrad as mg
from minigrad import __main__ as cli

GOOD = """
import numpy as np, minigrad as mg
@mg.elementwise(tex="y = \\\\sin x", partials={"x": (lambda x: np.cos(x), "\\\\cos x")})
def sine(x): return np.sin(x)
x = mg.tensor([0.5, 1.0], requires_grad=True)
loss = sine(x).sum()
"""


def test_check_prints_the_reference_table_and_every_op(capsys) -> None:
    assert cli.main(["check"]) == 0
    said = capsys.readouterr().out
    for words in (
        "mul broadcast [1,1,3]",
        "matmul batch-broadcast",
        "[0.7  0.1  1.65]",
        *mg.registry,
    ):
        assert words in said
    assert said.rstrip().endswith("✓ every check agrees")


def test_check_fails_when_the_reference_is_missed(monkeypatch, capsys) -> None:
    monkeypatch.setattr(cli, "worst_error", lambda case, report: 1e-3)
    assert cli.main(["check"]) == 1
    assert "a check differs" in capsys.readouterr().out


def test_check_a_file_of_ops(tmp_path: Path, capsys) -> None:
    file = tmp_path / "ops.py"
    file.write_text(GOOD)
    assert cli.main(["check", str(file)]) == 0
    file.write_text(GOOD.replace("lambda x: np.cos(x)", "lambda x: 2 * np.cos(x)"))
    assert cli.main(["check", str(file)]) == 1
    assert "ratio 2" in capsys.readouterr().out


def test_ops_lists_every_card(capsys) -> None:
    assert cli.main(["ops"]) == 0
    said = capsys.readouterr().out
    assert "slope by x: 1 − y^2   (saves y)" in said
    assert "kinks: at x = 0 the slope is 0" in said
    assert all(f"{name}   " in said for name in mg.registry)


def test_trace_a_file_as_text_html_and_json(tmp_path: Path, capsys) -> None:
    file = tmp_path / "run.py"
    file.write_text(GOOD)
    assert cli.main(["trace", str(file)]) == 0
    assert "sine pulls back into x" in capsys.readouterr().out
    page, data = tmp_path / "run.html", tmp_path / "run.json"
    assert cli.main(["trace", str(file), "--html", str(page), "--json", str(data)]) == 0
    assert "<!doctype html>" in page.read_text(encoding="utf-8")
    assert cli.main(["trace", str(data)]) == 0
    assert "sine pulls back into x" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "nope"], "there is no op called 'nope'"),
        (["trace", "nowhere.py"], "there is no file nowhere.py"),
        (["trace", "nowhere.json"], "nowhere.json cannot be read"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(arguments, sentence, capsys) -> None:
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_a_file_without_a_loss_is_one_sentence(tmp_path: Path, capsys) -> None:
    file = tmp_path / "empty.py"
    file.write_text("x = 1\n")
    assert cli.main(["trace", str(file)]) == 2
    assert "no scalar result" in capsys.readouterr().err
