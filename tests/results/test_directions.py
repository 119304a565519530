"""The sentence about edge directions, in the singular, in the plural and with knowledge."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.results import Directions, Disclosure, Ending, Solution, Status

E = tuple((a, b) for a in "abcd" for b in "wxyz")


EIGHT = "The data decide 8 of 14 directions by at least 5 nats"
REST = "those of the learned graph, and margins were not measured"
GONE = "the best graph that has one of them the other way round scores less than 5 nats lower"


@pytest.mark.parametrize(
    ("determined", "fixed", "free", "rest", "sentence"),
    [
        (0, 0, 0, 0, "There are no edges."),
        (1, 0, 0, 0, "The data decide the direction of the edge by at least 5 nats."),
        (2, 0, 0, 0, "The data decide both directions by at least 5 nats."),
        (0, 1, 0, 0, "Background knowledge decides the direction of the edge."),
        (0, 7, 0, 0, "Background knowledge decides all 7 directions."),
        (0, 0, 4, 0, f"All 4 directions are open: {GONE}."),
        (8, 2, 4, 0, f"{EIGHT}; background knowledge decides 2; 4 are open: {GONE}."),
        (0, 1, 0, 2, f"Background knowledge decides 1 of 3 directions; 2 are {REST}."),
    ],
)
def test_the_sentence(determined: int, fixed: int, free: int, rest: int, sentence: str) -> None:
    ends = np.cumsum([0, determined, fixed, free, rest])
    data, known, nobody, others = (E[i:j] for i, j in pairwise(ends))
    margins = dict.fromkeys(data, 7.0) | dict.fromkeys(nobody, 1.0)
    assert str(Directions(data, known, nobody, others, margins)) == sentence


def test_the_sentence_about_classes_and_tests() -> None:
    text = "the best graph that has one of them the other way round has the same score"
    assert text in str(Directions(open=E[:2], margins=dict.fromkeys(E[:2], 0.0)))
    tested = Directions(determined=E[:3], open=E[3:4], tested=True)
    assert str(tested) == (
        "Tests decide 3 of 4 directions; 1 is open: the edge can point either way."
    )
    assert tested.decided_by(E[0]) == "tests"
    assert Directions.from_list(tested.to_list()) == tested


def solution(edges: list[tuple[str, str]], knowledge: ist.Knowledge | None) -> Solution:
    status = Status(Ending.CONVERGED, "done.", 1, 0.0)
    dag = ist.DAG(["a", "b", "c", "d"], edges)
    return Solution(dag, 1.0, status, Disclosure.none(), "Chosen.", knowledge=knowledge)


def test_directions_that_tiers_fix_are_not_called_determined() -> None:
    edges = [("a", "c"), ("b", "c"), ("c", "d")]
    assert solution(edges, None).directions.unmeasured == tuple(edges)
    chain = [("a", "b"), ("b", "c")]
    tiers = ist.Knowledge(tiers=[["a"], ["b", "c", "d"]])
    fixed = solution(chain, tiers)
    assert fixed.directions == Directions(fixed=tuple(chain))
    assert "Background knowledge decides both directions." in str(fixed)
    assert fixed.directions.describe(("a", "b")) == "fixed by knowledge"


def test_parents_that_knowledge_keeps_apart_determine_nothing() -> None:
    collider = [("a", "c"), ("b", "c")]
    roots = ist.Knowledge(roots=["a", "b"])
    assert solution(collider, roots).directions == Directions(fixed=tuple(collider))
    apart = ist.Knowledge(forbidden=[("a", "b"), ("b", "a")])
    assert solution(collider, apart).directions == Directions(fixed=tuple(collider))


def test_a_collider_that_tiers_force_is_not_the_data_s() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    table = {"x": 0.3 * y + rng.normal(size=400), "y": y, "z": 0.3 * y + rng.normal(size=400)}
    table["w"] = 2.0 * y + rng.normal(size=400)
    tiers = ist.Knowledge(tiers=[["x", "z"], ["y", "w"]])
    learned = ist.learn(table, knowledge=tiers)
    assert {("x", "y"), ("z", "y"), ("y", "w")} == {*learned.dag.edges}
    # y → w follows from the collider, which the data alone do not tell.
    assert learned.directions.fixed == learned.dag.edges
    assert not ist.to_frame(learned, {})["direction_determined"].any()
    assert "Background knowledge decides all 3 directions." in str(learned)
    assert not ist.learn(table).directions.determined


def test_knowledge_leaves_to_the_data_what_they_decide() -> None:
    rng = np.random.default_rng(1)
    a, b, d = rng.normal(size=(3, 3000))
    c = a + b + rng.normal(size=3000)
    table = {"a": a, "b": b, "c": c, "d": d, "e": c + d + rng.normal(size=3000)}
    learned = ist.learn(table, knowledge=ist.Knowledge(roots=["a"]))
    assert learned.directions.fixed == (("a", "c"),)
    assert {("b", "c"), ("d", "e"), ("c", "e")} == {*learned.directions.determined}
    assert learned.directions.margins["a", "c"] == np.inf
    assert all(5 <= learned.directions.margins[e] < 50 for e in learned.directions.determined)


def test_a_direction_that_hinges_on_little_is_open_everywhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    table = {"a": a, "b": b, "c": a + b + rng.normal(size=300)}
    learned = ist.learn(table, score=ist.GaussianBIC())
    assert len(learned.cpdag.directed) == 2
    assert learned.directions.open == learned.dag.edges
    assert all(0 < margin < 5 for margin in learned.directions.margins.values())
    assert isinstance(learned.drawn, ist.PDAG)
    assert not learned.drawn.directed
    assert set(map(frozenset, learned.drawn.undirected)) == set(map(frozenset, learned.dag.edges))
    assert "scores less than 5 nats lower." in str(learned)
    learned.save(tmp_path / "s.isthmus")
    loaded = Solution.load(tmp_path / "s.isthmus")
    assert loaded.directions == learned.directions
    assert loaded.to_dict()["directions"] == learned.directions.to_list()
    learned.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"not determined: margin {learned.directions.margins['a', 'c']:.1f} nats" in page
    assert "determined by the data" not in page


def test_without_a_score_at_hand_margins_are_not_claimed() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 2000))
    table = {"a": a, "b": b, "c": a + b + rng.normal(size=2000)}
    notears = ist.learn(table, search=ist.Notears(), score=ist.LinearLikelihood())
    assert notears.directions.unmeasured == notears.dag.edges
    assert "margins were not measured" in str(notears)
    tested = ist.learn(table, search=ist.PC())
    assert tested.directions.tested
    assert tested.directions.determined == (("a", "c"), ("b", "c"))
    assert "Tests decide both directions." in str(tested)
    assert notears.measure_directions().directions == notears.directions


def test_targets_of_interventions_are_data_also_in_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=1000)
    seen = {"a": a, "b": a + rng.normal(size=1000)}
    a = rng.normal(size=1000)
    done = {"a": a, "b": rng.normal(size=1000)}
    learned = ist.learn(ist.Interventions([seen, done], [[], ["b"]]))
    assert learned.directions.determined == (("a", "b"),)
    assert learned.directions.margins["a", "b"] > 100
    learned.save(tmp_path / "s.isthmus")
    assert Solution.load(tmp_path / "s.isthmus").directions == learned.directions


def test_nothing_released_is_said_in_a_sentence(tmp_path: Path) -> None:
    learned = ist.learn(ist.datasets.asia(rows=200, seed=1))
    assert str(learned.disclosure) == "No data were released: nothing left this process."
    learned.report(tmp_path / "r.html")
    assert "Data released" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_report_of_a_posterior_says_how_probable_a_direction_is(tmp_path: Path) -> None:
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


def test_an_ensemble_speaks_of_shares() -> None:
    dags = [ist.DAG(["a", "b", "c"], e) for e in ([("a", "b")], [("b", "a")], [("a", "b")])]
    dags.append(ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")]))
    text = str(ist.Ensemble.from_dags(dags))
    assert "1 pair of variables adjacent in at least 95% of the graphs, 1 in 5% to 95%" in text
    assert "probab" not in text


ADULT = Path(__file__).parents[3] / "shared" / "data" / "uci"


@pytest.mark.long
@pytest.mark.skipif(not ADULT.is_dir(), reason="the tables are not here")
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
@pytest.mark.parametrize("whole", [False, True])
def test_halves_of_adult_do_not_contradict_each_other(whole: bool) -> None:
    """All columns and complete rows, or 13 and 15,000; ``benchmarks/margins.py`` has more."""
    pandas = pytest.importorskip("pandas")
    names = (
        *("age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation"),
        *("relationship", "race", "sex", "gain", "loss", "hours", "country", "income"),
    )
    told: list[tuple[set[Any], set[Any]]] = []
    for file, skip in (("adult.data.gz", 0), ("adult.test.gz", 1)):
        table = pandas.read_csv(
            ADULT / file, names=names, skiprows=skip, skipinitialspace=True, na_values="?"
        )
        table["income"] = table["income"].str.rstrip(".")
        if not whole:
            table = table.drop(columns=["fnlwgt", "education_num"])
            table = table.dropna().sample(15000, random_state=0)
        learned = ist.learn(table.dropna())
        told.append((set(learned.cpdag.directed), set(learned.directions.determined)))
    (first, clear), (second, also) = told
    assert any(edge[::-1] in second for edge in first)  # without margins
    assert sum(edge[::-1] in also for edge in clear) <= 1
    assert clear & also
