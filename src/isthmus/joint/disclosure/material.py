"""What the rules of a site look at: everything that a study could let leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from isthmus.types import Integers


class RowsOfColumns(Protocol):
    """Columns of numbers of which some rows are read at a time, such as an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and of columns."""

    def __getitem__(self, rows: Any, /) -> Any:
        """Return an array of some rows, given by a slice or by their positions."""


@final
@dataclass(frozen=True, eq=False)
class ReleaseCandidates:
    """The data behind everything that a study could let leave a site.

    The rules are applied to this once, and not to single requests. Whether a site answers does
    therefore not depend on which of the allowed questions is asked.

    Attributes
    ----------
    values
        The values of each variable, row by row; codes for variables that are released level by
        level.
    columns
        The numbers whose sums and products may be released, one row per row of the data. It has no
        columns if only tables are released.
    by_level
        Names of the variables whose levels are released one by one.
    functions
        Number of released functions of a variable that is not released by level: one for the
        variable itself, and one per basis function.
    tables
        The tables that may be released, as numbers of persons.
    windows
        Lowest and highest value between which the basis functions of a variable vary.
    more_columns
        Number of released columns that are not in `columns`: those of another party, whose products
        with these are released, and cells of tables over columns of both.
    persons
        The person that each row describes, as codes from zero; ``None`` if every row is a person
        of its own.
    """

    values: Mapping[str, NDArray[Any]]
    columns: RowsOfColumns
    by_level: frozenset[str] = frozenset()
    functions: int = 1
    tables: Sequence[Integers] = ()
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    more_columns: int = 0
    persons: Integers | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.columns.shape[0]

    def count(self, chosen: NDArray[np.bool_] | None = None) -> int:
        """Return the number of persons, of all rows or of chosen ones."""
        if self.persons is None:
            return self.rows if chosen is None else int(chosen.sum())
        return len(np.unique(self.persons if chosen is None else self.persons[chosen]))

    def tally(self, codes: Integers, cells: int) -> Integers:
        """Return the number of persons in each cell, given the cell of each row."""
        if self.persons is None:
            return np.bincount(codes, minlength=cells)
        pairs = np.unique(self.persons.astype(np.int64) * cells + codes)
        return np.bincount(pairs % cells, minlength=cells)
