"""How a column is read: by its data type, and by what the user says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from isthmus.errors import SchemaError, a_type
from isthmus.networks.column_maps import SECONDS
from isthmus.statistics import Kind, Schema
from isthmus.tables.names import as_name

if TYPE_CHECKING:
    import narwhals as nw


class CellType(Enum):
    """Type of the cells of a column, before it is decided how they are read."""

    FLOAT = "floats"
    INTEGER = "integers"
    BOOLEAN = "Booleans"
    CATEGORY = "text or categories"
    ORDERED = "ordered categories"
    TEMPORAL = "dates or times"
    EMPTY = "nothing"


class TimeUnit(StrEnum):
    """The unit in which dates, times and durations become numbers."""

    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"
    WEEKS = "weeks"
    YEARS = "years"

    @property
    def seconds(self) -> float:
        """Length in seconds; a year has 365.2425 days."""
        return SECONDS[self.value]


AsGiven: TypeAlias = Kind | TimeUnit
"""How the user wants a column to be read."""


def cell_type_of(name: str, dtype: nw.dtypes.DType) -> CellType:
    """The cell type of a narwhals data type; nested types are refused."""
    import narwhals as nw

    # NumPy has no integers of 128 bits.
    if dtype.is_float() or isinstance(dtype, (nw.Decimal, nw.Int128, nw.UInt128)):
        return CellType.FLOAT
    if dtype.is_integer():
        return CellType.INTEGER
    if isinstance(dtype, nw.Boolean):
        return CellType.BOOLEAN
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        return CellType.CATEGORY
    if isinstance(dtype, nw.Unknown):
        return CellType.EMPTY
    if dtype.is_temporal():
        return CellType.TEMPORAL
    raise refused_type(name, str(dtype))


def cell_type_of_array(name: str, dtype: np.dtype[Any]) -> CellType:
    """The cell type of a NumPy data type that is not ``object``."""
    types = {"f": CellType.FLOAT, "i": CellType.INTEGER, "u": CellType.INTEGER}
    types |= {"b": CellType.BOOLEAN, "U": CellType.CATEGORY, "T": CellType.CATEGORY}
    types |= {"m": CellType.TEMPORAL, "M": CellType.TEMPORAL}
    if dtype.kind not in types:
        raise refused_type(name, str(dtype))
    return types[dtype.kind]


def refused_type(
    name: str,
    dtype: str,
    *,
    temporal: bool = False,
    time_of_day: bool = False,
    cells: bool = False,
) -> SchemaError:
    """The error for a column of a type, or with cells of a type, that cannot be read."""
    if time_of_day:
        advice = (
            "Derive a number (hours since midnight) or a category (morning, evening) from it, or "
            "leave the column out."
        )
    elif temporal:
        advice = (
            "Dates and times are not variables by themselves: choose a unit with "
            f"kinds={{{name!r}: 'days'}}, derive a number (days since an event, hour of the day) "
            "or a category (weekday, season), or leave the column out."
        )
    else:
        advice = "Convert it to numbers, text or Booleans, or leave the column out."
    has = "cells of the type " if cells else "" if temporal else "the type "
    return SchemaError(f"Column {name!r} has {has}{dtype}, which cannot be read. {advice}")


def check_kinds(
    kinds: Mapping[str, AsGiven | str] | None, names: Iterable[str]
) -> dict[str, AsGiven]:
    """The kinds the user gave, as enums; wrong values and unknown names are refused."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise SchemaError(
            f"kinds must map names of columns to kinds; {a_type(kinds)} was given. "
            "Write kinds={'age': Kind.CONTINUOUS}."
        )
    given = {str(as_name(name)): _as_given(kind, name) for name, kind in kinds.items()}
    present = list(names)
    unknown = [name for name in given if name not in set(present)]
    if unknown:
        raise SchemaError(
            f"kinds names {unknown}, which the table does not have. It has: {present[:20]}."
        )
    return given


def _as_given(kind: AsGiven | str, name: str) -> AsGiven:
    if kind in set(TimeUnit):
        return TimeUnit(kind)
    return as_kind(kind, f"column {name!r}")


def as_given(kind: Kind, time_unit: str | None) -> AsGiven:
    """How a schema wants a column to be read."""
    return TimeUnit(time_unit) if time_unit in set(TimeUnit) else kind


def as_kind(kind: AsGiven | str, what: str) -> Kind:
    """A kind from a kind or its name."""
    try:
        return Kind(kind)
    except ValueError:
        raise SchemaError(
            f"The kind of {what} was given as {kind!r}. Use Kind.CONTINUOUS or Kind.DISCRETE, "
            "the strings 'continuous' and 'discrete', or, for dates, a unit such as 'days'."
        ) from None


def check_choice(kinds: object, schema: Schema | None) -> None:
    """Refuse kinds and a schema together."""
    if kinds is not None and schema is not None:
        raise SchemaError("Give kinds or a schema, not both: the schema determines the kinds.")
