"""The interface of statistics, for scores, diagnostics and the disclosure rules of a site."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from isthmus.types import Floats, Integers

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.statistics.plan import Plan
    from isthmus.statistics.schema import Schema


class Gatherable(Protocol):
    """The methods of a source that a statistic uses."""

    def schema(self) -> Schema:
        """Return the variables."""

    def moments(self, names: Sequence[str] | None = None) -> Any:
        """Return the moments of some variables."""

    def counts(self, plan: Plan) -> Any:
        """Return the counts of planned sets of variables."""

    def rows(self) -> Floats:
        """Return all rows."""


class Statistic(ABC):
    """A summary of rows that scores are computed from.

    A score names the type it needs. A statistic of one's own is one class: it says how to gather
    it from a source, and everything else follows from the methods below.

    Attributes
    ----------
    schema
        The variables.
    n
        Number of rows.
    described
        Name of the statistic, for messages: "a score needs ...".
    """

    schema: Schema
    n: int
    described: ClassVar[str]

    @classmethod
    @abstractmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Self:
        """Request this statistic from a source; only the families of a graph, if one is given."""

    @abstractmethod
    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows."""

    @abstractmethod
    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that determine each other."""

    @abstractmethod
    def cells(self) -> Sequence[Integers]:
        """Tables of row counts that the statistic reveals; a site does not release small cells."""

    @abstractmethod
    def without_rows(self) -> Statistic:
        """Return a statistic without rows, which a solution may keep."""
