"""Predictions have the kind and the index of the table that was given."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.errors import MismatchError, SchemaError

RNG = np.random.default_rng(0)
X = RNG.normal(size=300)
G = np.where(X + RNG.normal(size=300) > 0, "a", "b")
H = np.where(RNG.random(300) < np.where(G == "a", 0.8, 0.1), 1, 0)
TABLE: dict[str, Any] = {"x": X, "y": X + RNG.normal(size=300), "g": G, "h": H}
TARGETS = {"x": ("x", "y"), "g": ("g", "h"), "h": ("x", "g", "h")}


def network(target: str) -> Any:
    names = TARGETS[target]
    edges = list(pairwise(names))
    kinds = {"h": "discrete"} if "h" in names else None
    return ist.fit({v: TABLE[v] for v in names}, ist.DAG(names, edges), kinds=kinds)


@pytest.mark.parametrize("target", TARGETS)
def test_pandas_keeps_the_index(target: str) -> None:
    pd = pytest.importorskip("pandas")
    fitted = network(target)
    index = pd.Index([f"row {i}" for i in range(5)], name="patient")
    table = pd.DataFrame({v: TABLE[v][:5] for v in TARGETS[target]}, index=index)
    plain = {v: np.asarray(table[v]) for v in table}
    predicted = fitted.predict(table, target)
    assert isinstance(predicted, pd.Series)
    assert predicted.name == target
    assert predicted.index.equals(index)
    assert predicted.tolist() == fitted.predict(plain, target).tolist()
    assert isinstance(fitted.predict(plain, target), np.ndarray)
    if target != "x":
        shares = fitted.predict_probabilities(table, target)
        assert list(shares.columns) == [str(level) for level in fitted.levels[target]]
        assert shares.index.equals(index)
        assert (shares.to_numpy() == fitted.predict_probabilities(plain, target)).all()
    assert fitted.predict(table.iloc[:0], target).shape == (0,)


def test_polars_and_arrow() -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    fitted, own = network("h"), {v: TABLE[v][:5].tolist() for v in ("x", "g")}
    plain = fitted.predict(own, "h").tolist()
    series = fitted.predict(pl.DataFrame(own), "h")
    assert isinstance(series, pl.Series)
    assert series.to_list() == plain
    assert fitted.predict_probabilities(pl.DataFrame(own), "h").columns == ["0", "1"]
    arrow = fitted.predict(pa.table(own), "h")
    assert isinstance(arrow, pa.ChunkedArray)
    assert arrow.to_pylist() == plain


def test_the_most_probable_levels_of_a_mixed_network() -> None:
    fitted = network("h")
    told = fitted.most_probable({"x": 1.0})
    joint = fitted.query(["g", "h"], {"x": 1.0})
    assert joint.error is None
    assert np.exp(told.log_probability) == pytest.approx(joint.values.max())
    assert joint[told["g"], told["h"]] == joint.values.max()
    assert list(fitted.most_probable({"x": 1.0, "g": "a"}, ["h"]).values) == ["h"]
    with pytest.raises(MismatchError, match="depends on units"):
        fitted.most_probable({"g": "a"}, ["x"])
    with pytest.raises(MismatchError, match="Ask query"):
        fitted.most_probable({"g": "a", "h": 1})


def test_dates_are_refused_without_an_option_that_does_not_exist() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"x": pd.date_range("2020-01-01", periods=9), "y": X[:9]})
    with pytest.raises(SchemaError, match="Convert them to the unit") as refusal:
        ist.log_likelihood(network("x"), table)
    assert "kinds" not in str(refusal.value)


def test_a_bootstrap_and_a_sample_of_transformed_columns() -> None:
    table = {"x": np.exp(3 * X[:60]), "y": np.exp(2 * TABLE["y"][:60])}
    step = ist.NormalScores()
    moved = ist.tables.transformed(table, step).table
    first = ist.bootstrap(table, transform=step, replicates=3, jobs=1).edge_probabilities()
    assert (first == ist.bootstrap(moved, replicates=3, jobs=1).edge_probabilities()).all()
    second = ist.sample(table, transform=step, draws=5).edge_probabilities()
    assert (second == ist.sample(moved, draws=5).edge_probabilities()).all()
    with noted("heavy tails"):
        assert not (second == ist.sample(table, draws=5).edge_probabilities()).all()


def test_columns_that_pandas_numbers_are_the_ones_that_were_learned() -> None:
    rows = np.random.default_rng(3).normal(size=(200, 3))
    rows[:, 1] += 2 * rows[:, 0]
    table = pd.DataFrame(rows)
    network = ist.fit(table, ist.DAG(["0", "1", "2"], [("0", "1")]))
    named = network.predict({"0": rows[:5, 0]}, "1")
    np.testing.assert_allclose(network.predict(table.head(5), "1"), named)
