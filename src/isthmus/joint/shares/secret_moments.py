"""Moments across two parties: opened to both, or kept secret for a network of few variables.

Each party centres and scales its own columns and rounds them to multiples of 2^-20. The products
across parties are then whole numbers, and exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, DataError
from isthmus.graphs import DAG
from isthmus.joint.shares.columns import Columns
from isthmus.joint.shares.protocol import MOST_GAUSSIAN_PARENTS
from isthmus.joint.shares.secret_functions import Intervals, coefficients, evaluate
from isthmus.joint.shares.secret_products import ColumnProducts, carries
from isthmus.joint.shares.secret_tables import Members
from isthmus.joint.shares.shares import (
    FRACTION,
    MODULUS,
    SecretShare,
    Words,
    encoded,
    signed,
)
from isthmus.statistics import Kind, Moments, Schema, Variable
from isthmus.types import Floats

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime

RESOLUTION = 20
"""Bits of the fraction to which scaled values are rounded."""

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


def opened_moments(engine: SecretSharingRuntime, columns: Columns) -> Moments:
    """Open the moments of all variables to both parties.

    Revealed are means, variances and covariances of all numeric columns. A column that is zero for
    everybody but one person would reveal that person's values of the other party's columns.

    Means are exact. Variances and covariances are those of values that are rounded to a millionth
    of a standard deviation; all of them, so that the matrix is positive semi-definite.
    """
    own = _scaled(columns)
    engine.agree("moments", columns.described())
    cross = engine.open(
        SecretShare(_cross(engine, columns, own), 64), "covariances across the parties"
    )
    assert cross is not None
    mine = np.vstack([_within(own), own.sums, own.units, own.means])
    d = len(columns.columns)
    gram, (sums, units, means) = np.zeros((d, d)), np.zeros((3, d))
    places = [[i for i, c in enumerate(columns.columns) if c.owner == r] for r in (0, 1)]
    for rank, at in enumerate(places):
        what = f"means, variances and covariances of the columns of party {rank}"
        block = engine.publish(mine, what, rank, (len(at) + 3, len(at)))
        gram[np.ix_(at, at)], sums[at], units[at], means[at] = block[:-3], *block[-3:]
    gram[np.ix_(places[0], places[1])] = cross / 4.0**RESOLUTION
    gram[np.ix_(places[1], places[0])] = cross.T / 4.0**RESOLUTION
    schema = Schema(tuple(Variable(name, Kind.CONTINUOUS) for name in columns.names))
    return Moments(schema, columns.rows, means, sums * units, gram * np.outer(units, units))


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
) -> DAG:
    """Find the parents with the best Gaussian BIC in secret, and reveal only the network.

    Parameters
    ----------
    columns
        The variables, all numeric; a few.
    order
        Names of all variables; parents come before children.
    max_parents
        Most parents of a variable, at most 3.
    """
    from isthmus.joint.methods.private_k2 import best_sets, parent_sets

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
        [_gaussian_bic(engine.rank, columns.rows, logs, i, s) for s in choices]
        for i, choices in sets.items()
    ]
    return best_sets(engine, columns, order, sets, rows)


def _gaussian_bic(
    rank: int, rows: int, logs: dict[Members, int], child: int, parents: Members
) -> int:
    """Return the share of ``-n/2 ln(residual variance) - penalty``, up to a constant per child.

    The residual variance of a standardised variable is a ratio of two determinants.
    """
    difference = logs[tuple(sorted((child, *parents)))] - logs[parents]
    # Each party halves its share, read as a signed number: the sum is halved, too.
    total = -rows * (signed(difference) >> 1)
    if rank == 0:
        total -= encoded(0.5 * np.log(rows) * len(parents))
    return total % MODULUS


def determinants(correlations: Any) -> Any:
    """Determinants of correlation matrices of up to four variables (a program of JAX).

    Parameters
    ----------
    correlations
        The six correlations of each set, shape (m, 6), zeros for missing variables; in the order
        01, 02, 03, 12, 13, 23.

    Returns
    -------
    array
        As integers: multiples of 2^-40.
    """
    import jax.numpy as jnp

    squares = correlations * correlations
    a, b, c, d, e, f = (correlations[:, k] for k in range(6))
    # Pairs without a common variable, and the products that paths and cycles of length 3 need.
    pairs = jnp.stack([a * f, b * e, c * d], axis=1)
    firsts = jnp.stack([a * b, a * c, b * c, d * e], axis=1)
    triples = firsts * jnp.stack([d, e, f, f], axis=1)
    sums = pairs * pairs
    mixed = jnp.stack(
        [pairs[:, 0] * pairs[:, 1], pairs[:, 0] * pairs[:, 2], pairs[:, 1] * pairs[:, 2]], 1
    )
    return (
        1
        - jnp.sum(squares, axis=1)
        + 2 * jnp.sum(triples, axis=1)
        + jnp.sum(sums, axis=1)
        - 2 * jnp.sum(mixed, axis=1)
    )


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
        logs[members] = encoded(_own_log_determinant(own, columns.rows, members)) if mine else 0
    if not secret:
        return logs
    shares = _correlations(engine, columns, own)
    stacked = SecretShare.from_numbers(
        [shares.get(pair, 0) for m in secret for pair in _six(m)], (len(secret), 6)
    )
    (found,) = engine.run(determinants, stacked)
    values = log_of_units(engine, SecretShare(found.words, 128))
    return logs | dict(zip(secret, values, strict=True))


def log_of_units(engine: SecretSharingRuntime, values: SecretShare) -> list[int]:
    """Return this party's shares of logarithms of numbers up to one, given in units of 2^-40."""
    intervals = _unit_intervals()
    table = coefficients(_log_of_unit, intervals, exact_slope=False)
    return evaluate(engine, values, intervals, [table] * values.shape[0], fractions=True)


