"""Penalties of extended criteria, which account for the number of possible edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isthmus.objectives import LocalScore
from isthmus.objectives.penalised import PenalisedScore

_PROHIBITIVE = 1e3
"""Penalty per row of a parent for which there are too few rows."""

_ROWS_PER_PARENT = 4
"""Minimum number of rows per parent, chosen by ``benchmarks/false_edges.py``."""


def edge_prices(d: int, gamma: float) -> NDArray[np.float64]:
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
    from scipy.special import erfc, stdtrit

    level = 0.5 * np.log(n) + 2.0 * gamma * np.log(max(d, 1))
    tail = float(erfc(np.sqrt(level)))  # of a chi-squared variable with one degree of freedom
    gains = np.full(d, _PROHIBITIVE * n)
    freedom = n - 2.0 - np.arange(d)
    open_ = np.arange(d) < max(1, n // _ROWS_PER_PARENT)
    open_ &= freedom >= 1.0
    if tail > 0.0 and open_.any():
        t = -stdtrit(freedom[open_], 0.5 * tail)
        exact = 0.5 * n * np.log1p(t * t / freedom[open_])
        gains[open_] = np.where(np.isfinite(exact), np.maximum(exact, level), gains[open_])
    prices: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(gains)])
    return prices


def extended(score: LocalScore, prices: NDArray[np.float64]) -> LocalScore:
    """Return a score minus ``prices[number of parents]``."""
    return PenalisedScore(score, prices) if prices.any() else score
