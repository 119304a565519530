"""Generalised linear and basis-expanded models, from the front door."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.searches.watching import stopped

import isthmus as ist
from isthmus import simulate
from isthmus.errors import MismatchError
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import AdditiveLoss
from isthmus.results import Ending
from isthmus.searches import Watch, drive
from isthmus.statistics import Schema

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def weights_of(solution: ist.Solution) -> Floats:
    found = solution.details.weights
    assert isinstance(found, np.ndarray)
    return found


def truths(seed: int, n: int = 3000) -> tuple[dict[str, NDArray[np.bool_]], DAG]:
    rng = np.random.default_rng(seed)
    a, e = rng.random((2, n)) < 0.5
    b = rng.random(n) < 1 / (1 + np.exp(-(3.0 * a - 1.5)))
    c = rng.random(n) < 1 / (1 + np.exp(-(3.0 * b - 1.5)))
    d = rng.random(n) < 1 / (1 + np.exp(-(1.5 - 3.0 * b)))
    dag = DAG(["a", "b", "c", "d", "e"], [("a", "b"), ("b", "c"), ("b", "d")])
    return {"a": a, "b": b, "c": c, "d": d, "e": e}, dag


def numbers(seed: int, n: int = 2000) -> tuple[dict[str, NDArray[np.int64]], DAG]:
    rng = np.random.default_rng(seed)
    a, b = rng.poisson(3.0, size=(2, n))
    c = rng.poisson(np.exp(1.0 + 0.8 * np.log1p(a) - 0.8 * np.log1p(b)))
    d = rng.poisson(np.exp(0.2 + 0.5 * np.log1p(c)))
    dag = DAG(["a", "b", "c", "d"], [("a", "c"), ("b", "c"), ("c", "d")])
    return {"a": a, "b": b, "c": c, "d": d}, dag


def curves(seed: int, n: int = 600, d: int = 6) -> tuple[dict[str, Floats], DAG]:
    dag = simulate.erdos_renyi(d, d, seed=seed)
    mechanism = simulate.FourierAdditive(decay=2.0)
    found = simulate.nonlinear(dag, n, mechanism=mechanism, seed=seed)
    return {name: np.asarray(x) for name, x in found.data.items()}, dag


class FromRows(AdditiveLoss):
    """Least squares of curves from rows and their residuals, whitened by QR."""

    def __init__(self, names: tuple[str, ...], blocks: list[Floats], seen: Floats) -> None:
        self.nodes, self.targets = names, seen.shape[1]
        self.owner = np.repeat(np.arange(len(blocks)), [b.shape[1] for b in blocks])
        n = self.sample_size = len(seen)
        self.features = np.concatenate(
            [np.linalg.qr(b - b.mean(axis=0))[0] * np.sqrt(n) for b in blocks], axis=1
        )
        self.seen = seen - seen.mean(axis=0)

    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        residual = self.features @ coefficients - self.seen
        n = len(residual)
        return 0.5 * float((residual**2).sum()) / n, self.features.T @ residual / n

    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        residual = self.features[:, rows] @ coefficients - self.seen[:, target]
        n = len(residual)
        return 0.5 * float(residual @ residual) / n, self.features.T @ residual / n

    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        chosen = self.features[:, rows]
        found: Floats = chosen.T @ chosen / len(chosen)
        return found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_truth_values(seed: int) -> None:
    table, truth = truths(seed)
    solution = ist.learn(table, search=ist.NotearsAdditive(penalty=0.02, threshold=0.3))
    assert "Logistic" in solution.choice
    assert set(solution.dag.skeleton().edges) == set(truth.skeleton().edges)
    assert solution.details.kkt_residual < 1e-9


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_counts(seed: int) -> None:
    table, truth = numbers(seed)
    solution = ist.learn(table, score=ist.Poisson(), search=ist.NotearsAdditive(penalty=0.02))
    assert solution.dag == truth
    assert solution.details.kkt_residual < 1e-9


@pytest.mark.long
def test_the_score_reads_few_different_counts_as_numbers() -> None:
    table, _ = numbers(0)
    few = {name: np.minimum(x, 3) + 2 for name, x in table.items()}
    search = ist.NotearsAdditive(penalty=0.02)
    found = ist.learn(few, score=ist.Poisson(), search=search)
    kinds = dict.fromkeys(few, ist.Kind.CONTINUOUS)
    same = ist.learn(few, score=ist.Poisson(), search=search, kinds=kinds)
    np.testing.assert_allclose(weights_of(found), weights_of(same), atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_curves(seed: int) -> None:
    table, truth = curves(seed, n=1500)
    solution = ist.learn(table, search=ist.NotearsAdditive(penalty=0.05))
    assert "AdditiveLeastSquares" in solution.choice
    assert ist.shd(solution.dag, truth) <= 1
    assert solution.dag.nodes == tuple(table)
    assert not solution.notes


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_moments_give_the_solution_of_rows(seed: int) -> None:
    table, _ = curves(seed)
    basis = ist.Chebyshev(5)
    search = ist.NotearsAdditive(penalty=0.05)
    solution = ist.learn(table, score=ist.AdditiveLeastSquares(basis), search=search)

    x = np.column_stack(list(table.values()))
    u = np.clip((x - x.mean(axis=0)) / (3.0 * x.std(axis=0)), -1.0, 1.0)
    # cos(k arccos u) is the definition; the library uses the recurrence.
    blocks = [
        np.column_stack([np.cos(k * np.arccos(u[:, i])) for k in range(1, 6)])
        for i in range(x.shape[1])
    ]
    loss = FromRows(tuple(table), blocks, x)
    run = partial(search.search, loss, Knowledge().bind(loss.nodes), np.random.default_rng(0))
    found, _ = drive(run, "slow")
    assert DAG.from_parents(loss.nodes, found.parents) == solution.dag
    np.testing.assert_allclose(
        weights_of(solution), np.asarray(found.details.weights, dtype=np.float64), atol=1e-8
    )
    assert solution.score == pytest.approx(found.score, abs=1e-8)


@pytest.mark.long
def test_two_sites_that_share_sums_learn_what_one_would() -> None:
    table, _ = curves(3)
    sites = [{n: x[:200] for n, x in table.items()}, {n: x[200:] for n, x in table.items()}]
    raw = ist.Frame(sites[0]).moments() + ist.Frame(sites[1]).moments()
    expansion = ist.Expansion.standardised(ist.Chebyshev(5), raw)
    pooled = (
        ist.WithFeatures(sites[0], expansion).moments()
        + ist.WithFeatures(sites[1], expansion).moments()
    )
    score, search = ist.AdditiveLeastSquares(ist.Chebyshev(5)), ist.NotearsAdditive()
    found = ist.learn(pooled, score=score, search=search)
    whole = ist.learn(table, score=score, search=search)
    assert found.dag == whole.dag
    np.testing.assert_allclose(weights_of(found), weights_of(whole), atol=1e-8)


@pytest.mark.long
def test_profiled_loss_does_not_read_units() -> None:
    table, _ = curves(1)
    scaled = {n: 10.0 ** (i - 3) * x for i, (n, x) in enumerate(table.items())}
    score, search = ist.AdditiveLeastSquares(equal_variances=False), ist.NotearsAdditive(0.03)
    found = [ist.learn(t, score=score, search=search) for t in (table, scaled)]
    assert found[0].dag == found[1].dag
    assert found[0].dag.edges
    np.testing.assert_allclose(weights_of(found[0]), weights_of(found[1]), atol=1e-6)


@pytest.mark.long
def test_knowledge_is_kept() -> None:
    table, truth = curves(2, n=1500)
    cause, effect = truth.edges[0]
    other = next(
        (a, b)
        for a in truth.nodes
        for b in truth.nodes
        if a != b and b not in truth.descendants(a) and a not in truth.descendants(b)
    )
    knowledge = Knowledge(forbidden=[(cause, effect)], required=[other])
    solution = ist.learn(table, search=ist.NotearsAdditive(), knowledge=knowledge)
    assert knowledge.allows(solution.dag)
    against = Knowledge(required=[(effect, cause)])
    assert ist.learn(table, search=ist.NotearsAdditive(), knowledge=against).dag.has_edge(
        effect, cause
    )
    tiers = Knowledge(tiers=[truth.topological_order()[::-1][:3], truth.topological_order()[:3]])
    assert tiers.allows(ist.learn(table, search=ist.NotearsAdditive(), knowledge=tiers).dag)


@pytest.mark.timing
@pytest.mark.parametrize("limit", [0.0, 0.05, 0.2])
def test_time_limit_gives_an_acyclic_graph(limit: float) -> None:
    table, _ = curves(4, d=12)
    solution = ist.learn(table, search=ist.NotearsAdditive(penalty=0.001), time_limit=limit)
    assert solution.status.ending is Ending.TIME_LIMIT
    assert solution.status.seconds < limit + 2.0


@pytest.mark.long
def test_the_distance_from_optimal_is_told_at_every_step() -> None:
    table, _ = curves(1)
    names = tuple(table)
    seen = np.column_stack([table[name] for name in names])
    loss = FromRows(names, [np.column_stack([x, x**2]) for x in seen.T], seen)
    search = ist.NotearsAdditive(penalty=0.05, threshold=0.0)
    run = partial(search.search, loss, Knowledge().bind(loss.nodes), np.random.default_rng(0))
    told = [found.details.kkt_residual for found in stopped(run)]
    residuals = np.array(told, dtype=np.float64)
    # Nothing is learned at first; before the last node is made exact they are nearly optimal.
    assert residuals[0] > 0.1
    assert residuals[-1] < 1e-5
    assert run(Watch()).details.kkt_residual < 1e-9


def test_interruption_gives_the_best_so_far() -> None:
    table, _ = truths(0)

    def stop(progress: ist.searches.Progress) -> None:
        raise KeyboardInterrupt

    solution = ist.learn(table, search=ist.NotearsAdditive(penalty=1e-4), progress=stop)
    assert solution.status.ending in (Ending.INTERRUPTED, Ending.CONVERGED)


def test_rows_that_are_not_at_hand() -> None:
    table, _ = truths(0)
    with pytest.raises(MismatchError, match=r"Logistic\(\) needs the rows.*moments or counts"):
        ist.learn(ist.summarise(table), search=ist.NotearsAdditive())
    moments = ist.Frame(curves(0)[0]).moments()
    with pytest.raises(MismatchError, match="only statistics"):
        ist.learn(moments, search=ist.NotearsAdditive())
    with pytest.raises(MismatchError, match=r"WithFeatures"):
        ist.AdditiveLeastSquares().bind(moments)


def test_columns_that_do_not_fit_the_score() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(MismatchError, match="two levels"):
        ist.learn({"a": list("xyz") * 20, "b": list("xyx") * 20}, search=ist.NotearsAdditive())
    with pytest.raises(MismatchError, match="counts"):
        ist.learn(
            {"a": rng.normal(size=50), "b": rng.poisson(9.0, size=50)},
            score=ist.Poisson(),
            search=ist.NotearsAdditive(),
        )
    with pytest.raises(MismatchError, match="Give a local score"):
        ist.score(truths(0)[0], truths(0)[1], ist.Logistic())
    with pytest.raises(MismatchError, match="needs a"):
        ist.learn(curves(0)[0], score=ist.GaussianBIC(), search=ist.NotearsAdditive())


@pytest.mark.long
def test_constant_column_and_two_equal_ones() -> None:
    table, _ = curves(0)
    odd = {**table, "same": table["x0"].copy(), "still": np.full(600, 2.5)}
    with pytest.warns(ist.errors.DataWarning):
        solution = ist.learn(odd, search=ist.NotearsAdditive())
    assert not solution.dag.parents("still")
    assert not solution.dag.children("still")


@pytest.mark.long
def test_schema_is_not_needed_for_moments_in_another_order() -> None:
    table, _ = curves(5)
    moments = ist.WithFeatures(table, ist.Chebyshev(4)).moments()
    names = list(moments.schema.names)
    assert Schema.continuous(names) == moments.schema.without_features()
    turned = moments.select(names[::-1])
    search = ist.NotearsAdditive()
    score = ist.AdditiveLeastSquares(ist.Chebyshev(4))
    a = ist.learn(moments, score=score, search=search)
    b = ist.learn(turned, score=score, search=search)
    assert a.dag == b.dag
