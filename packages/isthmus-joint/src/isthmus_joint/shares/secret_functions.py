"""Functions of secret integers: polynomials on intervals, chosen in secret.

An integer is normalised as a floating-point number is: from its bits follow the place of the first
one, the bits after it, and so the quarter of an octave in which the integer is. That selects the
coefficients of a polynomial, of which the remaining bits are the variable; no interval is ever
known. Integers below eight are alone in their interval, so small counts are only rounded, and zero
is in none, so that every function of an empty cell is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, DataError
from isthmus_joint.shares.link import (
    FRACTION,
    Words,
    added,
    broken,
    divided,
    encoded,
    negative,
    shifted,
    total,
    truncated,
    wide,
)
from isthmus_joint.shares.secret_products import SecretProducts
from isthmus_joint.shares.secret_tables import Members, SecretTables
from isthmus_joint.shares.terms import MOST_ESS, Columns

if TYPE_CHECKING:
    from isthmus_joint.shares.engine import SecretSharingRuntime

# --- Secret bits: shared by exclusive or, multiplied by oblivious transfer ----------------------
#
# Exclusive or, and a change by a constant, need no message; each party changes its own share.
# What a party obtains from a product is masked by random numbers of the other party, so it learns
# nothing, whatever its program (Goldreich, Micali and Wigderson 1987, on transfers that are
# checked).

Bits: TypeAlias = NDArray[np.uint8]
"""Shares of bits: zeros and ones."""


def both(products: SecretProducts, first: Bits, second: Bits) -> Bits:
    """Return products of bits, shape (..., c), from shapes (...) and (..., c)."""
    numbers = second.reshape(first.size, second.shape[-1])
    crossed = products.crossed(first.ravel(), numbers).reshape(second.shape)
    result: Bits = first[..., None] & second ^ crossed & np.uint8(1)
    return result


def opposite(bits: Bits, rank: int) -> Bits:
    """Return bits that are one where these are zero."""
    result: Bits = bits ^ np.uint8(rank == 0)
    return result


def carried(products: SecretProducts, makes: Bits, passes: Bits) -> Bits:
    """Return for each place whether it or one before makes a carry that all between pass on.

    Parameters
    ----------
    makes, passes
        Shape (m, places). At no place both are one.
    """
    makes, passes = makes.copy(), passes.copy()
    width, reach = makes.shape[1], 1
    while reach < width:
        # Places in the second half of each block continue what the last one of the first half has.
        places = np.flatnonzero(np.arange(width) // reach % 2)
        before = places // reach * reach - 1
        earlier = np.stack([makes[:, before], passes[:, before]], axis=2)
        found = both(products, passes[:, places], earlier)
        makes[:, places] ^= found[:, :, 0]
        passes[:, places] = found[:, :, 1]
        reach *= 2
    return makes


def bits_of(products: SecretProducts, shares: Words, width: int, rank: int) -> Bits:
    """Return the bits of secrets modulo a power of two, the lowest first.

    Parameters
    ----------
    shares
        Words of 64 bits, shape (m,).

    Returns
    -------
    ndarray
        Shape (m, width).
    """
    own, makes = _halves(products, shares, width, rank)
    own[:, 1:] ^= carried(products, makes, own[:, :-1])
    return own


def negatives(products: SecretProducts, shares: Words, rank: int) -> Bits:
    """Return which secrets of 64 bits are negative, shape (m,)."""
    own, makes = _halves(products, shares, 64, rank)
    passes = own[:, :-1]
    while makes.shape[1] > 1:  # as `carried`, of which only the last is needed
        even = makes.shape[1] // 2 * 2
        low, high = slice(0, even, 2), slice(1, even, 2)
        earlier = np.stack([makes[:, low], passes[:, low]], axis=2)
        found = both(products, passes[:, high], earlier)
        makes = np.hstack([makes[:, high] ^ found[:, :, 0], makes[:, even:]])
        passes = np.hstack([found[:, :, 1], passes[:, even:]])
    result: Bits = own[:, -1] ^ makes[:, 0]
    return result


def _halves(products: SecretProducts, shares: Words, width: int, rank: int) -> tuple[Bits, Bits]:
    """Return the bits of one's own share, and where those of both are one, but the last."""
    places = np.arange(width, dtype=np.uint64)
    own = (shares[:, None] >> places & np.uint64(1)).astype(np.uint8)
    none = np.zeros_like(own)
    first, second = (own, none) if rank == 0 else (none, own)
    return own, both(products, first[:, :-1], second[:, :-1, None])[:, :, 0]


