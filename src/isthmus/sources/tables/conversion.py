"""Columns of text that hold numbers or dates."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.sources.tables.columns import LARGEST_EXACT, TableColumn
from isthmus.sources.tables.encoding import factorise
from isthmus.sources.tables.infer_kinds import NUMBERS
from isthmus.sources.tables.kinds import AsGiven, CellType, TimeUnit
from isthmus.sources.tables.written_numbers import are_digits, seconds_of, writing_of
from isthmus.statistics import Kind

_FIRST = 20
"""Number of cells that tell quickly that a column of text holds no numbers."""


def converted(column: TableColumn, given: AsGiven | None, integers: Kind | None) -> TableColumn:
    """Return a column of text as numbers or dates, if that is what it holds and what is wanted.

    Without a wish of the user or of the score, numbers with fewer than five different values stay
    categories, and so do whole numbers that hardly repeat, which may be identifiers.

    Parameters
    ----------
    column
        Any column.
    given
        What the user says about this column, or None.
    integers
        How the score wants integers, or None.

    Raises
    ------
    DataError
        A unit of time was requested, and some text is not a date that begins with the year.
    """
    wanted = integers if given is None else given
    is_text = column.cells is CellType.CATEGORY and (column.is_text or given is not None)
    if not is_text or wanted is Kind.DISCRETE or not len(column.present):
        return column
    places, texts = _texts(column)
    if texts is None:
        return column
    if isinstance(given, TimeUnit):
        return _dates(column, places, texts)
    writing = writing_of(texts, zeros=given is Kind.CONTINUOUS)
    numbers = "" if writing is None else writing.read(texts)
    if isinstance(numbers, str):
        return column
    distinct = len(np.unique(numbers))
    hardly_repeat = 2 * distinct > len(column.present) and are_digits(texts)
    if given is None and (hardly_repeat or (integers is None and distinct < NUMBERS)):
        return column
    whole = bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) <= LARGEST_EXACT).all())
    values = numbers.astype(np.int64) if whole else numbers
    cells = CellType.INTEGER if whole else CellType.FLOAT
    return replace(
        column,
        cells=cells,
        values=values[places],
        labels=None,
        is_text=False,
        written=texts[0],
        writing=writing,
    )


def _texts(column: TableColumn) -> tuple[NDArray[Any], list[str] | None]:
    """The different texts of a column and the place of each cell among them; None if not text."""
    first = islice(column.present if column.labels is None else column.labels, _FIRST)
    if not all(isinstance(text, str) and any(map(str.isdigit, text)) for text in first):
        return column.values, None
    if column.labels is not None:
        places, labels = column.values, column.labels
    else:
        places, labels = factorise(column.name, column.values)
    texts = [label for label in labels if isinstance(label, str)]
    return places, texts if len(texts) == len(labels) else None


def _dates(column: TableColumn, places: NDArray[Any], texts: list[str]) -> TableColumn:
    seconds = seconds_of(texts)
    if isinstance(seconds, str):
        raise DataError(
            f"Column {column.name!r} has texts such as {seconds!r}, which are not dates that begin "
            "with the year. Write them as 2024-05-31 or 2024-05-31 13:45, or leave the column out."
        )
    return replace(
        column,
        cells=CellType.TEMPORAL,
        values=seconds[places],
        labels=None,
        dtype="text",
        is_text=False,
    )
