"""Directions from non-Gaussian noise, from `learn`: sources, knowledge, and what stays open."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus import simulate
from isthmus.errors import MismatchError

pytestmark = pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed")


# What these tests are about does not depend on whether causes may be hidden, but on few rows.
LINGAM = ist.LiNGAM(hidden_causes=False)
CHAIN = ist.DAG([*"abcde"], [("a", "b"), ("b", "c"), ("c", "d"), ("a", "e")])


def table(noise: simulate.Noise, rows: int = 1500, dag: ist.DAG = CHAIN) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(simulate.linear(dag, rows, noise=noise, seed=5).data)


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")  # a reversed line is a curve
@pytest.mark.parametrize("noise", [simulate.Uniform(), simulate.Exponential(), simulate.Gumbel()])
def test_directions_are_those_of_the_causes(noise: simulate.Noise) -> None:
    data = table(noise)
    assert not ist.learn(data, search=ist.PC()).directions.determined
    solution = ist.learn(data, search=LINGAM)
    assert solution.directions.determined == solution.dag.edges == CHAIN.edges
    assert str(solution.directions) in str(solution)
    p_values = solution.details.p_values
    assert all(p_values[b, a] < 0.01 < p_values[a, b] for a, b in solution.identified)
    assert solution.fit().cpdag == solution.cpdag
    assert solution.effect("a", "c").identified


def test_triangles_are_oriented() -> None:
    dag = ist.DAG([*"abc"], [("a", "b"), ("a", "c"), ("b", "c")])
    weights = {("a", "b"): 0.6, ("a", "c"): -1.0, ("b", "c"): 0.7}
    data = simulate.linear(dag, 5000, noise=simulate.Exponential(), weights=weights, seed=1).data
    assert ist.learn(data, search=LINGAM).directions.determined == dag.edges


def test_normal_noise_leaves_directions_open() -> None:
    solution = ist.learn(table(simulate.Gaussian()), search=LINGAM)
    assert not solution.directions.determined
    assert solution.cpdag == CHAIN.cpdag()


def test_warehouse_and_federation_tell_the_same() -> None:
    duckdb = pytest.importorskip("duckdb")
    data = table(simulate.Exponential(), rows=900)
    solution = ist.learn(data, search=LINGAM)
    connection = duckdb.connect()
    relation = connection.from_df(data)
    sites = ist.Federation.simulate([data[:300], data[300:500], data[500:]], within_sites=False)
    for source in (relation, sites):
        other = ist.learn(source, search=LINGAM)
        assert other.cpdag == solution.cpdag
        assert other.identified == solution.identified
        assert other.details.p_values == pytest.approx(solution.details.p_values, rel=1e-3)


def test_hidden_common_cause_is_noted() -> None:
    dag = ist.DAG([*"uab"], [("u", "a"), ("u", "b")])
    data = table(simulate.Exponential(), 5000, dag).drop(columns="u")
    solution = ist.learn(data, search=LINGAM)
    assert not solution.identified
    assert any("Neither direction of 1 edge" in note for note in solution.notes)


def test_knowledge_has_precedence_and_what_does_not_fit_is_noted() -> None:
    known = ist.Knowledge(required=[("c", "b")])
    data = table(simulate.Uniform())
    assert not any("not independent" in n for n in ist.learn(data, search=LINGAM).notes)
    solution = ist.learn(data, search=LINGAM, knowledge=known)
    assert any("The noise of ['b'] is not" in note for note in solution.notes)
    assert ("c", "b") in solution.directions.fixed
    assert known.allows(solution.dag)


def test_bootstrap_has_the_directions() -> None:
    data, search = table(simulate.Uniform()), ist.LiNGAM(alpha=1e-4, hidden_causes=False)
    probabilities = ist.bootstrap(data, search=search, replicates=10, jobs=1).edge_probabilities()
    assert min(probabilities[CHAIN.index(a), CHAIN.index(b)] for a, b in CHAIN.edges) >= 0.9


def test_a_stopped_run_has_a_graph_without_directions() -> None:
    solution = ist.learn(table(simulate.Uniform()), search=LINGAM, time_limit=1e-9)
    assert not solution.identified


def test_categories_are_refused() -> None:
    data = table(simulate.Uniform()).assign(level=lambda t: np.where(t["a"] > 0, "high", "low"))
    with pytest.raises(MismatchError, match=r"continuous.*leave these columns out") as caught:
        ist.learn(data, search=LINGAM)
    assert "numbers" not in str(caught.value)  # codes of categories are no amounts
    assert ist.learn(data.drop(columns="level"), search=LINGAM).dag.nodes == CHAIN.nodes
    assert ist.learn(data).dag.nodes == tuple(data)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")  # of heavy tails and curves
def test_intervals_of_effects_allow_for_unequal_variance() -> None:
    known = ist.Knowledge(tiers=[["x"], ["y"]])
    covered, trials = 0, 100
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        x = rng.exponential(size=1000)
        y = 0.8 * x + (0.2 + x) * (rng.exponential(size=1000) - 1.0)
        solution = ist.learn({"x": x, "y": y}, search=LINGAM, knowledge=known)
        estimate = solution.effect("x", "y")
        assert estimate.robust
        low, high = estimate.interval()
        covered += low <= 0.8 <= high
    assert covered / trials > 0.88  # 0.54 with the error for noise of constant variance


def test_the_test_alone_chooses_the_search() -> None:
    solution = ist.learn(table(simulate.Exponential(), 3000), score=ist.IndependentNoise())
    assert "search LiNGAM" in solution.choice
    assert solution.directions.determined == CHAIN.edges


def test_edges_that_a_hidden_cause_explains_are_counted() -> None:
    data = table(simulate.Uniform())
    sums = ist.summarise(ist.WithFeatures(data, ist.IndependentNoise().basis))
    solution = ist.learn(sums, search=ist.LiNGAM())  # ranks would tell more
    assert not solution.directions.determined
    assert "At least 2 open edges would have a direction if no common cause" in str(solution)
    assert "common cause" not in str(ist.learn(data, search=LINGAM))


def test_advice_for_heavy_tails_does_not_hide_the_noise() -> None:
    rng = np.random.default_rng(1)
    x = rng.lognormal(sigma=1.5, size=500)
    y = x + rng.lognormal(sigma=1.5, size=500)
    with noted("Compare the edges, not the directions"):
        ist.learn({"x": x, "y": y}, search=LINGAM)
    with noted("Replace 'x' and 'y' by their normal scores"):
        ist.learn({"x": x, "y": y})
