"""From values to codes of levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import SchemaError
from isthmus.sources.tables.kinds import refused_type
from isthmus.statistics import Level
from isthmus.statistics.schema import MAX_LEVELS, plain_level

Values = NDArray[Any]

SPAN = 2**16
"""Integers within a range this wide are coded by looking them up in an array."""


def recoding(name: str, found: Sequence[Level], levels: Sequence[Level]) -> NDArray[np.int64]:
    """For each value that was found, its position among the levels."""
    position = {level: i for i, level in enumerate(levels)}
    strange = [v for v in found if v not in position]
    if strange:
        raise SchemaError(
            f"Column {name!r} has the values {strange[:10]!r}, which are not among its levels "
            f"{tuple(levels)[:20]!r}. Add them to the schema, or drop the rows."
        )
    return np.array([position[v] for v in found], dtype=np.int64)


def narrow(codes: Values, levels: int) -> Values:
    """Codes in as few bytes as the number of levels needs."""
    return codes.astype(np.uint8 if levels <= 2**8 else np.uint16, copy=False)


def factorise(name: str, values: Values) -> tuple[Values, tuple[Level, ...]]:
    """Positions of the values among the distinct ones, and those."""
    if values.dtype.kind in "iub":
        found = _factorise_integers(values)
        if found is not None:
            return found
    distinct: Values
    if values.dtype.kind == "O":
        order: dict[Any, int] = {}
        try:
            places = np.array([order.setdefault(v, len(order)) for v in values], dtype=np.int64)
        except TypeError:
            raise refused_type(name, "object", temporal=False) from None
        distinct = np.fromiter(order, dtype=object, count=len(order))
        refuse_twins(name, distinct.tolist())
    else:
        distinct, places = np.unique(values, return_inverse=True)
    return places.ravel(), tuple(plain_level(v, name) for v in distinct.tolist())


def _factorise_integers(values: Values) -> tuple[Values, tuple[Level, ...]] | None:
    """The same for integers within a small range, without sorting."""
    if len(values) == 0:
        return None
    as_level: Callable[[int], Level] = int
    if values.dtype.kind == "b":
        values, as_level = values.view(np.uint8), bool
    low, high = int(values.min()), int(values.max())
    if high - low >= SPAN:
        return None
    offsets = offsets_from(values, low)
    present = np.flatnonzero(np.bincount(offsets))
    levels = tuple(as_level(int(v) + low) for v in present)
    lookup = np.zeros(high - low + 1, dtype=np.uint16)
    lookup[present] = np.arange(len(present))
    is_full = len(present) == high - low + 1
    places = offsets if is_full else lookup[offsets]
    return places, levels


def offsets_from(values: Values, low: int) -> Values:
    """Integers, or whole numbers stored as floats, minus the smallest of them."""
    offsets: Values = values
    if values.dtype.kind == "u" and (low or values.dtype == np.uint64):
        offsets = (values - np.array(low, dtype=values.dtype)).astype(np.int64)
    elif low or values.dtype.kind == "f":
        # Signed integers are widened first: 100 - (-100) does not fit into 8 bits.
        offsets = values.astype(np.int64) - low
    return offsets


def refuse_twins(name: str, values: Sequence[object]) -> None:
    """Refuse values that differ only in their type, such as 0 and "0", or 1 and True.

    Numbers that are equal are one level (1 and 1.0). Nothing tells whether a number and the same
    number as text are one level or two, so the user has to say.
    """
    if all(isinstance(value, str) for value in values):
        return
    twins: dict[str, object] = {}
    for value in values:
        text = str(value)
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            text = str(int(value))
        if text in twins:
            raise SchemaError(
                f"Column {name!r} has the values {twins[text]!r} and {value!r}, which differ only "
                "in their type. Convert the column to one type, for instance with astype(str)."
            )
        twins[text] = value


def too_many(name: str, count: int) -> SchemaError:
    """The error for a discrete column with too many levels."""
    return SchemaError(
        f"Column {name!r} has {count:,} distinct values; at most "
        f"{MAX_LEVELS:,} make a discrete one. It looks like an identifier: leave it out, "
        "group its values, or read it as continuous."
    )
