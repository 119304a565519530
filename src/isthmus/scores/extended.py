"""Penalties of extended criteria, which account for the number of possible edges."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isthmus.objectives import LocalScore, PenalisedScore

_PROHIBITIVE = 1e3
"""Penalty per row of a parent for which there are too few rows."""

_MANY_DEGREES_OF_FREEDOM = 1e5

_ROWS_PER_PARENT = 4
"""Minimum number of rows per parent, chosen by ``benchmarks/false_edges.py``."""


def size_penalties(d: int, gamma: float) -> NDArray[np.float64]:
    """Return the extended penalty ``2 * gamma * log(d)`` per parent, for 0, 1, … d parents."""
    prices: NDArray[np.float64] = 2.0 * gamma * np.log(max(d, 1)) * np.arange(d + 1)
    return prices


def small_sample_prices(n: int, d: int, gamma: float) -> NDArray[np.float64]:
    """Return penalties for 0, 1, … d Gaussian parents that are exact for few rows.

    The extended BIC has a penalty of ``log(n) / 2 + 2 * gamma * log(d)`` nats per parent. For many
    rows this is a likelihood-ratio test at some level. For few rows the statistic has heavier
    tails, since the residuals have only ``n - k - 2`` degrees of freedom. With these penalties,
    each parent must pass the t-test of the same level, and there is at most one parent per four
    rows. For large n the two agree.
    """
    level = 0.5 * math.log(n) + 2.0 * gamma * math.log(max(d, 1))
    tail = math.erfc(math.sqrt(level))  # of a chi-squared variable with one degree of freedom
    gains = np.full(d, _PROHIBITIVE * n)
    freedom: NDArray[np.float64] = n - 2.0 - np.arange(d, dtype=np.float64)
    open_ = np.arange(d) < max(1, n // _ROWS_PER_PARENT)
    open_ &= freedom >= 1.0
    if tail > 0.0 and open_.any():
        exact = 0.5 * n * student_log_ratio(level, freedom[open_])
        gains[open_] = np.where(np.isfinite(exact), np.maximum(exact, level), gains[open_])
    prices: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(gains)])
    return prices


def student_log_ratio(level: float, freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``log(1 + t² / freedom)`` for the t that is as unlikely as a normal ``√(2 level)``.

    SciPy has the quantile, but importing its special functions takes a third of a first `learn`.
    The approximation of Wallace (1959) is exact to ten digits for many degrees of freedom. For
    fewer, it starts Newton's method on the logarithm of the tail, an incomplete beta function.
    """
    wallace = (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0)
    ratio: NDArray[np.float64] = 2.0 * level / freedom * wallace**2
    few = freedom < _MANY_DEGREES_OF_FREEDOM
    if few.any():
        y, a = ratio[few], 0.5 * freedom[few]
        target = math.log(math.erfc(math.sqrt(level)))
        log_beta = np.array([math.lgamma(v) - math.lgamma(v + 0.5) for v in a])
        log_beta += 0.5 * math.log(math.pi)
        for _ in range(10):
            density = -a * y - log_beta
            half = 0.5 * np.log(-np.expm1(-y))
            tail = density + half - np.log(a) + np.log(_beta_fraction(np.exp(-y), a))
            step = (tail - target) * np.exp(tail - density + half)
            y += step
            if np.abs(step / y).max() < 1e-11:
                break
        ratio[few] = y
    return ratio


def _beta_fraction(x: NDArray[np.float64], a: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the continued fraction of the incomplete beta function for a and 1/2 (Lentz)."""
    c, d = np.ones_like(a), 1.0 / (1.0 - (a + 0.5) * x / (a + 1.0))
    value = d
    for m in range(1, 500):
        even = m * (0.5 - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + 0.5 + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            c, d = 1.0 + term / c, 1.0 / (1.0 + term * d)
            value = value * c * d
        if np.abs(c * d - 1.0).max() < 1e-12:
            break
    return value


def extended(score: LocalScore, prices: NDArray[np.float64]) -> LocalScore:
    """Return a score minus ``prices[number of parents]``."""
    return PenalisedScore(score, prices) if prices.any() else score
