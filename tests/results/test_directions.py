"""The sentence about edge directions, in the singular, in the plural and with knowledge."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.results import Directions, Disclosure, Ending, Solution, Status

E = tuple((a, b) for a in "abcd" for b in "wxyz")


@pytest.mark.parametrize(
    ("determined", "fixed", "free", "sentence"),
    [
        (0, 0, 0, "There are no edges."),
        (1, 0, 0, "The data determine the direction of the edge."),
        (2, 0, 0, "The data determine both directions."),
        (3, 0, 0, "The data determine all 3 directions."),
        (0, 1, 0, "Background knowledge fixes the direction of the edge."),
        (0, 7, 0, "Background knowledge fixes all 7 directions."),
        (0, 0, 1, "The data determine no direction: 1 edge can point either way."),
        (0, 0, 4, "The data determine no direction: 4 edges can point either way."),
        (2, 0, 1, "The data determine 2 of the 3 directions, and 1 edge can point either way."),
        (2, 5, 0, "The data determine 2 of the 7 directions, and background knowledge fixes 5."),
        (
            *(0, 5, 2),
            (
                "The data determine none of the 7 directions, background knowledge fixes 5, and "
                "2 edges can point either way."
            ),
        ),
    ],
)
def test_the_sentence(determined: int, fixed: int, free: int, sentence: str) -> None:
    both = determined + fixed
    directions = Directions(E[:determined], E[determined:both], E[both : both + free])
    assert str(directions) == sentence


def solution(edges: list[tuple[str, str]], knowledge: ist.Knowledge | None) -> Solution:
    status = Status(Ending.CONVERGED, "done.", 1, 0.0)
    dag = ist.DAG(["a", "b", "c", "d"], edges)
    return Solution(dag, 1.0, status, Disclosure.none(), "Chosen.", knowledge=knowledge)


def test_u11_directions_that_tiers_fix_are_not_called_determined() -> None:
    edges = [("a", "c"), ("b", "c"), ("c", "d")]
    assert solution(edges, None).directions.determined == tuple(edges)
    chain = [("a", "b"), ("b", "c")]
    tiers = ist.Knowledge(tiers=[["a"], ["b", "c", "d"]])
    fixed = solution(chain, tiers)
    assert fixed.directions == Directions(fixed=tuple(chain))
    assert "Background knowledge fixes both directions." in str(fixed)
    assert fixed.directions.describe(("a", "b")) == "fixed by knowledge"


def test_parents_that_knowledge_keeps_apart_determine_nothing() -> None:
    collider = [("a", "c"), ("b", "c")]
    roots = ist.Knowledge(roots=["a", "b"])
    assert solution(collider, roots).directions == Directions(fixed=tuple(collider))
    tiers = ist.Knowledge(tiers=[["a", "b"], ["c", "d"]])
    assert solution(collider, tiers).directions == Directions(determined=tuple(collider))


def test_targets_of_interventions_are_data_also_in_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=1000)
    seen = {"a": a, "b": a + rng.normal(size=1000)}
    a = rng.normal(size=1000)
    done = {"a": a, "b": rng.normal(size=1000)}
    learned = ist.learn(ist.Interventions([seen, done], [[], ["b"]]))
    assert learned.directions == Directions(determined=(("a", "b"),))
    learned.save(tmp_path / "s.isthmus")
    assert Solution.load(tmp_path / "s.isthmus").directions == learned.directions


def test_u1_nothing_released_is_said_in_a_sentence(tmp_path: Path) -> None:
    learned = ist.learn(ist.datasets.asia(rows=200, seed=1))
    assert str(learned.disclosure) == "No data were released: nothing left this process."
    learned.report(tmp_path / "r.html")
    assert "Data released" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_u4_the_report_of_a_posterior_says_how_probable_a_direction_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4000))
    table = {"a": a, "b": b, "c": a + b + 0.3 * rng.normal(size=4000)}
    table["d"], table["e"] = rng.normal(size=(2, 4000))
    table["e"] = table["e"] + table["d"]
    ist.sample(table, draws=200).report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert re.search(r"<td>determined: (1\.00|0\.9\d)</td>", page)
    assert re.search(r"<td>not determined: 0\.[456]\d</td>", page)
    assert "<td>learned</td>" not in page


def test_u10_an_ensemble_speaks_of_shares() -> None:
    dags = [ist.DAG(["a", "b", "c"], e) for e in ([("a", "b")], [("b", "a")], [("a", "b")])]
    dags.append(ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")]))
    text = str(ist.Ensemble.from_dags(dags))
    assert "1 pair of variables adjacent in at least 95% of the graphs, 1 in 5% to 95%" in text
    assert "probab" not in text
