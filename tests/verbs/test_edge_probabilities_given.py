"""Prior probabilities of edges: the score, its equivalence, and files for the command line."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.cli.parsing import ExitCode
from isthmus.errors import KnowledgeError, MismatchError
from isthmus.testing import enumerate_dags


def table(n: int = 200, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.15 * a + rng.normal(size=n)
    return {"a": a, "b": b, "c": b + rng.normal(size=n), "d": rng.normal(size=n)}


BELIEF = ist.Knowledge(probabilities=[("b", "a", 0.97), ("c", "b", 0.001), ("a", "d", 0.5)])


def log_prior(dag: ist.DAG) -> float:
    total = 0.0
    for a, b, p in BELIEF.probabilities:
        if (a, b) in dag.edges or (b, a) in dag.edges:
            total += math.log(p / (1 - p))
    return total


@pytest.mark.long
@pytest.mark.parametrize("score", [ist.BGe(), ist.GaussianBIC()])
def test_the_best_graph_of_all_is_found(score: Any) -> None:
    data = table()
    scored = {
        dag: ist.score(data, dag, score) + log_prior(dag) for dag in enumerate_dags(list(data))
    }
    best = max(scored.values())
    for search in (ist.SubsetDP(), ist.Boss(), ist.HillClimb(), ist.AStar(), ist.XGES()):
        solution = ist.learn(data, score=score, search=search, knowledge=BELIEF)
        assert solution.score == pytest.approx(best), search
        assert solution.score == pytest.approx(scored[solution.dag]), search
        assert solution.equivalent


def test_data_overrule_a_belief_and_a_belief_decides_where_data_are_silent() -> None:
    belief = ist.Knowledge(probabilities=[("b", "a", 0.999), ("c", "b", 0.001)])
    graphs = [ist.learn(table(), knowledge=knowledge).dag for knowledge in (None, belief)]
    pairs = [{frozenset(edge) for edge in dag.edges} for dag in graphs]
    assert pairs[0] == {frozenset("bc")}
    assert pairs[1] == {frozenset("bc"), frozenset("ab")}


def test_half_changes_nothing() -> None:
    half = ist.Knowledge(probabilities=[(a, b, 0.5) for a, b in pairwise("abcd")])
    with_half, without = (ist.learn(table(), knowledge=k) for k in (half, None))
    assert with_half.score == without.score
    assert with_half.cpdag.skeleton() == without.cpdag.skeleton()


def test_posterior_probabilities_follow_the_prior() -> None:
    """Of two independent columns, the odds of an edge are multiplied by the odds given."""
    rng = np.random.default_rng(1)
    data = {"a": rng.normal(size=50), "b": rng.normal(size=50)}
    told = []
    for knowledge in (None, ist.Knowledge(probabilities=[("a", "b", 0.9)])):
        edges = ist.sample(data, score=ist.BGe(), knowledge=knowledge).edge_probabilities()
        p = float(np.asarray(edges).sum())
        told.append(p / (1 - p))
    assert told[1] / told[0] == pytest.approx(9.0)


@pytest.mark.long
def test_an_expected_number_of_parents_is_a_prior_of_all_other_pairs() -> None:
    data = table()
    prior = ist.Knowledge(expected_parents=0.6, probabilities=[("b", "a", 0.9)])
    weights = {}
    for dag in enumerate_dags(list(data)):
        believed = {frozenset(edge) for edge in dag.edges} & {frozenset("ab")}
        odds = 9.0 ** len(believed) * (0.2 / 0.8) ** (len(dag.edges) - len(believed))
        weights[dag] = odds * math.exp(ist.score(data, dag, ist.BGe()) + 1100)
    expected = np.zeros((4, 4))
    for dag, weight in weights.items():
        for a, b in dag.edges:
            expected["abcd".index(a), "abcd".index(b)] += weight / sum(weights.values())
    for sampler, error in ((ist.ExactPosterior(), 1e-9), (ist.PartitionMCMC(), 0.02)):
        drawn = ist.sample(data, score=ist.BGe(), sampler=sampler, knowledge=prior, seed=1)
        np.testing.assert_allclose(drawn.edge_probabilities(), expected, atol=error)


@pytest.mark.long
def test_fewer_expected_parents_leave_less_outside_of_the_tables() -> None:
    rng = np.random.default_rng(3)
    data = {f"v{i}": rng.normal(size=60) for i in range(8)}
    sampler = ist.PartitionMCMC(candidates=1)
    left_out = [
        ist.sample(data, sampler=sampler, draws=50, chains=2, knowledge=prior).details.left_out
        for prior in (None, ist.Knowledge(expected_parents=0.5))
    ]
    assert left_out[0] > 0.2 > 0.02 > left_out[1]


def test_a_solution_keeps_it(tmp_path: Path) -> None:
    belief = replace(BELIEF, expected_parents=1)
    solution = ist.learn(table(), knowledge=belief)
    solution.save(tmp_path / "s.isthmus", statistics=True)
    loaded = ist.Solution.load(tmp_path / "s.isthmus")
    assert loaded.knowledge == belief
    again = solution.standardised_refit().standardised
    scaled = {k: (v - v.mean()) / v.std() for k, v in table().items()}
    assert again.score == pytest.approx(ist.learn(scaled, knowledge=belief).score)
    edge = next(iter(solution.dag.edges))
    assert solution.strengths()[edge] > 0


@pytest.mark.parametrize(
    "given",
    [[("a", "b", 1.0)], [("a", "b", 0.2), ("b", "a", 0.3)], [("a", "a", 0.5)], [("a", "b")], 3],
)
def test_wrong_probabilities_are_refused(given: Any) -> None:
    with pytest.raises(KnowledgeError, match="between 0 and 1"):
        ist.Knowledge(probabilities=given)


@pytest.mark.parametrize("given", [0, -1, math.nan, math.inf, "few", True])
def test_wrong_numbers_of_parents_are_refused(given: Any) -> None:
    with pytest.raises(KnowledgeError, match="positive number"):
        ist.Knowledge(expected_parents=given)


def test_refusals() -> None:
    with pytest.raises(KnowledgeError, match=r"only 3 others. Expect fewer: 1.5"):
        ist.learn(table(), knowledge=ist.Knowledge(expected_parents=3))
    with pytest.raises(MismatchError, match="local score"):
        ist.learn(table(), search=ist.Notears(), knowledge=ist.Knowledge(expected_parents=1))
    with pytest.raises(KnowledgeError, match="mentions"):
        ist.learn(table(), knowledge=ist.Knowledge(probabilities=[("a", "z", 0.5)]))
    with pytest.raises(MismatchError, match="local score"):
        ist.learn(table(), search=ist.Notears(), knowledge=BELIEF)
    scores = ist.parent_sets(table(), score=ist.BGe())
    with pytest.raises(MismatchError, match="local score"):
        ist.solve(scores, knowledge=BELIEF)


def test_knowledge_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = table()
    rows = zip(*(column.tolist() for column in data.values()), strict=True)
    lines = [",".join(data), *(",".join(map(str, row)) for row in rows)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    content: dict[str, Any] = {
        "forbidden": [["b", "c"]],
        "tiers": [["a"], ["b", "c", "d"]],
        "probabilities": [["a", "b", 0.97]],
        "expected_parents": 0.001,
    }
    toml, plain = tmp_path / "k.toml", tmp_path / "k.json"
    toml.write_text("\n".join(f"{k} = {json.dumps(v)}" for k, v in content.items()))
    plain.write_text(json.dumps(content))
    expected = ist.learn(
        data,
        knowledge=ist.Knowledge(
            forbidden=[("b", "c")],
            tiers=[["a"], ["b", "c", "d"]],
            probabilities=[("a", "b", 0.97)],
            expected_parents=0.001,
            required=[("a", "d")],
        ),
    )
    for file in (toml, plain):
        out = tmp_path / "g.isthmus"
        options = ["--knowledge", str(file), "--required", "a", "d", "-o", str(out), "-q"]
        assert main(["learn", str(path), *options]) == ExitCode.DONE
        assert ist.Solution.load(out).dag == expected.dag
        assert ist.Solution.load(out).knowledge == expected.knowledge
        out.unlink()
    toml.write_text("tier = 3")
    assert main(["learn", str(path), "--knowledge", str(toml)]) != ExitCode.DONE
    assert "knowledge consists of required" in capsys.readouterr().err
