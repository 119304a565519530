"""Directions that curves tell must hold with lines as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.graphs import Knowledge
from isthmus.graphs.knowledge import without_others
from isthmus.searches.reversals import margins_on_same_pairs, reversal_margins
from isthmus.statistics import Moments

N = 2000
pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")


def effects_of_two_causes(seed: int, rows: int = 2 * N, columns: int = 8) -> dict[str, Any]:
    """Neither cause is in the table; every second column is cut into three levels."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    table = {}
    for i in range(columns):
        w = rng.normal(size=3)
        x = w[0] * a + w[1] * b + w[2] * a * b + 0.7 * rng.normal(size=rows)
        table[f"x{i}"] = np.digitize(x, np.quantile(x, [0.5, 0.8])).astype(str) if i % 2 else x
    return table


def clear_by_curves_alone(solution: Any) -> set[tuple[str, str]]:
    kept = solution.statistics_kept
    known = without_others(Knowledge(), solution.dag) if kept.explained else Knowledge()
    edges = solution.cpdag.directed
    margins = reversal_margins(kept.local, solution.dag, edges, known)
    return {edge for edge, margin in margins.items() if margin >= 5}


def opposite(first: Any, second: Any) -> int:
    return sum(edge[::-1] in second for edge in first)


def test_halves_of_a_mixed_table_do_not_contradict_each_other() -> None:
    """Curves alone take their own misfit for evidence of directions, by 13 to 26 nats here."""
    table = effects_of_two_causes(8)
    halves = [{v: x[part] for v, x in table.items()} for part in (slice(N), slice(N, None))]
    first, second = (ist.learn(half) for half in halves)
    assert all("lines did not survive" in each.choice for each in (first, second))
    assert opposite(*map(clear_by_curves_alone, (first, second))) == 2
    assert opposite(first.directions.determined, second.directions.determined) == 0


def collider(rows: int) -> dict[str, Any]:
    """Two causes of one effect, which is a cause; two of the three relations are curved."""
    rng = np.random.default_rng(3)
    x, group = rng.normal(size=rows), rng.choice(["a", "b", "c"], size=rows)
    z = np.tanh(2 * x) + 1.5 * (group == "b") + 0.6 * rng.normal(size=rows)
    return {"x": x, "group": group, "z": z, "w": 0.5 * z + 0.2 * z**2 + rng.normal(size=rows)}


def test_directions_that_both_models_tell_stay_wherever_the_data_are() -> None:
    duckdb, pd = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    table = collider(2000)
    parts = [{v: column[i::3] for v, column in table.items()} for i in range(3)]
    frame = pd.DataFrame(table)
    with duckdb.connect() as connection:
        sources = (table, connection.from_df(frame), ist.Federation.simulate(parts))
        for source in sources:
            learned = ist.learn(source)
            assert "lines did not survive" in learned.choice
            assert {*learned.directions.determined} == {("x", "z"), ("group", "z"), ("z", "w")}
            kept: Any = learned.statistics_kept
            assert kept.lines is not None
            assert kept.lines.equivalent


def test_margins_by_another_score_are_those_of_its_own_best_graph() -> None:
    rng = np.random.default_rng(0)
    a, b, d = rng.normal(size=(3, 500))
    table = {"a": a, "b": b, "c": a + b + rng.normal(size=500), "d": d}
    score = ist.GaussianEBIC()
    moments = ist.summarise(table)
    assert isinstance(moments, Moments)
    local, best = score.bind(moments), ist.learn(table, score=score)
    wrong = ist.DAG(list("abcd"), [("c", "a"), ("b", "c"), ("a", "d")])
    found = margins_on_same_pairs(local, wrong, wrong.edges, Knowledge())
    # With a and b apart, c between them: the collider decides both, and only b to c is asked as is.
    assert found["c", "a"] == found["a", "d"] == 0.0
    expected = best.score - max(
        local.total(ist.DAG(list("abcd"), edges))
        for edges in ([("c", "a"), ("c", "b")], [("a", "c"), ("c", "b")], [("c", "b")])
    )
    assert found["b", "c"] == pytest.approx(expected)


def share(ensemble: Any, edge: tuple[str, str]) -> float:
    shares, place = ensemble.edge_probabilities(), ensemble.nodes.index
    a, b = map(place, edge)
    return float(shares[a, b] / (shares[a, b] + shares[b, a]))


def test_the_bootstrap_leaves_open_what_curves_alone_tell() -> None:
    table = {v: x[:N] for v, x in effects_of_two_causes(8).items()}
    learned = ist.learn(table)
    alone = clear_by_curves_alone(learned) - {*learned.directions.determined}
    assert len(alone) > 3
    ensemble = ist.bootstrap(table, replicates=20, seed=1)
    assert np.mean([share(ensemble, edge) for edge in alone]) < 0.82  # by curves alone 0.91


def test_the_bootstrap_keeps_directions_that_both_models_tell() -> None:
    ensemble = ist.bootstrap(collider(2000), replicates=10, seed=1)
    for edge in (("x", "z"), ("group", "z"), ("z", "w")):
        assert share(ensemble, edge) == 1.0
    required = ist.Knowledge(required=[("z", "x")])
    assert share(ist.bootstrap(collider(500), replicates=5, knowledge=required), ("z", "x")) == 1.0


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_halves_of_a_table_of_curves_do_not_contradict_each_other(seed: int) -> None:
    """Ten sizes of a cell nucleus, which determine each other along curves: three did before."""
    sets = pytest.importorskip("sklearn.datasets")
    loaded = sets.load_breast_cancer(as_frame=True)
    table = loaded.data.iloc[:, :10].assign(found=loaded.target_names[loaded.target])
    rows = np.random.default_rng(seed).permutation(len(table))
    first, second = (ist.learn(table.iloc[half]) for half in np.array_split(rows, 2))
    opposite = {(b, a) for a, b in first.directions.determined}
    assert not opposite & set(second.directions.determined)
