"""Regressions from covariances: against least squares on rows, units, and collinear columns."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.networks.conditionals import RANK, regress, spectrum, standardise


def rows(n: int = 200) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4))
    x[:, 1] += x[:, 0]
    x[:, 3] += x[:, :3] @ [1.0, -2.0, 0.5]
    return x


def covariance(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.cov(x, rowvar=False, bias=True))


def test_a_regression_is_that_of_the_rows() -> None:
    x = rows() - rows().mean(axis=0)
    expected, squares, *_ = np.linalg.lstsq(x[:, :3], x[:, 3], rcond=None)
    fitted = regress(covariance(x))
    np.testing.assert_allclose(fitted.coefficients, expected, rtol=1e-12)
    assert float(fitted.variance) == pytest.approx(float(squares[0]) / len(x), rel=1e-12)
    assert fitted.rank == 3
    batch = regress(np.stack([covariance(x), np.eye(4), np.zeros((4, 4))]))
    np.testing.assert_allclose(batch.coefficients[0], expected, rtol=1e-12)
    assert batch.variance.tolist()[1:] == [1.0, 0.0]
    assert batch.rank.tolist() == [3, 3, 0]


@pytest.mark.parametrize("power", [-40, 40])
def test_powers_of_two_change_nothing_but_units(power: int) -> None:
    unit = np.array([2.0**power, 1.0, 2.0**-power, 2.0**7])
    plain, scaled = regress(covariance(rows())), regress(covariance(rows() * unit))
    np.testing.assert_array_equal(scaled.coefficients, plain.coefficients * 2.0**7 / unit[:3])
    assert scaled.variance == plain.variance * 2.0**14


def test_what_collinear_columns_leave_open_comes_from_elsewhere() -> None:
    x = rows()
    x[:, 1], x[:, 2] = 3.0 * x[:, 0], 5.0
    given = covariance(x)
    given[2, :] = given[:, 2] = 0.0
    slope = np.polyfit(x[:, 0], x[:, 3], 1)[0]
    least = regress(given).coefficients
    # The minimum norm is that of standard deviations: both columns have the same share.
    np.testing.assert_allclose(least, [slope / 2, slope / 6, 0.0], atol=1e-12)
    towards = regress(given, np.array([slope, 0.0, 7.0])).coefficients
    np.testing.assert_allclose(towards, [slope, 0.0, 7.0], atol=1e-12)


@pytest.mark.parametrize("n", [100, 100_000])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_rounding_is_far_below_the_limits(n: int, offset: float) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=n) + offset, 1e-3 * rng.exponential(size=n)
    moments = ist.Frame({"a": a, "b": b, "sum": a + b, "y": 2 * a - 3 * b}).moments()
    _, correlation = standardise(moments.covariance())
    assert abs(np.linalg.eigvalsh(correlation[:3, :3])[0]) < RANK / 100
    assert spectrum(moments.covariance()[:3, :3]).free.sum() == 2
    assert regress(moments.covariance()).variance == 0.0
