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
    AvailableCases: "each family is scored on the rows that are complete for it",
    StructuralEM: "rows were completed by their distribution given the observed values",
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
        _require(columns, holes, missing, discrete=True, all_columns=False)
        return list(columns), (f"{counted}; they are the level {missing.level!r}.",)
    if isinstance(missing, AvailableCases):
        _require(columns, holes, missing, discrete=True, all_columns=True)
        return list(columns), (f"{counted}; {LEFT_TO_SCORES[AvailableCases]}.",)
    if isinstance(missing, StructuralEM):
        _require(columns, holes, missing, discrete=True, all_columns=True)
        return list(columns), (f"{counted}; {LEFT_TO_SCORES[StructuralEM]}.",)
    if isinstance(missing, KeepMissing):
        return list(columns), ()
    if isinstance(missing, ExpectationMaximisation):
        _require(columns, holes, missing, discrete=False, all_columns=True)
        return list(columns), (moments_are_estimated(sum(holes.values()), rows * len(columns)),)
    are_discrete = {c.name: r.read_as is ReadAs.DISCRETE for c, r in columns}
    methods = methods_for(
        discrete=any(are_discrete.values()),
        continuous=not all(are_discrete.values()),
        level=all(are_discrete[name] for name in holes),
    )
    refuse_missing({c.name: c.missing for c, _ in columns}, rows, methods)
    return list(columns), ()


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
            "missing values, or use AvailableCases() or ExpectationMaximisation()."
        )
    lost = before - after
    if not lost:
        return ()
    return (f"{lost:,} of {before:,} rows ({lost / before:.1%}) lack a value and were dropped.",)


def _require(
    columns: Sequence[Read],
    holes: dict[str, int],
    missing: Missing,
    *,
    discrete: bool,
    all_columns: bool,
) -> None:
    """Refuse columns of the kind that a strategy cannot treat."""
    wrong = [
        c.name
        for c, r in columns
        if (r.read_as is ReadAs.DISCRETE) is not discrete and (all_columns or c.name in holes)
    ]
    if wrong:
        raise refuse_other_kind(wrong, missing, "discrete" if discrete else "continuous")


def refuse_other_kind(names: Sequence[str], missing: Missing, kind: str) -> MissingValuesError:
    """The error for columns of a kind that a strategy cannot treat."""
    other, fitting = (
        ("continuous", "ExpectationMaximisation()")
        if kind == "discrete"
        else ("discrete", "StructuralEM() or AvailableCases()")
    )
    return MissingValuesError(
        f"{missing!r} takes {kind} columns, and {list(names[:10])} are not. Use DropRows(), or "
        f"{fitting} if all columns are {other}; leave these columns out; or fill in their missing "
        "values with a method you trust."
    )


def moments_are_estimated(lost: int, cells: int) -> str:
    """Return a note that moments are estimated, with the number of missing values."""
    return f"{lost:,} of {cells:,} values are missing; the moments are estimated from the others."
