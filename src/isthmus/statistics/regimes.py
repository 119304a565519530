"""Statistics of data from several regimes, in some of which variables were set from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, final

from isthmus.errors import MismatchError
from isthmus.statistics.base import Gatherable, Statistic
from isthmus.statistics.counts import Counts
from isthmus.statistics.schema import Schema
from isthmus.types import Integers

if TYPE_CHECKING:
    from isthmus.graphs import DAG


@final
@dataclass(frozen=True, eq=False)
class Regimes(Statistic):
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

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Regimes:  # noqa: ARG003 - as the base
        """Raise an error: sources of regimes give these statistics by themselves."""
        raise MismatchError(
            f"{type(source).__name__} has no regimes. Give Interventions(data, targets)."
        )

    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows where they were free."""
        names = self.schema.names
        return tuple(v for v, k in zip(names, self.part_of, strict=True) if v in self._fixed(k))

    def _fixed(self, part: int) -> tuple[str, ...]:
        return self.parts[part].constants()

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that determine each other in all rows of all parts."""
        groups = [set(part.duplicates()) for part in self.parts]
        return tuple(sorted(set.intersection(*groups)))

    def cells(self) -> Sequence[Integers]:
        return [cell for part in self.parts for cell in part.cells()]

    def without_rows(self) -> Regimes:
        return replace(self, parts=tuple(part.without_rows() for part in self.parts))

    def table(self, names: Sequence[str]) -> Integers:
        """Count the rows in which the last of these variables was not a target."""
        part = self.parts[self.part_of[self.schema.index(names[-1])]]
        if not isinstance(part, Counts):
            raise MismatchError("Tables are counted of discrete variables; these are moments.")
        return part.table(names)

    def identified(self, dag: DAG) -> tuple[tuple[str, str], ...]:
        """Edges whose direction the targets tell: one end was a target without the other."""
        return tuple(
            (a, b) for a, b in dag.edges if any((a in t) is not (b in t) for t in self.targets)
        )
