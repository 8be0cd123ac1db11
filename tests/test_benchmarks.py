"""The benchmarks measure what they say: models, gradients, ratios, table. No time is asserted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.measure import Line, Ratio, clock, duration, in_turn, ratio_of, table
from benchmarks.systems import NUMPY, Entrant, Minigrad, Silent
from benchmarks.workloads import ELSEWHERE, WORKLOADS, Workload, refuse_difference

Array = np.ndarray


def slope_along(workload: Workload, way: Sequence[Array]) -> float:
    """The slope of a model in NumPy, by a central difference along `way`."""
    leaves, constants = workload.arrays()

    def moved(by: float) -> float:
        there = [leaf + by * d for leaf, d in zip(leaves, way, strict=True)]
        return float(workload.model(NUMPY, *there, *constants))

    h = 1e-5
    return (moved(h) - moved(-h)) / (2 * h)


def in_small(workload: Workload) -> Workload:
    """The same model with no side longer than 6."""
    leaves, constants = (
        tuple(tuple(min(n, 6) for n in shape) for shape in shapes)
        for shapes in (workload.leaves, workload.constants)
    )
    fields = vars(workload) | {"leaves": leaves, "constants": constants}
    return Workload(**fields)


# --- the workloads --------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.key)
def test_gradients_agree_with_finite_differences(workload: Workload):
    workload = in_small(workload)
    (found,) = workload.entrants([Minigrad()]).values()
    gradients = found.gradients()
    rng = np.random.default_rng(1)
    way = [rng.normal(size=g.shape) for g in gradients]
    along = sum(np.sum(g * d) for g, d in zip(gradients, way, strict=True))
    assert along == pytest.approx(slope_along(workload, way), rel=1e-6)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.key)
def test_what_is_timed_runs_again_and_again(workload: Workload):
    (found,) = in_small(workload).entrants([Minigrad()]).values()
    before = [g.copy() for g in found.gradients()]
    found.run()
    found.run()
    for a, b in zip(before, found.gradients(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_told_walk_and_the_silent_one_come_to_the_same():
    events = next(w for w in WORKLOADS if w.timed == "backward")
    assert set(events.entrants([Minigrad(), Silent()])) == {"minigrad", "plain backward"}


def entrant(*gradients: Any) -> Entrant:
    return Entrant(lambda: None, lambda: gradients)


def test_gradients_that_differ_are_refused():
    one = np.array([1.0, 1e-3])
    refuse_difference("fine", {"a": entrant(one), "b": entrant(one * (1 + 1e-12))})
    for other in (one + [0, 2e-9], one[:1], one * np.nan):
        with pytest.raises(AssertionError, match="by a and b|of a and b"):
            refuse_difference("wrong", {"a": entrant(one), "b": entrant(other)})


# --- ratios and the table -------------------------------------------------------------------------


def test_a_ratio_is_taken_pair_by_pair():
    ratio = ratio_of([(1, 2), (10, 20), (3, 1), (0.5, 1)])  # an interruption hits a whole pair
    assert (ratio.median, ratio.ours, ratio.peer) == (0.5, 2, 1.5)
    assert ratio.low <= 0.5 < ratio.high


def test_runs_are_taken_in_turn():
    order: list[str] = []

    def run(name: str) -> Callable[[], float]:
        return lambda: order.append(name) or 1.0

    assert in_turn(run("a"), run("b"), 0).median == 1
    assert order == ["a", "b"] * (len(order) // 2)


def test_a_clock_answers_the_seconds_of_one_run():
    calls: list[int] = []
    seconds = clock(lambda: calls.append(0))
    assert 0 <= seconds() < 1 and len(calls) > 3


def line(ratio: Ratio | None, **fields: Any) -> Line:
    return Line("rows", "B", 0.5, {} if ratio is None else {"B": ratio}, **fields)


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ((0.4, 0.35, 0.45), "met"),
        ((0.5, 0.4, 0.6), "met, close"),
        ((0.55, 0.45, 0.6), "not met, close"),
        ((0.6, 0.55, 0.7), "not met"),
    ],
)
def test_a_target_is_met_or_not(numbers: tuple[float, float, float], verdict: str):
    assert line(Ratio(*numbers, 1, 1)).verdict == verdict


def test_a_target_without_its_peer_is_unknown_and_one_of_elsewhere_says_so():
    assert line(None).verdict == "unknown without B"
    assert {row.verdict for row in ELSEWHERE} == {"measured elsewhere"}


def test_the_table():
    rows = [
        Line("small", "B", 0.5, {"B": Ratio(0.4, 0.35, 0.456, 2.5e-4, 6e-4)}),
        Line("events", "plain", 6, {"plain": Ratio(12.4, 7, 20, 1.5, 0.2)}),
        Line("lesson", "16 ms", 0, elsewhere="measured elsewhere"),
    ]
    assert table(rows, ["B", "C"]) == (
        "| workload | ours    | B                | C | other        | target      | met"
        "                |\n"
        "| -------- | ------- | ---------------- | - | ------------ | ----------- | ---"
        "--------------- |\n"
        "| small    | 250. µs | 0.40 (0.35–0.46) | — | —            | ≤ 0.5 × B   | met"
        "                |\n"
        "| events   | 1.50 s  | —                | — | 12 (7.00–20) | ≤ 6 × plain | not"
        " met            |\n"
        "| lesson   | —       | —                | — | —            | 16 ms       | mea"
        "sured elsewhere |"
    )


def test_durations():
    assert [duration(s) for s in (2, 0.0125, 3e-6)] == ["2.00 s", "12.5 ms", "3.00 µs"]


def test_the_picture_of_growth_follows_the_theme():
    from benchmarks.growth import DARK, themed

    lines = "".join(f'<path style="stroke: {colour}"/>' for colour in DARK)
    text = themed(f'<svg xmlns="http://www.w3.org/2000/svg">{lines}</svg>')
    style, *paths = ElementTree.fromstring(text)
    light, dark = str(style.text).split("@media (prefers-color-scheme: dark)")
    for path, (colour, other) in zip(paths, DARK.items(), strict=True):
        name, fallback = path.attrib["style"].removeprefix("stroke: var(").rstrip(")").split(", ")
        assert fallback == colour
        assert f"{name}: {colour}" in light and f"{name}: {other}" in dark


def test_memory_is_the_most_that_one_run_holds():
    from benchmarks.growth import peak

    bytes_held = peak(lambda: [np.ones(1000) for _ in range(5)])
    assert 40_000 <= bytes_held < 50_000


# --- the command ----------------------------------------------------------------------------------


def test_the_profile_of_the_small_mlp(monkeypatch: pytest.MonkeyPatch):
    from benchmarks import __main__ as command

    monkeypatch.setattr(command, "PROFILED", 0.01)
    head, _, columns, *rows = command.profile("small").splitlines()
    assert head.startswith("small: one step takes") and "own µs" in columns
    assert any("_apply" in row for row in rows)


def test_missing_peers_are_named(monkeypatch: pytest.MonkeyPatch):
    from benchmarks import __main__ as command

    monkeypatch.setattr(command, "lines", lambda peers: [])
    monkeypatch.setattr(command, "noise", lambda: "1")
    text = command.report([SimpleNamespace(name="PyTorch", package="numpy")])
    for name in ("JAX (jit)", "autograd", "mygrad", "micrograd"):
        assert f"{name} is not installed, so it is left out" in text
    assert "PyTorch is not installed" not in text


def test_an_unknown_workload_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from benchmarks import __main__ as command

    monkeypatch.setattr(command.measure, "same_threads", lambda: None)
    monkeypatch.setattr("sys.argv", ["benchmarks", "--profile", "nothing"])
    with pytest.raises(SystemExit):
        command.main()
    assert "there is no nothing; there are small" in capsys.readouterr().err
