"""A trace file is read without trusting it: anything unsound is a TraceError in one sentence."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import minigrad as mg

Json = dict


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Json:
    """sum(x * b) as the JSON of a good file: places x 0, b 1, x·b 2, sum 3."""
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True, name="x")
    b = mg.tensor([0.5, -0.5], requires_grad=True, name="b")
    path = tmp_path_factory.mktemp("traces") / "good.json"
    mg.record(mg.sum(x * b)).save(path)
    return json.loads(path.read_text())


def refused(path: Path, content: bytes | str) -> str:
    """The sentence with which a file of this content is refused."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(mg.TraceError) as problem:
        mg.load_trace(path)
    sentence = str(problem.value)
    assert sentence.startswith(path.name) and "\n" not in sentence and len(sentence) < 300
    return sentence


def event(data: Json, kind: str) -> Json:
    return next(e for e in data["events"] if e["event"] == kind)


class Change:
    """One field of the JSON given another value, or left out: Change("nodes", 0, "id", value=9).

    A first key that is no field of the file means the first event of that name.
    """

    def __init__(self, *keys: object, **new: object) -> None:
        self.keys, self.new = keys, new

    def __call__(self, data: Json) -> None:
        place = data
        for key in self.keys[:-1]:
            place = event(data, key) if place is data and key not in data else place[key]
        if self.new:
            place[self.keys[-1]] = self.new["value"]
        else:
            del place[self.keys[-1]]

    def __repr__(self) -> str:
        path = ".".join(map(str, self.keys))
        return f"{path}={str(self.new['value'])[:20]}" if self.new else f"no {path}"


put = drop = Change

BIG = {"shape": [7, 7], "dtype": "float64", "data": [0.0] * 49}
FOREIGN = [
    put("format", value="something-else"),
    put("version", value=2),
    put("version", value="1"),
    drop("version"),
]
MISSING = [
    *(drop(field) for field in ("nodes", "events", "checks", "source")),
    drop("nodes", 0, "value"),
    drop("nodes", 3, "inputs"),
    drop("Pulled", "upstream"),
    drop("checks", 0, "verdict"),
    put("nodes", value=[]),
    put("events", value=[]),
    drop("events", 0),
]
PLACES = [
    put("nodes", 0, "id", value=9),
    put("nodes", 2, "inputs", value=[0, 2]),
    put("nodes", 2, "inputs", value=[0, 99]),
    put("nodes", 2, "inputs", value=[0, -1]),
    put("nodes", 2, "inputs", value=[0]),
    put("nodes", 2, "inputs", value=[0, True]),
    put("Seeded", "node", value=99),
    put("Pulled", "input", value=99),
    put("Pulled", "input", value=0),
    put("Pulled", "argnum", value=5),
    put("Pulled", "argnum", value=-1),
    put("Accumulated", "source", value=-1),
    put("Accumulated", "source", value=0),
    put("Accumulated", "argnum", value=7),
    put("Reduced", "node", value=0),
    put("Reduced", "axes", value=[5]),
    put("Reduced", "axes", value=["a"]),
    put("Reached", "node", value=3),
    put("checks", 0, "node", value=99),
    put("checks", 0, "index", value=[9, 9]),
    put("checks", 0, "argnum", value=8),
]
SHAPES = [
    put("nodes", 0, "value", "shape", value=[3, 3]),
    put("nodes", 0, "value", "shape", value=[-2, -2]),
    put("nodes", 0, "value", value=BIG),
    put("Seeded", "gradient", value=BIG),
    put("Visited", "upstream", value=BIG),
    put("Pulled", "contribution", value=BIG),
    put("Pulled", "local", value=BIG),
    put("Reduced", "gradient", value=BIG),
    put("Reduced", "from_shape", value=[9]),
    put("Accumulated", "before", value=BIG),
    put("Reached", "gradient", value=None),
    put("checks", 0, "analytic", value=BIG),
    put("checks", 0, "cells", value=["agrees"]),
    put("checks", 0, "jacobian", value=BIG),
]
TYPES = [
    put("nodes", value=7),
    put("nodes", 0, value="x"),
    put("nodes", 0, "name", value=5),
    put("nodes", 0, "kind", value="magic"),
    put("nodes", 0, "value", value=[1, 2]),
    put("nodes", 0, "value", value=None),
    put("nodes", 0, "value", "dtype", value="object"),
    put("nodes", 0, "value", "data", value=["1; import os", 2, 3, 4]),
    put("nodes", 0, "value", "data", value=[[1], 2, 3, 4]),
    put("nodes", 0, "line", value=3),
    put("nodes", 0, "extra", value=1),
    put("nodes", 2, "params", value=[1]),
    put("nodes", 2, "residuals", value=[1]),
    put("nodes", 2, "cost", value="free"),
    put("nodes", 2, "cost", value=7),
    put("Seeded", "event", value="Exploded"),
    put("Seeded", "event", value=["Seeded"]),
    put("Seeded", "node", value="5"),
    put("Seeded", "node", value=True),
    put("Seeded", "gradient", value=1.0),
    put("Pulled", "tex", value=7),
    put("Pulled", "residuals", value=[[1, 2]]),
    put("Pulled", "residuals", value=["b"]),
    put("Reached", "name", value=["x"]),
    put("checks", 0, "verdict", value="splendid"),
    put("checks", 0, "note", value=5),
    put("checks", 0, "op", value=[]),
    put("checks", 0, "extra", value=1),
    put("checks", 0, "max_difference", value="big"),
    put("source", value=7),
    put("source", "lines", value=[[1]]),
]
HUGE = [
    put("nodes", 0, "value", "data", value=[10**400, 2, 3, 4]),
    put("nodes", 0, "value", "shape", value=[10**12, 10**12]),
    put("nodes", 0, "value", "shape", value=[1] * 100 + [2, 2]),
    put("Reduced", "axes", value=[10**30]),
    put("nodes", 0, "line", value=["a.py", "x" * 10_000]),
    put("nodes", 0, "kind", value="x" * 10_000),
    put("Seeded", "event", value="x" * 10_000),
]


