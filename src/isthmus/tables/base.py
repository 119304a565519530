"""Base classes of sources of data, which provide statistics, and rows if they hold them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError, SchemaError
from isthmus.results.reading import Disclosure, Reading
from isthmus.statistics import (
    Basis,
    CountPlan,
    Counts,
    Expansion,
    Kind,
    Moments,
    Schema,
    Statistic,
    Summary,
)
from isthmus.statistics.incomplete import IncompleteCounts
from isthmus.statistics.requested import RequestedCounts
from isthmus.tables.infer_kinds import stated
from isthmus.tables.missing import AdaptableT, Missing

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.objectives import Capability, Objective


@dataclass(frozen=True, eq=False)
class CompleteColumns:
    """The columns of a table in memory, without the rows that lack a value.

    Attributes
    ----------
    schema
        The variables.
    columns
        Numbers, or the codes of levels.
    positions
        Positions of the rows in the table that was given; None if the rows are all of it.
    dropped
        Whether rows were dropped before, so that positions are not those of the given table.
    groups
        The group of each row, if the columns are about the means of groups; otherwise None.
    """

    schema: Schema
    columns: Sequence[NDArray[Any]]
    positions: NDArray[np.intp] | None = None
    dropped: bool = False
    groups: NDArray[np.intp] | None = None


class Source(ABC):
    """Base class of sources of data.

    A source computes statistics where the data are stored, and only the statistics leave it. The
    methods that are not abstract are for data with conditions of their own, such as missing values,
    interventions or an order in time.

    Attributes
    ----------
    in_memory
        Whether the data are in this process.
    timed
        Whether reading counts for a time limit. Waiting for others, as in a federation, does not.
    within_groups
        Whether the rows belong to groups, whose means are removed from all statistics.
    group_column
        Name of the column of groups; None if there is none.
    grouping
        What to do for statistics within groups, for an error message.
    missing
        How missing values are handled; None if they are refused, or if there are none.
    """

    in_memory: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    within_groups: bool = False
    grouping: ClassVar[str] = "Give the table itself with groups."
    missing: Missing | None = None
    group_column: str | None = None

    @abstractmethod
    def schema(self) -> Schema:
        """Return the names, kinds and levels of the variables."""

    @abstractmethod
    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Return the moments of some variables, in the order of `names`; by default of all."""

    @abstractmethod
    def counts(self, plan: CountPlan) -> Counts:
        """Return the counts over the planned sets of discrete variables."""

    @abstractmethod
    def rows(self) -> NDArray[np.float64]:
        """Return all rows, shape (n, d), levels as codes; `MismatchError` if there are none."""

    @abstractmethod
    def with_features(self, expansion: Expansion) -> Source:
        """Return the same data, with basis functions as further columns of its variables.

        The result has only the variables of the expansion. A source that holds rows can return
        ``Frame(self.rows(), names=self.schema().names).with_features(expansion)``; a source that
        cannot compute basis functions raises `MismatchError`.
        """

    def without_features(self) -> Source:
        """Return the same data without basis functions; the source itself if it has none."""
        return self

    def with_missing(self, missing: Missing) -> Source:
        """Return the same data with a strategy for missing values, for sources that support it."""
        raise SchemaError(
            f"missing is for tables and federations; {self!r} was read already. Give it to the "
            f"source: Frame(table, missing={missing!r})."
        )

    def expansion_of(self, basis: Basis) -> Expansion:
        """Return the centre and scale of each variable for a basis; by default from the moments."""
        return Expansion.standardised(basis, self.moments())

    def reading(self) -> Reading:
        """Return how each column was read, and why; by default as the schema states."""
        return stated(self.schema())

    def adapt(self, score: AdaptableT) -> AdaptableT:
        """Return the version of a score that these data need; the score itself for most data."""
        return self.missing.adapt(score) if self.missing and self.leaves_missing else score

    @property
    def has_missing(self) -> bool:
        """Whether values are missing that were neither dropped nor given a level of their own."""
        return False

    @property
    def leaves_missing(self) -> bool:
        """Whether values are missing that the score has to handle."""
        if self.missing is None or not self.missing.left_to_score or not self.has_missing:
            return False
        return not self.schema().of_kind(Kind.CONTINUOUS)

    def gather(self, needs: type[Statistic], dag: DAG | None = None) -> Summary:
        """Return the statistics that a score needs; only of the families of a graph, if given."""
        return needs.gather(self, dag)

    def requested_counts(self) -> RequestedCounts | None:
        """Return counts that are computed when a search has asked for them.

        None (the default) if the source gives all counts at once.
        """
        return None

    def incomplete(self) -> IncompleteCounts:
        """Return the coded rows of discrete variables, with missing values."""
        raise MismatchError("Only tables in memory or of an engine have incomplete rows.")

    def estimation(
        self,
    ) -> tuple[NDArray[np.float64], Callable[[NDArray[np.float64]], Moments]] | None:
        """Return rows with NaN for missing values and what estimates moments from such rows.

        None if no moments are estimated, or without rows.
        """
        return None

    def incomplete_rows(self) -> NDArray[np.float64] | None:
        """Return all rows with NaN for missing values, if moments are estimated from them."""
        return None

    def selected(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return some columns of all rows, of shape (n, names), with levels as codes."""
        return self.rows()[:, list(self.schema().indices(names))]

    def all_columns(self) -> Sequence[NDArray[Any]]:
        """Return the columns of all rows, one by one; `MismatchError` if there are no rows."""
        return tuple(self.rows().T)

    def complete_columns(self) -> CompleteColumns | None:
        """Return the rows without missing values if they are in memory, otherwise None."""
        return None

    def realisation_of_rows(self) -> NDArray[np.int64] | None:
        """Return the realisation of each row of time series; None if rows are independent."""
        return None

    def rows_within_groups(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return rows about the means of their groups, for a bootstrap; None if there are none.

        The second array has the probabilities with which they are drawn.
        """
        return None

    def limit_estimation(self, until: float) -> None:
        """Estimate moments of incomplete rows until this time of ``time.monotonic()`` at most."""
        del until

    def estimation_remarks(self) -> tuple[str, ...]:
        """Return notes on estimated moments; none if no moments were estimated."""
        return ()

    @abstractmethod
    def disclosure(self) -> Disclosure:
        """Return what has been released so far."""

    def objective(self, accepts: Sequence[Capability[Any]] | None) -> Objective | None:
        """Return an objective that is computed together with others, and not from statistics.

        Sources that offer statistics only, from which scores make objectives, return None.

        Parameters
        ----------
        accepts
            Capabilities that the search can use; None if nobody has named a search. The objective
            is then returned only if the source offers nothing else.
        """
        del accepts
        return None

    def record(self, what: str, size: int) -> None:
        """Record numbers that left the data before this source was made; by default none do."""
        del what, size

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of a result should know about the statistics; nothing by default."""
        return ()


def countable(schema: Schema, plan: CountPlan) -> Schema:
    """The discrete variables that a plan can count; refuses plans that name continuous ones.

    A plan of sets may name the discrete variables of a mixed table; other plans need all discrete.
    """
    if plan.groups is not None:
        asked = {name for group in plan.groups for name in group}
        schema.indices(sorted(asked))
        schema.subset(n for n in schema.names if n in asked).require(Kind.DISCRETE, "Counts need")
        return schema.subset(schema.of_kind(Kind.DISCRETE))
    schema.require(Kind.DISCRETE, "Counts need")
    return schema
