"""Moments across two parties: opened to both, or kept secret for a network of few variables.

Each party centres and scales its own columns and rounds them to multiples of 2^-20. The products
across parties are then whole numbers, and exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, DataError
from isthmus_joint.shares.link import Words, added, encoded, negative, truncated, wide
from isthmus_joint.shares.secret_functions import (
    AT_ONCE,
    MOST_DEGREE,
    Bits,
    Intervals,
    bits_of,
    both,
    coefficients,
    evaluate_bits,
    opposite,
    scaled,
)
from isthmus_joint.shares.secret_products import ColumnProducts, carries
from isthmus_joint.shares.secret_tables import Members
from isthmus_joint.shares.terms import MOST_GAUSSIAN_PARENTS, Columns, FoundNetwork

if TYPE_CHECKING:
    from isthmus_joint.shares.engine import SecretSharingRuntime
    from isthmus_joint.shares.secret_products import SecretProducts

RESOLUTION = 20
"""Bits of the fraction to which scaled values are rounded."""

UNIT = 2 * RESOLUTION
"""Bits of the fraction of a correlation and of a determinant."""

SIGNED = UNIT + 2
"""Bits of a correlation or determinant, which may be slightly above one, and of its sign."""

LOG_LENGTH = 32
"""Bits of a determinant, after the first ones, from which its logarithm is interpolated."""

LOG_ERROR = 4e-9
"""Largest error of a logarithm of a ratio of determinants, if these are larger than 0.01."""

LARGEST_SET = MOST_GAUSSIAN_PARENTS + 1
"""Maximum number of variables of a determinant: a child and three parents."""

SMALLEST = 2.0**-24
"""Determinants of correlations below this count as this: such variables are collinear."""


@final
@dataclass(frozen=True, eq=False)
class Scaled:
    """Columns of this party after centring, scaling and rounding, with the constants used."""

    positions: list[int]
    units: Floats
    means: Floats
    sums: Floats
    whole: Any


@final
@dataclass(frozen=True, eq=False)
class OpenedMoments:
    """Number of rows, means, and sums and products about them, in the order of the columns."""

    n: int
    shift: Floats
    sums: Floats
    gram: Floats


def opened_moments(engine: SecretSharingRuntime, columns: Columns) -> OpenedMoments:
    """Open the moments of all variables to both parties.

    Revealed are means, variances and covariances of all numeric columns. A column that is zero for
    everybody but one person would reveal that person's values of the other party's columns.

    Means are exact. Variances and covariances are those of values that are rounded to a millionth
    of a standard deviation; all of them, so that the matrix is positive semi-definite.
    """
    own = _scaled(columns)
    engine.agree("moments", columns.described())
    cross = engine.open(_cross(engine, columns, own), "covariances across the parties")
    assert cross is not None
    mine = np.vstack([_within(own), own.sums, own.units, own.means])
    d = len(columns.columns)
    gram, (sums, units, means) = np.zeros((d, d)), np.zeros((3, d))
    places = [[i for i, c in enumerate(columns.columns) if c.owner == r] for r in (0, 1)]
    for rank, at in enumerate(places):
        party = ("first", "second")[rank]
        what = f"means, variances and covariances of the columns of the {party} party of the study"
        block = engine.publish(mine, what, rank, (len(at) + 3, len(at)))
        gram[np.ix_(at, at)], sums[at], units[at], means[at] = block[:-3], *block[-3:]
    gram[np.ix_(places[0], places[1])] = cross / 4.0**RESOLUTION
    gram[np.ix_(places[1], places[0])] = cross.T / 4.0**RESOLUTION
    return OpenedMoments(columns.rows, means, sums * units, gram * np.outer(units, units))


def _within(own: Scaled) -> Floats:
    """Return the products of one's own scaled columns."""
    matrix = own.whole.astype(np.float64) / 2.0**RESOLUTION
    products: Floats = matrix.T @ matrix
    return products


def secret_gaussian_structure(
    engine: SecretSharingRuntime,
    columns: Columns,
    order: Sequence[str],
    max_parents: int,
) -> FoundNetwork:
    """Find the parents with the best Gaussian BIC in secret, and reveal only the network.

    Parameters
    ----------
    max_parents
        Most parents of a variable, at most 3.
    """
    from isthmus_joint.shares.private_k2 import best_sets, parent_sets

    if sorted(order) != sorted(columns.names):
        raise ArgumentError(f"The order must name each of {list(columns.names)[:10]} once.")
    if not 0 <= max_parents < LARGEST_SET:
        raise ArgumentError(f"max_parents must be between 0 and 3 in secret, got {max_parents}.")
    places = [columns.names.index(name) for name in order]
    sets = parent_sets(places, max_parents)
    described = {str(i): s for i, s in sets.items()}
    engine.agree("search", [columns.described(), list(order), max_parents, described])
    wanted = {
        m for i, choices in sets.items() for s in choices for m in (s, tuple(sorted((*s, i))))
    }
    logs = _log_determinants(engine, columns, sorted(wanted))
    rows = [
        np.array([_gaussian_bic(engine.rank, columns.rows, logs, i, s) for s in choices])
        for i, choices in sets.items()
    ]
    return best_sets(engine, columns, order, sets, rows, LOG_ERROR * columns.rows)


