"""Coded rows with missing values, for scores of families on the rows complete for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.statistics.base import Gatherable, Resampler, Statistic
from isthmus.statistics.checks import refuse_empty
from isthmus.statistics.coded import CodedRows, as_codes, histogram
from isthmus.statistics.counts import Counts
from isthmus.statistics.pairs import PairCounts
from isthmus.statistics.schema import Kind, Schema
from isthmus.types import Floats, Integers

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.models import DiscreteNetwork

_ROWS_AT_ONCE = 4096


@final
@dataclass(frozen=True, eq=False)
class IncompleteCounts(Statistic):
    """Coded rows of discrete variables in which values may be missing.

    Parameters
    ----------
    schema
        The variables, all discrete.
    codes
        Shape (d, m): positions among the levels; the number of levels stands for a missing value.
    weights
        How often each of these rows occurs; None if every row counts once.
    """

    schema: Schema
    codes: NDArray[np.uint16]
    weights: Integers | None = None
    described: ClassVar[str] = "counts of incomplete rows"

    def __post_init__(self) -> None:
        self.schema.require(Kind.DISCRETE, "Counts of incomplete rows need")
        codes = np.ascontiguousarray(self.codes, dtype=np.uint16)
        refuse_empty(codes.shape[1])
        codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)
        n = codes.shape[1] if self.weights is None else int(self.weights.sum())
        object.__setattr__(self, "n", n)

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> IncompleteCounts:
        """Ask a table for its coded rows; refuse variables that are never observed together."""
        incomplete: IncompleteCounts = source.incomplete()
        if dag is not None:
            incomplete = incomplete.select(dag.nodes)
        incomplete.pair_counts().refuse_apart()
        return incomplete

    def select(self, names: Sequence[str]) -> IncompleteCounts:
        """The rows of some of the variables."""
        chosen = self.schema.indices(names)
        return IncompleteCounts(self.schema.subset(names), self.codes[list(chosen)], self.weights)

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Which values are there, of shape (d, n)."""
        observed: NDArray[np.bool_] = self.codes < self.schema.cardinalities[:, None]
        return observed

    @property
    def has_missing(self) -> bool:
        """Whether any value is missing."""
        return not bool(self.observed.all())

    def rows_about(self, names: Sequence[str]) -> int:
        """Number of rows that are complete for these variables."""
        complete = self.observed[list(self.schema.indices(names))].all(axis=0)
        return int(complete.sum() if self.weights is None else complete @ self.weights)

    def pair_counts(self) -> PairCounts:
        """In how many rows both of two variables have a value."""
        there = self.observed.astype(np.float64)
        often = there if self.weights is None else there * self.weights
        return PairCounts(self.schema.names, often @ there.T, self.n)

    def level_starts(self) -> Integers:
        """Where the levels of each variable begin among the levels of all variables."""
        sizes = self.schema.cardinalities
        starts: Integers = np.cumsum(sizes) - sizes
        return starts

    def level_pairs(self) -> Floats:
        """Count for each pair of levels, of all variables, the rows that have both."""
        starts, width = self.level_starts(), int(self.schema.cardinalities.sum())
        counts = np.zeros((width, width))
        for start in range(0, self.codes.shape[1], _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            variable, row = np.nonzero(self.observed[:, rows])
            indicators = np.zeros((width, len(self.codes[0, rows])))
            indicators[starts[variable] + self.codes[:, rows][variable, row], row] = 1.0
            often = indicators if self.weights is None else indicators * self.weights[rows]
            counts += often @ indicators.T
        return counts

    def complete(self) -> Counts:
        """Counts of the rows without missing values."""
        return Counts.from_rows(self.schema, self._rows(self.schema.names))

    def table(self, names: Sequence[str]) -> Integers:
        """Count the rows that are complete for these variables."""
        sizes = self.schema.cardinalities[list(self.schema.indices(names))]
        return histogram(self._rows(names), sizes).reshape(sizes)

    def _rows(self, names: Sequence[str]) -> CodedRows:
        """The rows that are complete for these variables."""
        chosen = list(self.schema.indices(names))
        kept = self.observed[chosen].all(axis=0)
        codes = as_codes(self.codes[chosen][:, kept], self.schema.cardinalities[chosen])
        return CodedRows(codes, None if self.weights is None else self.weights[kept])

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

    def fit(self, dag: DAG, pseudo_count: float) -> DiscreteNetwork:
        """Estimate each table from the rows that are complete for its family."""
        from isthmus.statistics.fitting import fit_families

        return fit_families(self, dag, pseudo_count)

    def resampler(self, source: Gatherable) -> Resampler:
        """Return what draws these rows, without asking the source."""
        del source
        return Resampler(self.redrawn)

    def redrawn(self, rng: np.random.Generator) -> IncompleteCounts:
        """Return as many rows, drawn with replacement."""
        n, weights = self.n, self.weights
        if weights is None:
            return IncompleteCounts(self.schema, self.codes[:, np.sort(rng.integers(n, size=n))])
        often = rng.multinomial(n, weights / n)
        return IncompleteCounts(self.schema, self.codes[:, often > 0], often[often > 0])
