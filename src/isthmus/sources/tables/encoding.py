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
from isthmus.sources.tables.kinds import FEW, Shape, refused_type, shape_of, shape_of_array
from isthmus.statistics import Level
from isthmus.statistics.schema import MAX_LEVELS, plain_level, sort_levels

if TYPE_CHECKING:
    import narwhals as nw

Values = NDArray[Any]

SPAN = 2**16
"""Integers within such a range are coded by looking them up in an array."""


@final
@dataclass(frozen=True)
class Column:
    """One column of a table in memory.

    Attributes
    ----------
    name
        Its name.
    shape
        What its cells are.
    missing
        How many cells are empty (null or NaN).
    values
        The cells; for text of a dataframe, codes into `labels`.
    labels
        The text the codes stand for, or ``None``.
    """

    name: str
    shape: Shape
    missing: int
    values: Values
    labels: tuple[Level, ...] | None = None

    def few(self) -> bool:
        """Whether an integer column has few distinct values."""
        if self.shape is not Shape.WHOLE or len(self.values) == 0:
            return False
        low, high = int(self.values.min()), int(self.values.max())
        if high - low < FEW:
            return True
        # Most continuous columns show it early; the rest pays for a full look.
        if len(np.unique(self.values[:10_000])) > FEW:
            return False
        return len(np.unique(self.values)) <= FEW

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
    if low or values.dtype == np.uint64:
        values = (values - np.array(low, dtype=values.dtype)).astype(np.int64)
    offsets = values
    seen = np.flatnonzero(np.bincount(offsets))
    plain = tuple(as_level(int(v) + low) for v in seen)
    lookup = np.zeros(high - low + 1, dtype=np.uint16)
    lookup[seen] = np.arange(len(seen))
    is_full = len(seen) == high - low + 1
    places = offsets if is_full else lookup[offsets]
    return places, plain


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
        return Column(name, Shape.EMPTY, int(np.ma.getmaskarray(given).sum()), values)
    if values.dtype.kind == "O":
        return _column_of_objects(name, values)
    shape = shape_of_array(name, values.dtype)
    return Column(name, shape, _nans(values), values)


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


def _column_of_objects(name: str, values: Values) -> Column:
    """Read a column of Python objects by what they are."""
    missing = sum(map(_is_missing, values))
    if missing:
        return Column(name, Shape.EMPTY, missing, values)
    kinds = set(map(type, values))
    if any(issubclass(k, (dt.date, dt.time, dt.timedelta)) for k in kinds):
        raise refused_type(name, " or ".join(sorted(k.__name__ for k in kinds)), temporal=True)
    if kinds and all(issubclass(k, (bool, np.bool_)) for k in kinds):
        return Column(name, Shape.TRUTH, 0, values.astype(np.bool_))
    if kinds and all(issubclass(k, (int, np.integer)) for k in kinds):
        whole = np.array(values.tolist())
        if whole.dtype.kind in "iu":
            return Column(name, Shape.WHOLE, 0, whole)
    numbers = (int, float, np.integer, np.floating, decimal.Decimal)
    if kinds and all(issubclass(k, numbers) for k in kinds):
        return Column(name, Shape.REAL, 0, values.astype(np.float64))
    return Column(name, Shape.NAMED, 0, values)


def column_of_series(name: str, series: nw.Series[Any]) -> Column:
    """Read one column of a dataframe."""
    import narwhals as nw

    dtype = series.dtype
    if isinstance(dtype, nw.Object):
        return column_of_array(name, series.to_numpy())
    shape = shape_of(name, dtype)
    if isinstance(dtype, nw.Categorical) and series.implementation.is_pandas_like():
        return _column_of_categories(name, series.to_native())
    nulls = series.null_count()
    if nulls:
        if shape is Shape.REAL:
            nulls += _nans(series.drop_nulls().cast(nw.Float64).to_numpy())
        return Column(name, shape, nulls, np.empty(len(series)))
    if len(series) == 0:
        return Column(name, shape, 0, np.empty(0))
    if shape is Shape.EMPTY:
        raise refused_type(name, str(dtype), temporal=False)
    if shape is Shape.NAMED:
        return _column_of_text(name, series)
    if isinstance(dtype, nw.Decimal):
        series = series.cast(nw.Float64)
    values = series.to_numpy()
    return Column(name, shape, _nans(values), values)


def _column_of_text(name: str, series: nw.Series[Any]) -> Column:
    """Code text inside the dataframe library, which is far quicker than over Python objects."""
    import narwhals as nw

    if isinstance(series.dtype, (nw.Categorical, nw.Enum)):
        if series.implementation.is_pandas_like():
            return _column_of_categories(name, series.to_native())
        series = series.cast(nw.String)
    distinct = series.unique().to_list()
    if len(distinct) > MAX_LEVELS:
        raise too_many(name, len(distinct))
    places = series.replace_strict(distinct, list(range(len(distinct))), return_dtype=nw.Int64)
    labels = tuple(plain_level(v, name) for v in distinct)
    return Column(name, Shape.NAMED, 0, places.to_numpy(), labels)


def _column_of_categories(name: str, native: Any) -> Column:
    """Read a pandas column of categories, which may be numbers, by the codes it has already."""
    held = native.array.categories.tolist()
    codes = np.asarray(native.array.codes)
    missing = int(np.count_nonzero(codes < 0))
    if missing or len(codes) == 0:
        return Column(name, Shape.NAMED, missing, np.empty(len(codes)))
    seen = np.flatnonzero(np.bincount(codes, minlength=len(held)))
    lookup = np.zeros(len(held), dtype=np.int64)
    lookup[seen] = np.arange(len(seen))
    labels = tuple(plain_level(held[i], name) for i in seen)
    return Column(name, Shape.NAMED, 0, lookup[codes], labels)
