"""Studies of time series: their variables, and how a site's table becomes a series."""

from __future__ import annotations

from typing import Any

from isthmus.errors import SchemaError
from isthmus.joint.agreement.variables import Variables
from isthmus.sources.tables.series import Series
from isthmus.statistics import Kind, Schema


def lagged_variables(variables: Variables, lags: int) -> Variables:
    """Return the variables at the present step, then one step earlier, and so on."""
    if lags < 0:
        raise SchemaError(f"The number of lags must be 0 or more; {lags} was given.")
    variables.schema.require(Kind.CONTINUOUS, "A study of time series needs")
    lagged = variables.schema.with_lags(lags)
    now = {name: lag.variable for name, lag in lagged.lag_of.items()}
    return Variables(lagged, {name: variables.bounds[own] for name, own in now.items()})


def as_studied(
    table: object, schema: Schema, *, by: str | None = None, time: str | None = None
) -> object:
    """Return the table, with lagged columns if the study has lagged variables.

    Parameters
    ----------
    table
        A table in memory. If it already has the lagged columns, it is returned unchanged.
    schema
        The variables of the study, some of which may be of earlier time steps.
    by, time
        As for `Series`.
    """
    import narwhals as nw

    lags = schema.lags
    if not lags and (by or time):
        raise SchemaError(
            "The study is not about time series: no variable is of an earlier time step. Leave "
            "out the columns for time and realisation."
        )
    frame: Any = nw.from_native(table, eager_only=True)
    if not lags or all(name in frame.columns for name in schema.names):
        return table
    now = [name for name, lag in schema.lag_of.items() if lag.steps == 0]
    wanted = [*now, *(key for key in (by, time) if key is not None)]
    lacking = [name for name in wanted if name not in frame.columns]
    if lacking:
        raise SchemaError(
            f"The table has no column {lacking}. Its columns are {frame.columns[:20]}."
        )
    return Series(frame.select(wanted).to_native(), lags=lags, by=by, time=time)