def _gaussian_bic(
    rank: int, rows: int, logs: dict[Members, int], child: int, parents: Members
) -> np.uint64:
    """Return the share of ``-n ln(residual variance) - 2 penalty``, up to a constant per child.

    The residual variance of a standardised variable is a ratio of two determinants. Twice the
    score has the same order, and is a whole multiple of the shares.
    """
    total = -rows * (logs[tuple(sorted((child, *parents)))] - logs[parents])
    if rank == 0:
        total -= int(encoded(np.log(rows) * len(parents)))
    return np.uint64(total % 2**64)


TERMS: dict[tuple[int, ...], int] = {
    **{(k, k): -1 for k in range(6)},
    **dict.fromkeys([(0, 1, 3), (0, 2, 4), (1, 2, 5), (3, 4, 5)], 2),
    **dict.fromkeys([(0, 5, 0, 5), (1, 4, 1, 4), (2, 3, 2, 3)], 1),
    **dict.fromkeys([(0, 5, 1, 4), (0, 5, 2, 3), (1, 4, 2, 3)], -2),
}
"""The determinant of a correlation matrix of four variables, minus one: products of correlations
in the order 01, 02, 03, 12, 13, 23, and how often each counts."""


def determinants(engine: SecretSharingRuntime, correlations: Words) -> Words:
    """Return determinants of correlation matrices of up to four variables.

    Parameters
    ----------
    correlations
        Shares of the six correlations of each set, shape (m, 6, 2), zeros for missing variables;
        in units of 2^-40.

    Returns
    -------
    ndarray
        Shares of the determinants in units of 2^-40, with 64 bits.
    """
    m, rank, products = len(correlations), engine.rank, engine.products
    bits = bits_of(products, correlations[..., 0].ravel(), SIGNED, rank).reshape(m, 6, SIGNED)
    found: dict[tuple[int, ...], Words] = {(k,): correlations[:, k] for k in range(6)}
    for size in (2, 3, 4):
        wanted = sorted({t[-size:] for t in TERMS if len(t) >= size})
        factors = np.concatenate([bits[:, t[0]] for t in wanted])
        numbers = np.concatenate([found[t[1:]] for t in wanted])
        product = _signed_product(products, factors, numbers)
        parts = np.split(truncated(product, UNIT, rank), len(wanted))
        found |= dict(zip(wanted, parts, strict=True))
    result = np.full(m, np.uint64(rank == 0) << np.uint64(UNIT))
    for term, times in TERMS.items():
        result += found[term][:, 0] * np.uint64(times % 2**64)
    return result


def _signed_product(products: SecretProducts, bits: Bits, numbers: Words) -> Words:
    """Return shares of signed numbers, of which the bits are secret, times secrets."""
    places = np.arange(bits.shape[1])
    positive = scaled(products, bits[:, :-1], numbers, places[:-1])
    return added(positive, negative(scaled(products, bits[:, -1:], numbers, places[-1:])))


def _log_determinants(
    engine: SecretSharingRuntime, columns: Columns, wanted: list[Members]
) -> dict[Members, int]:
    own = _scaled(columns)
    logs: dict[Members, int] = {}
    secret = []
    for members in wanted:
        owners = columns.owners(members)
        if len(owners) == 2:
            secret.append(members)
            continue
        mine = next(iter(owners), 0) == engine.rank
        value = _own_log_determinant(own, columns.rows, members) if mine else 0.0
        logs[members] = int(encoded(value))
    if not secret:
        return logs
    shares = _correlations(engine, columns, own)
    for at in range(0, len(secret), AT_ONCE):
        part = secret[at : at + AT_ONCE]
        stacked = wide([shares.get(pair, 0) for m in part for pair in _six(m)])
        values = log_of_units(engine, determinants(engine, stacked.reshape(-1, 6, 2)))
        logs |= dict(zip(part, values.tolist(), strict=True))
    return logs


def log_of_units(engine: SecretSharingRuntime, values: Words) -> Words:
    """Return this party's shares of logarithms of numbers up to one, given in units of 2^-40.

    Numbers below `SMALLEST`, and negative ones, count as `SMALLEST`.
    """
    *lower, sign = bits_of(engine.products, values, SIGNED, engine.rank).T
    kept = both(engine.products, opposite(sign, engine.rank), np.stack(lower, axis=1))
    intervals = Intervals(round(np.log2(SMALLEST)) + UNIT, UNIT + 1, LOG_LENGTH)
    logs = evaluate_bits(engine, kept, intervals, _log_coefficients(intervals))
    return logs + encoded(np.log(SMALLEST)) * np.uint64(engine.rank == 0)


