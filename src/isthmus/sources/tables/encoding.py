"""From values to codes of levels, and from any eager column to NumPy."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import SchemaError
from isthmus.sources.tables.kinds import (
    FEW,
    CellType,
    cell_type_of,
    cell_type_of_array,
    looks_discrete,
    refused_type,
)
from isthmus.statistics import Level
from isthmus.statistics.schema import MAX_LEVELS, plain_level, sort_levels

if TYPE_CHECKING:
    import narwhals as nw

Values = NDArray[Any]

SPAN = 2**16
"""Integers within a range this wide are coded by looking them up in an array."""


@final
@dataclass(frozen=True)
class Column:
    """One column of a table in memory.

    Attributes
    ----------
    name
        Its name.
    cells
        What its cells are.
    missing
        How many cells are empty (null or NaN).
    values
        The cells; for text and categories of a dataframe, codes into `labels`.
    labels
        The levels that the codes stand for, or ``None``.
    """

    name: str
    cells: CellType
    missing: int
    values: Values
    labels: tuple[Level, ...] | None = None

    def looks_discrete(self, rows: int | None = None) -> bool:
        """Whether an integer column is read as discrete by default.

        Parameters
        ----------
        rows
            Number of rows, where the values are the distinct ones of a longer table.
        """
        if self.cells is not CellType.INTEGER or len(self.values) == 0:
            return False
        rows = len(self.values) if rows is None else rows
        if rows >= 2 * FEW and int(self.values.max()) - int(self.values.min()) < FEW:
            return True
        # Most continuous columns show it early; the others are sorted as a whole.
        if len(np.unique(self.values[:10_000])) > FEW:
            return False
        distinct = np.unique(self.values)
        return looks_discrete(len(distinct), int(distinct[0]), int(distinct[-1]), rows)

    def encode(self, levels: Sequence[Level] | None = None) -> tuple[Values, tuple[Level, ...]]:
        """Codes and levels: those given, or those that occur, sorted."""
        if self.labels is not None:
            places, found = self.values, self.labels
        else:
            places, found = _factorise(self.name, self.values)
        levels = sort_levels(found) if levels is None else tuple(levels)
        lookup = recoding(self.name, found, levels)
        if np.array_equal(lookup, np.arange(len(found))):
            return _narrow(places, len(levels)), levels
        return _narrow(lookup, len(levels))[places], levels


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


def _narrow(codes: Values, levels: int) -> Values:
    return codes.astype(np.uint8 if levels <= 2**8 else np.uint16, copy=False)


def _factorise(name: str, values: Values) -> tuple[Values, tuple[Level, ...]]:
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
    if len(distinct) > MAX_LEVELS:
        raise too_many(name, len(distinct))
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
    offsets = values
    if values.dtype.kind == "u" and (low or values.dtype == np.uint64):
        offsets = (values - np.array(low, dtype=values.dtype)).astype(np.int64)
    elif low:
        # Signed integers are widened first: 100 - (-100) does not fit into 8 bits.
        offsets = values.astype(np.int64) - low
    present = np.flatnonzero(np.bincount(offsets))
    levels = tuple(as_level(int(v) + low) for v in present)
    lookup = np.zeros(high - low + 1, dtype=np.uint16)
    lookup[present] = np.arange(len(present))
    is_full = len(present) == high - low + 1
    places = offsets if is_full else lookup[offsets]
    return places, levels


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


def column_of_array(name: str, given: object) -> Column:
    """Read one column of a dictionary of arrays or of an array."""
    values = np.asarray(given)
    if values.ndim != 1:
        raise SchemaError(
            f"Column {name!r} has {values.ndim} dimensions; a column has one. "
            "Give one array for each column."
        )
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        return Column(name, CellType.EMPTY, int(np.ma.getmaskarray(given).sum()), values)
    if values.dtype.kind == "O":
        return _column_of_objects(name, values)
    cells = cell_type_of_array(name, values.dtype)
    return Column(name, cells, _nans(values), values)


def _nans(values: Values) -> int:
    """Number of NaN cells; the sum tells at once when there are none."""
    if values.dtype.kind != "f":
        return 0
    with np.errstate(all="ignore"):
        clean = bool(np.isfinite(values.sum()))
    return 0 if clean else int(np.isnan(values).sum())


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


_NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal)


def _column_of_objects(name: str, values: Values) -> Column:
    """Read a column of Python objects by what they are."""
    missing = sum(map(_is_missing, values))
    if missing:
        return Column(name, CellType.EMPTY, missing, values)
    types = set(map(type, values))
    if any(issubclass(t, (dt.date, dt.time, dt.timedelta)) for t in types):
        raise refused_type(name, " or ".join(sorted(t.__name__ for t in types)), temporal=True)
    booleans = {t for t in types if issubclass(t, (bool, np.bool_))}
    numbers = {t for t in types if issubclass(t, _NUMBERS)} - booleans
    if booleans and numbers:
        raise SchemaError(
            f"Column {name!r} mixes Booleans with numbers, and True equals 1. "
            "Convert the column to one type, for instance with astype(str) or astype(int)."
        )
    if types and types == booleans:
        return Column(name, CellType.BOOLEAN, 0, values.astype(np.bool_))
    if types and all(issubclass(t, (int, np.integer)) for t in types):
        integers = np.array(values.tolist())
        if integers.dtype.kind in "iu":
            return Column(name, CellType.INTEGER, 0, integers)
    if types and types == numbers:
        return Column(name, CellType.FLOAT, 0, values.astype(np.float64))
    return Column(name, CellType.CATEGORY, 0, values)


def column_of_series(name: str, series: nw.Series[Any]) -> Column:
    """Read one column of a dataframe."""
    import narwhals as nw

    dtype = series.dtype
    if isinstance(dtype, nw.Object):
        return column_of_array(name, series.to_numpy())
    cells = cell_type_of(name, dtype)
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        coded = _column_of_categories(name, series.to_native())
        if coded is not None:
            return coded
    nulls = series.null_count()
    if nulls:
        if cells is CellType.FLOAT:
            nulls += _nans(series.drop_nulls().cast(nw.Float64).to_numpy())
        return Column(name, cells, nulls, np.empty(len(series)))
    if len(series) == 0:
        return Column(name, cells, 0, np.empty(0))
    if cells is CellType.EMPTY:
        raise refused_type(name, str(dtype), temporal=False)
    if cells is CellType.CATEGORY:
        return _column_of_text(name, series)
    if isinstance(dtype, nw.Decimal):
        series = series.cast(nw.Float64)
    values = series.to_numpy()
    return Column(name, cells, _nans(values), values)


def _column_of_text(name: str, series: nw.Series[Any]) -> Column:
    """Code text inside the dataframe library, which is far quicker than over Python objects."""
    import narwhals as nw

    if isinstance(series.dtype, (nw.Categorical, nw.Enum)):
        series = series.cast(nw.String)
    distinct = series.unique().to_list()
    if len(distinct) > MAX_LEVELS:
        raise too_many(name, len(distinct))
    places = series.replace_strict(distinct, list(range(len(distinct))), return_dtype=nw.Int64)
    labels = tuple(plain_level(v, name) for v in distinct)
    return Column(name, CellType.CATEGORY, 0, places.to_numpy(), labels)


def _column_of_categories(name: str, native: Any) -> Column | None:
    """Read categories, which may be numbers, by the codes they have already.

    Returns None for libraries whose categories are always text (Polars).
    """
    array = getattr(native, "array", native)  # the values of a pandas column
    if hasattr(array, "__arrow_array__") and not hasattr(array, "categories"):
        array = array.__arrow_array__()  # pandas with the types of Arrow
    if hasattr(array, "categories"):
        categories, codes = array.categories.tolist(), np.asarray(array.codes)
    elif hasattr(array, "dictionary_encode"):
        encoded = _one_dictionary(array)
        categories = encoded.dictionary.to_pylist()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    else:
        return None
    missing = int(np.count_nonzero(codes < 0))
    if missing or len(codes) == 0:
        return Column(name, CellType.CATEGORY, missing, np.empty(len(codes)))
    present = np.flatnonzero(np.bincount(codes, minlength=len(categories)))
    lookup = np.zeros(len(categories), dtype=np.int64)
    lookup[present] = np.arange(len(present))
    labels = tuple(plain_level(categories[i], name) for i in present)
    refuse_twins(name, labels)
    return Column(name, CellType.CATEGORY, 0, lookup[codes], labels)


def _one_dictionary(array: Any) -> Any:
    """An Arrow dictionary array with one dictionary, in which no value occurs twice."""
    import pyarrow as pa

    # Chunks have dictionaries of their own, whose values may repeat or be null.
    values = array.cast(array.type.value_type).dictionary_encode()
    if isinstance(values, pa.ChunkedArray):
        values = values.unify_dictionaries().combine_chunks()
    return values
