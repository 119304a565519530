"""The logarithm of a factorial in integers, as a circuit of bits computes it.

Counts below 64 have a table. Each octave above is cut into 16 pieces, and each piece is a
polynomial of degree 4 in the place x of the count within it, between 0 and 1:

    a0 + x (a1 + x (a2 - x (a3 - x a4)))

All coefficients and all brackets are positive, so that bits need no sign.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import gammaln

FRACTION = 21
"""Bits after the point of a value."""

EXACT = 6
MANTISSA = 4
DEGREE = 4


def rounded(value: float) -> int:
    return round(value * 2**FRACTION)


@cache
def small() -> list[int]:
    """Values of the counts that have a table."""
    return [rounded(gammaln(c + 1.0)) for c in range(2**EXACT)]


@cache
def piece(octave: int, j: int) -> tuple[int, ...]:
    """Coefficients of the piece j of the counts from 2^octave."""
    width = 2 ** (octave - MANTISSA)
    start = 2**octave + j * width
    fit = Chebyshev.interpolate(lambda x: gammaln(start + width * x + 1.0), DEGREE, (0, 1))
    a0, a1, a2, a3, a4 = fit.convert(kind=Polynomial).coef
    found = tuple(rounded(a) for a in (a0, a1, a2, -a3, a4))
    assert min(found) >= 0
    return found


def places(bits: int) -> int:
    """Bits of a place within a piece, for counts of this many bits."""
    return bits - 1 - MANTISSA


def log_factorial(count: int, bits: int) -> int:
    """The value that the circuit computes, for counts of this many bits."""
    if count < 2**EXACT:
        return small()[count]
    octave = count.bit_length() - 1
    j, x = divmod(count - 2**octave, 2 ** (octave - MANTISSA))
    x <<= bits - 1 - octave
    a0, a1, a2, a3, a4 = piece(octave, j)
    d = places(bits)
    inner = a2 - ((a3 - (a4 * x >> d)) * x >> d)
    return a0 + ((a1 + (inner * x >> d)) * x >> d)


@cache
def largest_error(most: int) -> float:
    """Largest error over all counts, in nats."""
    bits = most.bit_length()
    found = np.array([log_factorial(c, bits) for c in range(most + 1)]) / 2**FRACTION
    return float(np.abs(found - gammaln(np.arange(most + 1) + 1.0)).max())
