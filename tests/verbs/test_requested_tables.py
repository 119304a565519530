"""Discrete tables of engines that are too large to be fetched: tables are counted on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import completed
from isthmus.errors import DataError, TimeLimitError
from isthmus.results import Ending
from isthmus.statistics.requested import RequestedCounts
from isthmus.tables import Lazy, lazy

Constructor = Callable[[dict[str, Any]], Any]


def _table() -> dict[str, Any]:
    """Nine columns, half of them text; each depends on up to two before it."""
    rng = np.random.default_rng(4)
    columns: list[Any] = []
    for i in range(9):
        levels = 2 + i % 3
        parents = [columns[j] for j in (i - 1, i - 4) if j >= 0]
        base = sum((k + 1) * p for k, p in enumerate(parents))
        noise = rng.integers(0, levels, size=4_000)
        columns.append(np.where(rng.random(4_000) < 0.6, base % levels, noise))
    words = np.array(["low", "mid", "high", "top"])
    return {f"v{i}": words[c] if i % 2 else c.astype(np.int64) for i, c in enumerate(columns)}


TABLE = _table()
SEARCHES = [ist.XGES(), ist.HillClimb(restarts=2), ist.Boss(starts=2)]


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "MOST", 2_000)


@pytest.mark.long
def test_every_engine_finds_what_the_table_in_memory_has(lazy_constructor: Constructor) -> None:
    kinds = dict.fromkeys(TABLE, "discrete")
    found = ist.learn(lazy_constructor(TABLE), kinds=kinds, search=ist.XGES())
    expected = ist.learn(TABLE, kinds=kinds, search=ist.XGES())
    assert found.cpdag == expected.cpdag
    assert found.score == pytest.approx(expected.score, rel=1e-12)
    assert found.fit().dag.nodes == expected.fit().dag.nodes
    sent = [e for e in found.disclosure.entries if "one scan" in e.what]
    assert 1 <= len(sent) <= 6
    assert all(e.size <= lazy.MOST for e in found.disclosure.entries if "rows" in e.what)


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES, ids=repr)
@pytest.mark.parametrize("score", [ist.BIC(), ist.BDeu(ess=5), ist.K2(), ist.EBIC()], ids=repr)
def test_every_search_and_score_gives_the_same(search: Any, score: Any) -> None:
    if isinstance(score, ist.K2) and isinstance(search, ist.XGES):
        return
    pl = pytest.importorskip("polars")
    kinds = dict.fromkeys(TABLE, "discrete")
    found = ist.learn(pl.LazyFrame(TABLE), kinds=kinds, search=search, score=score)
    expected = ist.learn(TABLE, kinds=kinds, search=search, score=score)
    assert found.dag == expected.dag
    assert found.score == pytest.approx(expected.score, rel=1e-12)


@pytest.mark.long
def test_tables_equal_those_of_all_rows(lazy_constructor: Constructor) -> None:
    counts = Lazy(lazy_constructor(TABLE), integers="discrete").requested_counts()
    assert isinstance(counts, RequestedCounts)
    names = counts.schema.names
    counts.asked |= dict.fromkeys([(0, 3), (1, 2, 5), (0,), (0, 1)])
    completed(counts.scan())
    everything = ist.CountPlan.everything()
    exact = ist.summarise(TABLE, kinds=dict.fromkeys(TABLE, "discrete"), plan=everything)
    assert isinstance(exact, ist.Counts)
    for asked in [(3, 0), (2, 5, 1), (5,), (1, 0), (2, 1)]:
        chosen = [names[i] for i in asked]
        np.testing.assert_array_equal(counts.table(chosen), exact.table(chosen))
    assert not counts.knows((0, 2))


def test_a_misleading_sample_costs_scans_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pl = pytest.importorskip("polars")
    from isthmus.tables.engines.polars import PolarsEngine

    kinds = dict.fromkeys(TABLE, "discrete")
    expected = ist.learn(TABLE, kinds=kinds, search=ist.XGES())

    def misleading(self: PolarsEngine, columns: list[str], rows: int, total: int) -> Any:
        rng = np.random.default_rng(0)
        table = self.table.select(columns).collect()
        return table.select(pl.col(c).shuffle(int(rng.integers(9))) for c in columns).head(50)

    monkeypatch.setattr(PolarsEngine, "sample", misleading)
    found = ist.learn(pl.LazyFrame(TABLE), kinds=kinds, search=ist.XGES())
    assert found.dag == expected.dag


def _duckdb(table: dict[str, Any]) -> Any:
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    return duckdb.from_arrow(pa.table(table))


def test_levels_of_integers_follow_from_their_range_only_if_all_occur() -> None:
    values = np.arange(30_000) % 3
    late = np.where(np.arange(30_000) < 20_000, values, 2 * values)
    rng = np.random.default_rng(0)
    others = {f"x{i}": rng.integers(0, 5, 30_000) for i in range(9)}
    table = {"a": values - 1, "late": late, "gap": 2 * values, **others}
    source = Lazy(_duckdb(table), integers="discrete")
    schema = source.schema()
    assert [schema[n].levels for n in ("a", "late", "gap")] == [(-1, 0, 1), (0, 1, 2, 4), (0, 2, 4)]
    assert schema["x0"].levels == (0, 1, 2, 3, 4)
    levels = next(e for e in source.disclosure().entries if e.what.startswith("levels"))
    assert levels.size == 2 * (4 + 3)  # of two columns; those of the others need no counts


def test_a_level_that_only_the_last_row_has_is_found() -> None:
    table = {n: np.append(c, c[:1]) for n, c in TABLE.items()}
    table["v0"][-1] = 7
    kinds = dict.fromkeys(TABLE, "discrete")
    found = ist.learn(_duckdb(table), kinds=kinds, search=ist.XGES())
    expected = ist.learn(table, kinds=kinds, search=ist.XGES())
    assert [*found.reading.notes] == [*expected.reading.notes]
    assert found.cpdag == expected.cpdag
    assert found.score == pytest.approx(expected.score, rel=1e-12)


@pytest.mark.long
def test_the_joint_table_is_refused(lazy_constructor: Constructor) -> None:
    source = Lazy(lazy_constructor(TABLE), integers="discrete")
    with pytest.raises(DataError, match="more than 200 distinct rows of 9 columns"):
        source.counts(ist.CountPlan.everything())
    pairs = source.counts(ist.CountPlan.up_to(2))
    exact = ist.summarise(TABLE, kinds=dict.fromkeys(TABLE, "discrete"), plan=pairs.plan)
    assert pairs == exact


def test_time_limits_hold_while_an_engine_is_read() -> None:
    pl = pytest.importorskip("polars")
    kinds = dict.fromkeys(TABLE, "discrete")
    with pytest.raises(TimeLimitError, match="there is no graph yet"):
        ist.learn(pl.LazyFrame(TABLE), kinds=kinds, time_limit=1e-6)
    rng = np.random.default_rng(0)
    with pytest.raises(TimeLimitError):
        ist.learn(pl.LazyFrame({"x": rng.normal(size=50), "y": rng.normal(size=50)}), time_limit=0)


def test_the_graph_of_the_sample_is_returned_if_the_scan_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pl = pytest.importorskip("polars")

    def stopped(self: RequestedCounts) -> Any:
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(RequestedCounts, "scan", stopped)
    kinds = dict.fromkeys(TABLE, "discrete")
    solution = ist.learn(pl.LazyFrame(TABLE), kinds=kinds)
    assert solution.status.ending is Ending.INTERRUPTED
    assert any("rests on a sample" in note for note in solution.notes)
    assert solution.fit().dag == solution.dag


def test_candidates_are_the_same_everywhere_and_cost_fewer_tables() -> None:
    pl = pytest.importorskip("polars")
    kinds = dict.fromkeys(TABLE, "discrete")
    few, all_pairs = (
        ist.learn(pl.LazyFrame(TABLE), kinds=kinds, search=search)
        for search in (ist.XGES(candidates=3), ist.XGES())
    )
    assert few.dag == ist.learn(TABLE, kinds=kinds, search=ist.XGES(candidates=3)).dag
    sent, more = (sum(e.size for e in s.disclosure.entries) for s in (few, all_pairs))
    assert sent < more
    everyone = ist.learn(TABLE, kinds=kinds, search=ist.XGES(candidates=8))
    assert everyone.dag == ist.learn(TABLE, kinds=kinds, search=ist.XGES()).dag


def test_candidates_leave_required_edges_and_weak_pairs_out() -> None:
    kinds = dict.fromkeys(TABLE, "discrete")
    known = ist.Knowledge(required=[("v0", "v8")])
    solution = ist.learn(TABLE, kinds=kinds, search=ist.XGES(candidates=1), knowledge=known)
    assert ("v0", "v8") in solution.dag.edges
    free = ist.learn(TABLE, kinds=kinds, search=ist.XGES())
    assert len(solution.dag.edges) < len(free.dag.edges)
