"""Results show themselves as text, and give tables without arguments."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.results import Forecast
from isthmus.results.features import NodeMatrix

RNG = np.random.default_rng(0)
X = RNG.normal(size=300)
G = np.where(X + RNG.normal(size=300) > 0, "a", "b")
TABLE = {"x": X, "g": G, "y": X + RNG.normal(size=300)}
SERIES = ist.Series({"u": RNG.normal(size=80), "k": RNG.choice(["on", "off"], 80)}, lags=1)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    solution = ist.learn(TABLE, knowledge=ist.Knowledge(required=[("x", "g"), ("x", "y")]))
    network: Any = solution.fit()
    scored: Any = ist.learn({"x": X, "y": TABLE["y"]}, transform=ist.NormalScores()).fit()
    posterior = ist.sample(TABLE, draws=50)
    return {
        "solution": solution,
        "reading": solution.reading,
        "directions": solution.directions,
        "effect": solution.effect("x", "y"),
        "probabilities": network.query("g", evidence={"y": 1.0}),
        "normal mixture": network.query("y", evidence={"g": "a"}),
        "normal": ist.fit({"x": X, "y": TABLE["y"]}, ist.DAG(["x", "y"])).query("y"),
        "medians": scored.query("y", evidence={"x": 0.5}),
        "range": scored.query("y", do={"x": 0.5}),
        "explanation": network.most_probable({"x": 0.5}),
        "posterior": posterior,
        "edges": posterior.edge_probabilities(),
        "adjacencies": posterior.adjacency_probabilities(),
        "ensemble": ist.bootstrap(TABLE, replicates=10),
        "cross-validation": ist.cross_validate(TABLE, folds=3),
        "forecast": ist.forecast(ist.learn(SERIES).fit(), SERIES, steps=7, draws=40),
    }


@pytest.mark.long
def test_no_result_shows_a_record_or_bare_arrays(results: dict[str, Any]) -> None:
    for name, result in results.items():
        text = repr(result)
        assert text == str(result), name
        assert "array(" not in text, name
        assert type(result).__name__ + "(" not in text, name
        assert len(text) < 1500, name


@pytest.mark.long
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_are_of_the_kind_that_is_asked_for(library: str, results: dict[str, Any]) -> None:
    module: Any = pytest.importorskip(library)
    like = module.table({"a": [1]}) if library == "pyarrow" else module.DataFrame({"a": [1]})
    for name, result in results.items():
        if name in ("directions", "effect"):
            continue
        assert type(result.to_frame(like)) is type(like), name
        columns = result.to_frame({})
        assert len({len(column) for column in columns.values()}) == 1, name


def test_tables_are_of_pandas_by_default(results: dict[str, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    edges = results["posterior"].to_frame()
    assert isinstance(edges, pandas.DataFrame)
    first = edges.iloc[0]
    probabilities = results["posterior"].edge_probabilities()
    assert probabilities[first["from"], first["to"]] == first["probability"] == probabilities.max()
    folds = results["cross-validation"].to_frame()
    assert folds["rows"].sum() == 300
    forecast = results["forecast"].to_frame()
    numbers = forecast[forecast.variable == "u"]
    assert numbers["mean"].tolist() == results["forecast"]["u"].mean(axis=1).tolist()
    levels = forecast[(forecast.variable == "k") & (forecast.step == 7)]
    assert levels.probability.sum() == pytest.approx(1.0)


def test_adjacencies_of_a_posterior_are_sums_of_both_directions(results: dict[str, Any]) -> None:
    edges, adjacent = (np.asarray(results[name]) for name in ("edges", "adjacencies"))
    assert adjacent == pytest.approx(np.minimum(edges + edges.T, 1.0))
    pairs = results["adjacencies"].to_frame({})
    assert len(pairs["probability"]) == np.count_nonzero(np.triu(adjacent))


def test_a_matrix_with_names_is_an_array() -> None:
    values = np.array([[0.0, 0.25], [0.5, 0.0]])
    matrix = NodeMatrix.of("ab", values, "share")
    assert matrix["b", "a"] == matrix[1, 0] == 0.5
    assert type(matrix + matrix.T) is np.ndarray
    assert type(matrix[0]) is np.ndarray
    assert isinstance(matrix.sum(), float)
    assert np.array_equal(matrix, values)
    again = pickle.loads(pickle.dumps(matrix))  # noqa: S301
    assert again.nodes == ("a", "b")
    assert str(again) == "from / to     a     b\na          0.00  0.25\nb          0.50  0.00"
    assert str(matrix.T) == str(values.T)
    assert NodeMatrix.of("ab", 1e-5 * values, "effect").to_frame({})["effect"].max() == 5e-6
    with pytest.raises(ist.errors.GraphError, match="no node 'z'"):
        matrix["a", "z"]


def test_draws_of_an_exact_posterior_are_as_many_as_asked_for() -> None:
    assert ist.sample(TABLE, draws=50).chains.shape == (1, 50)
    assert ist.sample(TABLE, draws=5, chains=3).chains.shape == (3, 5)
    chains = ist.sample(TABLE, draws=5, sampler=ist.StructureMCMC())
    assert chains.chains.shape == (4, 5)


def test_a_forecast_is_a_dictionary() -> None:
    forecast = Forecast({"x": np.arange(6.0).reshape(2, 3)})
    assert forecast["x"].shape == (2, 3)
    assert "x, step 1: 1 (95% of the draws between 0.05 and 1.95)" in str(forecast)
