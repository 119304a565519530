"""Searches by tests, from `learn`: sources, knowledge, limits, and exact sums without noise."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.arrays import Floats, Integers
from isthmus.errors import ArgumentError, GraphError, MismatchError, UnplannedError
from isthmus.results import Ending
from isthmus.searches import PAGSearch, Search

pytestmark = pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed")


CAUSES = ist.DAG([*"uabcdef"], [("u", "b"), ("u", "c"), ("a", "b"), ("d", "c"), ("c", "e")])
SEARCHES: list[Search[Any]] = [ist.PC(), ist.FCI(), ist.BossFCI()]


def numbers(rows: int = 1500) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(simulate.linear(CAUSES, rows, seed=4).data).drop(columns="u")


def levels(rows: int = 1500) -> Any:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    u, a, d, f = rng.integers(0, 2, (4, rows))

    def effect(*causes: Integers) -> Integers:
        chance: Floats = 0.1 + 0.8 * np.mean(causes, axis=0)
        return rng.binomial(1, chance)

    c = effect(u, d)
    codes = {"a": a, "b": effect(a, u), "c": c, "d": d, "e": effect(c), "f": f}
    return pd.DataFrame({name: np.array(["low", "high"])[v] for name, v in codes.items()})


def mixed(rows: int = 1500) -> Any:
    table = numbers(rows)
    return table.assign(**{name: np.where(table[name] > 0, "high", "low") for name in "be"})


TABLES = {"numbers": numbers, "levels": levels, "mixed": mixed}


def graph(data: object, search: Search[Any], **options: Any) -> object:
    solution: ist.Solution | ist.PAGSolution = ist.learn(data, search=search, **options)
    return solution.pag if isinstance(solution, ist.PAGSolution) else solution.cpdag


@pytest.mark.long
@pytest.mark.parametrize("search", [ist.FCI(), ist.BossFCI()])
@pytest.mark.parametrize("kind", ["numbers", "levels", "mixed"])
def test_hidden_common_cause_is_found(search: PAGSearch, kind: str) -> None:
    solution = ist.learn(TABLES[kind](20_000), search=search)
    assert ("b", "<->", "c") in solution.pag.edges
    assert ("c", "-->", "e") in solution.pag.edges
    assert "hidden common causes allowed" in str(solution)
    assert solution.to_dict()["edges"]


def test_no_hidden_common_cause_is_found_where_there_is_none() -> None:
    dag = ist.DAG([*"abcde"], [("a", "b"), ("d", "c"), ("b", "e"), ("c", "e")])
    table = simulate.linear(dag, 4000, seed=4).data
    for search in (ist.FCI(), ist.BossFCI()):
        assert ist.learn(table, search=search).pag == ist.PAG.from_dag(dag)


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("kind", ["numbers", "levels", "mixed"])
def test_duckdb_and_a_federation_equal_the_table(search: Search[Any], kind: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("cryptography")
    table = TABLES[kind]()
    expected = graph(table, search)
    with duckdb.connect() as connection:
        assert graph(connection.from_df(table), search) == expected
    sites = [table[:500], table[500:1100], table[1100:]]
    assert graph(ist.Federation.simulate(sites, within_sites=False), search) == expected


@pytest.mark.long
@pytest.mark.parametrize("search", [ist.PC(), ist.BossFCI()], ids=lambda s: type(s).__name__)
def test_tables_on_demand_of_a_federation_equal_the_table(search: Search[Any]) -> None:
    """All tables of 24 columns do not fit into one round, so they are asked for in batches."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("cryptography")
    dag = simulate.erdos_renyi(24, 26, seed=2)
    network = simulate.discrete_network(dag, seed=2)
    table = pd.DataFrame(simulate.discrete(network, 1500, seed=2).data)
    federation = ist.Federation.simulate(
        [table[:500], table[500:1100], table[1100:]], within_sites=False
    )
    counts = federation.gather(ist.Counts, None)
    assert isinstance(counts, ist.Counts)
    assert counts.on_demand is not None
    assert graph(federation, search) == graph(table, search)


