"""The persons that the rows of a table describe."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MissingValuesError, SchemaError
from isthmus.sources.base import Source
from isthmus.sources.tables.columns import is_missing
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
    codes = PersonCodes()
    codes.add(data, column)
    return codes.finish()


@final
class PersonCodes:
    """Numbers the persons of a table that is read batch by batch.

    Only a hash of 64 bits per identifier is kept in memory.
    """

    def __init__(self) -> None:
        self._words: list[NDArray[np.uint64]] = []

    def add(self, data: object, column: str) -> None:
        """Add rows."""
        values = _column(data, column)
        nobody = sum(map(is_missing, values.tolist())) if values.dtype.kind in "fO" else 0
        if nobody:
            raise MissingValuesError(
                f"The policy says that the column {column!r} identifies a person, but it is "
                f"missing in {nobody} of {len(values)} rows. Leave these rows out, or give them an "
                "identifier."
            )
        distinct, codes = np.unique(values.astype(str), return_inverse=True)
        words = np.array([_word(text) for text in distinct.tolist()], dtype=np.uint64)
        self._words.append(words[codes.reshape(-1)])

    def finish(self) -> Integers:
        """Return a number from zero for the person of each row."""
        words = np.concatenate([np.zeros(0, dtype=np.uint64), *self._words])
        return np.unique(words, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _word(identifier: str) -> int:
    return int.from_bytes(hashlib.blake2b(identifier.encode(), digest_size=8).digest(), "little")


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
