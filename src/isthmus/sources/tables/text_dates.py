"""Columns of dates that a file holds as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isthmus.errors import DataError

_YEAR_FIRST = r"^\s*\d{4}-\d{1,2}-\d{1,2}"
"""No other order is read: nobody can tell whether 03/04/2024 is in March or in April."""


def with_dates(table: Any, names: Sequence[str]) -> Any:
    """Return a table in which these columns are dates, if they were text.

    Raises
    ------
    DataError
        Some text is not a date that begins with the year.
    """
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    for name in names:
        if name not in frame.columns or frame[name].dtype != nw.String:
            continue
        texts = frame[name].drop_nulls()
        wrong = texts.filter(~texts.str.contains(_YEAR_FIRST)).head(1).to_list()
        try:
            dates = None if wrong else frame[name].str.to_datetime()
        except Exception:  # noqa: BLE001 - each library has errors of its own
            wrong = texts.head(1).to_list()
            dates = None
        if dates is None:
            raise DataError(
                f"Column {name!r} has texts such as {wrong[0]!r}, which are not all dates of one "
                "form. Write them as 2024-05-31 or 2024-05-31 13:45."
            )
        frame = frame.with_columns(dates.alias(name))
    return frame.to_native()
