"""Functions of secret integers: polynomials on a few intervals, chosen in secret.

A count up to n is compared with about ln n bounds, all at once. The comparisons select the
coefficients of a polynomial, and no interval is ever known. The first interval has as many points
as a polynomial has coefficients, so small counts, and empty cells above all, are exact. This takes
a few dozen messages whatever the number of cells; the engine's own logarithm takes thousands and
has an error of 1e-7 of its value, which is too much for c ln c with large counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.special import gammaln, xlogy

from isthmus.errors import DataError
from isthmus.joint.shares.shares import FRACTION, SecretShare
from isthmus.types import Floats, Integers

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime

DEGREE = 8
TOLERANCE = 1e-6
"""Largest error of a polynomial, in nats."""

MOST_COUNTS = 10**8
"""Largest count for which `cell_error` was compared with integers of unlimited size."""

CHUNKS = (64, 256, 1024)
"""Numbers of values that programs are compiled for. More at once need fewer messages and more
memory: 0.14 GB for 1,024 values of up to 100,000 (benchmarks/results/vertical.md)."""

POINTS = 400
SCALE, CONSTANT, SLOPE, POWERS = 0, 1, 2, 3


@final
@dataclass(frozen=True)
class LogGamma:
    """``ln Γ(c + a) - ln Γ(a)``, which is zero for an empty cell."""

    a: float

    def __call__(self, c: Floats) -> Floats:
        return np.asarray(gammaln(c + self.a) - gammaln(self.a), dtype=np.float64)


@final
@dataclass(frozen=True)
class TimesLog:
    """``c ln c``, which is zero for an empty cell."""

    def __call__(self, c: Floats) -> Floats:
        return np.asarray(xlogy(c, c), dtype=np.float64)


CountFunction = LogGamma | TimesLog


@final
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


def cell_error(n: int) -> float:
    """Return the largest error of a function of one count up to n, in nats.

    Coefficients are sums of rounded steps, one per interval. The error of the slope is multiplied
    by the count's distance from the middle of its interval; a tenth of the tolerance covers the
    other terms, whose variable is between -1 and 1.
    """
    if n > MOST_COUNTS:
        raise DataError(f"Scores are computed in secret for at most {MOST_COUNTS:,} people.")
    intervals = count_intervals(n)
    steps, reach = len(intervals.starts), float(intervals.widths.max())
    return 1.1 * TOLERANCE + steps * reach * 2.0 ** -(FRACTION + 1)


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


def coefficients(
    function: Callable[[Floats], Floats], intervals: Intervals, *, exact_slope: bool = True
) -> Floats:
    """Return one row per interval: scale, constant, slope, and coefficients of the powers.

    Parameters
    ----------
    exact_slope
        Whether the linear term multiplies the integer itself rather than its scaled value. That
        has no rounding error if the slope is not tiny.

    Raises
    ------
    DataError
        A polynomial is not within tolerance.
    """
    table = np.zeros((len(intervals.starts), POWERS + DEGREE))
    for j, (low, high) in enumerate(zip(intervals.starts, intervals.stops, strict=True)):
        fitted, error = _fit(function, int(low), int(high))
        if error > TOLERANCE:
            raise DataError(
                f"{function!r} cannot be computed in secret: between {low} and {high} its "
                f"approximation is wrong by {error:.2g}, and {TOLERANCE:g} is allowed."
            )
        width = intervals.widths[j]
        table[j, SCALE], table[j, CONSTANT] = 1 / width, fitted[0]
        if exact_slope:
            table[j, SLOPE] = fitted[1] / width
        else:
            table[j, POWERS] = fitted[1]
        table[j, POWERS + 1 :] = fitted[2:]
    return table


@lru_cache(maxsize=1024)
def count_coefficients(function: CountFunction, n: int) -> Floats:
    """Return the coefficients of a function of counts up to n."""
    return coefficients(function, count_intervals(n))


def _fit(function: Callable[[Floats], Floats], low: int, high: int) -> tuple[Floats, float]:
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


def piecewise(
    value: Any, bounds: Any, identity: Any, jumps: Any, middle: Any, first: Any, steps: Any
) -> Any:
    """Evaluate polynomials of secret integers (a program of JAX).

    Parameters
    ----------
    value
        Secret integers, or fractions, shape (m,).
    bounds
        Starts of all intervals but the first, shape (k,).
    identity
        The unit matrix of k rows. Multiplying by it turns shared bits into shared numbers, once.
    jumps, middle
        Differences between the intervals' middles, shape (k,), and the first middle, shape (1,).
    first, steps
        Coefficients in the first interval, shape (m, c), and their differences between
        intervals, shape (m, k, c).
    """
    import jax.numpy as jnp

    beyond = (value[:, None] >= bounds[None, :]).astype(jnp.int64) @ identity
    v = value - middle - beyond @ jumps
    table = first + jnp.sum(beyond[:, :, None] * steps, axis=1)
    u = v * table[:, SCALE]
    linear = v * table[:, SLOPE]
    u2 = u * u
    high = u2[:, None] * jnp.stack([u, u2], axis=1)
    u3, u4 = high[:, 0], high[:, 1]
    top = u4[:, None] * jnp.stack([u, u2, u3, u4], axis=1)
    powers = jnp.concatenate([u[:, None], u2[:, None], high, top], axis=1)
    return table[:, CONSTANT] + linear + jnp.sum(powers * table[:, POWERS:], axis=1)


def _chunk(left: int) -> int:
    """Return how many values to compute next: with padding only where it is less than half."""
    larger = [size for size in CHUNKS if size >= left]
    smaller = [size for size in CHUNKS if size <= left]
    return larger[0] if larger and (2 * left > larger[0] or not smaller) else smaller[-1]


def evaluate(
    engine: SecretSharingRuntime,
    values: SecretShare,
    intervals: Intervals,
    tables: Sequence[Floats],
    *,
    fractions: bool = False,
) -> list[int]:
    """Evaluate one function per secret integer.

    Parameters
    ----------
    values
        Integers with 128 bits, shape (m,), none beyond the intervals.
    tables
        Coefficients of the function of each value, as `coefficients` gives them.
    fractions
        Whether the integers, of up to 40 bits, are computed with as multiples of 2^-40. The scale
        of an interval is then no tiny number, of which the last bit matters.

    Returns
    -------
    list of int
        This party's ring elements of the results.
    """
    total = values.shape[0]
    k = len(intervals.starts) - 1
    unit = 2.0**-FRACTION if fractions else 1
    bounds, jumps = intervals.starts[1:] * unit, np.diff(intervals.middles) * unit
    middle = intervals.middles[:1] * unit
    results: list[int] = []
    done = 0
    while done < total:
        size = _chunk(total - done)
        take = min(size, total - done)
        words = np.zeros((size, 2), dtype=np.uint64)
        words[:take] = values.words[done : done + take]
        table = np.stack(tables[done : done + take] or [tables[0]])
        table = np.concatenate([table, np.repeat(table[:1], size - take, axis=0)])
        table[:, :, SCALE] /= unit
        (result,) = engine.run(
            piecewise,
            SecretShare(words, 128, real=fractions),
            bounds,
            np.eye(k, dtype=np.int64),
            jumps,
            middle,
            np.ascontiguousarray(table[:, 0]),
            np.diff(table, axis=1),
        )
        results += result.numbers()[:take]
        done += take
    return results
