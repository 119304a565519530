"""Errors that statistics and sources share: missing, infinite, overflowing or no values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MissingValuesError

OVERFLOW = (
    "Some values are so large that their squares overflow. "
    "Rescale the columns (change their units) first."
)

LARGEST_SQUARES = 1e306
"""Sums of squares above this overflow when they are added or subtracted: floats end at 1.8e308."""

UNDERFLOW = 1e-290
"""Sums of squares below this have lost digits: floats below 1e-308 are not exact."""


_INFINITE = " Values are infinite"


def _listed(found: Mapping[str, int]) -> str:
    shown = [f"{name!r} ({count:,})" for name, count in list(found.items())[:20]]
    return ", ".join(shown) + (f" and {len(found) - 20} more" if len(found) > 20 else "")


def methods_for(*, continuous: bool, level: bool) -> str:
    """Name the methods for missing values that a table allows.

    Parameters
    ----------
    continuous
        Whether the table has continuous columns.
    level
        Whether missing can be a level of its own: the table is in memory, and only discrete
        columns lack values.
    """
    methods = ["DropRows()"]
    if level:
        methods.append("MissingAsLevel()")
    methods += (
        ["ExpectationMaximisation()"] if continuous else ["AvailableCases()", "StructuralEM()"]
    )
    return " or ".join(", ".join(methods).rsplit(", ", 1))


ANY_METHOD = (
    "DropRows(); MissingAsLevel(), AvailableCases() or StructuralEM() for categories; or "
    "ExpectationMaximisation() for numbers and mixed tables"
)


def refuse_missing(missing: Mapping[str, int], n: int, methods: str = ANY_METHOD) -> None:
    """Raise `MissingValuesError` that names the columns with missing cells, if there are any.

    Parameters
    ----------
    missing
        Number of missing cells of each column.
    n
        Number of rows.
    methods
        Names of the methods that the error proposes.
    """
    found = {name: count for name, count in missing.items() if count}
    if found:
        raise MissingValuesError(
            f"Values are missing (null or NaN) in {len(found)} of {len(missing)} columns, "
            f"{n:,} rows: {_listed(found)}. Say what to do: learn(data, missing=...) with "
            f"{methods}; or leave the columns out."
        )


def with_advice(error: MissingValuesError, advice: str) -> MissingValuesError:
    """Return the error of `refuse_missing` with another advice, for other calls than ``learn``."""
    start, _, rest = str(error).partition(" Say what to do:")
    more = "".join(rest.partition(_INFINITE)[1:])
    return MissingValuesError(f"{start} {advice}{more}")


def refuse_infinite(infinite: Mapping[str, int]) -> None:
    """Raise `DataError` that names the columns with infinite cells, if there are any."""
    found = {name: count for name, count in infinite.items() if count}
    if found:
        raise DataError(
            f"{_INFINITE.strip()} in these columns: {_listed(found)}. "
            "Replace them by finite ones, or drop the rows."
        )


def refuse_underflow(
    columns: Sequence[str], varies: NDArray[np.bool_], squares: NDArray[np.float64]
) -> None:
    """Raise `DataError` for columns that vary, but so little that their squares are zero.

    Parameters
    ----------
    columns
        Names of the columns.
    varies
        Which of them have values that differ from the shift; constants have none.
    squares
        Their sums of squares after the shift.
    """
    small = np.flatnonzero((squares < UNDERFLOW) & varies)
    if len(small):
        raise DataError(
            f"The values of {[columns[i] for i in small[:10]]} differ by so little that their "
            "squares are zero. Rescale the columns (change their units) first."
        )


def refuse_empty(n: int) -> None:
    """Raise `DataError` when there are no rows."""
    if n == 0:
        raise DataError(
            "The table has no rows: there is nothing to count. Check the filter or the path."
        )
