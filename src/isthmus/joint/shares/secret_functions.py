"""Functions of secret integers: polynomials on intervals, chosen in secret.

An integer is normalised as a floating-point number is: from its bits follow the place of the first
one, the bits after it, and so the quarter of an octave in which the integer is. That selects the
coefficients of a polynomial, of which the remaining bits are the variable; no interval is ever
known. Integers below eight are alone in their interval, so small counts are only rounded, and zero
is in none, so that every function of an empty cell is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.polynomial import Polynomial

from isthmus.errors import DataError
from isthmus.joint.shares.secret_bits import Bits, bits_of, both, carried, opposite, scaled
from isthmus.joint.shares.shares import (
    FRACTION,
    Words,
    added,
    divided,
    negative,
    shifted,
    total,
    truncated,
    wide,
)
from isthmus.types import Floats

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime
    from isthmus.joint.shares.secret_products import SecretProducts

QUARTER = 2
"""Bits after the first one that select an interval."""

MOST_DEGREE = 10
TOLERANCE = 1e-6
"""Largest error of a polynomial, in nats."""

PRECISION = 40
"""Bits of the fraction of coefficients."""

MOST_COUNTS = 10**8
"""Largest count for which `cell_error` was compared with integers of unlimited size."""

AT_ONCE = 4096
"""Values that are computed together. More need fewer messages and more memory."""

POINTS = 400


@final
@dataclass(frozen=True)
class LogGamma:
    """``ln Γ(c + a) - ln Γ(a)``, which is zero for an empty cell."""

    a: float

    def __call__(self, c: Floats) -> Floats:
        return _log_gamma(c + self.a) - math.lgamma(self.a)


@final
@dataclass(frozen=True)
class TimesLog:
    """``c ln c``, which is zero for an empty cell."""

    def __call__(self, c: Floats) -> Floats:
        return np.asarray(c * np.log(np.maximum(c, 1.0)), dtype=np.float64)  # integers


def _log_gamma(values: Floats) -> Floats:
    """Return ``ln Γ`` of each value. Python's own function: the engine imports no SciPy."""
    return np.array([math.lgamma(x) for x in np.ravel(values).tolist()]).reshape(np.shape(values))


CountFunction = LogGamma | TimesLog


