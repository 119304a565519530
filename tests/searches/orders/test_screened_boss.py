"""Search among candidates: against the dense search, a slow version, and under knowledge."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.arrays import Floats, completed
from isthmus.graphs import Knowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.objectives.correlations import (
    CORRELATIONS,
    ColumnCorrelations,
    CorrelationScore,
    LinearGraph,
    MatrixCorrelations,
)
from isthmus.statistics import CountPlan, Schema
from isthmus.statistics.within import StandardisedColumns
from isthmus.verbs import defaults, prepare
from isthmus.verbs import kept as statistics_kept


def data_of(d: int, edges: int, n: int, seed: int) -> tuple[ist.DAG, dict[str, Floats]]:
    dag = simulate.erdos_renyi(d, edges, seed=seed)
    return dag, dict(simulate.linear(dag, n, seed=seed).data)


def bound(data: dict[str, Floats], *, columns: bool) -> CorrelationScore:
    schema = Schema.continuous(tuple(data))
    kept = StandardisedColumns.of(schema, list(data.values()))
    statistics = kept if columns else ist.Moments.from_columns(schema, list(data.values()))
    return CORRELATIONS.require(ist.GaussianEBIC().bind(statistics))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_dense_search(seed: int) -> None:
    dag, data = data_of(50, 60, 2000, seed)
    screened = ist.learn(data, search=ist.ScreenedBoss())
    dense = ist.learn(data, search=ist.Boss(starts=4))
    if seed != 3:  # ends in another local optimum, three edges from the best graph
        assert screened.cpdag == dense.cpdag
        assert screened.score == pytest.approx(dense.score, rel=1e-12)
    assert screened.score > dense.score - 10
    assert ist.shd(screened.cpdag, dag.cpdag()) <= 3
    assert screened.details.candidates < 12


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_many_columns_are_kept_instead_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = data_of(60, 60, 59, 3)
    dense = ist.learn(data, search=ist.ScreenedBoss())
    for module in (prepare, statistics_kept):
        monkeypatch.setattr(module, "MANY_COLUMNS", 40)
    monkeypatch.setattr(ist.Moments, "from_columns", None)  # nobody computes all pairs
    screened = ist.learn(data, search=ist.ScreenedBoss())
    assert screened.cpdag == dense.cpdag
    assert screened.score == pytest.approx(dense.score, rel=1e-10)
    assert ist.score(data, screened.dag) == pytest.approx(screened.score, rel=1e-10)
    weakest = min(screened.strengths().values())
    assert weakest == pytest.approx(min(dense.strengths().values()), rel=1e-6)
    network = screened.fit()
    assert network.dag == screened.dag


def test_columns_and_matrix_give_the_same_scores_and_pairs() -> None:
    _, data = data_of(30, 45, 500, 1)
    by_columns, by_matrix = bound(data, columns=True), bound(data, columns=False)
    for child, parents in [(0, ()), (3, (1,)), (5, (7, 2, 9)), (29, tuple(range(12)))]:
        value = by_columns.local(child, parents)
        assert value == pytest.approx(by_matrix.local(child, parents), rel=1e-12)
    rng = np.random.default_rng(0)
    drawn = [rng.choice(v, min(v, 2), replace=False) for v in range(1, 31)]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in drawn])])
    graph = LinearGraph(starts, np.concatenate(drawn) % 30, rng.normal(size=starts[-1]) / 4)
    kinds = (by_columns.correlations, by_matrix.correlations)
    assert isinstance(kinds[0], ColumnCorrelations)
    assert isinstance(kinds[1], MatrixCorrelations)
    for chosen in (None, np.array([3, 17, 4])):
        one, two = (completed(kind.strong_pairs(graph, 0.2, 8, chosen)) for kind in kinds)
        assert np.array_equal(one.first, two.first)
        assert np.array_equal(one.second, two.second)
        assert one.size == pytest.approx(two.size, abs=1e-5)
        assert len(one.first) > 3


def test_residual_correlations_by_hand() -> None:
    _, data = data_of(12, 15, 300, 2)
    score = bound(data, columns=True)
    graph = LinearGraph(np.r_[0, 0, 2, np.full(10, 2)], np.array([0, 5]), np.array([0.3, -0.4]))
    z = np.array([(x - x.mean()) / x.std() for x in data.values()])
    z[1] -= 0.3 * z[0] - 0.4 * z[5]
    expected = np.abs(np.corrcoef(z))
    pairs = completed(score.correlations.strong_pairs(graph, 0.1, 12))
    i, j = np.nonzero(np.triu(expected > 0.1, 1))
    assert pairs.first.tolist() == i.tolist()
    assert pairs.second.tolist() == j.tolist()
    assert pairs.size == pytest.approx(expected[i, j], abs=1e-5)


def slow_family(score: LocalScore, child: int, available: list[int]) -> float:
    """Grow, then shrink, by the score itself."""
    parents: list[int] = []
    best = score.local(child, parents)
    while rest := [v for v in available if v not in parents]:
        value, v = max((score.local(child, [*parents, v]), v) for v in rest)
        if value <= best:
            break
        best, parents = value, [*parents, v]
    while parents:
        value, v = max((score.local(child, [p for p in parents if p != v]), v) for v in parents)
        if value <= best:
            break
        best, parents = value, [p for p in parents if p != v]
    return best


@pytest.mark.parametrize("seed", range(3))
def test_families_of_an_order_against_a_slow_version(seed: int) -> None:
    _, data = data_of(14, 30, 150, seed)
    score = bound(data, columns=False)
    search = _native.ScreenedOrder(
        14,
        constant=score.constant,
        factor=score.factor,
        tolerance=score.tolerance,
        max_parents=None,
    )
    for v in range(14):
        partners = np.delete(np.arange(14), v)
        search.set_partners(
            v,
            partners.astype(np.uint32),
            score.correlations.among(np.append(partners, v)),
            np.ones(13, dtype=np.bool_),
            np.empty(0, np.uint16),
        )
    order = np.random.default_rng(seed).permutation(14)
    search.start(order)
    expected = sum(slow_family(score, v, order[:i].tolist()) for i, v in enumerate(order.tolist()))
    assert score.in_units(search.score) == pytest.approx(expected, rel=1e-12)
    while not search.step(1.0):
        pass
    assert score.in_units(search.score) > expected
    starts, parents = search.parents()
    total = sum(score.local(v, parents[starts[v] : starts[v + 1]].tolist()) for v in range(14))
    assert score.in_units(search.score) == pytest.approx(total, rel=1e-12)


def levels_of(d: int, edges: int, n: int, seed: int) -> tuple[ist.DAG, dict[str, Any]]:
    dag = simulate.erdos_renyi(d, edges, seed=seed)
    network = simulate.discrete_network(dag, cardinalities=(2, 3), seed=seed)
    return dag, dict(simulate.discrete(network, n, seed=seed).data)


def test_families_of_discrete_variables_against_a_slow_version() -> None:
    _, data = levels_of(10, 20, 300, 2)
    counts = ist.summarise(data, plan=CountPlan.everything(), kinds=dict.fromkeys(data, "discrete"))
    assert isinstance(counts, ist.Counts)
    score = LOCAL_SCORES.require(ist.BIC().bind(counts))
    names = np.random.default_rng(2).permutation(10)
    search = _native.ScreenedOrder(score.kernel, names=names, max_parents=None)
    for v in range(10):
        search.set_partners(
            v,
            np.delete(np.arange(10), v).astype(np.uint32),
            None,
            np.ones(9, dtype=np.bool_),
            np.empty(0, np.uint16),
        )
    search.start(np.arange(10))
    own = names.tolist()
    expected = sum(slow_family(score, v, own[:i]) for i, v in enumerate(own))
    assert search.score == pytest.approx(expected, rel=1e-12)
    while not search.step(1.0):
        pass
    starts, parents = search.parents()
    families = [names[parents[starts[v] : starts[v + 1]]].tolist() for v in range(10)]
    total = sum(score.local(v, family) for v, family in zip(own, families, strict=True))
    assert search.score == pytest.approx(total, rel=1e-12)
    assert total > expected
    with pytest.raises(ValueError, match="each variable once"):
        _native.ScreenedOrder(score.kernel, names=np.zeros(10, np.int64), max_parents=None)


@pytest.mark.long
def test_partners_of_discrete_variables_raise_the_score() -> None:
    dag, data = levels_of(60, 60, 2000, 1)
    options: dict[str, Any] = {"score": ist.BDeu(), "search": ist.ScreenedBoss()}
    found = ist.learn(data, **options)
    assert found.score == pytest.approx(ist.score(data, found.dag, ist.BDeu()), rel=1e-12)
    assert found.score > ist.learn(data, score=ist.BDeu(), search=ist.XGES()).score - 30
    assert ist.shd(found.cpdag, dag.cpdag()) <= 25
    shuffled = {name: data[name] for name in np.random.default_rng(0).permutation(list(data))}
    assert ist.learn(shuffled, **options).cpdag == found.cpdag
    a, b = found.dag.edges[0]
    knowledge = Knowledge(required=[(b, a)], roots=[b])
    told = ist.learn(data, **options, knowledge=knowledge)
    assert knowledge.allows(told.dag)


def test_the_default_for_thousands_of_discrete_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = levels_of(30, 20, 200, 3)
    assert "XGES" in repr(ist.learn(data).choice)
    monkeypatch.setattr(defaults, "MANY_COLUMNS", 25)
    assert "ScreenedBoss" in repr(ist.learn(data).choice)


@pytest.mark.long
def test_neither_order_nor_units_of_columns_matter() -> None:
    _, data = data_of(60, 120, 800, 5)
    rng = np.random.default_rng(0)
    names = rng.permutation(list(data)).tolist()
    other = {name: data[name] * 10.0 ** rng.integers(-3, 4) * rng.choice([-1, 1]) for name in names}
    one = ist.learn(data, search=ist.ScreenedBoss())
    two = ist.learn(other, search=ist.ScreenedBoss())
    assert one.cpdag == two.cpdag
    assert one.score != pytest.approx(two.score)  # the units matter to it


@pytest.mark.long
def test_knowledge_is_obeyed() -> None:
    dag, data = data_of(40, 60, 500, 7)
    free = ist.learn(data, search=ist.ScreenedBoss())
    (a, b), (c, e), *_ = free.dag.edges
    apart = next(v for v in dag.nodes if v not in (a, *free.dag.parents(a), *free.dag.children(a)))
    tiers = [dag.nodes[20:], dag.nodes[:20]]
    for knowledge in (
        Knowledge(required=[(b, a), (apart, a)], forbidden=[(c, e)]),
        Knowledge(roots=[b, e]),
        Knowledge(tiers=tiers, required=[(dag.nodes[25], dag.nodes[3])]),
    ):
        found = ist.learn(data, search=ist.ScreenedBoss(max_parents=3), knowledge=knowledge)
        assert knowledge.allows(found.dag)
        assert max(len(found.dag.parents(v)) for v in found.dag.nodes) <= 3


def test_no_time_gives_the_required_graph() -> None:
    _, data = data_of(40, 60, 500, 7)
    knowledge = Knowledge(required=[("x0", "x1")])
    found = ist.learn(data, search=ist.ScreenedBoss(), knowledge=knowledge, time_limit=1e-9)
    assert found.dag.edges == (("x0", "x1"),)
    assert found.score == pytest.approx(ist.score(data, found.dag), rel=1e-12)


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_copies_and_constants() -> None:
    _, data = data_of(20, 20, 300, 1)
    data["copy"] = 3.0 - 2.0 * data["x3"]
    data["still"] = np.full(300, 7.0)
    columns = StandardisedColumns.of(Schema.continuous(tuple(data)), list(data.values()))
    assert columns.constants() == ("still",)
    assert columns.duplicates() == (("x3", "copy"),)
    found = ist.learn(data, search=ist.ScreenedBoss())
    assert found.dag.parents("still") == ()
    assert found.dag.children("still") == ()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_memory_of_4000_variables() -> None:
    d, n = 4000, 60
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(d, n))
    rows[1::2] += 3.0 * rows[::2]
    data = {f"x{i}": row for i, row in enumerate(rows)}
    tracemalloc.start()
    try:
        solution = ist.learn(data)
        assert tracemalloc.get_traced_memory()[1] < 4 * d * d  # one matrix has 8 * d * d bytes
    finally:
        tracemalloc.stop()
    pairs = {frozenset(edge) for edge in solution.dag.edges}
    true = {frozenset((f"x{i}", f"x{i + 1}")) for i in range(0, d, 2)}
    assert len(pairs & true) > 0.99 * len(true)
    assert len(pairs - true) < 0.05 * len(true)


def test_a_dense_graph_is_searched_among_all_variables() -> None:
    dag = simulate.erdos_renyi(80, 320, seed=1)
    table = simulate.linear(dag, 1000, seed=1).data
    score = ist.GaussianEBIC()
    screened = ist.learn(table, score=score, search=ist.ScreenedBoss(), seed=3)
    assert screened.dag == ist.learn(table, score=score, search=ist.Boss(starts=1), seed=3).dag
    assert ist.shd(screened.cpdag, dag.cpdag()) <= 5
