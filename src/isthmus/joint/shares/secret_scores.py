"""Scores of families of discrete variables, as shares that nobody opens.

A family's score is a sum over the cells of its table, minus a sum over the cells of its parents'
table, plus a constant. Tables of one party are summed by that party alone. Cells of both are
functions of secret counts. Constants per configuration of the parents are kept, so sets with
different numbers of configurations compare rightly, and empty cells contribute zero, rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from isthmus.errors import ArgumentError
from isthmus.joint.shares.columns import Columns
from isthmus.joint.shares.link import broken
from isthmus.joint.shares.secret_bits import negatives, times
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
from isthmus.joint.shares.shares import FRACTION, Words, encoded
from isthmus.joint.shares.terms import MOST_ESS

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
