"""Variables at earlier time steps, and how their names are printed.

What a variable is follows from its `Lag`, never from the spelling of its name: ``x@1`` is only how
the value of ``x`` one step earlier is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from isthmus.errors import GraphError


class Lag(NamedTuple):
    """The variable of a series, and how many time steps earlier it is taken; 0 is the present."""

    variable: str
    steps: int


def lagged_names(names: Sequence[str], lags: int) -> dict[str, Lag]:
    """Name every variable at every time step: the present first, then one step earlier, and so on.

    The value of ``x`` one step earlier is called ``x@1``; if a variable already has that name,
    ``x@@1``, and so on.

    Parameters
    ----------
    names
        The variables of the series.
    lags
        How many earlier time steps to name.
    """
    if lags < 0:
        raise GraphError(f"The number of lags must be 0 or more; {lags} was given.")
    lag_of = {name: Lag(name, 0) for name in names}
    for steps in range(1, lags + 1):
        for name in names:
            separator = "@"
            while (printed := f"{name}{separator}{steps}") in lag_of:
                separator += "@"
            lag_of[printed] = Lag(name, steps)
    return lag_of


def temporal_tiers(lag_of: Mapping[str, Lag]) -> tuple[tuple[str, ...], ...]:
    """Group nodes by time step, the earliest first; no groups if all are of the present.

    Given as the tiers of `Knowledge`, they forbid edges that go back in time.
    """
    steps = sorted({lag.steps for lag in lag_of.values()}, reverse=True)
    if steps in ([], [0]):
        return ()
    return tuple(tuple(n for n, lag in lag_of.items() if lag.steps == s) for s in steps)
