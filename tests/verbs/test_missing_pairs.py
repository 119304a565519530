"""Sparse columns get no false edges, and columns never observed together are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.errors import MissingValuesError
from isthmus.statistics import Moments
from isthmus.statistics.tally import FEWEST, PairCounts

EM = ist.ExpectationMaximisation()
Table = dict[str, Any]


def sparse(seed: int, share: float = 0.9, n: int = 300) -> Table:
    """Independent columns, of which 't' lacks most values."""
    rng = np.random.default_rng(seed)
    table = {f"u{i}": rng.normal(size=n) for i in range(10)}
    t = rng.normal(size=n)
    t[rng.random(n) < share] = np.nan
    return {**table, "t": t}


def apart(common: int, n: int = 400) -> Table:
    """An effect of 'a' on 'b', with this many rows in which both are observed."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    table = {"a": a, "b": a + rng.normal(size=n), "c": rng.normal(size=n)}
    table["a"][: n // 2] = np.nan
    table["b"][n // 2 + common :] = np.nan
    return table


def coded(table: Table) -> Table:
    return {
        name: [None if np.isnan(x) else "yes" if x > 0 else "no" for x in column]
        for name, column in table.items()
    }


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")  # of few rows of an edge
def test_a_sparse_column_gets_no_false_edges() -> None:
    edges = 0
    for seed in range(20):  # with the mean over all pairs of columns: 5 per table
        solution = ist.learn(sparse(seed), missing=EM)
        edges += sum("t" in edge for edge in solution.dag.edges)
    assert edges <= 3


@pytest.mark.long
def test_the_note_names_the_sparse_column() -> None:
    table = sparse(0)
    moments = ist.summarise(table, missing=EM)
    n = moments.rows_about(["t", "u1"])
    assert n < np.isfinite(table["t"]).sum() < 50
    assert moments.n == moments.rows_about(["u0", "u1"]) == 300
    notes = ist.learn(table, missing=EM).notes
    note = next(note for note in notes if "values in few rows" in note)
    assert "The column 't' has values" in note
    assert f"down to {n} that count" in note
    few_holes = ist.learn(sparse(0, 0.2), missing=EM)
    assert not any("values in few rows" in note for note in few_holes.notes)


def test_equal_missingness_costs_little() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1000, 6))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    n = ist.summarise({f"x{i}": x for i, x in enumerate(rows.T)}, missing=EM).n
    assert 440 < n < 490  # the mean over pairs is 490


@pytest.mark.parametrize("common", [0, FEWEST - 1])
@pytest.mark.parametrize("missing", [EM, ist.AvailableCases(), ist.StructuralEM()])
def test_columns_that_are_never_observed_together(missing: Any, common: int) -> None:
    table = apart(common) if missing is EM else coded(apart(common))
    with pytest.raises(MissingValuesError, match=rf"'a' and 'b' \({common}\).* Leave out '[ab]'"):
        ist.learn(table, missing=missing)
    del table["a"]
    ist.learn(table, missing=missing)


def test_a_lazy_table_and_a_federation_refuse_them_too() -> None:
    lazy = pytest.importorskip("polars").DataFrame(apart(0), nan_to_null=True).lazy()
    with pytest.raises(MissingValuesError, match="'a' and 'b'"):
        ist.learn(lazy, missing=EM)
    sites = {f"s{i}": {k: x[i::3] for k, x in apart(0, 900).items()} for i in range(3)}
    federation = ist.Federation.simulate(sites, missing=EM)
    with pytest.raises(MissingValuesError, match="'a' and 'b'"):
        ist.learn(federation, missing=EM)


def test_some_common_rows_suffice() -> None:
    effect = ist.learn(
        apart(60), missing=EM, knowledge=ist.Knowledge(tiers=[["a", "c"], ["b"]])
    ).effect("a", "b")
    low, high = effect.interval()
    assert low < 1.0 < high


