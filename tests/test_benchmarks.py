"""The form of experiments, and the guard on cost: what they keep, repeat and refuse."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, Any]:
    names = runpy.run_path(str(BENCHMARKS / "runner.py"))
    names["digest"].__globals__.update(ROOT=tmp_path, RESULTS=tmp_path)
    (tmp_path / "code.py").write_text("x = 1\n")
    return names


def test_what_is_on_file_is_not_run_again(runner: dict[str, Any], tmp_path: Path) -> None:
    calls = []

    def measure(k: int) -> dict[str, int]:
        calls.append(k)
        if k == 3:
            raise ValueError("three")
        return {"square": k * k}

    def experiment(*cases: int) -> Any:
        return runner["Experiment"]("some", measure, [{"k": k} for k in cases], ("code.py",))

    experiment(1).run()
    experiment(1, 2, 3).run()
    assert calls == [1, 2, 3]
    rows = experiment().on_file()
    assert [row["case"]["k"] for row in rows] == [1, 2, 3]
    assert rows[1]["found"]["square"] == 4
    assert "three" in rows[2]["found"]["failed"]
    experiment(1, 2).run(again=True, only={"k": "2"})
    assert calls[3:] == [2]
    assert len(experiment().on_file()) == 3
    assert len((tmp_path / "some.jsonl").read_text().splitlines()) == 4


def test_results_of_changed_code_are_named(runner: dict[str, Any], tmp_path: Path) -> None:
    runner["Experiment"]("some", lambda k: {"k": k}, [{"k": 1}], ("code.py",)).run()
    assert runner["old"]() == []
    (tmp_path / "code.py").write_text("x = 2\n")
    assert [name for name, _ in runner["old"]()] == ["some.jsonl"]
    (tmp_path / "code.py").unlink()
    assert "code.py is gone" in runner["old"]()[0][1]


def test_stamps_name_code_that_is_there() -> None:
    """A result of files that were renamed could never be found to be old."""
    root = BENCHMARKS.parent
    marks = [
        json.loads(line).get("stamp", {})
        for path in (BENCHMARKS / "results").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    marks = [mark for mark in marks if mark]
    assert marks
    for mark in marks:
        assert {"commit", "digest", "python", "machine", "date"} <= set(mark)
        assert "changed" not in mark["commit"]
        assert all((root / name).exists() for name in mark["code"])


def test_the_guard_sees_a_fifth_more_and_any_other_answer() -> None:
    guard = runpy.run_path(str(BENCHMARKS / "guard.py"))
    record = json.loads((BENCHMARKS / "results" / "guard.json").read_text())["tasks"]
    assert set(record) == set(guard["TASKS"])
    for before in record.values():
        differences = guard["differences"]
        assert differences(before, before) == []
        assert differences({**before, "thousands": before["thousands"] * 1.2}, before) == ["slower"]
        assert differences({**before, "thousands": before["thousands"] * 0.5}, before) == []
        key = next(key for key in before if key != "thousands")
        assert len(differences({**before, key: before[key] + 1}, before)) == 1
