"""How a column is read: by its data type, by what the user says, and by its distinct integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.errors import SchemaError
from isthmus.statistics import Kind, Schema

if TYPE_CHECKING:
    import narwhals as nw

FEW = 20
"""Integers with more distinct values than this are read as continuous."""

CODES = 10
"""Integers within a range this wide are read as codes (0/1, a Likert scale) however few rows."""


class CellType(Enum):
    """What the cells of a column are, before it is decided how they are read."""

    FLOAT = "floats"
    INTEGER = "integers"
    BOOLEAN = "Booleans"
    CATEGORY = "text or categories"
    EMPTY = "nothing"


def cell_type_of(name: str, dtype: nw.dtypes.DType) -> CellType:
    """The cell type of a narwhals data type; times and nested types are refused."""
    import narwhals as nw

    if dtype.is_float() or isinstance(dtype, nw.Decimal):
        return CellType.FLOAT
    if dtype.is_integer():
        return CellType.INTEGER
    if isinstance(dtype, nw.Boolean):
        return CellType.BOOLEAN
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        return CellType.CATEGORY
    if isinstance(dtype, nw.Unknown):
        return CellType.EMPTY
    raise refused_type(name, str(dtype), temporal=dtype.is_temporal())


def cell_type_of_array(name: str, dtype: np.dtype[Any]) -> CellType:
    """The cell type of a NumPy data type that is not ``object``."""
    types = {"f": CellType.FLOAT, "i": CellType.INTEGER, "u": CellType.INTEGER}
    types |= {"b": CellType.BOOLEAN, "U": CellType.CATEGORY, "T": CellType.CATEGORY}
    if dtype.kind not in types:
        raise refused_type(name, str(dtype), temporal=dtype.kind in "mM")
    return types[dtype.kind]


def refused_type(name: str, dtype: str, *, temporal: bool) -> SchemaError:
    """The error for a column of a type that cannot be read."""
    if temporal:
        advice = (
            "Dates and times are not variables by themselves: derive a number (days since an "
            "event, hour of the day) or a category (weekday, season), or leave the column out."
        )
    else:
        advice = "Convert it to numbers, text or Booleans, or leave the column out."
    return SchemaError(f"Column {name!r} has the type {dtype}, which cannot be read. {advice}")


def check_kinds(kinds: Mapping[str, Kind | str] | None, names: Iterable[str]) -> dict[str, Kind]:
    """The kinds the user gave, as `Kind`; wrong values and unknown names are refused."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise SchemaError(
            f"kinds must map names of columns to kinds; a {type(kinds).__name__} was given. "
            "Write kinds={'age': Kind.CONTINUOUS}."
        )
    given = {name: as_kind(kind, f"column {name!r}") for name, kind in kinds.items()}
    present = list(names)
    unknown = [name for name in given if name not in set(present)]
    if unknown:
        raise SchemaError(
            f"kinds names {unknown}, which the table does not have. It has: {present[:20]}."
        )
    return given


def as_kind(kind: Kind | str, what: str) -> Kind:
    """A kind from a kind or its name."""
    try:
        return Kind(kind)
    except ValueError:
        raise SchemaError(
            f"The kind of {what} was given as {kind!r}. Use Kind.CONTINUOUS or Kind.DISCRETE, "
            "or the strings 'continuous' and 'discrete'."
        ) from None


def check_choice(kinds: object, schema: Schema | None) -> None:
    """Refuse kinds and a schema together."""
    if kinds is not None and schema is not None:
        raise SchemaError("Give kinds or a schema, not both: the schema determines the kinds.")


def chosen_kind(name: str, cells: CellType, given: Kind | None, *, few: bool) -> Kind:
    """How to read a column.

    Parameters
    ----------
    name
        Name of the column.
    cells
        What its cells are.
    given
        What the user says, or ``None``.
    few
        Whether integers look like categories (see `looks_discrete`).
    """
    if given is Kind.CONTINUOUS and cells is CellType.CATEGORY:
        raise SchemaError(
            f"Column {name!r} holds {cells.value} and cannot be continuous. "
            "Convert it to numbers, or leave it discrete."
        )
    if given is not None:
        return given
    if cells is CellType.FLOAT or (cells is CellType.INTEGER and not few):
        return Kind.CONTINUOUS
    return Kind.DISCRETE


def looks_discrete(distinct: int, low: int, high: int, rows: int) -> bool:
    """Whether integers are read as categories by default.

    There are at most 20 distinct values, and either they repeat (at most one distinct value per two
    rows) or they lie within ten of each other, as codes do. So ages and incomes of 15 people
    are continuous, while their answers on a scale from 1 to 5 are discrete.

    Parameters
    ----------
    distinct
        Number of distinct values.
    low, high
        Smallest and largest value.
    rows
        Number of rows.
    """
    return distinct <= FEW and (2 * distinct <= rows or high - low < CODES)