def times(products: SecretProducts, bits: Bits, numbers: Words) -> Words:
    """Return shares of bits, shape (m,), times secrets of 64 bits, shape (m, c)."""
    own = numbers * bits[:, None].astype(np.uint64)
    # Where one's own share of the bit is one, the product is the number minus the other's.
    other = np.where(bits[:, None], np.negative(numbers), numbers)
    result: Words = own + products.crossed(bits, other)
    return result


def scaled(products: SecretProducts, bits: Bits, numbers: Words, weights: NDArray[Any]) -> Words:
    """Return shares of secrets times numbers whose bits are secret.

    Parameters
    ----------
    bits
        Shape (m, k).
    numbers
        Elements of 128 bits, shape (m, 2).
    weights
        Powers of two by which each bit counts: their exponents, shape (k,).
    """
    moved = shifted(numbers[:, None], weights)
    chosen = bits[..., None].astype(bool)
    own = np.where(chosen, moved, np.uint64(0))
    other = np.where(chosen, negative(moved), moved)
    crossed = products.crossed(bits.ravel(), other.reshape(-1, 1, 2))
    return added(total(own, 1), total(crossed.reshape(own.shape), 1))


# --- Functions of secret integers: polynomials on intervals, chosen in secret -------------------

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


# --- Scores of families of discrete variables, as shares that nobody opens ----------------------
#
# A family's score is a sum over the cells of its table, minus a sum over the cells of its
# parents' table, plus a constant. Tables of one party are summed by that party alone. Cells of
# both are functions of secret counts. Constants per configuration of the parents are kept, so
# sets with different numbers of configurations compare rightly, and empty cells contribute zero,
# rounded.

Family: TypeAlias = tuple[int, Members]
"""A variable and its parents."""

Term: TypeAlias = tuple[Members, CountFunction]


@final
@dataclass(frozen=True)
class CountScore:
    """A score that is a sum over cells.

    Attributes
    ----------
    name
        ``"k2"``, ``"bdeu"`` or ``"bic"``.
    ess
        Equivalent sample size of BDeu.
    """

    name: str = "k2"
    ess: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in {"k2", "bdeu", "bic"}:
            raise ArgumentError(f"No score {self.name!r} in secret; there are k2, bdeu and bic.")
        if not 0 < self.ess <= MOST_ESS:
            raise ArgumentError(f"ess must be positive and at most {MOST_ESS:g}, got {self.ess!r}.")

    def functions(self, levels: int, configurations: int) -> tuple[CountFunction, CountFunction]:
        """Return the functions of the cells of a family and of those of its parents."""
        if self.name == "bic":
            return TimesLog(), TimesLog()
        a = 1.0 if self.name == "k2" else self.ess / (levels * configurations)
        return LogGamma(a), LogGamma(levels * a)

    def constant(self, levels: int, configurations: int, rows: int) -> float:
        """Return what is subtracted for the number of parameters."""
        if self.name != "bic":
            return 0.0
        return 0.5 * math.log(rows) * (levels - 1) * configurations


