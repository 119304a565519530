"""Variables at earlier time steps, and their printed names.

Only a `Lag` states that a variable is lagged. A name such as ``x@1`` is printed for readers and is
never parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from isthmus.errors import GraphError


class Lag(NamedTuple):
    """A variable of a series and the number of time steps it lies in the past; 0 is the present."""

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
        Number of earlier time steps.
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
    """Group nodes by time step, earliest first; return no groups if no node is lagged.

    Given as the tiers of `Knowledge`, they forbid edges that go back in time.
    """
    steps = sorted({lag.steps for lag in lag_of.values()}, reverse=True)
    if steps in ([], [0]):
        return ()
    return tuple(tuple(n for n, lag in lag_of.items() if lag.steps == s) for s in steps)
