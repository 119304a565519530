"""Rows of a table, for models that sums cannot represent. Rows never leave their site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import SchemaError
from isthmus.statistics.accumulator import Accumulator
from isthmus.statistics.base import Gatherable, Statistic
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Schema

if TYPE_CHECKING:
    from isthmus.graphs import DAG


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
