"""Rows with weights: those of repeated rows, of weighted means, and of a population."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, MismatchError, SchemaError

if TYPE_CHECKING:
    import pandas as pd


def rows(n: int = 400, seed: int = 0) -> pd.DataFrame:
    import pandas as pd

    rng = np.random.default_rng(seed)
    a = rng.normal(10.0, 2.0, size=n)
    b = 0.5 * a + rng.normal(size=n)
    sex = np.where(rng.random(n) < 0.4, "f", "m")
    group = np.where((sex == "f") ^ (rng.random(n) < 0.3), "x", "y")
    return pd.DataFrame({"a": a, "b": b, "sex": sex, "group": group, "w": rng.integers(0, 5, n)})


def test_frequencies_are_repeated_rows() -> None:
    table = rows()
    repeated = table.loc[table.index.repeat(table["w"])].drop(columns="w")
    weighted = ist.Weighted(table, "w", frequencies=True)
    ours, theirs = weighted.moments(), ist.Frame(repeated).moments()
    assert ours.n == theirs.n == table["w"].sum()
    np.testing.assert_allclose(in_spreads(ours, theirs), 0.0, atol=1e-12)
    assert ours.schema == theirs.schema
    levels = ["sex", "group"]
    plan = ist.CountPlan.everything()
    few = ist.Weighted(table[[*levels, "w"]], "w", frequencies=True)
    counted = few.counts(plan), ist.Frame(repeated[levels]).counts(plan)
    np.testing.assert_array_equal(counted[0].table(levels), counted[1].table(levels))
    score = ist.DegenerateGaussian()
    dag = ist.DAG(ours.schema.names, [("a", "b"), ("sex", "group")])
    assert ist.score(weighted, dag, score) == pytest.approx(
        ist.score(repeated, dag, score), rel=1e-12
    )
    assert ist.learn(few).dag == ist.learn(counted[1]).dag


@pytest.mark.parametrize("seed", range(20))
def test_frequencies_are_repeated_rows_in_any_units(seed: int) -> None:
    """Columns whose units and distances from zero differ by many powers of ten."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    values = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5)) * 10.0 ** rng.uniform(-3, 3, 5)
    table = pd.DataFrame(values + 10.0 ** rng.uniform(-2, 4, 5), columns=list("abcde"))
    often = rng.integers(0, 9, len(table))
    weighted = ist.Weighted(table, often, frequencies=True)
    again = table.loc[table.index.repeat(often)]
    np.testing.assert_allclose(
        in_spreads(weighted.moments(), ist.Frame(again).moments()), 0.0, atol=1e-12
    )
    names = table.columns
    dag = ist.DAG(names, [(p, c) for i, c in enumerate(names) for p in names[:i]])
    one, other = (ist.effect(data, dag, "a", "e") for data in (weighted, ist.summarise(again)))
    assert abs(one.value - other.value) < 1e-12 * other.standard_error
    assert one.standard_error == pytest.approx(other.standard_error, rel=1e-12)


def in_spreads(one: ist.Moments, other: ist.Moments) -> np.ndarray:
    """Return differences of means and covariances, in units of standard deviations."""
    spread = np.sqrt(np.diag(other.covariance()))
    away = (one.covariance() - other.covariance()) / np.outer(spread, spread)
    return np.vstack([(one.mean() - other.mean()) / spread, away])


def test_weights_are_those_of_numpy() -> None:
    table = rows()
    weights = np.random.default_rng(1).uniform(0.1, 3.0, len(table))
    source = ist.Weighted(table[["a", "b"]], weights)
    moments = source.moments()
    numbers = table[["a", "b"]].to_numpy()
    np.testing.assert_allclose(moments.mean(), np.average(numbers, axis=0, weights=weights))
    np.testing.assert_allclose(moments.covariance(), np.cov(numbers.T, aweights=weights, ddof=0))
    kish = weights.sum() ** 2 / (weights**2).sum()
    away = np.square(numbers - np.average(numbers, axis=0, weights=weights))
    own = weights.sum() * (weights @ away) / (weights**2 @ away)
    assert source.effective_rows == pytest.approx(min(kish, *own))
    assert moments.n == int(source.effective_rows)
    np.testing.assert_allclose(source.moments(["b"]).mean(), moments.mean()[1:])


def test_equal_weights_change_nothing() -> None:
    table = rows().drop(columns="w")
    weighted, plain = ist.Weighted(table, np.full(len(table), 0.25)), ist.Frame(table).moments()
    assert weighted.effective_rows == pytest.approx(len(table))
    np.testing.assert_allclose(weighted.moments().covariance(), plain.covariance(), rtol=1e-9)


@pytest.mark.long
def test_intervals_of_a_survey_cover_the_population() -> None:
    """Selection by the outcome itself, where rows without weights are wrong."""
    import pandas as pd
    from scipy.stats import binom

    rng = np.random.default_rng(2)
    dag = ist.DAG(["x", "y"], [("x", "y")])
    covered = wrong = 0
    for _ in range(100):
        x = rng.normal(size=6000)
        y = 0.5 * x + rng.normal(size=6000)
        chance = np.clip(1 / (1 + np.exp(-2 * y)), 0.05, 1)
        seen = rng.random(6000) < chance * 0.3
        table = pd.DataFrame({"x": x, "y": y, "w": 1 / chance})[seen]
        low, high = ist.effect(ist.Weighted(table, "w"), dag, "x", "y").interval()
        covered += low <= 0.5 <= high
        low, high = ist.effect(ist.summarise(table[["x", "y"]]), dag, "x", "y").interval()
        wrong += not low <= 0.5 <= high
    assert binom.ppf(1e-3, 100, 0.92) <= covered
    assert wrong > 50


def test_the_note_names_the_effective_rows() -> None:
    table = rows().drop(columns=["sex", "group"])
    solution = ist.learn(ist.Weighted(table, "w"))
    assert any("with weights count as" in note for note in solution.notes)
    assert solution.dag.edges


def test_what_would_lie_is_refused() -> None:
    table = rows()
    with pytest.raises(MismatchError, match="frequencies=True"):
        ist.learn(ist.Weighted(table[["sex", "group", "w"]], "w"))
    with pytest.raises(MismatchError):
        ist.bootstrap(ist.Weighted(table, "w"), replicates=5)
    with pytest.raises(MismatchError):
        ist.learn(ist.Weighted(table[["a", "b", "w"]], "w"), score=ist.GP())
    with pytest.raises(MismatchError):
        ist.Weighted(table, "w", missing=ist.DropRows())
    with pytest.raises(ArgumentError, match="whole"):
        ist.Weighted(table, table["w"] + 0.5, frequencies=True)
    for wrong in (-table["w"] - 1, table["w"].astype(str) + "x", table["w"].where(table["w"] > 0)):
        with pytest.raises(ArgumentError):
            ist.Weighted(table, wrong)
    with pytest.raises(DataError):
        ist.Weighted(table, 0 * table["w"])
    with pytest.raises(SchemaError):
        ist.Weighted(table, "v")
    with pytest.raises(SchemaError):
        ist.Weighted(table, [1.0, 2.0])
    alone = np.zeros(len(table))
    alone[:2] = 1.0, 1e-9
    with pytest.raises(DataError, match="nearly all"):
        ist.Weighted(table[["a", "b"]], alone).moments()
