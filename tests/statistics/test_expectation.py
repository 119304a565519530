"""Expectation-maximisation of moments against plain loops over rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.errors import DataError
from isthmus.statistics import tally as patterns_module
from isthmus.statistics.incomplete import Estimated, ExpectationStep, estimate_moments
from isthmus.statistics.tally import PatternRows


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def summed(rows: Floats, batches: int = 1) -> PatternRows:
    schema = ist.Schema.continuous([f"x{i}" for i in range(rows.shape[1])])
    return PatternRows.of(schema, np.array_split(rows, batches))


def estimated_from(rows: Floats, tolerance: float = 1e-11) -> Estimated:
    return estimate_moments(summed(rows), max_iterations=5000, tolerance=tolerance)


def sums_by_rows(x: Floats, mean: Floats, cov: Floats) -> tuple[Floats, Floats]:
    """Expected sums and products, row by row."""
    sums, products = np.zeros(len(mean)), np.zeros_like(cov)
    for row in x:
        there = ~np.isnan(row)
        inverse = np.linalg.inv(cov[np.ix_(there, there)])
        full, spread = np.where(there, row, 0.0), np.zeros_like(cov)
        gain = cov[np.ix_(~there, there)] @ inverse
        full[~there] = mean[~there] + gain @ (row[there] - mean[there])
        rest = cov[np.ix_(~there, ~there)] - gain @ cov[np.ix_(there, ~there)]
        spread[np.ix_(~there, ~there)] = rest
        sums += full
        products += np.outer(full, full) + spread
    return sums, products


def step(x: Floats, mean: Floats, cov: Floats) -> tuple[Floats, Floats]:
    """One iteration, row by row."""
    sums, products = sums_by_rows(x, mean, cov)
    mean = sums / len(x)
    return mean, products / len(x) - np.outer(mean, mean)


def by_rows(x: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Means and covariances by plain iterations over rows."""
    centre, scale = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    z = (x - centre) / scale
    ridge = 1e-9 * np.eye(x.shape[1])
    mean, cov, change = np.zeros(x.shape[1]), np.eye(x.shape[1]), np.inf
    while change > tolerance:
        new_mean, new_cov = step(z, mean, cov + ridge)
        change = max(np.abs(new_mean - mean).max(), np.abs(new_cov - cov).max())
        mean, cov = new_mean, new_cov
    return centre + scale * mean, cov * np.outer(scale, scale)


def table(seed: int, n: int, d: int, share: float, units: float) -> Floats:
    """Rows with holes; the first row is complete, so that every column has a value."""
    x = rng(seed).normal(size=(n, d)) @ rng(seed + 1).normal(size=(d, d))
    x = x * units ** rng(seed + 2).uniform(-1, 1, d) + 10.0 * rng(seed + 3).normal(size=d)
    x[rng(seed + 4).random(x.shape) < share] = np.nan
    x[1:2] = np.nan  # a row without values
    x[0] = 1.0
    return x


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.integers(2, 40),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.1, 0.5, 0.9]),
    st.sampled_from([1.0, 1e6]),
    st.integers(1, 3),
)
@example(0, 3, 6, 0.5, 1e6, 2)  # fewer rows than columns
@example(0, 2, 3, 0.0, 1.0, 1)
def test_expected_sums_by_loops_over_rows(
    seed: int, n: int, d: int, share: float, units: float, batches: int
) -> None:
    x = table(seed, n, d, share, units)
    patterns = summed(x, batches)
    assert patterns.n == n
    np.testing.assert_array_equal(patterns.missing, np.isnan(x).sum(axis=0))
    step = ExpectationStep(patterns, patterns.standardised())
    half = rng(seed + 9).normal(size=(d, d))
    mean, cov = rng(seed + 8).normal(size=d), half @ half.T + 0.1 * np.eye(d)
    expected = step.expected(mean, cov - 1e-9 * np.eye(d))
    assert expected is not None
    z = (x - np.nanmean(x, axis=0)) / step.rows.scale
    np.testing.assert_allclose(step.rows.centre, np.nanmean(x, axis=0), rtol=1e-12)
    sums, products = sums_by_rows(z, mean, cov)
    size = np.abs(products).max()
    np.testing.assert_allclose(expected.sums, sums, atol=1e-9 * size)
    np.testing.assert_allclose(expected.products, products, atol=1e-9 * size)