@final
@dataclass(frozen=True)
class Intervals:
    """Quarters of octaves of integers.

    Attributes
    ----------
    first
        The smallest exponent: smaller integers are in no interval.
    width
        Number of bits of an integer.
    length
        Number of bits of the variable of a polynomial.
    """

    first: int
    width: int
    length: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The exponent and the quarter of each. Small octaves have fewer quarters."""
        return [
            (k, s)
            for k in range(self.first, self.width)
            for s in range(0, 1 << QUARTER, 1 << max(QUARTER - k, 0))
        ]

    def start(self, exponent: int, quarter: int) -> float:
        """Return the first integer of an interval."""
        return 2.0**exponent * (1 + quarter / (1 << QUARTER))


def count_intervals(n: int) -> Intervals:
    """Return the intervals of counts up to n."""
    width = max(n.bit_length(), QUARTER + 2)
    return Intervals(0, width, width - 1 - QUARTER)


def cell_error(n: int) -> float:
    """Return the largest error of a function of one count up to n, in nats.

    Rounded are each coefficient, the value of each step of the polynomial, and the result. A tenth
    of the tolerance covers the first two.
    """
    if n > MOST_COUNTS:
        raise DataError(f"Scores are computed in secret for at most {MOST_COUNTS:,} people.")
    return 1.1 * TOLERANCE + 2.0**-FRACTION


def coefficients(function: Callable[[Floats], Floats], intervals: Intervals, degree: int) -> Words:
    """Return the coefficients of polynomials, shape (intervals, degree + 1, 2).

    The variable of each is between zero at the first integer of its interval and one at the first
    of the next.

    Raises
    ------
    DataError
        A polynomial is not within tolerance.
    """
    numbers: list[int] = []
    for k, s in intervals.pairs:
        fitted, error = _fit(function, intervals.start(k, s), k, degree)
        if error > TOLERANCE:
            raise DataError(
                f"{function!r} cannot be computed in secret: from {intervals.start(k, s):g} on its "
                f"approximation is wrong by {error:.2g}, and {TOLERANCE:g} is allowed."
            )
        numbers += [round(math.ldexp(x, PRECISION)) for x in fitted]
    return wide(numbers).reshape(-1, degree + 1, 2)


@lru_cache(maxsize=64)
def count_degree(n: int) -> int:
    """Return the smallest degree at which functions of counts up to n are within tolerance."""
    exponent = count_intervals(n).width - 1
    for degree in range(2, MOST_DEGREE):
        if _fit(TimesLog(), 2.0**exponent, exponent, degree)[1] <= TOLERANCE / 4:
            return degree
    return MOST_DEGREE


@lru_cache(maxsize=1024)
def count_coefficients(function: CountFunction, n: int) -> Words:
    """Return the coefficients of a function of counts up to n."""
    return coefficients(function, count_intervals(n), count_degree(n))


def _fit(
    function: Callable[[Floats], Floats], start: float, exponent: int, degree: int
) -> tuple[list[float], float]:
    """Fit a polynomial to the integers of an interval; return coefficients and largest error."""
    length = 2 ** max(exponent - QUARTER, 0)
    if length <= POINTS:
        offsets = np.arange(length, dtype=np.float64)
    else:
        nodes = np.cos(np.linspace(np.pi, 0.0, POINTS))
        offsets = np.unique(np.rint((length - 1) * (1 + nodes) / 2))
    values = function(start + offsets)
    middle = values[len(values) // 2]
    relative = 2 * offsets / max(length - 1, 1) - 1
    powers = np.vander(relative, min(degree, len(offsets) - 1) + 1, increasing=True)
    # Chebyshev's weights: least squares come close to the smallest largest error.
    weights = np.maximum(1 - relative**2, 1e-3) ** -0.25
    solved = np.linalg.lstsq(powers * weights[:, None], (values - middle) * weights, rcond=None)[0]
    error = float(np.abs(powers @ solved + middle - values).max())
    # As a polynomial of the offset divided by the length.
    found = Polynomial(solved)(Polynomial([-1.0, 2 * length / max(length - 1, 1)]))
    fitted = np.zeros(degree + 1)
    fitted[: len(found.coef)] = found.coef
    return [fitted[0] + float(middle), *fitted[1:]], error


def evaluate(
    engine: SecretSharingRuntime,
    values: Words,
    intervals: Intervals,
    tables: Sequence[Words],
) -> Words:
    """Evaluate one function per secret integer.

    Parameters
    ----------
    values
        Integers of 64 bits, shape (m,), none beyond the intervals.
    tables
        Coefficients of the function of each value, as `coefficients` gives them.

    Returns
    -------
    ndarray
        This party's shares of the results: scores, zero for integers in no interval.
    """
    products = engine.products
    results = [np.zeros(0, dtype=np.uint64)]
    for at in range(0, len(values), AT_ONCE):
        part = slice(at, at + AT_ONCE)
        bits = bits_of(products, values[part], intervals.width, engine.rank)
        table = np.stack(tables[part])
        results.append(_evaluated(products, engine.rank, bits, intervals, table))
    return np.concatenate(results)


def evaluate_bits(
    engine: SecretSharingRuntime, bits: Bits, intervals: Intervals, table: Words
) -> Words:
    """Evaluate one function of all secret integers, given their bits, shape (m, width)."""
    tables = np.broadcast_to(table, (len(bits), *table.shape))
    return _evaluated(engine.products, engine.rank, bits, intervals, tables)


def _evaluated(
    products: SecretProducts, rank: int, bits: Bits, intervals: Intervals, tables: Words
) -> Words:
    exponents, mantissa = _normalised(products, rank, bits, intervals)
    chosen = _selected(products, rank, exponents, mantissa[:, :QUARTER], intervals, tables)
    variable = mantissa[:, QUARTER:]
    weights = np.arange(intervals.length)[::-1]
    value = chosen[:, -1]
    for d in range(tables.shape[2] - 2, -1, -1):
        value = scaled(products, variable, value, weights)
        if d:
            value = added(truncated(value, intervals.length, rank), chosen[:, d])
    # The last product keeps all of its bits.
    value = added(value, shifted(chosen[:, 0], np.array(intervals.length)))
    return divided(value, PRECISION + intervals.length - FRACTION)[:, 0]


def _normalised(
    products: SecretProducts, rank: int, bits: Bits, intervals: Intervals
) -> tuple[Bits, Bits]:
    """Return where the first one is, shape (m, exponents), and the bits that follow it."""
    width, first = intervals.width, intervals.first
    top = bits[:, first:][:, ::-1]
    above = carried(products, top, opposite(top, rank))[:, ::-1]  # a one here or higher
    exponents = above.copy()
    exponents[:, :-1] ^= above[:, 1:]
    found = both(products, exponents, np.repeat(bits[:, None], width - first, axis=1))
    length = QUARTER + intervals.length
    mantissa = np.zeros((len(bits), length), dtype=np.uint8)
    for k in range(first, width):
        size = min(k, length)
        mantissa[:, :size] ^= found[:, k - first, :k][:, ::-1][:, :size]
    return exponents, mantissa


def _selected(
    products: SecretProducts,
    rank: int,
    exponents: Bits,
    quarter: Bits,
    intervals: Intervals,
    tables: Words,
) -> Words:
    """Return the coefficients of each value's interval, shape (m, degree + 1, 2)."""
    m = len(exponents)
    one = np.full((m, 1), rank == 0, dtype=np.uint8)
    for bit in quarter.T:
        upper = both(products, bit, one)
        one = np.stack([one ^ upper, upper], axis=2).reshape(m, -1)
    each = both(products, exponents, np.repeat(one[:, None], exponents.shape[1], axis=1))
    places = np.array(intervals.pairs)
    inside = each[:, places[:, 0] - intervals.first, places[:, 1]]
    # The exclusive or of two bits is their sum minus twice their product, of which the first party
    # gives its bit and the second all else.
    own = np.where(inside[:, :, None, None].astype(bool), tables, np.uint64(0))
    shape = (m, inside.shape[1], tables.shape[2])
    given = inside if rank == 0 else shifted(negative(own), np.array(1))
    return added(total(own, 1), products.chosen(given, shape))
