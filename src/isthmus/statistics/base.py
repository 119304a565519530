"""The interface of statistics, for scores, diagnostics and the disclosure rules of a site."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError, MissingValuesError
from isthmus.statistics.resampling import (
    IndependentRows,
    RowSampler,
    sampler_of_rows,
    with_equal_levels,
)
from isthmus.types import Floats, Integers

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.models import Network
    from isthmus.statistics.coded import CodedRows
    from isthmus.statistics.plan import CountPlan
    from isthmus.statistics.schema import Schema


class Gatherable(Protocol):
    """The methods of a source that a statistic uses."""

    def schema(self) -> Schema:
        """Return the variables."""

    def moments(self, names: Sequence[str] | None = None) -> Any:
        """Return the moments of some variables."""

    def counts(self, plan: CountPlan) -> Any:
        """Return the counts of planned sets of variables."""

    def rows(self) -> Floats:
        """Return all rows."""

    def all_columns(self) -> Sequence[NDArray[Any]]:
        """Return the columns of all rows, one by one."""

    def incomplete(self) -> Any:
        """Return the coded rows of discrete variables, with missing values."""

    def realisation_of_rows(self) -> Integers | None:
        """Return the realisation of each row of time series; None if rows are independent."""

    def estimation(self) -> tuple[Floats, Callable[[Floats], Any]] | None:
        """Return rows with NaN for missing values and what estimates moments from such rows."""

    def rows_within_groups(self) -> tuple[Floats, Floats] | None:
        """Return rows about the means of their groups and how likely each is drawn, if known."""


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
    def number_of_rows(self) -> int:
        """Number of rows of the data, also where fewer speak about relations of variables."""
        return self.n

    def rows_about(self, names: Sequence[str]) -> int:
        """Number of rows that speak about the relations of these variables.

        With missing values it depends on the variables; otherwise it is `n`.
        """
        del names
        return self.n

    @property
    def joint(self) -> CodedRows | None:
        """The rows of the joint table of discrete variables, if it is known; None by default."""
        return None

    def as_moments(self) -> Any:
        """Return `Moments` of all rows, for linear regressions; None by default."""
        return None

    def fit(self, dag: DAG, pseudo_count: float) -> Network | None:
        """Estimate the parameters of a graph; None (the default) if that takes other data."""
        del dag, pseudo_count
        return None

    def for_file(self, dag: DAG) -> Any:
        """Return the `Moments` or `Counts` that a file keeps for a graph; None by default."""
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
            "or counts(CountPlan.everything())."
        )


class Statistic(Summary):
    """A summary of rows that a source can be asked for.

    A score names the type it needs. A statistic of one's own is one class, which says how it is
    gathered. By default it is drawn again from the rows of the source.
    """

    @classmethod
    @abstractmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Self:
        """Request this statistic from a source; only the families of a graph, if one is given."""

    def resampler(self, source: Gatherable) -> Resampler:
        try:
            rows = source.rows()
        except MissingValuesError as refusal:
            raise MismatchError(
                "The bootstrap draws rows, and some of their values are missing. Give a table in "
                "memory with ExpectationMaximisation(), or use missing=DropRows()."
            ) from refusal
        except MismatchError as refusal:
            raise MismatchError(
                f"The bootstrap draws rows, and there are none here. {refusal.fact} Give a table "
                "in memory, or call sample(data): the posterior over graphs needs the statistics "
                "only."
            ) from refusal
        owners = source.realisation_of_rows()
        if owners is None:
            return Resampler(partial(self._draw, rows, IndependentRows(self.n)))
        rows, note = with_equal_levels(rows, owners, self.schema)
        sampler = sampler_of_rows(owners, rows, lags=self.schema.lags)
        return Resampler(partial(self._draw, rows, sampler), (*note, sampler.note))

    def _draw(self, rows: Floats, sampler: RowSampler, rng: np.random.Generator) -> Statistic:
        return self.drawn(rows, sampler.draw(rng))

    def drawn(self, rows: Floats, chosen: Integers) -> Statistic:
        """Return this statistic of the chosen rows of an array.

        By default it is gathered from them. A statistic that is gathered from anything other than
        rows defines it.
        """
        return type(self).gather(DrawnRows(self.schema, rows[chosen]))


@final
@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows that were drawn, as something that statistics are gathered from."""

    variables: Schema
    values: Floats

    def schema(self) -> Schema:
        return self.variables

    def rows(self) -> Floats:
        return self.values

    def all_columns(self) -> Sequence[NDArray[Any]]:
        return tuple(self.values.T)

    def realisation_of_rows(self) -> None:
        return None

    def estimation(self) -> None:
        return None

    def rows_within_groups(self) -> None:
        return None

    def moments(self, names: Sequence[str] | None = None) -> Any:
        raise self._refusal()

    def counts(self, plan: CountPlan) -> Any:
        raise self._refusal()

    def incomplete(self) -> Any:
        raise self._refusal()

    def _refusal(self) -> MismatchError:
        return MismatchError(
            "There are only rows that were drawn. A statistic that is gathered from moments or "
            "counts needs a method `drawn`, which computes it from rows."
        )
