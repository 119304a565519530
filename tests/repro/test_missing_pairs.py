"""Sparse columns get no false edges, and columns never observed together are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MissingValuesError
from isthmus.statistics.pairs import FEWEST, PairCounts

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


@pytest.mark.filterwarnings("ignore:.*rows for 11 variables:isthmus.errors.DataWarning")
def test_a_sparse_column_gets_no_false_edges() -> None:
    edges = 0
    for seed in range(20):  # with the mean over all pairs of columns: 5 per table
        solution = ist.learn(sparse(seed), missing=EM)
        edges += sum("t" in edge for edge in solution.dag.edges)
    assert edges <= 3


def test_the_note_names_the_sparse_column() -> None:
    table = sparse(0)
    n = ist.summarise(table, missing=EM).n
    assert n < np.isfinite(table["t"]).sum() < 50
    notes = ist.learn(table, missing=EM).notes
    note = next(note for note in notes if "standard errors count" in note)
    assert f"count {n} of 300 rows" in note
    assert "Without 't', 300 rows would count." in note
    few_holes = ist.learn(sparse(0, 0.2), missing=EM)
    assert not any("standard errors count" in note for note in few_holes.notes)


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
