"""Coded rows with missing values, for scores of families on the rows complete for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.statistics.base import Gatherable, Statistic
from isthmus.statistics.checks import refuse_empty
from isthmus.statistics.coded import CodedRows, as_codes, histogram
from isthmus.statistics.counts import Counts
from isthmus.statistics.schema import Kind, Schema
from isthmus.types import Floats, Integers

if TYPE_CHECKING:
    from isthmus.graphs import DAG


@runtime_checkable
class HasIncomplete(Protocol):
    """A source that can give its rows with missing values."""

    def incomplete(self) -> IncompleteCounts:
        """Return the coded rows, with missing values."""


@final
@dataclass(frozen=True, eq=False)
class IncompleteCounts(Statistic):
    """Coded rows of discrete variables in which values may be missing.

    Parameters
    ----------
    schema
        The variables, all discrete.
    codes
        Shape (d, n): positions among the levels; the number of levels stands for a missing value.
    """

    schema: Schema
    codes: NDArray[np.uint16]
    described: ClassVar[str] = "counts of incomplete rows"

    def __post_init__(self) -> None:
        self.schema.require(Kind.DISCRETE, "Counts of incomplete rows")
        codes = np.ascontiguousarray(self.codes, dtype=np.uint16)
        refuse_empty(codes.shape[1])
        codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "n", codes.shape[1])

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> IncompleteCounts:
        """Ask a table in memory for its coded rows."""
        if not isinstance(source, HasIncomplete):
            raise MismatchError("Only tables in memory have incomplete rows.")
        incomplete = source.incomplete()
        return incomplete if dag is None else incomplete.select(dag.nodes)

    def select(self, names: Sequence[str]) -> IncompleteCounts:
        """The rows of some of the variables."""
        chosen = self.schema.indices(names)
        return IncompleteCounts(self.schema.subset(names), self.codes[list(chosen)])

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Which values are there, of shape (d, n)."""
        observed: NDArray[np.bool_] = self.codes < self.schema.cardinalities[:, None]
        return observed

    @property
    def has_missing(self) -> bool:
        """Whether any value is missing."""
        return not bool(self.observed.all())

    def pairs(self) -> Floats:
        """Return for each pair of variables the number of rows that have a value of both."""
        observed = self.observed.astype(np.float64)
        pairs: Floats = observed @ observed.T
        return pairs

    def complete(self) -> Counts:
        """Counts of the rows without missing values."""
        kept = self.codes[:, self.observed.all(axis=0)]
        sizes = self.schema.cardinalities
        return Counts.from_rows(self.schema, CodedRows(as_codes(kept, sizes)))

    def table(self, names: Sequence[str]) -> Integers:
        """Count the rows that are complete for these variables."""
        chosen = list(self.schema.indices(names))
        sizes = self.schema.cardinalities[chosen]
        kept = self.codes[chosen][:, self.observed[chosen].all(axis=0)]
        return histogram(CodedRows(as_codes(kept, sizes)), sizes).reshape(sizes)

    def constants(self) -> tuple[str, ...]:
        """Names of the variables of which no two different values occur."""
        pairs = zip(self.schema.names, self.codes, self.observed, strict=True)
        return tuple(name for name, x, there in pairs if len(np.unique(x[there])) < 2)

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def cells(self) -> Sequence[Integers]:
        return ()

    def without_rows(self) -> IncompleteCounts:
        return self