def test_a_plan_of_small_tables_is_enough_for_small_sets() -> None:
    pytest.importorskip("cryptography")
    table = levels()
    sites = [table[:500], table[500:1100], table[1100:]]
    federation = ist.Federation.simulate(sites, plan=ist.CountPlan.up_to(3), within_sites=False)
    search = ist.BossFCI(max_conditioning=1, dag_search=ist.Boss(max_parents=2))
    assert graph(federation, search) == graph(table, search)
    advice = r"at most 3 variables.*max_conditioning=1.*dag_search=Boss\(max_parents=2\)"
    for named in (ist.PC(), ist.FCI(), ist.BossFCI()):
        with pytest.raises(UnplannedError, match=advice):
            ist.learn(federation, search=named)


@pytest.mark.parametrize("search", [ist.PC(), ist.FCI()], ids=lambda s: type(s).__name__)
def test_columns_in_another_order_give_the_same_graph(search: Search[Any]) -> None:
    dag = simulate.erdos_renyi(7, 9, seed=3)
    table = simulate.linear(dag, 200, seed=3).data
    graphs = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(dag.nodes))
        shuffled = {dag.nodes[i]: table[dag.nodes[i]] for i in order}
        found = ist.learn(shuffled, search=search)
        graphs.append(found.pag if isinstance(found, ist.PAGSolution) else found.cpdag)
    assert all(found == graphs[0] for found in graphs)


def population(dag: ist.DAG, hidden: list[str], rng: np.random.Generator) -> ist.Moments:
    """Return the exact moments of a linear network, as of very many rows."""
    d = len(dag.nodes)
    weights = np.zeros((d, d))
    for a, b in dag.edges:
        weights[dag.index(a), dag.index(b)] = rng.uniform(0.5, 1.2) * rng.choice([-1, 1])
    total = np.linalg.inv(np.eye(d) - weights)
    names = [name for name in dag.nodes if name not in hidden]
    kept = [dag.index(name) for name in names]
    covariance = (total.T @ np.diag(rng.uniform(0.7, 1.5, d)) @ total)[np.ix_(kept, kept)]
    n, zeros = 10**8, np.zeros(len(names))
    return ist.Moments(ist.Schema.continuous(names), n, zeros, zeros, covariance * n)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_hybrid_is_exact_without_noise() -> None:
    """At least 38 of 40; in some graphs, paths nearly cancel, which no method can tell apart."""
    exact = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        dag = simulate.erdos_renyi(8, int(rng.integers(5, 13)), seed=seed)
        hidden = [dag.nodes[i] for i in rng.choice(8, 2, replace=False)]
        moments = population(dag, hidden, rng)
        found = ist.learn(moments, search=ist.BossFCI(alpha=1e-4)).pag
        exact += found == ist.PAG.from_dag(dag, hidden)
    assert exact >= 38


@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: type(s).__name__)
def test_knowledge_is_obeyed(search: Search[Any]) -> None:
    table = numbers()
    tiers = ist.Knowledge(tiers=[["e"], ["a", "b", "c", "d"], ["f"]])
    found = ist.learn(table, search=search, knowledge=tiers)
    if isinstance(found, ist.PAGSolution):
        assert ("e", "o->", "c") in found.pag.edges or ("e", "-->", "c") in found.pag.edges
    else:
        assert tiers.allows(found.dag)
    required = ist.Knowledge(required=[("a", "f")], forbidden=[("b", "c"), ("c", "b")])
    found = ist.learn(table, search=search, knowledge=required)
    if isinstance(found, ist.PAGSolution):
        assert ("a", "-->", "f") in found.pag.edges
        assert ("b", "<->", "c") in found.pag.edges
    else:
        assert required.allows(found.dag)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: type(s).__name__)
def test_time_limit_and_progress(search: Search[Any]) -> None:
    table = simulate.linear(simulate.erdos_renyi(40, 80, seed=1), 200, seed=1).data
    seen: list[object] = []
    solution = ist.learn(table, search=search, time_limit=1e-3, progress=seen.append)
    assert solution.status.ending is Ending.TIME_LIMIT
    assert "not made" in " ".join(solution.notes)


