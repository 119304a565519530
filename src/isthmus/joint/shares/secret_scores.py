"""Scores of families of discrete variables, as shares that nobody opens.

A family's score is a sum over the cells of its table, minus a sum over the cells of its parents'
table, plus a constant. Tables of one party are summed by that party alone. Cells of both are
functions of secret counts. Constants per configuration of the parents are kept, so sets with
different numbers of configurations compare rightly, and empty cells contribute exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from isthmus.errors import ArgumentError
from isthmus.joint.shares.columns import Columns
from isthmus.joint.shares.secret_functions import (
    CountFunction,
    LogGamma,
    TimesLog,
    cell_error,
    count_coefficients,
    count_intervals,
    evaluate,
)
from isthmus.joint.shares.secret_tables import Members, SecretTables
from isthmus.joint.shares.shares import MODULUS, SecretShare, encoded

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime

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
        if not (math.isfinite(self.ess) and self.ess > 0):
            raise ArgumentError(f"ess must be positive, got {self.ess!r}.")

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
        self._terms: dict[Term, int] = {}

    def shares(self, families: Sequence[Family]) -> list[int]:
        """Return this party's shares of scores: ring elements of 128 bits."""
        self._prepare(term for family in families for term in self._parts(family))
        return [self._share(family) for family in families]

    def error(self, family: Family) -> float:
        """Return the largest error of the score of a family, in nats."""
        crossing = (m for m, _ in self._parts(family) if len(self._columns.owners(m)) == 2)
        cells = sum(math.prod(self._columns.shape(m)) for m in crossing)
        return cells * cell_error(self._columns.people)

    def _share(self, family: Family) -> int:
        child, parents = family
        whole, part = self._parts(family)
        total = self._terms[whole] - self._terms[part]
        if self._engine.rank == 0:
            r = self._columns.columns[child].levels
            q = math.prod(self._columns.shape(parents))
            total -= encoded(self._score.constant(r, q, self._columns.people))
        return total % MODULUS

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
                value = 0
                if owner == self._engine.rank:
                    cells = self._columns.table(members).astype(np.float64)
                    value = encoded(float(function(cells).sum()))
                self._terms[members, function] = value
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
        counts = SecretShare(np.concatenate(cells), 64).widened()
        values = evaluate(self._engine, counts, count_intervals(n), tables)
        start = 0
        for term, share in zip(terms, cells, strict=True):
            self._terms[term] = sum(values[start : start + share.size]) % MODULUS
            start += share.size


LOWEST = -(2.0**40)


def positions_of_largest(scores: Any, tie: Any) -> Any:
    """Find the position of the largest number in each row (a program of JAX).

    The width is a power of two: a knock-out tournament in which the first of two wins, unless the
    second is larger by more than a tie.
    """
    import jax.numpy as jnp

    places = jnp.broadcast_to(jnp.arange(scores.shape[1]), scores.shape)
    while scores.shape[1] > 1:
        a, b = scores[:, 0::2], scores[:, 1::2]
        p, q = places[:, 0::2], places[:, 1::2]
        later = b > a + tie[0]
        scores = jnp.where(later, b, a)
        places = jnp.where(later, q, p)
    return places[:, 0]


def choose(
    engine: SecretSharingRuntime, scores: Sequence[Sequence[int]], what: str, error: float
) -> list[int]:
    """Open the position of the largest score of each list, and nothing else.

    Parameters
    ----------
    scores
        This party's shares, ring elements of 128 bits.
    error
        The largest error of a score. Scores that may be equal are a tie, which the earlier wins.
    """
    if not scores:
        return []
    width = 1 << max(max(map(len, scores)) - 1, 0).bit_length()
    height = 1 << (len(scores) - 1).bit_length()
    first = engine.rank == 0
    filler = encoded(LOWEST) if first else 0
    numbers: list[int] = []
    for row in scores:
        numbers += [*row, *[filler] * (width - len(row))]
    numbers += [filler] * (width * (height - len(scores)))
    secret = SecretShare.from_numbers(numbers, (height, width))
    tie = np.array([2 * error + 2.0**-20])
    (places,) = engine.run(positions_of_largest, secret, tie)
    wanted = SecretShare(places.words[: len(scores)], 128)
    found = engine.open(wanted, what)
    assert found is not None
    return [int(k) for k in np.asarray(found)]