@final
class SecretScores:
    """Scores of families, in secret."""

    def __init__(self, engine: SecretSharingRuntime, columns: Columns, score: CountScore) -> None:
        self._engine = engine
        self._columns = columns
        self._score = score
        self._tables = SecretTables(engine, columns)
        self._terms: dict[Term, np.uint64] = {}

    def shares(self, families: Sequence[Family]) -> Words:
        """Return this party's shares of scores."""
        self._prepare(term for family in families for term in self._parts(family))
        own = [[self._terms[term] for term in self._parts(family)] for family in families]
        whole, part = np.array(own, dtype=np.uint64).reshape(-1, 2).T
        if self._engine.rank == 1:
            return whole - part
        return whole - part - encoded([self._constant(family) for family in families])

    def error(self, family: Family) -> float:
        """Return the largest error of the score of a family, in nats.

        An empty cell is only rounded, and no more cells are filled than there are people.
        """
        n = self._columns.people
        crossing = (m for m, _ in self._parts(family) if len(self._columns.owners(m)) == 2)
        cells = [math.prod(self._columns.shape(m)) for m in crossing]
        return sum(min(k, n) for k in cells) * cell_error(n) + sum(cells) * 2.0**-FRACTION

    def _constant(self, family: Family) -> float:
        child, parents = family
        r = self._columns.columns[child].levels
        q = math.prod(self._columns.shape(parents))
        return self._score.constant(r, q, self._columns.people)

    def _parts(self, family: Family) -> tuple[Term, Term]:
        child, parents = family
        r = self._columns.columns[child].levels
        cell, margin = self._score.functions(r, math.prod(self._columns.shape(parents)))
        return (tuple(sorted((child, *parents))), cell), (parents, margin)

    def _prepare(self, terms: Iterable[Term]) -> None:
        missing = [term for term in dict.fromkeys(terms) if term not in self._terms]
        secret = []
        for members, function in missing:
            owners = self._columns.owners(members)
            if len(owners) == 2:
                secret.append((members, function))
            else:
                owner = next(iter(owners), 0)
                value = 0.0
                if owner == self._engine.rank:
                    value = float(function(self._columns.table(members).astype(np.float64)).sum())
                self._terms[members, function] = np.uint64(encoded(value))
        self._tables.prepare(members for members, _ in secret)
        self._evaluate(secret)

    def _evaluate(self, terms: list[Term]) -> None:
        """Sum the functions of the cells of tables that belong to both parties."""
        if not terms:
            return
        n = self._columns.people
        cells = [self._tables.share(members).ravel() for members, _ in terms]
        tables = [
            count_coefficients(function, n)
            for (_, function), share in zip(terms, cells, strict=True)
            for _ in range(share.size)
        ]
        values = evaluate(self._engine, np.concatenate(cells), count_intervals(n), tables)
        ends = np.cumsum([share.size for share in cells])
        for term, own in zip(terms, np.split(values, ends[:-1]), strict=True):
            self._terms[term] = own.sum(dtype=np.uint64)


def largest(engine: SecretSharingRuntime, scores: Sequence[Words], error: float) -> Words:
    """Return shares of the position of the largest score of each list.

    A knock-out tournament, in which the first of two wins unless the second is larger by more than
    a tie. The last of an odd number of players waits. Nobody plays but candidates, so a party that
    changes the comparisons decides among these.

    Parameters
    ----------
    scores
        This party's shares, one or more in each list.
    error
        The largest error of a score. Scores that may be equal are a tie.
    """
    first = np.uint64(engine.rank == 0)
    tie = encoded(2 * error + 2.0**-20) * first
    lists = [np.stack([x, np.arange(len(x), dtype=np.uint64) * first], axis=1) for x in scores]
    while any(len(players) > 1 for players in lists):
        former = np.concatenate([players[:-1:2] for players in lists])
        latter = np.concatenate([players[1::2] for players in lists])
        margin = former[:, 0] + tie - latter[:, 0]
        later = negatives(engine.products, margin, engine.rank)
        winners = former + times(engine.products, later, latter - former)
        ends = np.cumsum([len(players) // 2 for players in lists])
        lists = [
            np.concatenate([won, players[len(players) // 2 * 2 :]])
            for won, players in zip(np.split(winners, ends[:-1]), lists, strict=True)
        ]
    return np.array([players[0, 1] for players in lists])


def choose(
    engine: SecretSharingRuntime, scores: Sequence[Words], what: str, error: float
) -> list[int]:
    """Open the position of the largest score of each list, and nothing else.

    Parameters
    ----------
    scores
        This party's shares.
    error
        The largest error of a score. Scores that may be equal are a tie, which the earlier wins.
    """
    if not scores:
        return []
    bits = [(len(own) - 1).bit_length() for own in scores]
    found = engine.open(largest(engine, scores, error), what, bits=bits)
    assert found is not None
    if any(k >= len(own) for k, own in zip(found.tolist(), scores, strict=True)):
        raise broken()
    return [int(k) for k in found]