def test_a_pag_has_no_dag_and_other_verbs_say_so() -> None:
    solution = ist.learn(numbers(200), search=ist.FCI())
    with pytest.raises(MismatchError, match=r"use solution\.pag"):
        solution.dag  # noqa: B018
    with pytest.raises(MismatchError, match="a DAG is needed"):
        ist.bootstrap(numbers(200), search=ist.FCI(), replicates=3)
    with pytest.raises(MismatchError, match="tests of independence"):
        ist.learn(numbers(200), search=ist.FCI(), score=ist.GaussianBIC())
    with pytest.raises(MismatchError, match="tests of independence"):
        ist.learn(numbers(200), search=ist.Boss(), score=ist.FisherZ())
    with pytest.raises(MismatchError, match="takes continuous columns"):
        ist.learn(levels(200), search=ist.FCI(), score=ist.FisherZ())


def test_a_test_alone_means_pc() -> None:
    solution = ist.learn(numbers(), score=ist.FisherZ())
    assert "search PC " in solution.choice
    assert solution.fit().dag == solution.dag


def test_effects_that_hidden_causes_leave_identified() -> None:
    """x --> y is visible by a and b; a o-> x is not; nothing leads from y to x."""
    rng = np.random.default_rng(3)
    u, a, b, w, e, f = rng.normal(size=(6, 4000))
    x = a + b + e
    y = 0.8 * x + u + w + f
    table = {"a": a, "b": b, "x": x, "y": y, "z": u + 0.5 * rng.normal(size=4000), "w": w}
    solution = ist.learn(table, search=ist.BossFCI())
    effect = solution.effect("x", "y")
    low, high = effect.interval()
    assert effect.identified
    assert low < 0.8 < high
    assert high - low < 0.1
    assert effect.adjustment == ("z", "w")  # not needed, but they explain noise of y
    unknown = solution.effect("a", "y")
    assert not unknown.identified
    assert np.isnan(unknown.value)
    assert unknown.interval() == (-np.inf, np.inf)
    opening = "a → y: not identified; no adjustment gives it: a o-> x leaves open"
    assert str(unknown).startswith(opening)
    backward = solution.effect("y", "x")
    assert backward.zero is ist.results.ZeroEffect.NO_PATH
    assert backward.value == 0
    assert np.isnan(backward.standard_error)
    known = ist.Knowledge(tiers=[["a", "b"], ["x"], ["y", "z", "w"]])
    with_tiers = ist.learn(table, search=ist.BossFCI(), knowledge=known)
    assert with_tiers.effect("y", "x").zero is ist.results.ZeroEffect.KNOWLEDGE
    with pytest.raises(GraphError, match="same node"):
        solution.effect("x", "x")
    with pytest.raises(MismatchError, match="no statistics"):
        replace(solution, statistics_kept=None).effect("x", "y")


def test_effects_of_levels_in_a_pag() -> None:
    solution = ist.learn(ist.datasets.asia(rows=3000, seed=2), search=ist.BossFCI())
    effect = solution.effect("either", "dysp")
    truth = 0.45 * (0.9 - 0.8) + 0.55 * (0.7 - 0.1)  # averaged over bronc
    low, high = effect.interval()
    assert effect.adjustment == ("bronc",)
    assert low < truth < high
    assert not solution.effect("smoke", "lung").identified


@pytest.mark.parametrize("search", [ist.BossFCI, ist.LiNGAM])
def test_the_search_for_a_dag_must_be_boss(search: Any) -> None:
    with pytest.raises(ArgumentError, match=r"dag_search must be a Boss, such as Boss\(\)"):
        search(dag_search=ist.PC())


def test_missing_levels_are_refused_with_what_a_test_can_use() -> None:
    table = levels(200)
    table.loc[:20, "a"] = None
    with pytest.raises(MismatchError, match="complete rows") as refused:
        ist.learn(table, search=ist.PC(), missing=ist.AvailableCases())
    assert "BIC(), AIC()" not in str(refused.value)
