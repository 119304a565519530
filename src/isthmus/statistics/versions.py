"""Reading statistics that an earlier version wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.errors import FormatError
from isthmus.graphs.lags import Lag, lagged_names
from isthmus.statistics.schema import Kind, Schema

FIRST_MOMENTS = "isthmus-moments/1"
"""Version 1 had no roles: earlier time steps and basis functions were known by their names."""

_FEATURE = re.compile(r"(.+)~([1-9][0-9]*)", re.DOTALL)
_LAGGED = re.compile(r"(.+)@([1-9][0-9]*)", re.DOTALL)


def schema_of_first_version(data: Mapping[str, Any]) -> Schema:
    """Read a schema whose roles were in the names, exactly as `Series` of that version made them.

    Raises
    ------
    FormatError
        The columns are basis functions: that version did not record which.
    """
    schema = Schema.from_dict(data)
    if len(schema.of_kind(Kind.CONTINUOUS)) != len(schema):
        return schema
    if _has_feature_names(schema.names):
        raise FormatError(
            "The moments of basis functions (columns such as "
            f"{schema.names[-1]!r}) were written by an earlier version, which did not record the "
            "basis. Compute them again, with WithFeatures(table, basis).moments(), and save them."
        )
    lag_of = lags_by_name(schema.names)
    if not lag_of:
        return schema
    now = [name for name, lag in lag_of.items() if lag.steps == 0]
    return Schema.continuous(now).with_lags(max(lag.steps for lag in lag_of.values()))


def lags_by_name(names: Sequence[str]) -> dict[str, Lag]:
    """Read time steps from names, if those are exactly what the first versions called them.

    Empty unless the names are all variables now, then all of them one step earlier (``x@1``), and
    so on.
    """
    lags = max((int(m[2]) for m in map(_LAGGED.fullmatch, names) if m), default=0)
    present = len(names) // (lags + 1)
    if not lags or not present:
        return {}
    lag_of = lagged_names(names[:present], lags)
    return lag_of if tuple(lag_of) == tuple(names) else {}


def _has_feature_names(names: tuple[str, ...]) -> bool:
    """Whether the names are those of all variables, then of the functions of each, in order."""
    terms = max((int(m[2]) for m in map(_FEATURE.fullmatch, names) if m), default=0)
    if not 2 <= terms <= 12:  # one function per variable is more likely a name of the user
        return False
    variables = names[: len(names) // (terms + 1)]
    functions = tuple(f"{n}~{k}" for n in variables for k in range(1, terms + 1))
    return names == (*variables, *functions)
