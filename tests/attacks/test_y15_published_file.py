"""y15: a reader of a published solution looks for sums whose last digits show one person."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

import isthmus as ist
from isthmus.cli.outputs import write_result
from isthmus.errors import MismatchError
from isthmus.statistics import Schema

NAMES = ("weight", "age", "pressure")
BOUNDS = {"weight": (0.0, 300.0), "age": (0.0, 120.0), "pressure": (0.0, 300.0)}


def patients(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 95, rows).astype(float)
    pressure = (age + rng.integers(70, 120, rows)).astype(float)
    return {"weight": rng.normal(80, 15, rows).round(1), "age": age, "pressure": pressure}


@pytest.fixture(scope="module")
def learned() -> ist.Solution:
    tables = {n: patients(400, i) for i, n in enumerate(("north", "east", "south"))}
    tables["east"]["weight"][137] = 81.6466  # more digits than anybody else has
    world = Attacked(tables, Schema.continuous(NAMES), BOUNDS)
    return ist.learn(world.federation(), progress=False)


def test_a_saved_solution_has_no_statistics(learned: ist.Solution, tmp_path: Path) -> None:
    learned.save(tmp_path / "saved.isthmus")
    write_result(learned, tmp_path / "written.isthmus")  # what the commands with -o do
    for path in tmp_path.iterdir():
        with zipfile.ZipFile(path) as archive:
            assert archive.namelist() == ["solution.json"]
            content = json.loads(archive.read("solution.json"))
        assert "statistics" not in content
        loaded = ist.Solution.load(path)
        assert (loaded.dag, loaded.disclosure) == (learned.dag, learned.disclosure)
        with pytest.raises(MismatchError, match=r"solution\.fit\(data\)"):
            loaded.fit()


def test_statistics_are_saved_only_on_request(learned: ist.Solution, tmp_path: Path) -> None:
    learned.save(tmp_path / "kept.isthmus", statistics=True)
    assert ist.Solution.load(tmp_path / "kept.isthmus").fit() == learned.fit()
