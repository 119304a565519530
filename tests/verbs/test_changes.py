"""Which mechanisms changed: tests by hand, Shapley values by enumeration, everywhere the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.errors import ArgumentError, GraphError, MismatchError
from isthmus.networks import DiscreteNetwork, GaussianNetwork
from isthmus.results import Changes

if TYPE_CHECKING:
    import pandas as pd

DAG = ist.DAG(["a", "b", "c", "y"], [("a", "b"), ("a", "c"), ("b", "c"), ("b", "y"), ("c", "y")])


def network(seed: int, dag: ist.DAG = DAG) -> GaussianNetwork:
    rng = np.random.default_rng(seed)
    weights = {
        v: {p: rng.uniform(0.4, 0.9) * rng.choice([-1, 1]) for p in dag.parents(v)}
        for v in dag.nodes
    }
    centres = {v: rng.normal() for v in dag.nodes}
    return GaussianNetwork(dag, centres, weights, {v: rng.uniform(0.5, 1.5) for v in dag.nodes})


def changed(
    old: GaussianNetwork, nodes: dict[str, float], spread: dict[str, float] | None = None
) -> GaussianNetwork:
    """Return a network in which intercepts have moved, and variances have grown by a factor."""
    centres = {v: c + nodes.get(v, 0.0) for v, c in old.intercepts.items()}
    variances = {v: s * (spread or {}).get(v, 1.0) for v, s in old.variances.items()}
    return replace(old, intercepts=centres, variances=variances, covariances=None)


def between(pair: Sequence[object], dag: ist.DAG, outcome: str, **options: Any) -> Changes:
    before, after = pair
    return ist.changes(before, after, dag, outcome, **options)


def frame(net: Any, n: int, seed: int) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(dict(net.sample(n, seed=seed)))


def enumerated(players: list[Any], value: Any) -> dict[Any, float]:
    """Return Shapley values as averages over all orders."""
    shares = dict.fromkeys(players, 0.0)
    orders = list(permutations(players))
    for order in orders:
        done: list[Any] = []
        for player in order:
            shares[player] += (value([*done, player]) - value(done)) / len(orders)
            done.append(player)
    return shares


@pytest.mark.long
@pytest.mark.parametrize("spread", [False, True])
def test_shares_are_averages_over_all_orders(spread: bool) -> None:
    old = network(1)
    new = changed(old, {"a": 0.5, "c": -0.6}, {"b": 1.6, "y": 1.3})
    new = replace(new, coefficients={**new.coefficients, "y": {"b": 0.1, "c": 1.2}})
    tables = frame(old, 3000, 1), frame(new, 3000, 2)
    answer = between(tables, DAG, "y", spread=spread)
    fits: list[Any] = [ist.fit(ist.summarise(t), DAG) for t in tables]
    own = [m.node for m in answer.changed]
    assert {"a", "c", "y"} <= {*own}
    rest = [v for v in DAG.nodes if v not in own]

    def value(players: list[Any]) -> float:
        new_ones = {v for p in players for v in (rest if p == "others" else [p])}
        pick = {v: fits[v in new_ones] for v in DAG.nodes}
        # The library divides squares by the degrees of freedom, `fit` by the number of rows.
        scale = {v: 3000 / (3000 - 1 - len(DAG.parents(v))) for v in DAG.nodes}
        mixed = GaussianNetwork(
            DAG,
            {v: pick[v].intercepts[v] for v in DAG.nodes},
            {v: pick[v].coefficients[v] for v in DAG.nodes},
            {v: pick[v].variances[v] * scale[v] for v in DAG.nodes},
        )
        answer = mixed.query("y")
        return float(answer.covariance[0, 0] if spread else answer.mean[0])

    expected = enumerated([*own, "others"], value)
    for m in answer.changed:
        assert m.share == pytest.approx(expected[m.node], abs=1e-9)
    assert answer.others == pytest.approx(expected["others"], abs=1e-9)
    assert sum(m.share for m in answer.changed) + answer.others == pytest.approx(answer.total)
    assert answer.before == pytest.approx(value([]))
    if not spread:
        means = [t["y"].mean() for t in tables]
        assert (answer.before, answer.after) == pytest.approx(means)


def test_rates_are_averages_over_all_orders() -> None:
    import pandas as pd
    from scipy.stats import chi2_contingency

    data = ist.datasets.asia(rows=4000, seed=1)
    old = ist.fit(data, data.dag)
    assert isinstance(old, DiscreteNetwork)
    smoke, bronc = np.array([0.2, 0.8]), np.array([[0.4, 0.6], [0.8, 0.2]])
    new = replace(old, tables={**old.tables, "smoke": smoke, "bronc": bronc}, counts=None)
    tables = frame(old, 4000, 3), frame(new, 4000, 4)
    answer = between(tables, data.dag, "dysp", level="yes")
    own = [m.node for m in answer.changed]
    assert {*own} == {"smoke", "bronc"}
    fits: list[Any] = [ist.fit(t, data.dag) for t in tables]
    rest = [v for v in data.dag.nodes if v not in own]

    def value(players: list[Any]) -> float:
        new_ones = {v for p in players for v in (rest if p == "others" else [p])}
        picked = {v: fits[v in new_ones].tables[v] for v in data.dag.nodes}
        levels = {v: fits[0].levels[v] for v in data.dag.nodes}
        return float(DiscreteNetwork(data.dag, levels, picked).query("dysp")["yes"])

    expected = enumerated([*own, "others"], value)
    for m in answer.changed:
        assert m.share == pytest.approx(expected[m.node], abs=2e-3)  # other sparse parents
        assert m.interval[0] < m.share < m.interval[1]
    assert sum(m.share for m in answer.changed) + answer.others == pytest.approx(answer.total)
    table = pd.crosstab(pd.concat(tables)["smoke"], np.repeat([0, 1], 4000))
    by_hand = chi2_contingency(table, False, "log-likelihood").pvalue
    assert next(m for m in answer.mechanisms if m.node == "smoke").p_value == pytest.approx(
        by_hand, rel=1e-6, abs=1e-300
    )


@pytest.mark.long
def test_everywhere_the_same() -> None:
    import duckdb
    import pandas as pd

    old = network(2)
    tables = frame(old, 900, 1), frame(changed(old, {"b": 0.4}), 900, 2)
    levels = [
        pd.DataFrame({v: np.where(t[v] > tables[0][v].mean(), "high", "low") for v in t})
        for t in tables
    ]
    for pair in (tables, levels):
        sites = [
            ist.Federation.simulate([t[:300], t[300:600], t[600:]], within_sites=False)
            for t in pair
        ]
        with duckdb.connect() as connection:
            relations = [connection.from_df(t) for t in pair]
            answers = [between(own, DAG, "y") for own in (pair, relations, sites)]
        for other in answers[1:]:
            assert other.total == pytest.approx(answers[0].total, abs=1e-6)
            theirs = {m.node: m for m in other.mechanisms}
            for m in answers[0].mechanisms:
                assert theirs[m.node].p_from_sums == pytest.approx(m.p_from_sums, rel=1e-4)
                if m.adjusted < 0.001:
                    assert theirs[m.node].share == pytest.approx(m.share, abs=1e-6)


@pytest.mark.long
def test_the_changed_mechanism_is_named_and_nothing_without_a_change() -> None:
    """200 of each stand in benchmarks/results/changes.md."""
    from scipy.stats import binom

    right = false = 0
    for seed in range(40):
        dag = simulate.erdos_renyi(10, 15, seed=seed)
        old = network(seed, dag)
        target = dag.nodes[seed % 10]
        outcome = max([target, *dag.descendants(target)], key=lambda v: len(dag.ancestors(v)))
        shift = 0.25 * np.sqrt(old.variances[target])
        new = changed(old, {target: float(shift)})
        tables = [frame(net, 2000, seed + k) for k, net in ((0, old), (100, new), (200, old))]
        answer = ist.changes(tables[0], tables[1], dag, outcome, draws=20)
        right += bool(answer.changed) and answer.mechanisms[0].node == target
        false += bool(ist.changes(tables[0], tables[2], dag, outcome, draws=20).changed)
    assert right >= 38
    assert false <= binom.isf(1e-3, 40, 0.05)


@pytest.mark.long
def test_skewed_noise_is_no_change() -> None:
    """Sums alone take an outlier of heavy tails for another variance; rows do not."""
    import pandas as pd
    from scipy.stats import binom

    rng = np.random.default_rng(0)
    named = {"sums": 0, "rows": 0}
    dag = ist.DAG(["x", "y"], [("x", "y")])
    for _ in range(60):
        tables = []
        for _ in range(2):
            x = rng.normal(size=500)
            tables.append(pd.DataFrame({"x": x, "y": x + rng.standard_t(4, size=500)}))
        sums = [ist.summarise(t) for t in tables]
        named["rows"] += bool(between(tables, dag, "y", draws=20).changed)
        named["sums"] += bool(between(sums, dag, "y", draws=20).changed)
    assert named["rows"] <= binom.isf(1e-3, 60, 0.05)
    assert named["sums"] > named["rows"]


def test_a_curve_whose_cause_moved_is_no_change() -> None:
    import pandas as pd

    rng = np.random.default_rng(1)
    tables = []
    for centre in (0.0, 1.0):
        x = centre + rng.normal(size=1000)
        tables.append(pd.DataFrame({"x": x, "y": x + 0.5 * x**2 + rng.normal(size=1000)}))
    answer = between(tables, ist.DAG(["x", "y"], [("x", "y")]), "y")
    assert [m.node for m in answer.changed] == ["x"]
    assert next(m for m in answer.mechanisms if m.node == "y").p_from_sums < 1e-6


def test_what_is_said() -> None:
    old = network(3)
    tables = frame(old, 1000, 1), frame(changed(old, {"a": 0.5}), 1000, 2)
    answer = between(tables, DAG, "y")
    assert "The mean of y changed by" in str(answer)
    assert "a adds" in str(answer)
    assert answer.to_frame(like=tables[0])["node"].iloc[0] == "a"
    same = ist.changes(tables[0], tables[0], DAG, "y")
    assert same.total == 0.0
    assert "No mechanism is shown" in str(same)


def test_refusals() -> None:
    import pandas as pd

    table = frame(network(4), 200, 1)
    with pytest.raises(GraphError):
        ist.changes(table, table, DAG, "z")
    with pytest.raises(ArgumentError):
        ist.changes(table, table, DAG, "y", level="yes")
    mixed = table.assign(a=np.where(table["a"] > 0, "high", "low"))
    with pytest.raises(MismatchError):
        ist.changes(mixed, mixed, DAG, "y")
    levels = pd.DataFrame({v: pd.cut(table[v], 3, labels=list("xyz")).astype(str) for v in table})
    with pytest.raises(ArgumentError, match="Name a level"):
        ist.changes(levels, levels, DAG, "y")
