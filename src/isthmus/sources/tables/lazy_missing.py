"""Missing values of tables that stay with an engine: estimated moments, and counted rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from isthmus.errors import MissingValuesError
from isthmus.results.reading import ColumnReading
from isthmus.sources.tables.engines.base import Engine, plain_names
from isthmus.sources.tables.grouping import Grouped
from isthmus.sources.tables.missing import Missing
from isthmus.sources.tables.missing_values import (
    LEFT_TO_SCORES,
    moments_are_estimated,
    refuse_all_discrete,
    require_discrete,
)
from isthmus.statistics import IncompleteCounts, Kind, Moments, Schema


@final
class LazyEstimation:
    """Estimates moments from the sums of one pass over a table.

    Parameters
    ----------
    missing
        How the moments are estimated.
    release
        Records what the engine sends.
    """

    def __init__(self, missing: Missing, release: Callable[[str, int], None]) -> None:
        self._missing = missing
        self._release = release
        self.until = math.inf
        self.remarks: tuple[str, ...] = ()

    def moments(
        self, engine: Engine, schema: Schema, columns: Sequence[str], *, holes: bool
    ) -> Moments:
        """Moments of complete rows as they are, or estimated from incomplete ones.

        Parameters
        ----------
        engine
            The engine that holds the table.
        schema, columns
            The variables, and the column of each.
        holes
            Whether values are known to be missing, which saves the pass for complete rows.
        """
        if not holes:
            try:
                computed = engine.moments(schema, columns)
            except MissingValuesError:
                pass
            else:
                self._release(computed.what, computed.size)
                return computed.moments
        wide = schema
        if schema.of_kind(Kind.DISCRETE):
            engine, columns = _with_indicators(engine, schema, columns)
            printed = schema.column_names
            wide = Schema.continuous(printed if len(set(printed)) == len(printed) else columns)
        summed = engine.patterns(wide, columns)
        self._release(summed.what, summed.size)
        patterns = replace(summed.patterns, schema=schema)
        estimated = self._missing.moments(patterns, self.until)
        lost, cells = int(patterns.missing.sum()), patterns.n * len(schema)
        remark = moments_are_estimated(lost, cells)
        self.remarks = (remark, *estimated.remarks())
        return estimated.moments


def _with_indicators(
    engine: Engine, schema: Schema, columns: Sequence[str]
) -> tuple[Engine, list[str]]:
    """A table with a column per value and level, in the order of `Schema.columns`."""
    import narwhals as nw

    table = nw.from_native(engine.table)
    types, wanted = table.collect_schema(), []
    for variable, name in zip(schema.variables, columns, strict=True):
        column = nw.col(name)
        if variable.kind is Kind.CONTINUOUS:
            wanted.append(column)
            continue
        present = ~column.is_null()
        if types[name].is_float():
            present &= ~column.is_nan()
        for level in variable.levels[1:]:
            indicator = nw.when(column == level).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
            wanted.append(nw.when(present).then(indicator))
    names = plain_names(schema.column_names)
    aliased = [column.alias(name) for column, name in zip(wanted, names, strict=True)]
    return engine.of_table(table.select(*aliased).to_native()), names


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
    """Return a note on missing values that are left to the score; refuse what it cannot treat."""
    if missing is None:
        return ()
    numbers = [n for n, r in readings.items() if r.used and not any(n in g.levels for g in groups)]
    if missing.left_to_score:
        require_discrete(numbers, missing)
    if numbers or not any(grouped.absent is not None for grouped in groups):
        return ()
    if not missing.left_to_score:
        raise refuse_all_discrete(missing)
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
