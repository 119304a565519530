from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus import simulate
from isthmus.errors import ArgumentError, DataError
from isthmus.graphs import DAG

MECHANISMS = [simulate.MLP(hidden=10), simulate.FourierAdditive()]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_roots_are_noise_and_children_depend(mechanism: simulate.Mechanism) -> None:
    dag = DAG(["c", "a", "b"], [("a", "b")])
    data = simulate.nonlinear(dag, 4000, mechanism=mechanism, seed=1).data
    for root in ("a", "c"):
        assert abs(data[root].mean()) < 5 / np.sqrt(4000)
        assert abs(data[root].var() - 1) < 5 * np.sqrt(2 / 4000)
    # The mean of b within bins of a moves by more than its noise allows; c shows no such thing.
    bins = np.digitize(data["a"], np.quantile(data["a"], np.linspace(0, 1, 11)[1:-1]))

    def moved(y: NDArray[np.float64]) -> float:
        means = np.array([y[bins == k].mean() for k in range(10)])
        return float(means.std())

    assert moved(data["b"]) > 0.2 > 0.1 > moved(data["c"])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_functions_do_not_depend_on_rows(mechanism: simulate.Mechanism) -> None:
    rng = np.random.default_rng
    x = rng(0).normal(size=(3, 40))
    whole = mechanism.apply(rng(5), x)
    assert np.allclose(whole[:7], mechanism.apply(rng(5), x[:, :7]))


def test_mlp_formula() -> None:
    mechanism = simulate.MLP(hidden=4)
    x = np.random.default_rng(0).normal(size=(2, 9))
    rng = np.random.default_rng(3)
    first = mechanism.weights.draw(rng, 8).reshape(4, 2)
    second = mechanism.weights.draw(rng, 4)
    by_hand = second @ (1 / (1 + np.exp(-(first @ x))))
    assert np.allclose(mechanism.apply(np.random.default_rng(3), x), by_hand)


def test_fourier_is_additive() -> None:
    mechanism = simulate.FourierAdditive(decay=2.0)

    def f(a: float, b: float) -> float:
        return float(mechanism.apply(np.random.default_rng(2), np.array([[a], [b]]))[0])

    assert f(1.0, 2.0) + f(-1.0, 0.5) == pytest.approx(f(1.0, 0.5) + f(-1.0, 2.0))


def test_fourier_without_decay_is_linear() -> None:
    mechanism = simulate.FourierAdditive(decay=0.0)
    x = np.array([[1.0, 2.0, -3.0]])
    y = mechanism.apply(np.random.default_rng(2), x)
    assert np.allclose(y / x[0], y[0])
    assert 0.5 <= abs(y[0]) <= 2.0


def test_fourier_grows_with_decay() -> None:
    x = np.linspace(-3, 3, 200)[None, :]

    def bend(decay: float) -> float:
        total = 0.0
        for seed in range(100):
            y = simulate.FourierAdditive(decay=decay).apply(np.random.default_rng(seed), x)
            line = np.polyval(np.polyfit(x[0], y, 1), x[0])
            total += float(((y - line) ** 2).mean())
        return total

    assert bend(0.1) < 0.2 * bend(1.0) < bend(10.0)


def test_fourier_shared_uses_one_shape() -> None:
    x = np.linspace(-3, 3, 50)
    zero = np.zeros(50)
    mechanism = simulate.FourierAdditive(shared=True)

    def of(*parents: NDArray[np.float64]) -> NDArray[np.float64]:
        y = mechanism.apply(np.random.default_rng(4), np.array(parents))
        shifted: NDArray[np.float64] = y - y[0]
        return shifted

    first, second = of(x, zero), of(zero, x)
    assert np.allclose(first / np.abs(first).max(), second / second[np.abs(first).argmax()])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_internally_standardised(mechanism: simulate.Mechanism) -> None:
    dag = simulate.erdos_renyi(8, 14, seed=2)
    simulation = simulate.nonlinear(
        dag, 300, mechanism=mechanism, internally_standardised=True, seed=2
    )
    x = simulation.array()
    assert np.allclose(x.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(x.std(axis=0), 1)
    # Equal up to rounding is a tie: the variances say nothing at all.
    assert simulate.varsortability(simulation) == 0.5


def test_seed() -> None:
    dag = simulate.erdos_renyi(5, 6, seed=0)
    a, b = simulate.nonlinear(dag, 20, seed=1), simulate.nonlinear(dag, 20, seed=1)
    assert np.array_equal(a.array(), b.array())
    assert not np.array_equal(a.array(), simulate.nonlinear(dag, 20, seed=2).array())


def test_refusals() -> None:
    for bad in (
        lambda: simulate.MLP(hidden=0),
        lambda: simulate.FourierAdditive(terms=0),
        lambda: simulate.FourierAdditive(decay=-1.0),
    ):
        with pytest.raises(ArgumentError):
            bad()
    with pytest.raises(DataError):
        simulate.nonlinear(DAG(["a"]), 1, internally_standardised=True, seed=0)
