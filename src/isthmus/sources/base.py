"""Base classes of sources of data, which provide statistics, and rows if they hold them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import SchemaError
from isthmus.results.disclosure import Disclosure
from isthmus.results.reading import Reading
from isthmus.sources.tables.missing import Missing
from isthmus.statistics import Basis, Counts, Expansion, Kind, Moments, Plan, Schema

if TYPE_CHECKING:
    from isthmus.objectives import Capability, Objective


class Source(ABC):
    """Base class of sources of data.

    A source computes statistics where the data are stored, and only the statistics leave it.
    """

    @abstractmethod
    def schema(self) -> Schema:
        """Return the names, kinds and levels of the variables."""

    @abstractmethod
    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Return the moments of some variables, in the order of `names`; by default of all."""

    @abstractmethod
    def counts(self, plan: Plan) -> Counts:
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

    def with_missing(self, missing: Missing) -> Source:
        """Return the same data with a strategy for missing values, for sources that support it."""
        raise SchemaError(
            f"missing is for tables and federations; {self!r} was read already. Give it to the "
            f"source: Frame(table, missing={missing!r})."
        )

    def expansion_of(self, basis: Basis) -> Expansion:
        """Return the centre and scale of each variable for a basis; by default from the moments."""
        return Expansion.standardised(basis, self.moments())

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

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of a result should know about the statistics; nothing by default."""
        return ()


@runtime_checkable
class Reads(Protocol):
    """A source that decides by itself how the columns of a table are read."""

    def reading(self) -> Reading:
        """Return how each column was read, and why."""


@runtime_checkable
class OrderedRows(Protocol):
    """A source whose rows depend on each other: consecutive steps of one or several series."""

    def realisation_of_rows(self) -> NDArray[np.int64] | None:
        """Return the realisation of each row; None if the rows are independent after all."""


@runtime_checkable
class EstimatesMoments(Protocol):
    """A source that may estimate moments from rows with missing values."""

    def limit_estimation(self, until: float) -> None:
        """Estimate until this time of ``time.monotonic()`` at most."""

    def estimation_remarks(self) -> tuple[str, ...]:
        """Notes on estimated moments; none if no moments were estimated."""


def countable(schema: Schema, plan: Plan) -> Schema:
    """The discrete variables that a plan can count; refuses plans that name continuous ones.

    A plan of sets may name the discrete variables of a mixed table; other plans need all discrete.
    """
    if plan.groups is not None:
        asked = {name for group in plan.groups for name in group}
        schema.indices(sorted(asked))
        schema.subset(n for n in schema.names if n in asked).require(Kind.DISCRETE, "Counts")
        return schema.subset(schema.of_kind(Kind.DISCRETE))
    schema.require(Kind.DISCRETE, "Counts")
    return schema
