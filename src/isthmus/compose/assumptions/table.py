"""Rows of a table in memory, for the checks that need them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.sources.base import CompleteColumns, Source
from isthmus.statistics import Kind
from isthmus.types import Floats

FEWEST_ROWS = 20
"""With fewer rows, no check of rows could be sure."""
MOST_ROWS = 1_000
"""Rows in the sample for checks of shapes: the error of a correlation is then about 0.03."""
MOST_COLUMNS = 200
"""Columns in the checks of pairs. With more, evenly spaced ones are looked at."""
_SHOWN = 3
"""Number of names in a note."""


@final
class RowTable(CompleteColumns):
    """Columns of a table in memory, without rows that lack a value, as the checks need them."""

    @classmethod
    def of(cls, source: Source) -> RowTable | None:
        """Return the rows behind a source; None if they are not in memory, or are too few."""
        found = source.complete_columns()
        if found is None or len(found.columns[0]) < FEWEST_ROWS:
            return None
        return cls(found.schema, found.columns, found.positions, found.dropped, found.groups)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.columns[0])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.schema.names

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """Positions of the continuous columns that are not constant."""
        return tuple(
            j
            for j, v in enumerate(self.schema.variables)
            if v.kind is Kind.CONTINUOUS and _varies(self.columns[j])
        )

    @cached_property
    def pairwise(self) -> tuple[int, ...]:
        """The continuous columns whose pairs are checked."""
        return tuple(self.numeric[i] for i in spaced(len(self.numeric), MOST_COLUMNS))

    def numbers(self, j: int, rows: slice | NDArray[np.intp] | None = None) -> Floats:
        """Return a column as numbers: a discrete one as the indicator of its most common level."""
        column = self.columns[j] if rows is None else self.columns[j][rows]
        if self.schema.variables[j].kind is Kind.DISCRETE:
            column = column == np.bincount(column.astype(np.int64)).argmax()
        numbers: Floats = np.array(column, dtype=np.float64)
        return numbers

    def sample(self) -> NDArray[np.intp]:
        """Return evenly spaced rows, or all."""
        return spaced(self.n, MOST_ROWS)

    def select(self, names: Sequence[str]) -> RowTable:
        """Return some of the columns."""
        columns = [self.columns[i] for i in self.schema.indices(names)]
        schema = self.schema.subset(names)
        return RowTable(schema, columns, self.positions, self.dropped, self.groups)

    def without(self, rows: NDArray[np.intp]) -> RowTable:
        """Return the table without some rows."""
        if not len(rows):
            return self
        groups = None if self.groups is None else np.delete(self.groups, rows)
        columns = [np.delete(column, rows) for column in self.columns]
        return RowTable(self.schema, columns, groups=groups)

    def listed(self, columns: Sequence[int]) -> str:
        """Return the names of columns for a note, at most a few of them."""
        return listed([self.names[j] for j in columns])


def listed(names: Sequence[str], most: int = _SHOWN) -> str:
    """Return names for a note: all of a few, or the first and how many there are more."""
    quoted = [repr(name) for name in names[:most]]
    more = len(names) - most
    if more > 0:
        return f"{', '.join(quoted)} and {more} more"
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def spaced(length: int, most: int) -> NDArray[np.intp]:
    """Return all positions, or evenly spaced ones."""
    return np.linspace(0, length - 1, min(length, most)).astype(np.intp)


def _varies(column: NDArray[Any]) -> bool:
    return bool(column[0] != column[-1]) or bool((column != column[0]).any())


def standardised(values: Floats) -> Floats:
    """Return a column with mean zero and variance one; zeros if it is constant."""
    centred: Floats = values - values.mean()
    deviation = float(np.sqrt(np.mean(centred**2)))
    return centred / deviation if deviation > 0.0 else centred
