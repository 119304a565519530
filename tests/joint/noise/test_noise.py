"""The noise has exactly the law that the accounting is about."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus_joint.noise.answers import discrete_gaussian

pytest.importorskip("opendp")

UNLIKELY = 1e-9
"""A correct sampler fails one of these tests less than once in ten million runs."""


def law(scale: float, sites: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The values of a sum of discrete Gaussians, and their exact probabilities by convolution."""
    reach = int(12 * scale) + 2
    x = np.arange(-reach, reach + 1)
    one = np.exp(-(x**2) / (2 * scale**2))
    one /= one.sum()
    total = one
    for _ in range(sites - 1):
        total = np.convolve(total, one)
    half = len(total) // 2
    return np.arange(-half, half + 1), total


def p_value(drawn: NDArray[np.int64], scale: float, sites: int) -> float:
    """Chi-square over the values that are expected at least ten times; the others are one cell."""
    from scipy.stats import chi2

    values, probabilities = law(scale, sites)
    expected = probabilities * len(drawn)
    counted = np.array([(drawn == v).sum() for v in values], dtype=np.float64)
    common = expected >= 10
    observed = np.append(counted[common], len(drawn) - counted[common].sum())
    predicted = np.append(expected[common], len(drawn) - expected[common].sum())
    kept = predicted > 0
    statistic = ((observed - predicted)[kept] ** 2 / predicted[kept]).sum()
    return float(chi2.sf(statistic, kept.sum() - 1))


@pytest.mark.long
@pytest.mark.parametrize("scale", [0.6, 2.5, 11.3])
def test_noise_is_discrete_gaussian(scale: float) -> None:
    drawn = discrete_gaussian(scale, 15_000)
    assert p_value(drawn, scale, 1) > UNLIKELY
    assert p_value(drawn, 1.1 * scale, 1) < UNLIKELY  # the test can fail


@pytest.mark.long
@pytest.mark.parametrize(("scale", "sites"), [(0.6, 3), (4.0, 2)])
def test_a_sum_of_noise_has_the_law_of_the_convolution(scale: float, sites: int) -> None:
    drawn = discrete_gaussian(scale, 10_000 * sites).reshape(sites, -1).sum(axis=0)
    assert p_value(drawn, scale, sites) > UNLIKELY


def test_wide_noise_is_gaussian_and_leaves_no_digit_alone() -> None:
    from scipy.stats import chi2, kstest

    scale = 2.0**33 + 0.3
    drawn = discrete_gaussian(scale, 10_000)
    assert kstest(drawn / scale, "norm").pvalue > UNLIKELY
    for bits in (1, 4):
        counted = np.bincount(drawn % 2**bits, minlength=2**bits)
        statistic = ((counted - len(drawn) / 2**bits) ** 2).sum() / (len(drawn) / 2**bits)
        assert chi2.sf(statistic, 2**bits - 1) > UNLIKELY


def test_noise_is_not_repeated() -> None:
    assert not np.array_equal(discrete_gaussian(1e6, 20), discrete_gaussian(1e6, 20))
