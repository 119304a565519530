"""How a column is read: from its type, from what the user says, and from few distinct integers."""

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
"""Integers with at most this many distinct values are read as discrete."""


class Shape(Enum):
    """What the cells of a column are, before it is decided how they are read."""

    REAL = "floats"
    WHOLE = "integers"
    TRUTH = "booleans"
    NAMED = "text or categories"
    EMPTY = "nothing"


def shape_of(name: str, dtype: nw.dtypes.DType) -> Shape:
    """The shape of a narwhals data type; times and nested types are refused."""
    import narwhals as nw

    if dtype.is_float() or isinstance(dtype, nw.Decimal):
        return Shape.REAL
    if dtype.is_integer():
        return Shape.WHOLE
    if isinstance(dtype, nw.Boolean):
        return Shape.TRUTH
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        return Shape.NAMED
    if isinstance(dtype, nw.Unknown):
        return Shape.EMPTY
    raise refused_type(name, str(dtype), temporal=dtype.is_temporal())


def shape_of_array(name: str, dtype: np.dtype[Any]) -> Shape:
    """The shape of a NumPy data type that is not ``object``."""
    found = {"f": Shape.REAL, "i": Shape.WHOLE, "u": Shape.WHOLE, "b": Shape.TRUTH}
    found |= {"U": Shape.NAMED, "T": Shape.NAMED}
    if dtype.kind not in found:
        raise refused_type(name, str(dtype), temporal=dtype.kind in "mM")
    return found[dtype.kind]


def refused_type(name: str, dtype: str, *, temporal: bool) -> SchemaError:
    """The error for a column of a type that cannot be read."""
    if temporal:
        advice = (
            "Times are not variables by themselves: take what matters, as a number (days since an "
            "event, hour of the day) or as a category (weekday, season), or leave the column out."
        )
    else:
        advice = "Convert it to numbers, text or booleans, or leave the column out."
    return SchemaError(f"Column {name!r} has the type {dtype}, which cannot be read. {advice}")


def check_kinds(kinds: Mapping[str, Kind] | None, names: Iterable[str]) -> dict[str, Kind]:
    """The kinds the user gave, with unknown names refused."""
    given = {name: Kind(kind) for name, kind in (kinds or {}).items()}
    present = list(names)
    unknown = [name for name in given if name not in set(present)]
    if unknown:
        raise SchemaError(
            f"kinds names {unknown}, which the table does not have. It has: {present[:20]}."
        )
    return given


def check_choice(kinds: Mapping[str, Kind] | None, schema: Schema | None) -> None:
    """Refuse two answers to one question."""
    if kinds is not None and schema is not None:
        raise SchemaError("Give kinds or a schema, not both: the schema says the kinds.")


def chosen_kind(name: str, shape: Shape, given: Kind | None, *, few: bool) -> Kind:
    """How to read a column.

    Parameters
    ----------
    name
        Name of the column.
    shape
        What its cells are.
    given
        What the user says, or ``None``.
    few
        Whether it has few distinct values; matters for integers only.
    """
    if given is Kind.CONTINUOUS and shape is Shape.NAMED:
        raise SchemaError(
            f"Column {name!r} holds {shape.value} and cannot be continuous. "
            "Convert it to numbers, or leave it discrete."
        )
    if given is not None:
        return given
    if shape is Shape.REAL or (shape is Shape.WHOLE and not few):
        return Kind.CONTINUOUS
    return Kind.DISCRETE
