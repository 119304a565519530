from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus import simulate
from isthmus.errors import DataError, GraphError
from isthmus.graphs import DAG


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 10_000))
def test_stable_by_construction(d: int, lags: int, seed: int) -> None:
    dag = simulate.erdos_renyi(d, degree=min(2.0, d - 1), seed=seed)
    lagged = simulate.lagged_graph(d, lags=lags, degree=float(d), seed=seed)
    assert len(lagged) == d * d * lags
    model = simulate.autoregressive_model(
        dag,
        lagged,
        lagged_weights=simulate.UniformWeights(0.5, 2.0),
        largest_radius=0.8,
        seed=seed,
    )
    assert model.spectral_radius() <= 0.8 + 1e-9
    assert set(model.lagged) == set(lagged)
    assert all(weight != 0 for weight in model.lagged.values())


def test_a_stable_model_is_left_as_drawn() -> None:
    dag = DAG(["a", "b"], [])
    model = simulate.autoregressive_model(dag, [("a", "a", 1), ("a", "b", 2)], decay=1.5, seed=0)
    assert 0.3 <= abs(model.lagged[simulate.LaggedEdge("a", "a", 1)]) <= 0.5
    assert 0.2 <= abs(model.lagged[simulate.LaggedEdge("a", "b", 2)]) <= 0.5 / 1.5
    assert model.spectral_radius() == pytest.approx(
        abs(model.lagged[simulate.LaggedEdge("a", "a", 1)])
    )


def test_covariance_of_a_known_case() -> None:
    # x_t = 0.5 x_{t-1} + e, variance 1 / (1 - 0.25).
    within = simulate.linear_model(DAG(["x"]), seed=0)
    model = simulate.AutoregressiveModel(within, {simulate.LaggedEdge("x", "x", 1): 0.5})
    assert model.covariance()[0, 0] == pytest.approx(4 / 3)
    assert model.spectral_radius() == pytest.approx(0.5)


def test_recursion_and_stationary_covariance() -> None:
    dag = simulate.erdos_renyi(4, 4, seed=3)
    lagged = simulate.lagged_graph(4, lags=2, degree=1.5, seed=3)
    model = simulate.autoregressive_model(dag, lagged, largest_radius=0.6, seed=3)
    result = model.sample(300, realisations=80, seed=4)
    w, a = model.instantaneous.weight_matrix(), model.lagged_matrices()
    shocks = np.concatenate(
        [x[2:] @ (np.eye(4) - w) - x[1:-1] @ a[0] - x[:-2] @ a[1] for x in result.arrays()]
    )
    size = len(shocks)
    assert np.abs(np.cov(shocks.T) - np.eye(4)).max() < 5 * np.sqrt(2 / size)
    lagged_covariance = shocks[1:].T @ shocks[:-1] / size
    assert np.abs(lagged_covariance).max() < 5 / np.sqrt(size)
    x = np.concatenate(result.arrays())
    truth = model.covariance()
    sd = np.sqrt(np.diag(truth))
    # Autocorrelation below 0.6 leaves at least a quarter of the rows as effective ones.
    assert (np.abs(np.cov(x.T) - truth) / np.outer(sd, sd)).max() < 5 * np.sqrt(2 / (len(x) / 4))
    # Stationary from the first step on: no warm-up is left in the series.
    first = np.array([series[0] for series in result.arrays()])
    assert (first.var(axis=0) / np.diag(truth)).min() > 0.4
    assert (first.var(axis=0) / np.diag(truth)).max() < 1.9


def test_shapes_and_table() -> None:
    dag = DAG(["a", "b"], [("a", "b")])
    result = simulate.autoregressive(dag, [("b", "a", 1)], 7, realisations=3, seed=1)
    assert [x.shape for x in result.arrays()] == [(7, 2)] * 3
    assert result.lagged_edges == (simulate.LaggedEdge("b", "a", 1),)
    table = result.table()
    assert list(table) == ["realisation", "time", "a", "b"]
    assert table["realisation"].tolist() == [0] * 7 + [1] * 7 + [2] * 7
    assert table["time"].tolist() == list(range(7)) * 3
    assert np.array_equal(table["b"][7:14], result.series[1]["b"])
    again = simulate.autoregressive(dag, [("b", "a", 1)], 7, realisations=3, seed=1)
    assert np.array_equal(again.table()["a"], table["a"])
    with pytest.raises(DataError, match="name of a node"):
        result.table(time="a")


def test_without_lags_it_is_the_linear_model() -> None:
    dag = simulate.erdos_renyi(4, 4, seed=1)
    result = simulate.autoregressive(dag, [], 30, seed=2)
    assert np.array_equal(result.arrays()[0], simulate.linear(dag, 30, seed=2).array())
    assert np.allclose(result.model.covariance(), result.model.instantaneous.covariance())


def test_lagged_graph_degree_and_own_past() -> None:
    counts = [len(simulate.lagged_graph(10, lags=2, degree=2.0, seed=s)) for s in range(200)]
    assert abs(np.mean(counts) - 40) < 5 * np.sqrt(200 * 0.2 * 0.8 / 200)
    without = simulate.lagged_graph(5, lags=2, degree=4.0, own_past=False, seed=0)
    assert len(without) == 40
    assert all(edge.source != edge.target for edge in without)


def test_refusals() -> None:
    within = simulate.linear_model(DAG(["x"]), seed=0)
    unstable = simulate.AutoregressiveModel(within, {simulate.LaggedEdge("x", "x", 1): 1.0})
    with pytest.raises(DataError, match="not stable"):
        unstable.sample(5, seed=0)
    with pytest.raises(GraphError, match="unknown"):
        simulate.autoregressive(DAG(["x"]), [("x", "y", 1)], 5, seed=0)
    with pytest.raises(GraphError, match="lag"):
        simulate.autoregressive(DAG(["x"]), [("x", "x", 0)], 5, seed=0)
    with pytest.raises(DataError):
        simulate.autoregressive(DAG(["x"]), [], 0, seed=0)
    with pytest.raises(DataError):
        simulate.autoregressive(DAG(["x"]), [], 5, largest_radius=1.0, seed=0)
    with pytest.raises(GraphError):
        simulate.lagged_graph(3, lags=0, seed=0)
    with pytest.raises(GraphError):
        simulate.lagged_graph(3, degree=3.5, seed=0)