def test_complete_small_tables_pass() -> None:
    PairCounts(("a", "b"), np.full((2, 2), 3.0), 3).refuse_apart()


def with_sparse(seed: int, kind: str) -> tuple[Table, Table]:
    """A complete table, and the same with a column of which 5% of the values are there."""
    rng = np.random.default_rng(seed)
    n = 1000
    dag = simulate.erdos_renyi(6, 7, seed=seed)
    whole = {
        name: np.asarray(x) / np.std(x)
        for name, x in simulate.linear(dag, n, seed=seed).data.items()
    }
    cause = {"noise": 0.0, "child": whole["x1"], "children": whole["x1"] + whole["x4"]}[kind]
    sparse = cause + rng.normal(size=n)
    sparse[rng.random(n) < 0.95] = np.nan
    return whole, {**whole, "sparse": sparse}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("kind", ["noise", "child", "children"])
def test_a_sparse_column_costs_its_own_edges_only(kind: str) -> None:
    found = 0
    for seed in range(4):
        whole, table = with_sparse(seed, kind)
        alone = ist.learn(whole, score=ist.GaussianEBIC()).dag
        both = ist.learn(table, score=ist.GaussianEBIC(), missing=EM).dag
        others = {frozenset(edge) for edge in both.edges if "sparse" not in edge}
        assert others == {frozenset(edge) for edge in alone.edges}
        found += sum("sparse" in edge for edge in both.edges)
    assert found == 0 if kind == "noise" else found >= 4


def moments_of(table: dict[str, Any]) -> Moments:
    moments = ist.summarise(table, missing=EM)
    assert isinstance(moments, Moments)
    return moments


def test_the_families_of_complete_columns_keep_their_scores() -> None:
    whole, table = with_sparse(0, "child")
    dag = ist.DAG([*whole], [("x0", "x1"), ("x2", "x1")])
    wider = ist.DAG([*table], [*dag.edges, ("x1", "sparse")])
    for score in (ist.GaussianBIC(), ist.GaussianEBIC(), ist.DegenerateGaussian(gamma=0.5)):
        alone = score.bind(moments_of(whole))
        # The penalty of an edge depends on the number of columns, so three edges are compared.
        own = score.bind(moments_of(table).select([*whole]))
        assert own.total(dag) == pytest.approx(alone.total(dag), abs=1e-3)
        moments = moments_of(table)
        score.bind(moments).total(wider)
    assert moments.rows_about(["x0", "x1"]) == moments.n == 1000
    assert moments.rows_about(["x0", "x1", "sparse"]) < 60
    about = moments.about(["x1", "sparse"])
    assert about.n == moments.rows_about(["x1", "sparse"])
    assert about.covariance() == pytest.approx(moments.select(["x1", "sparse"]).covariance())


def test_penalties_are_those_of_the_rows_of_a_family() -> None:
    """An edge to a sparse column pays if it would with as many rows as speak about it."""
    _, table = with_sparse(1, "child")
    moments = moments_of(table)
    names = list(moments.schema.names)
    child, parent = names.index("sparse"), names.index("x1")
    for score in (ist.GaussianBIC(), ist.GaussianEBIC(gamma=0.0), ist.DegenerateGaussian()):
        bound = score.bind(moments)
        gain = bound.local(child, [parent]) - bound.local(child, [])
        own = score.bind(moments.about(names))
        few = own.local(child, [parent]) - own.local(child, [])
        assert gain * own_rows(moments) == pytest.approx(few * moments.n)
        both = bound.extensions(child, [parent], [0, 2])
        assert both[2] == pytest.approx(bound.local(child, [parent, 2]))


def own_rows(moments: ist.Moments) -> int:
    return moments.rows_about(moments.schema.names)


def test_estimated_moments_are_saved_with_their_rows(tmp_path: Path) -> None:
    moments = ist.summarise(with_sparse(0, "noise")[1], missing=EM)
    moments.save(tmp_path / "moments.npz")
    assert ist.Moments.load(tmp_path / "moments.npz") == moments