@pytest.mark.parametrize(("seed", "share", "units"), [(4, 0.1, 1.0), (5, 0.3, 1e6)])
def test_the_result_is_that_of_plain_iterations(seed: int, share: float, units: float) -> None:
    x = table(seed, 30, 3, share, units)
    mean, cov = by_rows(x, 1e-12)
    found = estimated_from(x, 1e-12)
    assert found.converged
    scale = np.sqrt(np.diagonal(cov))
    np.testing.assert_allclose(found.moments.mean() / scale, mean / scale, atol=1e-8)
    difference = (found.moments.covariance() - cov) / np.outer(scale, scale)
    np.testing.assert_allclose(difference, 0.0, atol=1e-8)


def test_rows_are_replaced_by_few(monkeypatch: pytest.MonkeyPatch) -> None:
    x = table(1, 5000, 3, 0.3, 1.0)
    patterns = summed(x)
    assert len(patterns.rows) <= 8 * 4
    monkeypatch.setattr(patterns_module, "BUFFERED", 100)
    again = summed(x, 20)
    one, two = patterns.standardised(), again.standardised()
    for a, b in ((one.centre, two.centre), (one.scale, two.scale)):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    monkeypatch.setattr(patterns_module, "LARGEST", 30)
    with pytest.raises(DataError, match="different patterns of missing values"):
        summed(x, 20)


def test_what_has_no_moments() -> None:
    x = table(1, 30, 3, 0.2, 1.0)
    x[:, 1] = np.nan
    with pytest.raises(DataError, match=r"columns \['x1'\] have no values"):
        estimated_from(x)
    x[:, 1], x[3, 0] = 2.0, np.inf
    with pytest.raises(DataError, match=r"infinite in these columns: 'x0' \(1\)"):
        estimated_from(x)
    x[3, 0] = 1e200
    with pytest.raises(DataError, match="values of 'x0' are so large"):
        estimated_from(x)
    with pytest.raises(DataError, match="no rows"):
        summed(np.zeros((0, 2)))
    x[3, 0] = np.nan
    constant = estimated_from(x).moments
    assert constant.constants() == ("x1",)
    assert constant.mean()[1] == 2.0


def test_moments_of_a_monotone_pattern_in_closed_form() -> None:
    x = rng(1).normal(size=400)
    y = 3.0 + 2.0 * x + rng(2).normal(size=400)
    absent = np.zeros((400, 2), dtype=bool)
    absent[:, 1] = x > 0.5  # depends on what is observed
    rows = np.where(absent, np.nan, np.column_stack([x, y]))
    estimated = estimated_from(rows)
    assert estimated.converged
    there = ~absent[:, 1]
    slope, intercept = np.polyfit(x[there], y[there], 1)
    noise = np.mean((y[there] - intercept - slope * x[there]) ** 2)
    mean, covariance = estimated.moments.mean(), estimated.moments.covariance()
    np.testing.assert_allclose(mean, [x.mean(), intercept + slope * x.mean()], rtol=1e-6)
    wanted = np.var(x) * np.array([[1, slope], [slope, slope**2 + noise / np.var(x)]])
    np.testing.assert_allclose(covariance, wanted, rtol=1e-6)
    assert estimated.moments.n == there.sum()


def test_the_moments_are_a_fixed_point() -> None:
    x = rng(5).normal(size=(200, 4)) @ rng(6).normal(size=(4, 4))
    x[rng(7).random(x.shape) < 0.3] = np.nan
    x[0] = 0.5
    found = estimated_from(x).moments
    mean, covariance = step(x, found.mean(), found.covariance())
    np.testing.assert_allclose(mean, found.mean(), atol=1e-6)
    np.testing.assert_allclose(covariance, found.covariance(), atol=1e-6)


def test_exact_combinations_have_moments() -> None:
    x = rng(1).normal(size=(500, 2))
    rows = np.column_stack([x, x.sum(axis=1)])
    holes = rows.copy()
    holes[rng(2).random(rows.shape) < 0.2] = np.nan
    found = estimated_from(holes, 1e-7).moments.covariance()
    np.testing.assert_allclose(found[2], found[0] + found[1], atol=1e-3)
