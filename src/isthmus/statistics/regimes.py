"""Statistics of data from several regimes, in some of which variables were set from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from isthmus.errors import MismatchError
from isthmus.statistics.base import Gatherable, Resampler, Statistic, Summary
from isthmus.statistics.counts import Counts
from isthmus.statistics.schema import Kind, Schema
from isthmus.types import Integers

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.models import Network


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
        groups = [set(part.duplicates()) for part in self.parts]
        return tuple(sorted(set.intersection(*groups)))

    def cells(self) -> Sequence[Integers]:
        return [cell for part in self.parts for cell in part.cells()]

    def without_rows(self) -> Regimes:
        return self  # each part is moments or counts

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
        moments = [part.as_moments() for part in self.parts]
        estimates = [part.estimates() for part in moments if part is not None]
        return fit_regressions(self.schema, dag, lambda child: estimates[self.part_of[child]])

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
