"""Missing values of tables that stay with an engine: estimated moments, and counted rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import final

import numpy as np

from isthmus.errors import MissingValuesError
from isthmus.results.reading import ColumnReading
from isthmus.sources.tables.engines.base import Engine
from isthmus.sources.tables.grouping import Grouped
from isthmus.sources.tables.missing import ExpectationMaximisation, Missing
from isthmus.sources.tables.missing_values import (
    LEFT_TO_SCORES,
    moments_are_estimated,
    refuse_other_kind,
)
from isthmus.statistics import IncompleteCounts, Kind, Moments, Schema
from isthmus.statistics.expectation import estimate_moments


@final
class LazyEstimation:
    """Estimates moments from the sums of one pass over a table.

    Parameters
    ----------
    missing
        When to stop.
    release
        Records what the engine sends.
    """

    def __init__(
        self, missing: ExpectationMaximisation, release: Callable[[str, int], None]
    ) -> None:
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
        discrete = schema.of_kind(Kind.DISCRETE)
        if discrete or not holes:
            try:
                computed = engine.moments(schema, columns)
            except MissingValuesError:
                if discrete:
                    raise refuse_other_kind(discrete, self._missing, "continuous") from None
            else:
                self._release(computed.what, computed.size)
                return computed.moments
        summed = engine.patterns(schema, columns)
        self._release(summed.what, summed.size)
        patterns = summed.patterns
        estimated = estimate_moments(
            patterns,
            max_iterations=self._missing.max_iterations,
            tolerance=self._missing.tolerance,
            until=self.until,
        )
        lost, cells = int(patterns.missing.sum()), patterns.n * len(schema)
        self.remarks = (moments_are_estimated(lost, cells), *estimated.remarks())
        return estimated.moments


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
