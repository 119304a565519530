"""Moments about the mean of each site, as integers.

A site computes the products about its own mean from exact sums, without rounding, and rounds them
once: to multiples of the steps of its values, such as one year or half a point, and to whole
numbers for two levels. Digits beyond would be multiples of one over its number of rows, and the
last digits of a sum over few sites would then tell how many rows each of them has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from isthmus.errors import DataError
from isthmus.joint.federation.requests.fixed_point import (
    CENTRE,
    IMPOSSIBLE,
    LIMBS,
    FixedPointEncoding,
    encode_rows,
    require_count,
)
from isthmus.joint.secure_sum.limbs import LimbArray, from_ints, to_ints
from isthmus.statistics import Kind, Moments
from isthmus.statistics.within import from_scatter
from isthmus.types import Floats


def size_within(grid: FixedPointEncoding) -> int:
    """Return how many numbers there are: those of moments, and the number of sites."""
    return grid.size + 1


def encode_within(
    grid: FixedPointEncoding, rows: Floats, places: Sequence[int] | None = None
) -> LimbArray:
    """Return number of rows, one for the site, sums, and products about the mean of the rows.

    Parameters
    ----------
    grid
        The units.
    rows, places
        As for `encode_rows`.
    """
    whole = encode_rows(grid, rows, places)
    n, *rest = to_ints(whole)
    p, (i, j) = grid.schema.width, grid.pairs
    if not n:
        return np.concatenate([whole[:1], whole])
    sums, steps = rest[:p], _steps(grid, rows, places)
    products = []
    for a, b, product in zip(i.tolist(), j.tolist(), rest[p:], strict=True):
        # Units of the products are 2**(exponents - fraction), and those of their steps 2**steps.
        exponents = int(grid.exponents[a] + grid.exponents[b])
        digits = max(steps[a] + steps[b] - exponents + grid.fraction, 0)
        about_mean = (product * n << grid.fraction) - sums[a] * sums[b]
        unit = n << (grid.fraction + digits)
        products.append(((2 * about_mean + unit) // (2 * unit)) << digits)
    return np.concatenate([whole[:1], from_ints([1, *sums, *products], LIMBS)])


def _steps(grid: FixedPointEncoding, rows: Floats, places: Sequence[int] | None) -> list[int]:
    """Return the step of the values of each column at this site, as a power of two.

    It is one for a level. Values that repeat have steps: the median of the gaps between different
    ones. The last digits of other values, and of basis functions, are as good as random.
    """
    found: list[int] = []
    for k, variable in enumerate(grid.schema.variables):
        start, stop = grid.schema.blocks[k]
        if variable.kind is Kind.DISCRETE:
            found += [0] * variable.width
            continue
        fine = [int(e) - CENTRE for e in grid.exponents[start:stop]]
        distinct, number = np.unique(
            rows[:, k if places is None else places[k]], return_counts=True
        )
        if len(distinct) > 1 and 2 * number[number > 1].sum() > number.sum():
            gap, digits = math.frexp(float(np.median(np.diff(distinct))))
            fine[0] = max(fine[0], digits - (gap == 0.5))
        found += fine
    return found


def decode_within(grid: FixedPointEncoding, total: LimbArray) -> Moments:
    """Read the moments within sites: products about their means, and the mean of all rows."""
    n, sites, *rest = to_ints(total)
    p, (i, j) = grid.schema.width, grid.pairs
    scatter = np.zeros((p, p))
    scatter[i, j] = [v / (1 << grid.fraction) for v in rest[p:]]
    scatter += np.triu(scatter, 1).T
    scatter = np.ldexp(scatter, grid.exponents[:, None] + grid.exponents)
    scatter = _possible(scatter) if grid.schema.of_kind(Kind.DISCRETE) else scatter
    return from_scatter(grid.schema, n, sites, grid.mean(n, rest[:p]), scatter)


def _possible(scatter: Floats) -> Floats:
    """Return the nearest products that rows can have: those of levels were rounded."""
    spread = np.sqrt(np.maximum(scatter.diagonal(), 0.0))
    scale = np.where(spread > 0.0, spread, 1.0)
    values, vectors = np.linalg.eigh(scatter / scale[:, None] / scale)
    if values[0] >= -1e-12:
        return scatter
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    possible: Floats = nearest * spread[:, None] * spread
    return possible


def require_plausible_within(grid: FixedPointEncoding, total: LimbArray) -> None:
    """Raise `DataError` unless sites with rows within the bounds could have these numbers."""
    n, sites, *rest = to_ints(total)
    require_count(n, grid.rows * grid.sites)
    p, (i, j) = grid.schema.width, grid.pairs
    # Rounding to whole numbers adds at most one per site, in units of half.
    limit = (n + grid.sites << grid.fraction) + (n << (grid.fraction - 30))
    squares = [v for v, own in zip(rest[p:], i == j, strict=True) if own]
    inside = all(abs(v) <= limit for v in rest)
    if not (1 <= sites <= grid.sites and inside and all(v >= 0 for v in squares)):
        raise DataError(IMPOSSIBLE)
