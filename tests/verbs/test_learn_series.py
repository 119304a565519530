"""Learning from series: time is known without being told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.errors import KnowledgeError, MissingValuesError


def series(seed: int, n: int = 200) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 3))
    for t in range(1, n):
        x[t] = 0.5 * x[t - 1] + rng.normal(size=3)
        x[t, 1] += 0.8 * x[t, 0]
    return x


def backwards(dag: ist.DAG, source: ist.Series) -> list[tuple[str, str]]:
    lag_of = source.schema().lag_of
    return [(a, b) for a, b in dag.edges if lag_of[a].steps < lag_of[b].steps]


@pytest.mark.long
@pytest.mark.parametrize(
    "search", [None, ist.HillClimb(), ist.XGES(), ist.Boss(), ist.NotearsAdditive()]
)
def test_no_edge_goes_back_in_time(search: Any) -> None:
    for seed in range(4):
        source = ist.Series(series(seed), lags=1)
        solution = ist.learn(source, search=search)
        assert solution.dag.edges
        assert backwards(solution.dag, source) == []


def test_time_directs_edges_of_the_class() -> None:
    source = ist.Series(series(0, 1000), lags=1)
    assert {("x0@1", "x0"), ("x2@1", "x2")} <= set(ist.learn(source).cpdag.directed)


def test_time_holds_beside_tiers_of_the_user() -> None:
    source = ist.Series(series(0), lags=1)
    names = source.schema().names
    given = ist.Knowledge(tiers=[["x1", "x1@1"], ["x0", "x0@1"]])
    solution = ist.learn(source, knowledge=given)
    assert backwards(solution.dag, source) == []
    assert ("x0", "x1") not in solution.dag.edges
    own = ist.Knowledge(tiers=[names[3:], names[:3]])
    assert ist.learn(source, knowledge=own).dag == ist.learn(source).dag


def test_an_edge_back_in_time_cannot_be_required() -> None:
    source = ist.Series(series(0), lags=1)
    with pytest.raises(KnowledgeError, match="later tier"):
        ist.learn(source, knowledge=ist.Knowledge(required=[("x0", "x0@1")]))


def test_parent_sets_know_time() -> None:
    source = ist.Series(series(0), lags=1)
    table = ist.parent_sets(source, score=ist.GaussianBIC(), max_parents=2)
    assert backwards(ist.solve(table).dag, source) == []


def weather_days(n: int = 600) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    rain = np.zeros(n, bool)
    for i in range(1, n):
        rain[i] = rng.random() < (0.85 if rain[i - 1] else 0.15)
    river = 2.0 * np.r_[False, rain[:-1]] + rng.normal(size=n)
    wet = rng.random(n) < np.where(rain, 0.9, 0.2)
    weather = np.where(rain, "rain", "sun").astype(object)
    return {"weather": weather, "wet": wet.astype(int), "river": river}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("names", [("weather", "wet"), ("weather", "wet", "river")])
def test_levels_over_time_are_learned_as_from_a_table_of_lags(names: tuple[str, ...]) -> None:
    days = {name: column for name, column in weather_days().items() if name in names}
    series = ist.Series(days, lags=2, kinds={"wet": "discrete"})
    table = {
        f"{name}@{k}" if k else name: column[2 - k : len(column) - k]
        for k in range(3)
        for name, column in days.items()
    }
    tiers = [[f"{name}@{k}" if k else name for name in names] for k in (2, 1, 0)]
    solution = ist.learn(series)
    expected = ist.learn(table, knowledge=ist.Knowledge(tiers=tiers), kinds={"wet": "discrete"})
    assert series.schema().names == tuple(table)
    assert solution.dag == expected.dag
    assert solution.score == pytest.approx(expected.score, rel=1e-12)
    assert ("weather@1", "weather") in solution.dag.edges
    past: dict[str, Any] = {"weather@1": "rain", **({"river@1": 0.0} if "river" in names else {})}
    plain: Any = replace(expected.fit(), notes=())  # as a table, its rows are alike
    assert str(solution.fit().query("weather", past)) == str(plain.query("weather", past))


def test_levels_of_all_tables_are_known_in_each() -> None:
    days = weather_days()
    halves = [{n: x[:300] for n, x in days.items()}, {n: x[300:] for n, x in days.items()}]
    halves[0]["weather"] = np.full(300, "snow", object)
    series = ist.Series(halves, lags=1, kinds={"wet": "discrete"})
    assert series.schema()["weather@1"].levels == ("rain", "snow", "sun")
    kinds = {column.name: column.read_as for column in series.reading()}
    assert kinds["wet@1"] == kinds["weather"] == "discrete"
    assert kinds["river"] == "continuous"
    halves[1]["weather"][7] = None
    with pytest.raises(MissingValuesError, match="Fill them before"):
        ist.Series(halves, lags=1)
