"""Studies of time series: their variables, and how a site's table becomes a series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.errors import SchemaError
from isthmus.graphs.lags import lagged_name, split_lag
from isthmus.sources.tables.series import Series
from isthmus.statistics import Kind, Schema


def lagged_variables(
    schema: Schema, bounds: Mapping[str, tuple[float, float]], lags: int
) -> tuple[Schema, dict[str, tuple[float, float]]]:
    """Return the variables at the present step, then one step earlier, and so on, with bounds."""
    if lags < 0:
        raise SchemaError(f"The number of lags must be 0 or more; {lags} was given.")
    schema.require(Kind.CONTINUOUS, "A study of time series")
    lagged = {lagged_name(n, lag): bounds[n] for lag in range(lags + 1) for n in schema.names}
    return Schema.continuous(list(lagged)), lagged


def as_studied(
    table: object, schema: Schema, *, by: str | None = None, time: str | None = None
) -> object:
    """Return the table, with lagged columns if the study has lagged variables.

    Parameters
    ----------
    table
        A table in memory. If it already has the lagged columns, it is returned unchanged.
    schema
        The variables of the study: ``x, y, x@1, y@1`` and so on.
    by, time
        As for `Series`.
    """
    import narwhals as nw

    places = [split_lag(name) for name in schema.names]
    lags = max((lag for _, lag in places), default=0)
    if not lags and (by or time):
        raise SchemaError(
            "The study is not about time series: it has no variable such as x@1. Leave out the "
            "columns for time and realisation."
        )
    frame: Any = nw.from_native(table, eager_only=True)
    if not lags or all(name in frame.columns for name in schema.names):
        return table
    now = [name for name, lag in places if lag == 0]
    wanted = [*now, *(key for key in (by, time) if key is not None)]
    lacking = [name for name in wanted if name not in frame.columns]
    if lacking:
        raise SchemaError(
            f"The table has no column {lacking}. Its columns are {frame.columns[:20]}."
        )
    return Series(frame.select(wanted).to_native(), lags=lags, by=by, time=time)
