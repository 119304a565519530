"""Statistics of data from several regimes, in some of which variables were set from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import MismatchError
from isthmus.statistics.base import Gatherable, Resampler, Statistic, Summary
from isthmus.statistics.counts import Counts
from isthmus.statistics.moments import Moments, correlate
from isthmus.statistics.schema import Kind, Schema

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.networks import Network

_MOST_OF_SQUARES = 0.9
"""Share of the sum of squares of a column up to which rows are subtracted."""


@final
@dataclass(frozen=True, eq=False)
class Whole:
    """Moments of all rows of numbers, with what the moments of parts of the rows share."""

    moments: Moments
    _correlated: tuple[Floats, Floats] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        correlation, variance = correlate(self.moments.covariance())
        correlation.flags.writeable = False
        object.__setattr__(self, "_correlated", (correlation, np.sqrt(variance)))

    @property
    def correlation(self) -> Floats:
        """Correlations of the columns; those of a constant are zero."""
        return self._correlated[0]

    @property
    def deviation(self) -> Floats:
        """Standard deviations of the columns; that of a constant is one."""
        return self._correlated[1]

    def without(self, columns: Sequence[Any], rows: Any) -> Remainder | None:
        """Return the moments without some rows; None if the difference would lose digits."""
        if 2 * len(rows) > self.moments.n:
            return None
        values = np.stack([x[rows] for x in columns], axis=1)
        values = (values - self.moments.mean()) / self.deviation
        values[:, list(self.moments.schema.indices(self.moments.constants()))] = 0.0
        n = self.moments.n - len(rows)
        removed = np.vstack([values, values.sum(axis=0) / np.sqrt(n)]) / np.sqrt(self.moments.n)
        rest = Remainder(self, n, removed)
        return rest if (rest.squares <= _MOST_OF_SQUARES).all() else None


@final
@dataclass(frozen=True, eq=False)
class Remainder(Statistic):
    """Moments of all rows but a few, as the moments of all rows and those few.

    With hundreds of regimes each has a matrix of its own otherwise.

    Attributes
    ----------
    whole
        Moments of all rows.
    n
        Number of rows that are left.
    removed
        The other rows and, last, their sum over the root of `n`: about the means of all rows, in
        units of the standard deviation and of the root of the number of all rows. The scatter of
        the rows that are left is that of all rows without the products of these.
    """

    whole: Whole
    n: int
    removed: Floats
    described: ClassVar[str] = Moments.described

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> NoReturn:
        raise NotImplementedError("The moments of a regime are made from those of all regimes.")

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        return self.whole.moments.schema

    @cached_property
    def squares(self) -> Floats:
        """Share of the sum of squares of each column that was removed."""
        squares: Floats = np.einsum("ij,ij->j", self.removed, self.removed)
        return squares

    @property
    def variance(self) -> Floats:
        """Variance of each column; one for a constant."""
        share = (1.0 - self.squares) * (self.whole.moments.n / self.n)
        share[list(self.schema.indices(self.constants()))] = 1.0
        return share * self.whole.deviation**2

    def numeric(self, asker: object) -> Remainder:
        """Return the moments themselves, which are those of numbers."""
        del asker
        return self

    def constants(self) -> tuple[str, ...]:
        # Most of what varies in all rows is left of each column.
        return self.whole.moments.constants()

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return self.as_moments().duplicates()

    def cells(self) -> Sequence[Integers]:
        return ()

    def without_rows(self) -> Moments:
        return self.as_moments()

    def as_moments(self) -> Moments:
        return self.select(self.schema.names)

    def select(self, names: Sequence[str]) -> Moments:
        """Return the moments of some variables."""
        own = list(self.schema.indices(names))
        all_rows, few = self.whole.moments.select(names), self.removed[:, own]
        unit = np.sqrt(self.whole.moments.n) * self.whole.deviation[own]
        scatter = all_rows.scatter() - (few.T @ few) * np.outer(unit, unit)
        mean = all_rows.mean() - few[-1] * unit / np.sqrt(self.n)
        return Moments(all_rows.schema, self.n, mean, np.zeros(len(own)), scatter)


@final
@dataclass(frozen=True, eq=False)
class Regimes(Summary):
    """For each variable, statistics of the rows in which it was not a target.

    Attributes
    ----------
    schema
        The variables.
    n
        Number of rows.
    parts
        Statistics of all variables, each of some of the rows.
    part_of
        For each variable, the position of its statistics in `parts`.
    targets
        The sets of variables that were set from outside, one for each regime.
    """

    schema: Schema
    n: int
    parts: tuple[Statistic, ...]
    part_of: tuple[int, ...]
    targets: tuple[frozenset[str], ...]
    described: ClassVar[str] = "statistics of several regimes"

    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows where they were free."""
        names = self.schema.names
        fixed = [part.constants() for part in self.parts]
        return tuple(v for v, k in zip(names, self.part_of, strict=True) if v in fixed[k])

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that determine each other in all rows of all parts."""
        groups = set(self.parts[0].duplicates())
        for part in self.parts[1:]:
            if groups:
                groups &= set(part.duplicates())
        return tuple(sorted(groups))

    def cells(self) -> Sequence[Integers]:
        return [cell for part in self.parts for cell in part.cells()]

    def without_rows(self) -> Regimes:
        return self  # in memory only: `for_file` keeps nothing

    def table(self, names: Sequence[str]) -> Integers:
        """Count the rows in which the last of these variables was not a target."""
        part = self.parts[self.part_of[self.schema.index(names[-1])]]
        if not isinstance(part, Counts):
            raise MismatchError("Tables are counted of discrete variables; these are moments.")
        return part.table(names)

    def fit(self, dag: DAG, pseudo_count: float) -> Network:
        """Fit each node to the rows in which it was not a target."""
        from isthmus.statistics.fitting import fit_families, fit_regressions

        discrete = len(self.schema.of_kind(Kind.DISCRETE))
        if discrete == len(self.schema):
            return fit_families(self, dag, pseudo_count)
        if discrete:
            raise MismatchError(
                "The parameters of mixed variables are fitted from rows, and those of several "
                "regimes are not kept. Give a table in which no variable was a target: "
                "solution.fit(table)."
            )

        def estimates(family: Sequence[str]) -> tuple[Floats, Floats]:
            part = self.parts[self.part_of[self.schema.index(family[-1])]]
            assert isinstance(part, Moments | Remainder)
            return part.select(family).estimates()

        return fit_regressions(dag, estimates)

    def resampler(self, source: Gatherable) -> Resampler:
        """Raise an error: the rows of a regime would have to be drawn within it."""
        del source
        raise MismatchError(
            "The bootstrap draws from the rows of one table, and there are several regimes "
            "here. Call sample(data): the posterior over graphs takes them."
        )

    def identified(self, dag: DAG) -> tuple[tuple[str, str], ...]:
        """Edges whose direction the targets tell: one end was a target without the other."""
        return tuple(
            (a, b) for a, b in dag.edges if any((a in t) is not (b in t) for t in self.targets)
        )
