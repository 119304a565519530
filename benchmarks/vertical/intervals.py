"""Functions of counts as polynomials on a few intervals, for engines with costly products of bits.

An engine that compares numbers at a price of its own finds the interval of a secret count by about
ln n comparisons. The prototype of three parties uses these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus_joint.shares.secret_functions import POINTS, TOLERANCE, CountFunction, LogGamma

DEGREE = 8
SCALE, CONSTANT, SLOPE, POWERS = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of integers, each with its middle and a power of two that is at least half of it.

    Attributes
    ----------
    starts, stops
        First and last integer of each.
    """

    starts: Integers
    stops: Integers

    @property
    def middles(self) -> Integers:
        """The integer from which each interval's variable is measured."""
        middles: Integers = (self.starts + self.stops) // 2
        return middles

    @property
    def widths(self) -> Floats:
        """The unit of each interval's variable, which is then between -1 and 1."""
        half = np.maximum(np.maximum(self.stops - self.middles, self.middles - self.starts), 1)
        widths: Floats = 2.0 ** np.ceil(np.log2(half.astype(np.float64)))
        return widths


def count_intervals(n: int) -> Intervals:
    """Return intervals on which functions of counts up to n are polynomials within tolerance."""
    return _count_intervals(1 << max(n - 1, 1).bit_length())


@lru_cache(maxsize=8)
def _count_intervals(n: int) -> Intervals:
    reference = LogGamma(1.0)
    starts, stops, low = [], [], 0
    while low <= n:
        good, bad = min(low + DEGREE, n), n + 1
        reach = 2 * good
        while good < n and bad - good > max(1, (good - low) // 50):
            tried = min(reach, n) if bad > n else (good + bad) // 2
            if _fit(reference, low, tried)[1] <= TOLERANCE / 2:
                good, reach = tried, 2 * tried
            else:
                bad = tried
        starts.append(low)
        stops.append(good)
        low = good + 1
    return Intervals(np.array(starts, dtype=np.int64), np.array(stops, dtype=np.int64))


@lru_cache(maxsize=64)
def count_coefficients(function: CountFunction, n: int) -> Floats:
    """Return one row per interval: scale, constant, slope, and coefficients of the powers."""
    intervals = count_intervals(n)
    table = np.zeros((len(intervals.starts), POWERS + DEGREE))
    for j, (low, high) in enumerate(zip(intervals.starts, intervals.stops, strict=True)):
        fitted, _ = _fit(function, int(low), int(high))
        width = intervals.widths[j]
        table[j, SCALE], table[j, CONSTANT], table[j, SLOPE] = (
            1 / width,
            fitted[0],
            fitted[1] / width,
        )
        table[j, POWERS + 1 :] = fitted[2:]
    return table


def _fit(function: CountFunction, low: int, high: int) -> tuple[Floats, float]:
    """Fit a polynomial to integers between two; return its coefficients and largest error."""
    if high - low <= POINTS:
        points = np.arange(low, high + 1, dtype=np.float64)
    else:
        nodes = np.cos(np.linspace(np.pi, 0.0, POINTS))
        points = np.unique(np.rint((low + high) / 2 + (high - low) / 2 * nodes))
    single = Intervals(np.array([low]), np.array([high]))
    u = (points - single.middles[0]) / single.widths[0]
    values = function(points)
    middle = values[len(values) // 2]
    degree = min(DEGREE, len(points) - 1)
    powers = np.vander(u, degree + 1, increasing=True)
    # Chebyshev's weights: least squares come close to the smallest largest error.
    relative = (2 * points - low - high) / max(high - low, 1)
    weights = np.maximum(1 - relative**2, 1e-3) ** -0.25
    solved = np.linalg.lstsq(powers * weights[:, None], (values - middle) * weights, rcond=None)[0]
    fitted = np.zeros(DEGREE + 1)
    fitted[: degree + 1] = solved
    fitted[0] += middle
    return fitted, float(np.abs(powers @ solved + middle - values).max())
