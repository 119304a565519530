"""Dynamic networks from simulated series."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus import simulate
from isthmus.errors import KnowledgeError, MismatchError
from isthmus.graphs import DAG, Knowledge
from isthmus.graphs.knowledge import Lag
from isthmus.objectives import AdditiveLoss
from isthmus.results import DynamicNetwork, Ending
from isthmus.searches import drive

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
DATA = Path(os.environ.get("ISTHMUS_DATA", "../shared/data")) / "timeseries"


def series(
    seed: int, d: int = 20, lags: int = 2, realisations: int = 5, n: int = 300
) -> simulate.SeriesSimulation:
    dag = simulate.erdos_renyi(d, d, seed=seed)
    lagged = simulate.lagged_graph(d, lags=lags, seed=seed)
    return simulate.autoregressive(dag, lagged, n, realisations=realisations, seed=seed)


def network_of(solution: ist.Solution) -> DynamicNetwork:
    found = solution.details.network
    assert isinstance(found, DynamicNetwork)
    return found


def f1(found: set[tuple[str, str, int]], truth: set[tuple[str, str, int]]) -> float:
    return 2 * len(found & truth) / (len(found) + len(truth))


class FromRows(AdditiveLoss):
    """Least squares over time, from residuals of rows."""

    def __init__(self, lag_of: Mapping[str, Lag], rows: Floats, targets: int) -> None:
        self.nodes, self.targets = tuple(lag_of), targets
        self.lags = tuple(lag_of.values())
        self.owner = np.arange(len(lag_of))
        self.x = rows - rows.mean(axis=0)
        self.sample_size = len(rows)

    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        residual = self.x @ coefficients - self.x[:, : self.targets]
        n = len(residual)
        return 0.5 * float((residual**2).sum()) / n, self.x.T @ residual / n

    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        residual = self.x[:, rows] @ coefficients - self.x[:, target]
        n = len(residual)
        return 0.5 * float(residual @ residual) / n, self.x.T @ residual / n

    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        chosen = self.x[:, rows]
        found: Floats = chosen.T @ chosen / len(chosen)
        return found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_edges_within_and_between_steps_are_found(seed: int) -> None:
    truth = series(seed)
    solution = ist.learn(ist.Series(truth.series, lags=2), search=ist.Dynotears())
    network = network_of(solution)
    now = {(a, b, 0) for a, b in network.instantaneous.edges}
    assert f1(now, {(a, b, 0) for a, b in truth.dag.edges}) >= 0.9
    past = {(e.source, e.target, e.lag) for e in truth.lagged_edges}
    assert f1({(e.source, e.target, e.lag) for e in network.lagged}, past) >= 0.9
    residual = solution.details.kkt_residual
    assert isinstance(residual, float)
    assert residual < 1e-9
    # The same network, unrolled, is the graph of the solution.
    assert network.unrolled() == solution.dag
    weights = network.matrices()
    assert weights[0] == pytest.approx(truth.model.instantaneous.weight_matrix(), abs=0.25)
    assert weights[1:] == pytest.approx(truth.model.lagged_matrices(), abs=0.25)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_moments_give_the_solution_of_rows(seed: int) -> None:
    source = ist.Series(series(seed, d=6).series, lags=2)
    search = ist.Dynotears()
    whole = ist.learn(source.moments(), search=search)
    loss = FromRows(source.schema().lag_of, source.rows(), 6)
    run = partial(search.search, loss, Knowledge().bind(loss.nodes), np.random.default_rng(0))
    found, _ = drive(run, "slow")
    assert DAG.from_parents(loss.nodes, found.parents) == whole.dag
    slow = found.details.network
    assert isinstance(slow, DynamicNetwork)
    np.testing.assert_allclose(network_of(whole).matrices(), slow.matrices(), atol=1e-8)
    assert whole.score == pytest.approx(found.score, abs=1e-8)


@pytest.mark.long
def test_sites_that_share_sums_learn_what_one_would() -> None:
    parts = series(3, d=5).series
    search = ist.Dynotears()
    pooled = ist.Series(parts[:2], lags=2).moments() + ist.Series(parts[2:], lags=2).moments()
    found, whole = (
        ist.learn(pooled, search=search),
        ist.learn(ist.Series(parts, lags=2), search=search),
    )
    assert found.dag == whole.dag
    np.testing.assert_allclose(
        network_of(found).matrices(), network_of(whole).matrices(), atol=1e-8
    )


@pytest.mark.long
def test_knowledge_holds_within_and_between_steps() -> None:
    truth = series(1, d=6)
    source = ist.Series(truth.series, lags=2)
    a, b = truth.dag.edges[0]
    c, d, lag = truth.lagged_edges[0]
    knowledge = Knowledge(forbidden=[(a, b), (f"{c}@{lag}", d)], required=[("x0@2", "x5")])
    solution = ist.learn(source, search=ist.Dynotears(), knowledge=knowledge)
    assert knowledge.allows(solution.dag)
    assert ("x0", "x5", 2) in network_of(solution).weights
    with pytest.raises(KnowledgeError, match="later tier"):
        ist.learn(source, search=ist.Dynotears(), knowledge=Knowledge(required=[("x0", "x1@1")]))
    with pytest.raises(MismatchError, match="earlier step"):
        ist.learn(source, search=ist.Dynotears(), knowledge=Knowledge(required=[("x0@2", "x1@1")]))


def test_any_search_can_look_back_with_tiers() -> None:
    truth = series(2, d=4, lags=1, n=800)
    source = ist.Series(truth.series, lags=1)
    names = source.schema().names
    knowledge = Knowledge(tiers=[names[4:], names[:4]])
    solution = ist.learn(source, knowledge=knowledge)
    network = DynamicNetwork.from_dag(solution.dag, source.schema().lag_of)
    assert network.nodes == names[:4]
    # An edge within a step that is turned round can take a lagged one with it.
    past = {(e.source, e.target, e.lag) for e in truth.lagged_edges}
    assert f1({(e.source, e.target, e.lag) for e in network.lagged}, past) >= 0.8


def test_tables_without_a_past_are_told_what_to_do() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(MismatchError, match=r"Series\(table, lags=2\)"):
        ist.learn(x, search=ist.Dynotears())
    with pytest.raises(MismatchError, match="lagged effects"):
        ist.learn(x, score=ist.AdditiveLeastSquares(), search=ist.Dynotears())


def test_time_limit_gives_an_acyclic_graph() -> None:
    source = ist.Series(series(0).series, lags=2)
    solution = ist.learn(source, search=ist.Dynotears(), time_limit=0.0)
    assert solution.status.ending is Ending.TIME_LIMIT
    assert network_of(solution).nodes == source.schema().names[:20]
    assert solution.details.kkt_residual > 0.01


@pytest.mark.long
@pytest.mark.skipif(not DATA.is_dir(), reason="benchmark data are not here")
def test_lagged_edges_of_the_finance_series() -> None:
    with gzip.open(DATA / "finance_random-rels_20_1A.csv.gz", "rt") as file:
        rows = list(csv.reader(file))
    names = rows[0]
    with (DATA / "finance_random-rels_20_1A_edges.csv").open() as file:
        truth = {
            (names[int(e["cause"])], names[int(e["effect"])], int(e["lag"]))
            for e in csv.DictReader(file)
        }
    table = dict(zip(names, np.array(rows[1:], dtype=np.float64).T, strict=True))
    within = Knowledge(forbidden=[(a, b) for a in names for b in names if a != b])
    solution = ist.learn(ist.Series(table, lags=1), search=ist.Dynotears(), knowledge=within)
    found = {(e.source, e.target, e.lag) for e in network_of(solution).edges}
    assert f1(found, truth) >= 0.8
