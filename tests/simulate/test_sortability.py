from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus import simulate
from isthmus.errors import DataError, GraphError, MismatchError
from isthmus.graphs import DAG
from isthmus.simulate.graphs import stepwise
from isthmus.statistics import Kind, Moments, Schema, Variable

CHAIN = DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])


def slow_alignment(values: dict[str, float], dag: DAG) -> float:
    """Follow every path by hand and keep one of each (start, end, length)."""
    found: set[tuple[str, str, int]] = set()

    def walk(start: str, here: str, length: int) -> None:
        for child in dag.children(here):
            found.add((start, child, length + 1))
            walk(start, child, length + 1)

    for node in dag.nodes:
        walk(node, node, 0)
    credit = [
        1.0 if values[a] < values[b] else 0.5 if values[a] == values[b] else 0.0
        for a, b, _ in found
    ]
    return sum(credit) / len(credit)


def test_by_hand() -> None:
    # Paths a->b, b->c, a->c; variances 1, 3, 2: right, wrong, right.
    assert simulate.order_alignment(np.array([1.0, 3.0, 2.0]), CHAIN) == pytest.approx(2 / 3)
    assert simulate.order_alignment(np.array([1.0, 1.0, 2.0]), CHAIN) == pytest.approx(2.5 / 3)
    assert simulate.order_alignment(np.array([3.0, 2.0, 1.0]), CHAIN) == 0.0
    # a->c both at length 1 and at length 2: the pair counts twice. Values 1, 2, 0.
    triangle = DAG(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    assert simulate.order_alignment(np.array([1.0, 2.0, 0.0]), triangle) == pytest.approx(1 / 4)
    # Two routes a->b->d, a->c->d of the same length: a, d counts once. Values 0, 1, 2, -1.
    diamond = DAG(list("abcd"), [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert simulate.order_alignment(np.array([0.0, 1.0, 2.0, -1.0]), diamond) == pytest.approx(
        2 / 5
    )
    assert math.isnan(simulate.order_alignment(np.ones(2), DAG(["a", "b"])))


@given(st.integers(2, 7), st.data(), st.integers(0, 500))
def test_equals_path_walking(d: int, data: st.DataObject, seed: int) -> None:
    edges = data.draw(st.integers(1, d * (d - 1) // 2))
    dag = simulate.erdos_renyi(d, edges, seed=seed)
    values = data.draw(st.lists(st.integers(0, 3), min_size=d, max_size=d))
    fast = simulate.order_alignment(np.array(values, dtype=float), dag)
    named = dict(zip(dag.nodes, map(float, values), strict=True))
    assert fast == pytest.approx(slow_alignment(named, dag))


def test_r_squared_of_known_covariance() -> None:
    # Chain with unit weights and noise: R² on the others is 1/2, 2/3, 2/3 by the precision
    # matrix (I - W) (I - W)^T, whose diagonal is 2, 2, 1, and variances 1, 2, 3.
    model = simulate.LinearModel(
        CHAIN, {("a", "b"): 1.0, ("b", "c"): 1.0}, dict.fromkeys("abc", 1.0)
    )
    from isthmus.simulate.graphs import r_squared

    expected = [1 - 1 / (2 * 1), 1 - 1 / (2 * 2), 1 - 1 / (1 * 3)]
    assert np.allclose(r_squared(model.covariance(), CHAIN.nodes), expected)


def test_r_squared_with_a_duplicate_column() -> None:
    from isthmus.simulate.graphs import r_squared

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 500))
    z = x + y + rng.normal(size=500)
    columns = np.array([x, x, y, z])
    result = r_squared(np.cov(columns), ("a", "b", "c", "d"))
    assert result[:2] == pytest.approx([1.0, 1.0])
    reduced = r_squared(np.cov(columns[1:]), ("b", "c", "d"))
    assert result[2:] == pytest.approx(reduced[1:], abs=1e-8)


def test_raw_data_give_the_order_away_and_internal_ones_do_not() -> None:
    raw, internal, raw_r2, internal_r2, later_r2 = [], [], [], [], []
    for seed in range(12):
        dag = simulate.erdos_renyi(30, 60, seed=seed)
        a = simulate.linear(dag, 1000, seed=seed)
        b = simulate.linear(dag, 1000, internally_standardised=True, seed=seed)
        raw.append(simulate.varsortability(a))
        internal.append(simulate.varsortability(b))
        raw_r2.append(simulate.r2_sortability(a))
        later_r2.append(simulate.r2_sortability(a.standardised()))
        internal_r2.append(simulate.r2_sortability(b))
        assert simulate.varsortability(a.standardised()) == 0.5
    assert np.mean(raw) > 0.93
    assert abs(np.mean(internal) - 0.5) < 0.1
    assert np.mean(raw_r2) > 0.75
    assert later_r2 == pytest.approx(raw_r2)
    assert abs(np.mean(internal_r2) - 0.5) < 0.12


def test_every_form_of_data_gives_the_same() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    dag = simulate.erdos_renyi(["r", "p", "q", "s"], 4, seed=1)
    result = simulate.linear(dag, 200, seed=1)
    schema = Schema(tuple(Variable(name, Kind.CONTINUOUS) for name in dag.nodes))
    forms: list[Any] = [
        result.data,
        result.array(),
        pd.DataFrame(result.data)[["q", "s", "p", "r"]],
        pl.DataFrame(dict(result.data)),
        Moments.from_array(schema, result.array()),
    ]
    for form in forms:
        assert simulate.varsortability(form, dag) == simulate.varsortability(result)
        assert simulate.r2_sortability(form, dag) == simulate.r2_sortability(result)
        if not isinstance(form, np.ndarray):
            assert simulate.sort_and_regress(form) == simulate.sort_and_regress(result)


def bic(gram: np.ndarray, chosen: tuple[int, ...], n: int) -> float:
    """Slow BIC of the last column of a covariance on chosen columns (smaller is better)."""
    s = list(chosen)
    rss = gram[-1, -1]
    if s:
        rss = rss - gram[-1, s] @ np.linalg.solve(gram[np.ix_(s, s)], gram[s, -1])
    return float(n * np.log(rss) + len(s) * np.log(n))


@given(st.integers(0, 300))
def test_stepwise_ends_where_no_single_change_helps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = 60, 6
    x = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    y = x @ (rng.normal(size=p) * (rng.random(p) < 0.5)) + rng.normal(size=n)
    gram = np.cov(np.column_stack([x, y]).T, ddof=0)
    chosen = tuple(stepwise(gram[:p, :p], gram[:p, p], float(gram[p, p]), n))
    here = bic(gram, chosen, n)
    for k in range(p):
        other = tuple(sorted(set(chosen) ^ {k}))
        assert bic(gram, other, n) >= here - 1e-9


def test_sort_and_regress_finds_a_raw_graph() -> None:
    # Orthogonal enough for greedy selection, ordered by variance: the graph itself.
    dag = DAG(["d", "a", "c", "b"], [("a", "b"), ("b", "c"), ("a", "d"), ("c", "d")])
    weights = dict.fromkeys(dag.edges, 1.0)
    result = simulate.linear(dag, 20_000, weights=weights, seed=0)
    assert simulate.varsortability(result) == 1.0
    assert simulate.sort_and_regress(result) == dag
    assert simulate.sort_and_regress(result, by=simulate.SortBy.VARIANCE).nodes == dag.nodes


def test_sort_and_regress_respects_its_order() -> None:
    dag = simulate.erdos_renyi(12, 24, seed=5)
    result = simulate.linear(dag, 500, seed=5)
    learned = simulate.sort_and_regress(result)
    variances = {name: column.var() for name, column in result.data.items()}
    assert all(variances[a] < variances[b] for a, b in learned.edges)
    one = simulate.sort_and_regress(result, by=simulate.SortBy.RANDOM, seed=1)
    assert one == simulate.sort_and_regress(result, by=simulate.SortBy.RANDOM, seed=1)
    assert one != simulate.sort_and_regress(result, by=simulate.SortBy.RANDOM, seed=2)


def test_r_squared_baseline_is_scale_free() -> None:
    dag = simulate.erdos_renyi(12, 24, seed=6)
    result = simulate.linear(dag, 500, seed=6)
    by = simulate.SortBy.R_SQUARED
    again = simulate.sort_and_regress(result.standardised(), by=by)
    assert simulate.sort_and_regress(result, by=by) == again


def test_beats_chance_on_raw_data_only() -> None:
    def wrong(result: simulate.Simulation, by: simulate.SortBy) -> int:
        truth = result.dag.adjacency()
        learned = simulate.sort_and_regress(result, by=by).adjacency()
        return int((truth != learned).sum())

    raw = dict.fromkeys(simulate.SortBy, 0)
    internal = dict.fromkeys(simulate.SortBy, 0)
    for seed, by in itertools.product(range(6), simulate.SortBy):
        dag = simulate.erdos_renyi(20, 40, seed=seed)
        raw[by] += wrong(simulate.linear(dag, 1000, seed=seed), by)
        standard = simulate.linear(dag, 1000, internally_standardised=True, seed=seed)
        internal[by] += wrong(standard, by)
    assert raw[simulate.SortBy.VARIANCE] < 0.35 * raw[simulate.SortBy.RANDOM]
    assert raw[simulate.SortBy.R_SQUARED] < 0.8 * raw[simulate.SortBy.RANDOM]
    assert internal[simulate.SortBy.VARIANCE] > 0.8 * internal[simulate.SortBy.RANDOM]
    assert internal[simulate.SortBy.R_SQUARED] > 0.8 * internal[simulate.SortBy.RANDOM]


def test_collinear_and_short_data() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    learned = simulate.sort_and_regress({"a": x, "b": 2 * x, "c": 3 * x + rng.normal(size=200)})
    assert len(learned.edges) == 2
    tiny = {f"x{i}": rng.normal(size=4) for i in range(6)}
    dag = simulate.sort_and_regress(tiny)
    assert max(len(dag.parents(name)) for name in dag.nodes) <= 2


def test_refusals() -> None:
    with pytest.raises(GraphError, match="true graph"):
        simulate.varsortability({"a": np.ones(3)})
    with pytest.raises(DataError, match="not columns"):
        simulate.varsortability({"a": np.ones(3), "b": np.ones(3)}, CHAIN)
    with pytest.raises(DataError, match="not numeric"):
        simulate.varsortability(dict.fromkeys("abc", np.array(["u", "v"])), CHAIN)
    with pytest.raises(DataError, match="finite"):
        simulate.varsortability(dict.fromkeys("abc", np.array([1.0, np.nan])), CHAIN)
    with pytest.raises(DataError, match="constant"):
        simulate.r2_sortability(dict.fromkeys("abc", np.ones(5)), CHAIN)
    with pytest.raises(DataError, match="array"):
        simulate.varsortability(np.ones((5, 2)), CHAIN)
    with pytest.raises(DataError, match="column names"):
        simulate.sort_and_regress(np.ones((5, 2)))
    with pytest.raises(DataError, match="2 rows"):
        simulate.sort_and_regress({"a": [1.0], "b": [2.0]})
    schema = Schema((Variable("a", Kind.DISCRETE, ("u", "v", "w")), Variable("b", Kind.CONTINUOUS)))
    moments = Moments.from_array(schema, np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]))
    with pytest.raises(MismatchError):
        simulate.varsortability(moments, DAG(["a", "b"], [("a", "b")]))


def test_random_order_knows_nothing_of_a_graph_with_the_same_seed() -> None:
    # The labels of a graph are a permutation too: the same stream would be the true order.
    aligned = []
    for seed in range(40):
        dag = simulate.erdos_renyi(15, 30, seed=seed)
        result = simulate.linear(dag, 300, seed=seed)
        learned = simulate.sort_and_regress(result, by=simulate.SortBy.RANDOM, seed=seed)
        order = {name: i for i, name in enumerate(learned.topological_order())}
        aligned += [order[a] < order[b] for a, b in dag.edges]
    assert abs(np.mean(aligned) - 0.5) < 0.12
