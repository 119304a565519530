from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import DataError, SchemaError
from isthmus.graphs import DAG
from isthmus.networks import GaussianNetwork


def draw_network(seed: int, size: int = 5) -> GaussianNetwork:
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in rng.permutation(size)]
    edges = [(f"v{i}", f"v{j}") for j in range(size) for i in range(j) if rng.random() < 0.6]
    dag = DAG(names, edges)
    return GaussianNetwork(
        dag,
        {v: float(rng.normal()) for v in names},
        {v: {p: float(rng.normal()) for p in dag.parents(v)} for v in names},
        {v: float(rng.uniform(0.5, 2)) for v in names},
    )


@given(st.integers(0, 50))
def test_covariance_and_mean_solve_the_equations(seed: int) -> None:
    net = draw_network(seed)
    weights = net.weights()
    out = np.linalg.inv(np.eye(5) - weights)
    noise = np.diag([net.variances[v] for v in net.dag.nodes])
    intercepts = np.array([net.intercepts[v] for v in net.dag.nodes])
    assert net.covariance() == pytest.approx(out.T @ noise @ out, abs=1e-9)
    assert net.mean() == pytest.approx(intercepts @ out, abs=1e-9)
    assert ((weights != 0) == net.dag.adjacency()).all()


@given(st.integers(0, 20))
def test_log_likelihood_is_that_of_the_joint_normal(seed: int) -> None:
    net = draw_network(seed)
    rows = net.sample(7, seed=seed)
    x = np.stack([rows[v] for v in net.dag.nodes], axis=1) - net.mean()
    covariance = net.covariance()
    _, logdet = np.linalg.slogdet(covariance)
    squares = np.einsum("ij,jk,ik->", x, np.linalg.inv(covariance), x)
    expected = -0.5 * (7 * (5 * math.log(2 * math.pi) + logdet) + squares)
    assert net.log_likelihood(rows) == pytest.approx(expected, rel=1e-9)


def test_samples_have_these_moments() -> None:
    net = draw_network(3)
    n = 200_000
    rows = net.sample(n, seed=1)
    assert list(rows) == list(net.dag.nodes)
    x = np.stack(list(rows.values()))
    covariance = net.covariance()
    spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2)
    assert (np.abs(np.cov(x) - covariance) < 5 * spread / math.sqrt(n)).all()
    assert (np.abs(x.mean(axis=1) - net.mean()) < 5 * np.sqrt(np.diag(covariance) / n)).all()
    again = net.sample(n, seed=1)
    assert all((rows[v] == again[v]).all() for v in rows)


def test_equality_and_count() -> None:
    net = draw_network(0)
    assert net.reorder(sorted(net.dag.nodes)) == net
    assert copy.deepcopy(net) == net
    assert net != draw_network(1)
    assert net != "net"
    assert net.parameters == 10 + len(net.dag.edges)
    assert repr(net).startswith("GaussianNetwork(5 nodes")


def test_a_determined_node() -> None:
    dag = DAG(["a", "b"], [("a", "b")])
    net = GaussianNetwork(dag, {"a": 0, "b": 1}, {"a": {}, "b": {"a": 2}}, {"a": 1, "b": 0})
    rows = net.sample(10, seed=0)
    assert rows["b"] == pytest.approx(1 + 2 * rows["a"])
    with pytest.raises(DataError, match="variance zero"):
        net.log_likelihood(rows)


def test_refusals() -> None:
    dag = DAG(["a", "b"], [("a", "b")])
    with pytest.raises(SchemaError, match="parents 'a'"):
        GaussianNetwork(dag, {"a": 0, "b": 0}, {"a": {}, "b": {}}, {"a": 1, "b": 1})
    with pytest.raises(DataError, match="negative"):
        GaussianNetwork(dag, {"a": 0, "b": 0}, {"a": {}, "b": {"a": 1}}, {"a": 1, "b": -1})
    with pytest.raises(DataError, match="intercept of 'a' is nan"):
        GaussianNetwork(dag, {"a": math.nan, "b": 0}, {"a": {}, "b": {"a": 1}}, {"a": 1, "b": 1})
    with pytest.raises(SchemaError, match="variances lacks"):
        GaussianNetwork(dag, {"a": 0, "b": 0}, {"a": {}, "b": {"a": 1}}, {"a": 1})


@pytest.mark.parametrize("unit", ["datetime64[D]", "datetime64[us]", "timedelta64[s]", "object"])
def test_predictions_refuse_dates_instead_of_reading_them_in_another_unit(unit: str) -> None:
    when = np.array(["2005-01-01", "2005-01-02"], dtype="datetime64[D]")
    column = when - np.datetime64("1970-01-01") if unit.startswith("t") else when
    network = GaussianNetwork(
        DAG(["day", "level"], [("day", "level")]),
        {"day": 0.0, "level": 1.0},
        {"day": {}, "level": {"day": 2.0}},
        {"day": 1.0, "level": 1.0},
    )
    with pytest.raises(SchemaError, match="has dates or durations"):
        network.predict({"day": column.astype(unit)}, "level")
    days = (when - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    np.testing.assert_allclose(network.predict({"day": days}, "level"), 1 + 2 * days)
