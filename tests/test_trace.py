"""A trace is the whole run as data: steps, source lines and names, and a file that comes back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.events import Pulled, Reached, Summary


def leaf(values: object, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name)


def recorded(**options) -> mg.Trace:
    x, b = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([0.5, -0.5], "b")
    w = mg.tensor([[1.0], [-1.0]], name="w")
    return mg.record(mg.sum(mg.tanh(x * b * w / 3)), **options)


# --- record ---------------------------------------------------------------------------------------


def test_a_step_is_an_op_forward_and_a_seed_pull_or_leaf_backward() -> None:
    trace = recorded()
    kinds = ["forward"] * 5 + ["seed"] + ["pull"] * 6 + ["reach"] * 2
    assert [s.kind for s in trace.steps] == kinds
    assert [s.phase for s in trace.steps] == ["forward"] * 5 + ["backward"] * 9
    assert [e for s in trace.steps for e in s.events] == list(trace.events)


def test_every_pull_and_every_leaf_has_its_check() -> None:
    trace = recorded()
    for step in trace.steps:
        if step.kind in ("pull", "reach"):
            assert step.check.verdict == "agrees"
            assert step.check.level == ("op" if step.kind == "pull" else "graph")
        else:
            assert step.check is None
    assert len(trace.checks) == 8
    assert repr(trace).endswith("14 steps, 8 of 8 checks agree>")


def test_checks_can_be_left_out() -> None:
    trace = recorded(checks=False)
    assert trace.checks == () and all(s.check is None for s in trace.steps)
    assert [type(e) for e in trace.events] == [type(e) for e in recorded().events]


def test_a_result_is_called_what_it_was_assigned_to_and_knows_its_line() -> None:
    a = mg.tensor([2.0], requires_grad=True)
    b = mg.tensor([3.0], requires_grad=True, name="given")
    y = a * b
    z = mg.exp(
        y,
    )
    trace = mg.record(mg.sum(z) + 1)
    assert [n.name for n in trace.nodes] == ["a", "given", "y", "z", "v4", "v5"]
    file, line = trace.nodes[2].line
    assert file == Path(__file__).name
    assert dict(trace.source.lines)[line].strip() == "y = a * b"
    assert trace.source.title == file


def test_a_run_without_source_is_recorded_too() -> None:
    space = {"mg": mg}
    exec("x = mg.tensor([1.0], requires_grad=True)\nloss = mg.sum(x * x)", space)
    trace = mg.record(space["loss"])
    assert trace.source is None and trace.nodes[0].name == "x" and all(trace.checks)


# --- save and load --------------------------------------------------------------------------------


def reloaded(trace: mg.Trace, path: Path, **options) -> mg.Trace:
    trace.save(path, **options)
    return mg.load_trace(path)


def test_a_trace_comes_back_with_the_same_text(tmp_path: Path) -> None:
    trace = recorded()
    again = reloaded(trace, tmp_path / "run.json")
    assert again.text() == trace.text()
    assert json.loads((tmp_path / "run.json").read_text()).keys() == {
        *("format", "version", "nodes", "edges", "events", "checks", "source")
    }
    assert again.text() == reloaded(again, tmp_path / "again.json").text()


def test_another_trace_would_have_another_text(tmp_path: Path) -> None:
    trace = recorded()
    trace.save(tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text()
    (tmp_path / "run.json").write_text(text.replace('"data": [0.5, -0.5]', '"data": [0.5, 0.5]'))
    assert mg.load_trace(tmp_path / "run.json").text() != trace.text()


def test_special_numbers_survive_as_strings(tmp_path: Path) -> None:
    x = leaf([0.0, -1.0, np.inf, 4.0])
    trace = mg.record(mg.sum(x.sqrt() * -1.0))
    again = reloaded(trace, tmp_path / "run.json")
    [reached] = [e for e in again.events if isinstance(e, Reached)]
    np.testing.assert_array_equal(reached.gradient, [-np.inf, np.nan, -0.0, -0.25])
    assert np.signbit(reached.gradient[2])
    text = (tmp_path / "run.json").read_text()
    assert '"-Infinity"' in text and '"NaN"' in text
    json.loads(text, parse_constant=lambda name: pytest.fail(f"a bare {name} is no JSON"))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes_and_every_bit_survive(dtype: str, tmp_path: Path) -> None:
    x = mg.tensor([0.1, 1 / 3, 1e-7], requires_grad=True, dtype=dtype)
    trace = mg.record(mg.sum(x * x), checks=False)
    again = reloaded(trace, tmp_path / "run.json")
    assert again.nodes[0].value.dtype == dtype
    assert again.nodes[0].value.tobytes() == trace.nodes[0].value.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_any_shape_survives(shape: tuple[int, ...], tmp_path: Path) -> None:
    again = reloaded(mg.record(mg.sum(leaf(np.ones(shape)) * 2)), tmp_path / "run.json")
    assert again.nodes[0].value.shape == shape


@pytest.mark.parametrize("full", [False, True])
def test_a_large_array_is_a_corner_and_four_numbers_unless_full(full: bool, tmp_path: Path):
    values = np.arange(5000.0).reshape(2, 50, 50)
    again = reloaded(mg.record(mg.sum(leaf(values))), tmp_path / "run.json", full=full)
    value = again.nodes[0].value
    if full:
        np.testing.assert_array_equal(value, values)
        return
    assert isinstance(value, Summary) and value.shape == values.shape
    np.testing.assert_array_equal(value.corner, values[0, :12, :12])
    assert (value.min, value.max, value.mean) == (0, 4999, 2499.5)
    assert value.norm == pytest.approx(np.sqrt((values**2).sum()))
    assert "x is done" in again.text()
    assert "x is done" in reloaded(again, tmp_path / "again.json").text()


def test_4096_cells_are_still_written_whole(tmp_path: Path) -> None:
    again = reloaded(mg.record(mg.sum(leaf(np.ones(4096))), checks=False), tmp_path / "a.json")
    assert isinstance(again.nodes[0].value, np.ndarray)


@pytest.mark.parametrize("name", ["<b>w</b>", 'loss & "x"', "a\\b:c", "日本", "x\ny", "<lambda>"])
def test_any_name_survives(name: str, tmp_path: Path) -> None:
    again = reloaded(mg.record(mg.sum(leaf([1.0], name))), tmp_path / "run.json")
    assert again.nodes[0].name == name


def test_an_unusual_parameter_does_not_keep_a_trace_from_being_saved(tmp_path: Path) -> None:
    @mg.elementwise(tex="y = x", partials={"x": (lambda: 1.0, "1")})
    def odd(x, *, extra=None):
        return x * 1

    for extra in (np.nan, np.inf, np.arange(3), object(), {"a": 1}, np.float32(1), (1, (2,))):
        again = reloaded(mg.record(mg.sum(odd(leaf([1.0]), extra=extra))), tmp_path / "run.json")
        assert "odd" in again.text()


def test_a_number_operand_that_is_not_finite_can_be_saved(tmp_path: Path) -> None:
    trace = mg.record(mg.sum(leaf([1.0, 2.0]) * float("inf")))
    assert reloaded(trace, tmp_path / "run.json").text() == trace.text()


def test_a_failing_write_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "run.json"
    recorded().save(path)
    before = path.read_bytes()

    def full_disk(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(mg.TraceError, match="no space left"):
        recorded(checks=False).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_nothing_in_a_loaded_trace_can_be_called() -> None:
    trace = recorded()
    for item in (*trace.nodes, *trace.events, *trace.checks):
        assert not any(callable(getattr(item, name)) for name in item.__dataclass_fields__)
    assert any(isinstance(e, Pulled) for e in trace.events)
