"""Rows of a table, for models that sums cannot represent. Rows never leave their site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import MismatchError, SchemaError
from isthmus.statistics.accumulator import Accumulator
from isthmus.statistics.base import Gatherable, Resampler, Statistic, Summary
from isthmus.statistics.counts import Counts
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Kind, Schema

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.networks import Network


@final
@dataclass(frozen=True, eq=False)
class Rows(Statistic):
    """All rows of a table in memory.

    Parameters
    ----------
    schema
        The variables.
    values
        Shape (n, d); a discrete variable is given by the codes of its levels.
    """

    schema: Schema
    values: Floats
    n: int
    described: ClassVar[str] = "the rows themselves"

    def __init__(self, schema: Schema, values: ArrayLike) -> None:
        array = np.array(values, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(schema):
            raise SchemaError(
                f"The array has the shape {array.shape}; (rows, {len(schema)}) is needed: "
                "one column for each variable of the schema."
            )
        array.flags.writeable = False
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "values", array)
        object.__setattr__(self, "n", len(array))

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Rows:
        schema, rows = source.schema(), source.rows()
        if dag is None:
            return cls(schema, rows)
        return cls(schema.subset(dag.nodes), rows[:, list(schema.indices(dag.nodes))])

    def moments(self) -> Moments:
        """Return the moments of the rows."""
        return Moments.from_array(self.schema, self.values)

    def cells(self) -> Sequence[Integers]:
        return self.moments().cells()

    def without_rows(self) -> Moments:
        return self.moments()

    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows."""
        return self.moments().constants()

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Return groups of duplicate variables."""
        return self.moments().duplicates()

    def __repr__(self) -> str:
        return f"Rows(n={self.n}, variables={len(self.schema)})"


# --- Computation of moments from batches of rows ------------------------------------------------


@final
class MomentsBuilder:
    """Adds up moments batch by batch; the result does not depend on the size of the batches.

    Parameters
    ----------
    schema
        The variables. Basis functions are computed here, from the values of their variable.
    shift
        Values near the means of the columns; by default the means of the first rows.
    """

    def __init__(self, schema: Schema, shift: ArrayLike | None = None) -> None:
        self._schema = schema
        self._accumulator = Accumulator(schema, shift)

    def update(self, columns: Sequence[NDArray[Any]], weights: NDArray[Any] | None = None) -> None:
        """Add rows, given as one array per variable (codes for a discrete one)."""
        self._accumulator.update(columns, weights)

    def miss(self, name: str, count: int) -> None:
        """Record missing cells that the caller found in the batches."""
        self._accumulator.miss(name, count)

    def finish(self, *, regime: str | None = None) -> Moments:
        """Return the moments of all rows; missing and infinite cells raise an error."""
        return Moments(self._schema, *self._accumulator.finish(), regime)


# --- Regimes: rows under interventions -----------------------------------------------------------
#
# Statistics of data from several regimes, in some of which variables were set from outside.


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