def _six(members: Members) -> list[tuple[int, int]]:
    """Return the pairs of a set in the order of `determinants`; missing ones have position -1."""
    full = (*members, *([-1] * (LARGEST_SET - len(members))))
    return list(combinations(full, 2))


def _unit_intervals() -> Intervals:
    """Intervals between powers of the root of two, for multiples of 2^-40 up to one."""
    top = FRACTION
    bounds = [round(2 ** (k / 2)) for k in range(2 * (round(np.log2(SMALLEST)) + top), 2 * top + 1)]
    starts = np.array([-(2**top), *bounds[:-1]], dtype=np.int64)
    stops = np.array([*(b - 1 for b in bounds[:-1]), bounds[-1] + 2**10], dtype=np.int64)
    return Intervals(starts, stops)


def _log_of_unit(value: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(value / 2.0**FRACTION, SMALLEST))
    return logs


def _own_log_determinant(own: Scaled, rows: int, members: Members) -> float:
    take = [own.positions.index(i) for i in members]
    determinant = float(np.linalg.det(_within(own)[np.ix_(take, take)] / rows))
    return float(np.log(max(determinant, SMALLEST)))


def _correlations(
    engine: SecretSharingRuntime, columns: Columns, own: Scaled
) -> dict[tuple[int, int], int]:
    """Return this party's shares of all correlations, as ring elements of 128 bits."""
    places = [[i for i, c in enumerate(columns.columns) if c.owner == r] for r in (0, 1)]
    within = _within(own) / columns.rows
    shares: dict[tuple[int, int], int] = {}
    for rank, members in enumerate(places):
        for (x, i), (y, j) in combinations(enumerate(members), 2):
            known = encoded(float(within[x, y])) if rank == engine.rank else 0
            shares[i, j] = shares[j, i] = known
    # Divided by n with 128 bits: sums of products do not fit into 64 when they are widened.
    cross = _cross_wide(engine, columns, own)
    for x, i in enumerate(places[0]):
        for y, j in enumerate(places[1]):
            shares[i, j] = shares[j, i] = signed(cross[x][y]) // columns.rows % MODULUS
    return shares


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


def _cross_wide(engine: SecretSharingRuntime, columns: Columns, own: Scaled) -> list[list[int]]:
    """Return this party's shares of sums of products with 128 bits, in multiples of 2^-40."""
    # Sums of products are between -2^62 and 2^62.
    middle = 1 << 62 if engine.rank == 0 else 0
    shares = _cross(engine, columns, own) + np.uint64(middle)
    above = carries(engine.products, shares, 64)
    return [
        [(share - (carry << 64) - middle) % MODULUS for share, carry in zip(*row, strict=True)]
        for row in zip(shares.tolist(), above.tolist(), strict=True)
    ]
