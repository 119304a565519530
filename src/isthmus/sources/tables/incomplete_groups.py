"""Distinct rows with missing values that an engine has counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from isthmus.errors import MissingValuesError
from isthmus.results.reading import ColumnReading
from isthmus.sources.tables.grouping import Grouped
from isthmus.sources.tables.holes import LEFT_TO_SCORES, refuse_other_kind
from isthmus.sources.tables.missing import Missing
from isthmus.statistics import IncompleteCounts, Schema


def incomplete_counts(schema: Schema, groups: Sequence[Grouped]) -> IncompleteCounts:
    """The distinct rows of all variables and how often they occur."""
    grouped = next(g for g in groups if set(schema.names) <= g.levels.keys())
    place = [list(grouped.levels).index(n) for n in schema.names]
    codes = grouped.rows.codes[place].astype(np.uint16)
    if grouped.absent is not None:
        sizes = schema.cardinalities[:, None].astype(np.uint16)
        codes = np.where(grouped.absent[place], sizes, codes)
    return IncompleteCounts(schema, codes, grouped.rows.filled())


def incomplete_remarks(
    missing: Missing | None, groups: Sequence[Grouped], readings: Mapping[str, ColumnReading]
) -> tuple[str, ...]:
    """Return a note on missing values that are left to the score; refuse continuous columns."""
    if missing is None or type(missing) not in LEFT_TO_SCORES:
        return ()
    wrong = [n for n, r in readings.items() if r.used and not any(n in g.levels for g in groups)]
    if wrong:
        raise refuse_other_kind(wrong, missing, "discrete")
    for grouped in groups:
        if grouped.absent is not None:
            lost = int((grouped.absent * grouped.rows.filled()).sum())
            cells = grouped.rows.n * len(grouped.levels)
            what = LEFT_TO_SCORES[type(missing)]
            return (f"{lost:,} of {cells:,} values are missing; {what}.",)
    return ()


def refuse_incomplete(missing: Missing | None, groups: Sequence[Grouped]) -> None:
    """Refuse counts of rows with missing values."""
    if any(grouped.absent is not None for grouped in groups):
        raise MissingValuesError(
            f"Values are missing, and {missing!r} leaves them to the score. Learn with BIC(), "
            "AIC() or EBIC(), or use DropRows()."
        )
