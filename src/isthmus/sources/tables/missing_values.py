"""Apply a strategy for missing values to the columns of a table in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from isthmus.errors import DataError, MissingValuesError
from isthmus.results.reading import ColumnReading, ReadAs
from isthmus.sources.tables.columns import TableColumn
from isthmus.sources.tables.kinds import CellType
from isthmus.sources.tables.missing import (
    AvailableCases,
    DropRows,
    ExpectationMaximisation,
    KeepMissing,
    Missing,
    MissingAsLevel,
    StructuralEM,
)
from isthmus.statistics.checks import methods_for, refuse_missing

if TYPE_CHECKING:
    import narwhals as nw

LEFT_TO_SCORES: dict[type[Missing], str] = {
    AvailableCases: "each family is scored on the rows that are complete for it, which is right if "
    "values are missing completely at random",
    StructuralEM: "rows were completed by their distribution given the observed values, which is "
    "right if values are missing at random",
}
"""Strategies for discrete columns that leave missing values to the score, and what they do."""

Read: TypeAlias = tuple[TableColumn, ColumnReading]


def apply_strategy(
    columns: Sequence[Read], missing: Missing | None, rows: int
) -> tuple[list[Read], tuple[str, ...]]:
    """Treat missing cells as the strategy says, or refuse them.

    Returns
    -------
    columns
        The columns. Unless rows are dropped or missing is a level, they still have holes.
    remarks
        Notes for the user.
    """
    holes = {c.name: c.missing for c, _ in columns if c.missing}
    if not holes:
        return list(columns), ()
    counted = f"{sum(holes.values()):,} of {rows * len(columns):,} values are missing"
    if isinstance(missing, DropRows):
        return _dropped(columns, rows)
    if isinstance(missing, MissingAsLevel):
        require_discrete([name for name in _numbers(columns) if name in holes], missing)
        return list(columns), (f"{counted}; they are the level {missing.level!r}.",)
    if isinstance(missing, AvailableCases | StructuralEM):
        require_discrete(_numbers(columns), missing)
        return list(columns), (f"{counted}; {LEFT_TO_SCORES[type(missing)]}.",)
    if isinstance(missing, KeepMissing):
        return list(columns), ()
    if isinstance(missing, ExpectationMaximisation):
        if not _numbers(columns):
            raise refuse_all_discrete(missing)
        return list(columns), (moments_are_estimated(sum(holes.values()), rows * len(columns)),)
    numbers = _numbers(columns)
    methods = methods_for(continuous=bool(numbers), level=holes.keys().isdisjoint(numbers))
    refuse_missing({c.name: c.missing for c, _ in columns}, rows, methods)
    return list(columns), ()


def _numbers(columns: Sequence[Read]) -> list[str]:
    """Names of the columns that are not discrete."""
    return [c.name for c, r in columns if r.read_as is not ReadAs.DISCRETE]


def _dropped(columns: Sequence[Read], rows: int) -> tuple[list[Read], tuple[str, ...]]:
    complete = np.ones(rows, dtype=np.bool_)
    for column, _ in columns:
        if column.absent is not None:
            complete &= ~column.absent
    kept = int(np.count_nonzero(complete))
    return [(c.take(complete), r) for c, r in columns], _remarks(rows, kept)


def complete_rows(
    frame: nw.LazyFrame[Any], cells: Mapping[str, CellType]
) -> tuple[nw.LazyFrame[Any], tuple[str, ...]]:
    """The rows of a table of an engine that have a value in all of these columns."""
    import narwhals as nw

    complete = frame
    for name, own in cells.items():
        present = ~nw.col(name).is_null()
        if own is CellType.FLOAT:
            present &= ~nw.col(name).cast(nw.Float64).is_nan()
        complete = complete.filter(present)
    number = nw.len().cast(nw.Int64).alias("n")
    before, after = (
        int(table.select(number).collect().get_column("n").to_list()[0])
        for table in (frame, complete)
    )
    return complete, _remarks(before, after)


def _remarks(before: int, after: int) -> tuple[str, ...]:
    """Return a note on the number of dropped rows; refuse to drop all."""
    if after == 0 < before:
        raise DataError(
            "No row is complete, so DropRows() leaves nothing. Leave out the columns with the most "
            "missing values, or use ExpectationMaximisation(), or StructuralEM() for categories."
        )
    lost = before - after
    if not lost:
        return ()
    wider = (before / after) ** 0.5
    note = (
        f"{lost:,} of {before:,} rows ({lost / before:.1%}) lack a value and were dropped, which "
        "is right if values are missing completely at random; standard errors are about "
        f"{wider:.2f} times those of a complete table."
    )
    return (note,)


def require_discrete(names: Sequence[str], missing: Missing) -> None:
    """Refuse columns of numbers that a strategy for categories cannot treat."""
    if names:
        raise MissingValuesError(
            f"{missing!r} takes discrete columns, and {list(names[:10])} are not. Use "
            "ExpectationMaximisation() or DropRows(); or leave these columns out."
        )


def refuse_all_discrete(missing: Missing) -> MissingValuesError:
    """The error for a table without numbers if moments were to be estimated."""
    return MissingValuesError(
        f"{missing!r} is for tables with continuous columns, and all columns are discrete. Use "
        "StructuralEM(), AvailableCases() or DropRows()."
    )


def moments_are_estimated(lost: int, cells: int) -> str:
    """Return a note that moments are estimated, with the number of missing values."""
    return (
        f"{lost:,} of {cells:,} values are missing; the moments are estimated from the others, "
        "which is right if values are missing at random."
    )
