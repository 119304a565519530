"""Columns of text that hold numbers or dates."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Integers
from isthmus.errors import DataError, MissingValuesError, SchemaError
from isthmus.statistics import Kind
from isthmus.tables.base import Source
from isthmus.tables.columns import LARGEST_EXACT, TableColumn, factorise, is_missing
from isthmus.tables.infer_kinds import NUMBERS
from isthmus.tables.kinds import AsGiven, CellType, TimeUnit
from isthmus.tables.names import as_narwhals
from isthmus.tables.written_numbers import are_digits, seconds_of, writing_of

_FIRST = 20
"""Number of cells that tell quickly that a column of text holds no numbers."""


def converted(column: TableColumn, given: AsGiven | None, integers: Kind | None) -> TableColumn:
    """Return a column of text as numbers or dates, if that is what it holds and what is wanted.

    Without a wish of the user or of the score, numbers with fewer than five different values stay
    categories, and so do whole numbers that hardly repeat, which may be identifiers.

    Parameters
    ----------
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


# --- The persons that the rows of a table describe ----------------------------------------------


def persons_in(data: object, column: str) -> Integers:
    """Return a number for the person of each row of a table in memory.

    Parameters
    ----------
    column
        The column that identifies a person.

    Raises
    ------
    MissingValuesError
        Some rows name nobody. They would count as one person with all these rows.
    """
    words, nobody = person_words(data, column)
    if nobody.any():
        raise MissingValuesError(
            f"The policy says that the column {column!r} identifies a person, but it is missing "
            f"in {int(nobody.sum())} of {len(words)} rows. Leave these rows out, or give them an "
            "identifier."
        )
    return np.unique(words, return_inverse=True)[1].reshape(-1).astype(np.int64)


def person_words(
    data: object, column: str, key: bytes = b""
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return a keyed hash of 64 bits of the person of each row, and which rows name nobody."""
    values = _column(data, column)
    nobody = np.zeros(len(values), dtype=np.bool_)
    if values.dtype.kind in "fO":
        nobody = np.fromiter(map(is_missing, values.tolist()), dtype=np.bool_, count=len(values))
    numbers = values[~nobody] if values.dtype.kind == "f" else np.zeros(0)
    if (np.abs(numbers) >= LARGEST_EXACT).any() or (numbers != np.rint(numbers)).any():
        raise SchemaError(
            f"The column {column!r} identifies persons, and its values are floating-point numbers "
            "that are not whole or too large to be exact. Store identifiers as text."
        )
    distinct, codes = np.unique(values.astype(str), return_inverse=True)
    return person_hashes(distinct.tolist(), key)[codes.reshape(-1)], nobody


def person_hashes(identifiers: Iterable[str], key: bytes) -> NDArray[np.uint64]:
    """Return a keyed hash of each identifier, however an export has written it.

    A whole number is the same with zeros in front or after the point, and a text is the same in
    capitals and with blanks around it: a person who is in two exports must be recognised.
    """
    return np.array([_word(_common_form(text), key) for text in identifiers], dtype=np.uint64)


def _common_form(identifier: str) -> str:
    text = unicodedata.normalize("NFKC", identifier).strip().casefold()
    number = re.fullmatch(r"0*([0-9]+?)(?:\.0*)?", text)
    return text if number is None else number[1]


def _word(identifier: str, key: bytes) -> int:
    content = hashlib.blake2b(identifier.encode(), key=key, digest_size=8)
    return int.from_bytes(content.digest(), "little")


def _column(data: object, name: str) -> NDArray[Any]:
    if isinstance(data, Mapping):
        if name in data:
            return np.asarray(data[name])
    elif not isinstance(data, (Source, np.ndarray)):
        frame: Any = as_narwhals(data)
        if name in frame.columns:
            return np.asarray(frame.get_column(name).to_numpy())
    raise SchemaError(
        f"The policy says that the column {name!r} identifies a person, but the data of this site "
        "have no such column."
    )
