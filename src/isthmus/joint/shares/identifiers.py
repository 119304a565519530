"""Identifiers of people, brought into one form so that two parties compare the same bytes."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np

from isthmus.errors import DataError, MissingValuesError
from isthmus.joint.shares.protocol import IdentifierKind

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
SHOWN = 3
"""Error messages name at most this many rows, and never an identifier."""


def canonical(values: Iterable[Any], kind: IdentifierKind, column: str) -> list[str]:
    """Return identifiers as text in one form.

    Text is brought into Unicode normal form C. Integers are written in decimal, without leading
    zeros.

    Raises
    ------
    DataError
        Values are missing, not of this kind, ambiguous or repeated. The message names rows, never
        an identifier.
    """
    given = [_plain(v) for v in values]
    missing = [i for i, v in enumerate(given) if v is None]
    if missing:
        raise MissingValuesError(
            f"The identifier {column!r} is missing in {_rows(missing)}. Remove these rows."
        )
    read = _text if kind is IdentifierKind.TEXT else _integer
    found = [read(v) for v in given]
    wrong = [i for i, v in enumerate(found) if v is None]
    if wrong:
        raise DataError(f"{column!r} in {_rows(wrong)}: {_REASONS[kind]}")
    known = [v for v in found if v is not None]
    _require_distinct(known, column)
    return known


_REASONS = {
    IdentifierKind.TEXT: (
        "the study says that identifiers are text. These are not text, are empty, or have spaces "
        "at an end or control characters. Numbers lose leading zeros when a table is read: keep "
        "the column as text, and remove spaces."
    ),
    IdentifierKind.INTEGER: (
        "the study says that identifiers are integers. These are not, or are text with leading "
        "zeros, spaces or signs, which the other party may write in another way. If leading zeros "
        "matter, draft the study with identifiers that are text."
    ),
}


def _plain(value: Any) -> Any:
    """Return a value of Python; ``None`` if it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    missing = value is None or (isinstance(value, float) and value != value)
    return None if missing else value


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = unicodedata.normalize("NFC", value)
    odd = text != text.strip() or any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text)
    return None if odd or not text else text


def _integer(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value)
    return text if INTEGER.fullmatch(text) else None


def _require_distinct(found: list[str], column: str) -> None:
    first: dict[str, int] = {}
    repeated = []
    for i, value in enumerate(found):
        if first.setdefault(value, i) != i:
            repeated += [first[value], i]
    if repeated:
        raise DataError(
            f"Some identifiers in {column!r} occur more than once, for instance in "
            f"{_rows(sorted(set(repeated)))}. Each person needs exactly one row: combine or remove "
            "repeated rows. Identifiers that look alike can be equal after Unicode normalisation."
        )


def _rows(positions: list[int]) -> str:
    shown = ", ".join(str(i + 1) for i in positions[:SHOWN])
    more = f" and {len(positions) - SHOWN} more" if len(positions) > SHOWN else ""
    return f"row {shown}" if len(positions) == 1 else f"rows {shown}{more}"


def hashed(identifiers: list[str], study: bytes) -> list[str]:
    """Return a hash of each identifier, so that no temporary file contains identifiers.

    It depends on the study, so that hashes of two studies cannot be compared. It is no secret:
    whoever knows the study can compute it. Only the private set intersection protects.
    """
    start = hashlib.sha256(b"isthmus identifier" + study)
    hashes = []
    for value in identifiers:
        each = start.copy()
        each.update(value.encode())
        hashes.append(each.hexdigest())
    return hashes
