from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus import simulate
from isthmus.errors import ArgumentError, DataError, GraphError
from isthmus.graphs import DAG

NOISES = [simulate.Gaussian(), simulate.Exponential(), simulate.Gumbel(), simulate.Uniform()]
SKEWNESS = [0.0, 2.0, 1.1395470994046486, 0.0]
EXCESS = [0.0, 6.0, 2.4, -1.2]


@pytest.mark.parametrize(
    ("noise", "skewness", "excess"), list(zip(NOISES, SKEWNESS, EXCESS, strict=True))
)
def test_noise_has_its_moments(noise: simulate.Noise, skewness: float, excess: float) -> None:
    x = noise.draw(np.random.default_rng(1), 400_000)
    assert abs(x.mean()) < 5 / math.sqrt(len(x))
    assert abs(x.var() - 1) < 5 * math.sqrt((excess + 2) / len(x))
    assert (x**3).mean() == pytest.approx(skewness, abs=0.1)
    assert (x**4).mean() - 3 == pytest.approx(excess, abs=0.5)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("variances", [simulate.EqualVariances(2.0), simulate.UnequalVariances()])
@pytest.mark.parametrize("internally_standardised", [False, True])
def test_covariance_is_the_models(
    noise: simulate.Noise, variances: simulate.Variances, internally_standardised: bool
) -> None:
    dag = simulate.erdos_renyi(6, 8, seed=3)
    model = simulate.linear_model(
        dag,
        noise=noise,
        variances=variances,
        internally_standardised=internally_standardised,
        seed=4,
    )
    w = model.weight_matrix()
    v = np.diag([model.variances[name] for name in dag.nodes])
    inverse = np.linalg.inv(np.eye(6) - w)
    truth = inverse.T @ v @ inverse
    assert np.allclose(model.covariance(), truth, rtol=1e-12, atol=1e-12)
    x = model.sample(60_000, seed=5).array()
    sd = np.sqrt(np.diag(truth))
    # Kurtosis of the exponential is the worst here: the sd of a product is below 3 sd sd.
    error = np.abs(np.cov(x.T) - truth) / np.outer(sd, sd)
    assert error.max() < 5 * 3 / math.sqrt(len(x))
    assert (np.abs(x.mean(axis=0)) / sd).max() < 5 / math.sqrt(len(x))


def test_residuals_are_the_noise_and_independent() -> None:
    dag = simulate.erdos_renyi(5, 7, seed=1)
    model = simulate.linear_model(dag, variances=simulate.UnequalVariances(), seed=1)
    x = model.sample(20_000, seed=2).array()
    e = x @ (np.eye(5) - model.weight_matrix())
    expected = np.diag([model.variances[name] for name in dag.nodes])
    assert np.abs(np.cov(e.T) - expected).max() < 5 * 2 * math.sqrt(2 / 20_000)


@given(st.integers(2, 8), st.data(), st.integers(0, 1000))
def test_internal_standardisation_gives_unit_variance(
    d: int, data: st.DataObject, seed: int
) -> None:
    edges = data.draw(st.integers(0, d * (d - 1) // 2))
    dag = simulate.erdos_renyi(d, edges, seed=seed)
    raw = simulate.linear_model(dag, variances=simulate.UnequalVariances(), seed=seed)
    model = raw.internally_standardised()
    assert np.allclose(np.diag(model.covariance()), 1.0, atol=1e-10)
    # Signs stay, and within one equation everything shrinks by one factor.
    for name in dag.nodes:
        ratio = math.sqrt(model.variances[name] / raw.variances[name])
        for parent in dag.parents(name):
            edge = (parent, name)
            assert model.weights[edge] == pytest.approx(raw.weights[edge] * ratio, rel=1e-9)


def test_internal_differs_from_later_standardisation() -> None:
    dag = DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    weights = {("a", "b"): 1.0, ("b", "c"): 1.0}
    model = simulate.linear_model(dag, weights=weights, internally_standardised=True, seed=0)
    # By hand: each equation is (z + e) / sqrt 2, so the same share 1/2 at each step, while raw
    # variances 1, 2, 3 would give shares 1/2 and 2/3.
    assert model.weights["a", "b"] == pytest.approx(1 / math.sqrt(2))
    assert model.weights["b", "c"] == pytest.approx(1 / math.sqrt(2))
    assert model.variances["c"] == pytest.approx(0.5)


def test_weights_have_their_law() -> None:
    w = simulate.UniformWeights(0.5, 2.0).draw(np.random.default_rng(0), 20_000)
    assert np.abs(w).min() >= 0.5
    assert np.abs(w).max() <= 2.0
    assert abs((w > 0).mean() - 0.5) < 5 * 0.5 / math.sqrt(len(w))
    assert abs(np.abs(w).mean() - 1.25) < 5 * 1.5 / math.sqrt(12 * len(w))


def test_seed_and_size() -> None:
    dag = simulate.erdos_renyi(6, 8, seed=1)
    a, b = simulate.linear(dag, 50, seed=9), simulate.linear(dag, 50, seed=9)
    assert np.array_equal(a.array(), b.array())
    assert a.weights == b.weights == simulate.linear(dag, 7, seed=9).weights
    assert not np.array_equal(a.array(), simulate.linear(dag, 50, seed=10).array())


def test_result_is_a_table_and_read_only() -> None:
    pd = pytest.importorskip("pandas")
    dag = simulate.erdos_renyi(["p", "q", "r"], 2, seed=1)
    result = simulate.linear(dag, 5, seed=1)
    frame = pd.DataFrame(result.data)
    assert list(frame.columns) == ["p", "q", "r"]
    assert np.array_equal(frame.to_numpy(), result.array())
    with pytest.raises(ValueError, match="read-only"):
        result.data["p"][0] = 1.0
    assert repr(result) == "Simulation(n=5, nodes=3, edges=2)"


def test_standardised_afterwards() -> None:
    dag = simulate.erdos_renyi(5, 6, seed=2)
    raw = simulate.linear(dag, 500, seed=2)
    result = raw.standardised()
    x = result.array()
    assert np.allclose(x.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(x.std(axis=0), 1)
    for a, b in dag.edges:
        scale = raw.data[a].std() / raw.data[b].std()
        assert result.weights[a, b] == pytest.approx(raw.weights[a, b] * scale)


def test_refusals() -> None:
    dag = DAG(["a", "b"], [("a", "b")])
    with pytest.raises(GraphError, match="weight"):
        simulate.linear(dag, 5, weights={}, seed=0)
    with pytest.raises(GraphError, match="variance"):
        simulate.linear(dag, 5, variances={"a": 1.0}, seed=0)
    with pytest.raises(DataError, match="positive"):
        simulate.linear(dag, 5, variances={"a": 1.0, "b": 0.0}, seed=0)
    with pytest.raises(DataError, match="n must be"):
        simulate.linear(dag, -1, seed=0)
    for bad in (
        lambda: simulate.EqualVariances(0.0),
        lambda: simulate.UnequalVariances(2.0, 1.0),
        lambda: simulate.UniformWeights(2.0, 1.0),
    ):
        with pytest.raises(ArgumentError):
            bad()
