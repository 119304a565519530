"""The interface of statistics, for scores, diagnostics and the disclosure rules of a site."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.types import Floats, Integers

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.models import Network
    from isthmus.statistics.coded import CodedRows
    from isthmus.statistics.counts import Counts
    from isthmus.statistics.moments import Moments
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

    def incomplete(self) -> Any:
        """Return the coded rows of discrete variables, with missing values."""

    def realisation_of_rows(self) -> Integers | None:
        """Return the realisation of each row of time series; None if rows are independent."""


@final
@dataclass(frozen=True)
class Resampler:
    """Draws the replicates of a bootstrap.

    Attributes
    ----------
    draw
        Returns the statistics of rows that were drawn with replacement.
    notes
        Sentences that say how rows are drawn, if they are not drawn one by one.
    """

    draw: Callable[[np.random.Generator], Summary]
    notes: tuple[str, ...] = ()


class Summary(ABC):
    """A summary of rows that a score is bound to.

    It carries what is particular about the rows (missing values, interventions), and so it knows
    how to fit a network to them and how to draw them again.

    Attributes
    ----------
    schema
        The variables.
    n
        Number of rows.
    described
        Name of the summary, for messages: "a score needs ...".
    """

    schema: Schema
    n: int
    described: ClassVar[str]

    @abstractmethod
    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows."""

    @abstractmethod
    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that determine each other."""

    @abstractmethod
    def cells(self) -> Sequence[Integers]:
        """Tables of row counts that the summary reveals; a site does not release small cells."""

    @abstractmethod
    def without_rows(self) -> Summary:
        """Return a summary without rows, which a solution may keep."""

    @property
    def joint(self) -> CodedRows | None:
        """The rows of the joint table of discrete variables, if it is known; None by default."""
        return None

    def as_moments(self) -> Moments | None:
        """Return moments of all rows, for linear regressions; None by default."""
        return None

    def fit(self, dag: DAG, pseudo_count: float) -> Network | None:
        """Estimate the parameters of a graph; None (the default) if that takes other data."""
        del dag, pseudo_count
        return None

    def for_file(self, dag: DAG) -> Counts | Moments | None:
        """Return what a file keeps for a graph; None (the default) if there is no format for it."""
        del dag
        return None

    def identified(self, dag: DAG) -> tuple[tuple[str, str], ...]:
        """Edges whose direction is known from how the rows came about; none by default."""
        del dag
        return ()

    def resampler(self, source: Gatherable) -> Resampler:
        """Return what draws the replicates of a bootstrap."""
        del source
        raise MismatchError(
            f"The bootstrap draws rows, and {self!r} has none to draw from. Give the table itself, "
            "or counts(Plan.everything())."
        )


class Statistic(Summary):
    """A summary of rows that a source can be asked for.

    A score names the type it needs. A statistic of one's own is one class, which says how it is
    gathered. It is drawn again from the rows of the source, if the source has rows.
    """

    @classmethod
    @abstractmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Self:
        """Request this statistic from a source; only the families of a graph, if one is given."""

    def resampler(self, source: Gatherable) -> Resampler:
        from isthmus.statistics.resampling import resampler_of_rows

        return resampler_of_rows(self, source)

    def drawn(self, rows: Floats, chosen: Integers) -> Statistic:
        """Return this statistic of some rows of an array, each as often as it was chosen."""
        from isthmus.statistics.resampling import DrawnRows

        return type(self).gather(DrawnRows(self.schema, rows[chosen]))