def test_the_file_that_is_changed_below_is_sound(sound: Json, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(json.dumps(sound))
    assert "x is done" in mg.load_trace(tmp_path / "good.json").text()


@pytest.mark.parametrize("change", FOREIGN + MISSING + PLACES + SHAPES + TYPES + HUGE, ids=repr)
def test_an_unsound_file_is_refused_in_one_sentence(change, sound: Json, tmp_path: Path) -> None:
    data = copy.deepcopy(sound)
    change(data)
    refused(tmp_path / "bad.json", json.dumps(data))


def test_sizes_that_no_memory_has_are_refused(sound: Json, tmp_path: Path) -> None:
    made = {"event": "Recomputed", "node": 2, "value": sound["nodes"][2]["value"]}
    for size in (10**400, -1):
        data = {**sound, "events": [*sound["events"], {**made, "bytes": size}]}
        assert "bytes" in refused(tmp_path / "bad.json", json.dumps(data))
    data = copy.deepcopy(sound)
    facts = {"corner": [0.0], "corner_shape": [1, 1], "min": 0, "max": 0, "mean": 0, "norm": 0}
    data["nodes"][1]["value"] = {"shape": [10**12, 10**12], "dtype": "float64", **facts}
    assert "memory" in refused(tmp_path / "bad.json", json.dumps(data))


def test_a_newer_version_is_named(sound: Json, tmp_path: Path) -> None:
    sentence = refused(tmp_path / "new.json", json.dumps({**sound, "version": 2}))
    assert "version 2" in sentence and "reads version 1" in sentence


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_a_truncated_file_is_refused(share: float, sound: Json, tmp_path: Path) -> None:
    text = json.dumps(sound)
    assert "JSON" in refused(tmp_path / "cut.json", text[: int(len(text) * share)])


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00\x00",
        b"\x80abc",
        "[]",
        "null",
        "7",
        '"text"',
        "[" * 100_000,
        '{"format": "minigrad-trace", "version": 1, "nodes": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"a":' * 100_000,
        '{"format": "minigrad-trace", "version": ' + "9" * 5000 + "}",
        "9" * 10_000,
    ],
    ids=range(11),
)
def test_a_foreign_file_is_refused(content: bytes | str, tmp_path: Path) -> None:
    refused(tmp_path / "foreign.json", content)


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(mg.TraceError, match="cannot be read"):
            mg.load_trace(path)


@pytest.mark.parametrize("field", ["name", "op", "tex", "symbol"])
def test_markup_in_a_text_stays_text(field: str, sound: Json, tmp_path: Path) -> None:
    data = copy.deepcopy(sound)
    data["nodes"][2][field] = '<script>alert("&")</script>'
    (tmp_path / "run.json").write_text(json.dumps(data))
    trace = mg.load_trace(tmp_path / "run.json")
    trace.text()
    trace.to_html(tmp_path / "run.html")
    assert '<script>alert("&")' not in (tmp_path / "run.html").read_text()
