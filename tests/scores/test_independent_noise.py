"""The test of independent noise: against rows, calibration, power, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from scipy.stats import chi2, kstest

import isthmus as ist
from isthmus.errors import MismatchError
from isthmus.objectives import NoiseTest
from isthmus.types import Floats


def bound(table: Mapping[str, Floats], test: ist.IndependentNoise | None = None) -> NoiseTest:
    test = ist.IndependentNoise() if test is None else test
    return test.bind(ist.WithFeatures(table, test.basis).moments())


def from_rows(x: Floats, y: Floats) -> float:
    """Compute the test of x = b y + noise from rows."""
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    r = x - np.mean(x * y) * y
    variance = np.mean(r**2)
    line = np.stack([np.ones_like(y), y])
    curves = np.stack([y**2, y**3])
    curves = curves - np.linalg.lstsq(line.T, curves.T)[0].T @ line
    functions = np.stack([y, y**2 - 1.0])
    conditions = np.concatenate([curves @ r, functions @ (r**2 - variance)]) / len(y)
    both = np.mean(r**3) * curves @ functions.T
    spread = np.block(
        [
            [variance * curves @ curves.T, both],
            [both.T, (np.mean(r**4) - variance**2) * functions @ functions.T],
        ]
    ) / len(y)
    statistic = len(y) * conditions @ np.linalg.solve(spread, conditions)
    return float(chi2.sf(statistic, 4))


def test_p_value_of_one_parent_is_that_of_rows() -> None:
    rng = np.random.default_rng(1)
    y = rng.exponential(size=400)
    x = 0.6 * y + rng.laplace(size=400)
    test = bound({"x": 5.0 - 300.0 * x, "y": 1e6 + 0.01 * y})
    assert test.p_value(0, [1]) == pytest.approx(from_rows(-x, y), rel=1e-6)
    assert np.log(test.p_value(1, [0])) == pytest.approx(np.log(from_rows(y, -x)), rel=1e-6)
    assert test.p_value(0, []) == 1.0


def test_p_value_of_several_parents_is_that_of_a_regression_on_curves() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.uniform(size=(2, 300))
    b += a
    c = a - 2 * b + 0.1 * b**2 + rng.normal(size=300)
    line = np.column_stack([np.ones(300), a, b])
    curves = np.column_stack([line, a**2, a**3, b**2, b**3])
    before, after = (np.linalg.lstsq(x, c)[1].item() for x in (line, curves))
    test = bound({"a": a, "b": b, "c": c})
    expected = chi2.sf(300 * (1 - after / before), 4)
    assert test.p_value(2, [0, 1]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("parents", "noise"), [(1, "laplace"), (1, "normal"), (2, "exponential")])
def test_p_values_are_uniform_in_the_causal_direction(parents: int, noise: str) -> None:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(100):
        columns = getattr(rng, noise)(size=(parents + 1, 1000))
        columns[0] += np.linspace(1.0, 2.0, parents) @ columns[1:]
        table = {str(i): column for i, column in enumerate(columns)}
        found.append(bound(table).p_value(0, [*range(1, parents + 1)]))
    assert kstest(found, "uniform").pvalue > 0.005
    assert np.mean(np.array(found) < 0.01) <= 0.05


def test_equal_noise_and_a_slope_of_one_is_told_by_the_variance() -> None:
    """The regression of either variable on the other is a line there."""
    rng = np.random.default_rng(4)
    y, noise = rng.uniform(size=(2, 1000))
    test = bound({"x": y + noise, "y": y})
    assert test.p_value(0, [1]) > 0.05
    assert test.p_value(1, [0]) < 1e-6


def test_degenerate_columns_tell_nothing() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(size=200)
    test = bound({"x": x, "copy": 2 * x, "constant": np.ones(200), "flag": np.sign(x - 0.3)})
    assert test.p_value(0, [1]) == test.p_value(0, [2]) == test.p_value(2, [0]) == 1.0
    assert 0 <= test.p_value(0, [3]) <= 1


def test_values_beyond_the_radius_are_not_tested() -> None:
    rng = np.random.default_rng(6)
    y = rng.uniform(size=2000)
    x = y + rng.uniform(size=2000)
    x[0] = 1e4
    test = bound({"x": x, "y": y})
    assert test.p_value(1, [0]) == 1.0
    (note,) = test.notes(ist.DAG(["x", "y"], [("y", "x")]))
    assert "['x']" in note
    assert not test.notes(ist.DAG(["x", "y"], []))


def test_moments_without_powers_are_refused() -> None:
    table = {"x": np.arange(9.0), "y": np.arange(9.0) ** 2}
    with pytest.raises(MismatchError, match="third degree"):
        ist.IndependentNoise().bind(ist.Frame(table).moments())
    with pytest.raises(MismatchError, match="third degree"):
        bound(table, ist.IndependentNoise(basis=ist.Chebyshev(2)))
