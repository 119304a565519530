"""Names of variables at earlier steps: ``x`` now, ``x@1`` one step before, ``x@2`` two before."""

from __future__ import annotations

import re

from isthmus.errors import GraphError

_LAGGED = re.compile(r"(.+)@([1-9][0-9]*)", re.DOTALL)


def lagged_name(name: str, lag: int) -> str:
    """Name of a variable so many steps before; ``lag`` 0 is now."""
    if lag < 0:
        raise GraphError(f"A lag is 0 or more; {lag} was given.")
    return name if lag == 0 else f"{name}@{lag}"


def split_lag(column: str) -> tuple[str, int]:
    """The variable and the lag that a name stands for."""
    found = _LAGGED.fullmatch(column)
    return (column, 0) if found is None else (found.group(1), int(found.group(2)))
