"""What an estimate of an effect takes from a solution, and what it says about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import DataError
from isthmus.results import ZeroEffect


def test_effects_of_normal_scores_say_their_unit() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    table = {"x": np.exp(x), "y": np.exp(x + rng.normal(size=200))}
    scored = ist.sample(table, draws=10, transform=ist.NormalScores())
    assert any("are in scores" in note for note in scored.notes)
    plain = ist.sample({"x": x, "y": np.log(table["y"])}, draws=10)
    assert not any("are in scores" in note for note in plain.notes)


def chain() -> tuple[dict[str, Any], ist.Knowledge]:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, 500))
    y = x + w + rng.normal(size=500)
    table = {"x": x, "w": w, "y": y, "z": y + rng.normal(size=500)}
    return table, ist.Knowledge(tiers=[["x"], ["w"], ["y"], ["z"]])


def test_an_interval_says_that_it_takes_learned_directions_as_given() -> None:
    table, order = chain()
    learned = ist.learn(table).effect("y", "z")
    assert learned.identified
    assert learned.learned_directions
    assert "learned from the same rows" in str(learned)
    known = ist.learn(table, knowledge=order).effect("y", "z")
    assert not known.learned_directions
    assert "learned" not in str(known)
    assert known.interval() == learned.interval()
    # A graph that the user gives is taken as causal.
    given = ist.effect(table, ist.learn(table).dag, "y", "z")
    assert not given.learned_directions


def test_effects_in_a_solution_use_its_knowledge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, order = chain()
    solution = ist.learn(table, knowledge=order)
    assert ist.effect(table, solution, "z", "x").zero is ZeroEffect.KNOWLEDGE
    for pair in (("y", "z"), ("x", "y"), ("x", "w")):
        assert ist.effect(table, solution, *pair) == solution.effect(*pair)
    solution.save(tmp_path / "known.isthmus")
    columns = np.stack(list(table.values()), axis=1)
    np.savetxt(tmp_path / "t.csv", columns, delimiter=",", header="x,w,y,z", comments="")
    asked = ["effect", str(tmp_path / "known.isthmus"), str(tmp_path / "t.csv")]
    assert main([*asked, "z", "x"]) == 0
    assert "0 by background knowledge" in capsys.readouterr().out
    scored = ist.learn(table, transform=ist.NormalScores(), knowledge=order)
    assert ist.effect(table, scored, "x", "y") == scored.effect("x", "y")


@pytest.mark.parametrize("cause", ["number", "level"])
def test_an_effect_on_a_constant_is_refused(cause: str) -> None:
    rng = np.random.default_rng(2)
    table: dict[str, Any] = {"y": np.full(100, 3.0), "z": rng.normal(size=100)}
    table["x"] = rng.normal(size=100) if cause == "number" else rng.choice(["a", "b"], 100)
    dag = ist.DAG(["x", "y"], [("x", "y")])
    with pytest.raises(DataError, match="'y' is constant"):
        ist.effect(table, dag, "x", "y")
    with noted("Constant columns"):
        solution = ist.learn(table)
    with pytest.raises(DataError, match="'y' is constant"):
        solution.effect("x", "y")
