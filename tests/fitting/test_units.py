"""Coefficients, standard errors and predictions do not depend on units of measurement."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import isthmus as ist
from isthmus.fitting import LinearEffects, adjusted_effect
from isthmus.networks import ConditionalGaussian, GaussianNetwork, MixedNetwork
from isthmus.verbs.fit import fit

DAG = ist.DAG(["a", "b", "y"], [("a", "b"), ("a", "y"), ("b", "y")])
RATIOS = (1e-12, 1e-8, 1.0, 1e8, 1e12)
NAMES = ("a", "b", "y")


def table(units: tuple[float, float, float], offset: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    b = 0.5 * a + rng.normal(size=500)
    y = a + b + 0.1 * rng.normal(size=500)
    # Offsets in standard deviations, rounded to the same grid in all units.
    columns = [np.round(x * 2.0**20) / 2.0**20 + offset for x in (a, b, y)]
    return {name: u * x for name, u, x in zip(NAMES, units, columns, strict=True)}


def fitted(data: dict[str, np.ndarray]) -> GaussianNetwork:
    network = fit(data, DAG)
    assert isinstance(network, GaussianNetwork)
    return network


@pytest.mark.long
@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("units", list(itertools.product(RATIOS, RATIOS, (1.0,))))
def test_fits_and_predictions_are_equivariant(
    units: tuple[float, float, float], offset: float
) -> None:
    plain, scaled = fitted(table((1, 1, 1), offset)), fitted(table(units, offset))
    unit = dict(zip(NAMES, units, strict=True))
    for child, parents in plain.coefficients.items():
        for parent, value in parents.items():
            here = scaled.coefficients[child][parent] * unit[parent] / unit[child]
            assert here == pytest.approx(value, rel=1e-9)
        assert scaled.variances[child] / unit[child] ** 2 == pytest.approx(
            plain.variances[child], rel=1e-9
        )
    given = {"a": offset + np.array([0.5, -2.0]), "b": offset + np.array([1.0, 3.0])}
    there = scaled.predict({v: unit[v] * x for v, x in given.items()}, "y")
    np.testing.assert_allclose(there / unit["y"], plain.predict(given, "y"), rtol=1e-9)
    question = scaled.query("a", evidence={"y": unit["y"] * (offset + 1.0)})
    expected = plain.query("a", evidence={"y": offset + 1.0})
    assert question.mean[0] / unit["a"] == pytest.approx(expected.mean[0], rel=1e-9)
    assert question.covariance[0, 0] / unit["a"] ** 2 == pytest.approx(
        expected.covariance[0, 0], rel=1e-6
    )


def test_powers_of_two_give_the_same_digits() -> None:
    units = (2.0**40, 2.0**-40, 1.0)
    plain, scaled = fitted(table((1, 1, 1), 1e5)), fitted(table(units, 1e5))
    for parent, unit in zip("ab", units, strict=False):
        assert scaled.coefficients["y"][parent] * unit == plain.coefficients["y"][parent]
    assert scaled.variances["y"] == plain.variances["y"]
    assert scaled.intercepts["y"] == plain.intercepts["y"]


@pytest.mark.parametrize("ratio", [1e-12, 1e12])
def test_effects_are_equivariant(ratio: float) -> None:
    units = (ratio, 1.0, 1.0)
    plain, scaled = (ist.Frame(table(u)).moments() for u in ((1.0, 1.0, 1.0), units))
    one = LinearEffects(NAMES, *ist.BGe().posterior(plain)).mean(DAG)
    other = LinearEffects(NAMES, *ist.BGe().posterior(scaled)).mean(DAG)
    np.testing.assert_allclose(other * np.outer(units, [1, 1, 1]) / units, one, rtol=1e-9)
    value, error, degrees = adjusted_effect(plain, "a", "y", ("b",))[:3]
    there, wide, same = adjusted_effect(scaled, "a", "y", ("b",))[:3]
    assert (there * ratio, wide * ratio) == pytest.approx((value, error), rel=1e-9)
    assert same == degrees


@pytest.mark.parametrize("units", [(1.0, 1e12), (1e12, 1.0), (1e-12, 1e12)])
def test_mixed_fits_are_equivariant(units: tuple[float, float]) -> None:
    rng = np.random.default_rng(1)
    a, b, g = rng.normal(size=300), rng.normal(size=300), rng.choice(["u", "v"], 300)
    y = a + b + (g == "u") + 0.1 * rng.normal(size=300)
    dag = ist.DAG(["g", "a", "b", "y"], [("g", "y"), ("a", "y"), ("b", "y")])
    one = fit({"g": g, "a": a, "b": b, "y": y}, dag)
    other = fit({"g": g, "a": units[0] * a, "b": units[1] * b, "y": y}, dag)
    assert isinstance(one, MixedNetwork)
    assert isinstance(other, MixedNetwork)
    plain, scaled = one.conditionals["y"], other.conditionals["y"]
    assert isinstance(plain, ConditionalGaussian)
    assert isinstance(scaled, ConditionalGaussian)
    np.testing.assert_allclose(plain.coefficients, 1.0, atol=0.05)
    np.testing.assert_allclose(scaled.coefficients * units, plain.coefficients, rtol=1e-9)
    np.testing.assert_allclose(scaled.variances, plain.variances, rtol=1e-9)


def test_a_constant_parent_has_no_coefficient() -> None:
    rng = np.random.default_rng(0)
    data = {"a": np.full(1000, 0.1), "b": rng.normal(size=1000), "y": rng.normal(size=1000)}
    network = fitted(data)
    assert network.coefficients["y"]["a"] == 0.0
    assert network.coefficients["b"]["a"] == 0.0
    assert network.variances["a"] == 0.0
