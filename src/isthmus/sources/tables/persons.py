"""The persons that the rows of a table describe."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MissingValuesError, SchemaError
from isthmus.sources.base import Source
from isthmus.sources.tables.columns import LARGEST_EXACT, is_missing
from isthmus.sources.tables.names import as_narwhals
from isthmus.types import Integers


def persons_in(data: object, column: str) -> Integers:
    """Return a number for the person of each row of a table in memory.

    Parameters
    ----------
    data
        The table.
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
