"""Errors that statistics and sources share: missing, infinite, overflowing or no values."""

from __future__ import annotations

from collections.abc import Mapping

from isthmus.errors import DataError, MissingValuesError

OVERFLOW = (
    "Some values are so large that their squares overflow. "
    "Rescale the columns (change their units) first."
)


def _listed(found: Mapping[str, int]) -> str:
    shown = [f"{name!r} ({count:,})" for name, count in list(found.items())[:20]]
    return ", ".join(shown) + (f" and {len(found) - 20} more" if len(found) > 20 else "")


def refuse_missing(missing: Mapping[str, int], n: int) -> None:
    """Raise `MissingValuesError` that names the columns with missing cells, if there are any."""
    found = {name: count for name, count in missing.items() if count}
    if found:
        raise MissingValuesError(
            f"Values are missing (null or NaN) in {len(found)} of {len(missing)} columns, "
            f"{n:,} rows: {_listed(found)}. Isthmus does not impute them. Drop the rows "
            "(dropna, drop_nulls, or WHERE ... IS NOT NULL), leave the columns out, fill the cells "
            "with a method you trust, or, for a category, make 'missing' a level of its own."
        )


def refuse_infinite(infinite: Mapping[str, int]) -> None:
    """Raise `DataError` that names the columns with infinite cells, if there are any."""
    found = {name: count for name, count in infinite.items() if count}
    if found:
        raise DataError(
            f"Values are infinite in these columns: {_listed(found)}. "
            "Replace them by finite ones, or drop the rows."
        )


def refuse_empty(n: int) -> None:
    """Raise `DataError` when there are no rows."""
    if n == 0:
        raise DataError(
            "The table has no rows: there is nothing to count. Check the filter or the path."
        )
