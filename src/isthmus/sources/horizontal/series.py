"""Studies of time series: their variables, and a site's table as the series they are about."""

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
    """Variables now, then one step earlier, and so on, each within the bounds it has now."""
    if lags < 0:
        raise SchemaError(f"A study has 0 or more earlier steps; {lags} was given.")
    schema.require(Kind.CONTINUOUS, "A study of time series")
    found = {lagged_name(n, lag): bounds[n] for lag in range(lags + 1) for n in schema.names}
    return Schema.continuous(list(found)), found


def as_studied(
    table: object, schema: Schema, *, by: str | None = None, time: str | None = None
) -> object:
    """The table, with earlier steps as columns where the study has such variables.

    Parameters
    ----------
    table
        A table in memory. If it has the columns of earlier steps, it is given back as it is.
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
            "The study is not about time series: no variable is named like x@1. Leave out the "
            "columns of time and realisation."
        )
    frame: Any = nw.from_native(table, eager_only=True)
    if not lags or all(name in frame.columns for name in schema.names):
        return table
    now = [name for name, lag in places if lag == 0]
    wanted = [*now, *(key for key in (by, time) if key is not None)]
    lacking = [name for name in wanted if name not in frame.columns]
    if lacking:
        raise SchemaError(f"There is no column {lacking}. There are: {frame.columns[:20]}.")
    return Series(frame.select(wanted).to_native(), lags=lags, by=by, time=time)
