"""Data from several regimes: families are scored on the rows where their child was free."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError, MismatchError, MissingValuesError, SchemaError
from isthmus.networks import DiscreteNetwork, GaussianNetwork
from isthmus.scores.base import InterventionalScore
from isthmus.statistics import Counts, Moments
from isthmus.statistics.regimes import Regimes
from isthmus.tables import Frame

Table = dict[str, Any]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def chain(n: int, seed: int, target: str | None = None) -> Table:
    """The chain a → b → c, in which one variable may be set at random."""
    noise = rng(seed).normal(size=(3, n))
    a = noise[0]
    b = 2.0 * noise[1] if target == "b" else a + noise[1]
    c = b + noise[2]
    return {"a": a, "b": b, "c": c}


def codes(n: int, seed: int, target: str | None = None) -> Table:
    r = rng(seed)
    a = r.integers(0, 2, n)
    b = r.integers(0, 2, n) if target == "b" else np.where(r.random(n) < 0.85, a, 1 - a)
    c = r.integers(0, 2, n) if target == "c" else np.where(r.random(n) < 0.85, b, 1 - b)
    return {"a": a, "b": b, "c": c}


def pooled(tables: list[Table]) -> Table:
    return {n: np.concatenate([t[n] for t in tables]) for n in tables[0]}


@pytest.mark.parametrize("score", [ist.BIC(), ist.BDeu(), ist.K2(), ist.AIC()])
def test_each_child_has_the_rows_where_it_was_free(score: Any) -> None:
    tables = [codes(40, 1), codes(30, 2, "b"), codes(20, 3, "c")]
    targets = [[], ["b"], ["c", "b"]]
    source = ist.Interventions(tables, targets)
    local = InterventionalScore(score).bind(source.regimes(Counts))
    assert not local.equivalent
    names, schema = source.schema().names, source.schema()
    for i, child in enumerate(names):
        free = pooled([t for t, own in zip(tables, targets, strict=True) if child not in own])
        alone = score.bind(Frame(free, schema=schema).counts(ist.CountPlan.everything()))
        others = [v for v in range(3) if v != i]
        for size in range(3):
            for parents in itertools.combinations(others, size):
                assert local.local(i, parents) == alone.local(i, parents)
    dag = ist.DAG(names, [("a", "b"), ("b", "c")])
    assert ist.score(source, dag, score) == local.total(dag)


@pytest.mark.parametrize("score", [ist.GaussianBIC(), ist.BGe(), ist.GaussianEBIC()])
def test_gaussian_scores(score: Any) -> None:
    tables = [chain(40, 1), chain(30, 2, "b")]
    source = ist.Interventions(tables, [[], ["b"]])
    regimes = source.regimes(Moments)
    local = InterventionalScore(score).bind(regimes)
    whole, some = (
        score.bind(Frame(pooled(tables)).moments()),
        score.bind(Frame(tables[0]).moments()),
    )
    assert local.local(0, [1, 2]) == whole.local(0, [1, 2])
    assert local.local(1, [0, 2]) == some.local(1, [0, 2])
    assert local.local(2, []) == whole.local(2, [])


@pytest.mark.parametrize("make", [chain, codes])
def test_targets_orient_edges(make: Any) -> None:
    observed = ist.learn(make(1500, 5))
    assert len(observed.cpdag.undirected) == 2
    source = ist.Interventions([make(1500, 5), make(500, 6, "b")], [[], ["b"]])
    solution = ist.learn(source)
    assert set(solution.dag.edges) == {("a", "b"), ("b", "c")}
    assert set(solution.cpdag.directed) == {("a", "b"), ("b", "c")}
    assert "InterventionalScore" in solution.choice
    assert "The data decide both directions by at least 5 nats." in str(solution)


def test_only_what_targets_tell_is_directed() -> None:
    tables = [codes(1500, 5), codes(500, 6, "c")]
    solution = ist.learn(ist.Interventions(tables, [[], ["c"]]))
    assert solution.cpdag.directed == (("b", "c"),)
    assert len(solution.cpdag.undirected) == 1
    network = solution.fit(pseudo_count=0)
    assert isinstance(network, DiscreteNetwork)
    b, c = tables[0]["b"], tables[0]["c"]  # the rows where c was free
    expected = [[np.mean(c[b == i] == j) for j in range(2)] for i in range(2)]
    np.testing.assert_allclose(network.tables["c"], expected)


def test_a_column_of_regimes() -> None:
    tables = [codes(200, 1), codes(100, 2, "b")]
    listed = ist.learn(ist.Interventions(tables, [[], ["b"]]))
    one = pooled(tables) | {"regime": np.repeat(["control", "knock-out"], [200, 100])}
    named = ist.Interventions(one, {"control": [], "knock-out": ["b"]}, column="regime")
    assert ist.learn(named).score == listed.score
    assert named.schema().names == ("a", "b", "c")
    frame = pytest.importorskip("pandas").DataFrame(one)
    again = ist.Interventions(frame, {"control": [], "knock-out": ["b"]}, column="regime")
    assert ist.learn(again).score == listed.score


def test_without_targets_it_is_one_table() -> None:
    tables = [chain(100, 1), chain(80, 2)]
    regimes = ist.Interventions(tables, [[], []]).regimes(Moments)
    assert isinstance(regimes, Regimes)
    assert len(regimes.parts) == 1
    found = ist.learn(ist.Interventions(tables, [[], []]), score=ist.GaussianBIC())
    assert found.score == pytest.approx(ist.learn(pooled(tables), score=ist.GaussianBIC()).score)
    assert found.cpdag == ist.learn(pooled(tables), score=ist.GaussianBIC()).cpdag


def test_refusals() -> None:
    tables = [codes(50, 1), codes(50, 2, "b")]
    with pytest.raises(SchemaError, match="2 tables"):
        ist.Interventions(tables, [[]])
    with pytest.raises(SchemaError, match=r"targets \['z'\] are not among"):
        ist.Interventions(tables, [[], ["z"]])
    with pytest.raises(SchemaError, match="collections of names; 'b' was given"):
        ist.Interventions(tables, [[], "b"])
    table = codes(4, 1) | {"r": ["u", "v", "u", "v"]}
    with pytest.raises(SchemaError, match=r"The values are \['u', 'v'\]"):
        ist.Interventions(table, {"u": []}, column="r")
    with pytest.raises(SchemaError, match="no column 'r'"):
        ist.Interventions(codes(4, 1), {"u": []}, column="r")
    with pytest.raises(SchemaError, match="list of tables"):
        ist.Interventions(codes(4, 1), [[]])
    with pytest.raises(SchemaError, match="different columns"):
        ist.Interventions([codes(4, 1), {"a": [1.5]}], [[], []])
    with pytest.raises(DataError, match=r"\['b'\]"):
        ist.learn(ist.Interventions([codes(50, 2, "b")], [["b"]]))
    source = ist.Interventions(tables, [[], ["b"]])
    with pytest.raises(MismatchError, match="for each child"):
        ist.summarise(source)
    numbers = ist.Interventions([chain(50, 1), chain(50, 2, "b")], [[], ["b"]])
    with pytest.raises(MismatchError, match="score of counts or moments"):
        ist.learn(numbers, score=ist.ExactGP())


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    table = codes(4, 1) | {"r": np.array(["u", None, "u", "u"], dtype=object)}
    with pytest.raises(SchemaError, match=r"'r' .*1 row"):
        ist.Interventions(table, {"u": []}, column="r")
    with pytest.raises(SchemaError, match="different types"):
        ist.Interventions(
            table | {"r": np.array(["u", 1, 1, 1], dtype=object)}, {"u": []}, column="r"
        )
    with pytest.raises(MissingValuesError, match="complete rows: drop the others"):
        ist.Interventions([{"a": [1.5, np.nan]}, {"a": [2.5]}], [[], []])
    lazy = pytest.importorskip("polars").LazyFrame(codes(4, 1))
    with pytest.raises(DataError, match="Collect it first"):
        ist.Interventions([lazy], [[]])
    numbers = ist.Interventions([chain(50, 1), chain(50, 2, "b")], [[], ["b"]])
    assert ist.learn(numbers, missing=ist.DropRows()).dag == ist.learn(numbers).dag
    with pytest.raises(MismatchError, match=r"LeastSquares.*search such as Boss"):
        ist.learn(numbers, search=ist.Notears())
    with pytest.raises(MismatchError, match=r"several regimes here. Call sample"):
        ist.bootstrap(numbers, replicates=2)
    solution = ist.learn(numbers)
    with pytest.raises(MismatchError, match=r"regimes without targets: isthmus.effect.*do="):
        solution.effect("a", "b")
    levels = ist.Interventions([codes(50, 1), codes(50, 2)], [[], ["b"]])
    with pytest.raises(MismatchError, match="regimes without targets"):
        ist.learn(levels).effect("a", "b")
    with pytest.raises(MismatchError, match="statistics of several regimes"):
        solution.standardised_refit()
    with pytest.raises(MismatchError, match=r"solution.fit\(\) without data"):
        solution.fit(numbers)
    mixed = [chain(50, 1) | {"k": codes(50, 1)["a"]}, chain(50, 2, "b") | {"k": codes(50, 2)["a"]}]
    kinds = {"k": "discrete"}
    with pytest.raises(MismatchError, match="no variable was a target"):
        ist.learn(ist.Interventions(mixed, [[], ["b"]], kinds=kinds)).fit()
    solution.save(tmp_path / "s", statistics=True)
    loaded = ist.Solution.load(tmp_path / "s")
    assert loaded.fit() == solution.fit()
    with pytest.raises(MismatchError, match="several regimes"):
        loaded.strengths()


def test_numbers_stay_numbers_if_another_table_has_text() -> None:
    tables = [{"a": [1, 2] * 20, "b": ["u", "v"] * 20}, {"a": ["1", "x"] * 20, "b": ["u"] * 40}]
    with pytest.raises(SchemaError, match=r"1 and '1'"):
        ist.learn(ist.Interventions(tables, [[], ["b"]], kinds={"a": "discrete"}))


def test_coefficients_of_several_regimes() -> None:
    draw = rng()
    x = draw.normal(size=4000)
    seen = {"x": x, "y": 2.0 * x + 1.0 + 0.5 * draw.normal(size=4000)}
    forced = {"x": draw.normal(size=1000), "y": draw.normal(5.0, 3.0, size=1000)}
    solution = ist.learn(ist.Interventions([seen, forced], [[], ["y"]]))
    assert solution.dag.edges == (("x", "y"),)
    network = solution.fit()
    assert isinstance(network, GaussianNetwork)
    # The rows in which y was set say nothing about what it depends on.
    slope, intercept = np.polyfit(seen["x"], seen["y"], 1)
    assert network.coefficients["y"]["x"] == pytest.approx(slope)
    assert network.intercepts["y"] == pytest.approx(intercept)
    assert network.variances["y"] == pytest.approx(0.25, rel=0.1)
    both = np.concatenate([seen["x"], forced["x"]])
    assert network.intercepts["x"] == pytest.approx(both.mean())


def test_effects_of_a_posterior_of_several_regimes_are_refused_with_the_reason() -> None:
    rng = np.random.default_rng(0)
    tables = [{name: rng.normal(size=50) for name in "ab"} for _ in range(2)]
    posterior = ist.sample(ist.Interventions(tables, [[], ["b"]]), draws=4, seed=0)
    with pytest.raises(MismatchError, match="several regimes"):
        posterior.effects("a", "b")