@lru_cache(maxsize=1)
def _log_coefficients(intervals: Intervals) -> Words:
    return coefficients(_log_of_unit, intervals, MOST_DEGREE)


def _six(members: Members) -> list[tuple[int, int]]:
    """Return the pairs of a set in the order of `determinants`; missing ones have position -1."""
    full = (*members, *([-1] * (LARGEST_SET - len(members))))
    return list(combinations(full, 2))


def _log_of_unit(value: Floats) -> Floats:
    logs: Floats = np.log(value / (2.0**UNIT * SMALLEST))
    return logs


def _own_log_determinant(own: Scaled, rows: int, members: Members) -> float:
    take = [own.positions.index(i) for i in members]
    determinant = float(np.linalg.det(_within(own)[np.ix_(take, take)] / rows))
    return float(np.log(max(determinant, SMALLEST)))


def _correlations(
    engine: SecretSharingRuntime, columns: Columns, own: Scaled
) -> dict[tuple[int, int], int]:
    """Return this party's shares of all correlations, in units of 2^-40."""
    places = [[i for i, c in enumerate(columns.columns) if c.owner == r] for r in (0, 1)]
    within = np.rint(_within(own) / columns.rows * 2.0**UNIT).astype(np.int64)
    shares: dict[tuple[int, int], int] = {}
    for rank, members in enumerate(places):
        for (x, i), (y, j) in combinations(enumerate(members), 2):
            known = int(within[x, y]) if rank == engine.rank else 0
            shares[i, j] = shares[j, i] = known
    cross = _whole(engine, _cross(engine, columns, own))
    for x, i in enumerate(places[0]):
        for y, j in enumerate(places[1]):
            shares[i, j] = shares[j, i] = cross[x][y] // columns.rows
    return shares


def _whole(engine: SecretSharingRuntime, shares: Words) -> list[list[int]]:
    """Return shares of secrets between -2^62 and 2^62 that can be divided, as signed numbers.

    They have 128 bits, and add up to the secret as whole numbers, not only in a ring, unless one is
    within the secret's size of the end of its range: with a probability of 2^-65.
    """
    middle = 1 << 62 if engine.rank == 0 else 0
    positive = shares + np.uint64(middle)
    above = carries(engine.products, positive, 64)
    return [
        [_signed(x - (y << 64) - middle) for x, y in zip(*row, strict=True)]
        for row in zip(positive.tolist(), above.tolist(), strict=True)
    ]


def _signed(number: int) -> int:
    """Return the signed number of 128 bits that is the same modulo 2^128."""
    return (number + (1 << 127)) % (1 << 128) - (1 << 127)


def _scaled(columns: Columns) -> Scaled:
    positions = [i for i, c in enumerate(columns.columns) if c.owner == columns.rank]
    if any(c.levels for c in columns.columns):
        raise ArgumentError("Moments across two parties need numeric variables.")
    matrix = np.column_stack(
        [columns.values[columns.names[i]] for i in positions] or [np.zeros((columns.rows, 0))]
    ).astype(np.float64)
    means = matrix.mean(axis=0)
    centred = matrix - means
    units = np.sqrt((centred**2).mean(axis=0))
    if (units == 0).any():
        constant = [columns.names[positions[k]] for k in np.flatnonzero(units == 0)]
        raise DataError(f"{constant[:10]} are constant among the people in common; leave them out.")
    if columns.rows >= 1 << 22:
        raise DataError(f"At most {(1 << 22) - 1:,} rows, got {columns.rows:,}.")
    whole = np.rint(centred / units * 2.0**RESOLUTION).astype(np.int64)
    return Scaled(positions, units, means, centred.sum(axis=0) / units, whole)


def _cross(engine: SecretSharingRuntime, columns: Columns, own: Scaled) -> Words:
    """Return this party's share of the products of both parties' columns.

    The first party gives the bits of its numbers, each of which is multiplied on its own. No value
    is further from the mean than the root of the number of rows times the standard deviation.
    """
    widths = [sum(c.owner == r for c in columns.columns) for r in (0, 1)]
    places = np.arange(RESOLUTION + 2 + (columns.rows.bit_length() + 1) // 2, dtype=np.int64)

    def bits(at: slice) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = own.whole[at, :, None] >> places & 1 == 1
        return found.reshape(len(found), -1)

    def numbers(at: slice) -> NDArray[np.int64]:
        whole: NDArray[np.int64] = own.whole[at]
        return whole

    wanted = ColumnProducts(0, (widths[0] * places.size, widths[1]), (bits, numbers)[engine.rank])
    total = engine.products.sums(wanted, columns.rows)
    weights = np.int64(1) << places
    weights[-1] *= -1  # the sign
    parts = total.reshape(widths[0], places.size, widths[1]) * weights.view(np.uint64)[:, None]
    shares: Words = parts.sum(axis=1, dtype=np.uint64)
    return shares
