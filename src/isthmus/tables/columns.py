"""From any column of a table in memory to NumPy."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.statistics import Level
from isthmus.statistics.schema import MAX_LEVELS, plain_level, sort_levels
from isthmus.tables.infer_kinds import FEW, NUMBERS, Profile
from isthmus.tables.kinds import CellType, cell_type_of, cell_type_of_array, refused_type
from isthmus.tables.written_numbers import Writing, are_digits, looks_written, not_numbers

if TYPE_CHECKING:
    import narwhals as nw

# --- From values to codes of levels -------------------------------------------------------------

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
    """Codes in one or two bytes, as the number of levels needs; identifiers stay as they are."""
    if levels > 2**16:
        return codes
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


# --- From any column of a table in memory to NumPy ----------------------------------------------

_SAMPLE = 10_000
"""Number of cells to inspect before all cells are inspected."""
LARGEST_EXACT = 2.0**53
"""Beyond this, floats are not exact integers."""


@final
@dataclass(frozen=True)
class TableColumn:
    """One column of a table in memory.

    Attributes
    ----------
    name
        Its name.
    cells
        Type of its cells.
    values
        The cells; for text and categories of a dataframe, codes into `labels`; for dates and times,
        seconds. Cells that are missing hold an arbitrary value.
    labels
        The levels that the codes stand for, or ``None``.
    absent
        Which cells are missing (null or NaN); ``None`` if none is.
    dtype
        How its library calls the type.
    is_text
        Whether the cells are text, and not categories that someone has declared.
    written
        The text of a cell, if the numbers were written as text.
    writing
        How they were written.
    order
        All levels of ordered categories, whether they occur or not; ``()`` for other columns.
    """

    name: str
    cells: CellType
    values: Values
    labels: tuple[Level, ...] | None = None
    absent: NDArray[np.bool_] | None = None
    dtype: str = ""
    is_text: bool = False
    written: str = ""
    writing: Writing | None = None
    order: tuple[Level, ...] = ()

    @property
    def missing(self) -> int:
        """Number of missing cells."""
        return 0 if self.absent is None else int(np.count_nonzero(self.absent))

    @property
    def present(self) -> Values:
        """The cells that are not missing."""
        return self.values if self.absent is None else self.values[~self.absent]

    def take(self, rows: NDArray[np.bool_]) -> TableColumn:
        """Some of the rows, none of which is missing here."""
        values = self.values[rows]
        if self.labels is None:
            return replace(self, values=values, absent=None)
        kept, codes = np.unique(values, return_inverse=True)
        labels = tuple(self.labels[i] for i in kept)
        return replace(self, values=codes.ravel(), labels=labels, absent=None)

    def profile(self, rows: int | None = None) -> Profile:
        """Properties of the column that determine how it is read.

        Parameters
        ----------
        rows
            Number of rows, where the values are the distinct ones of a longer table.
        """
        present = self.present
        total = len(self.values) if rows is None else rows
        values = len(present) if rows is None else rows
        known = Profile(self.cells, self.dtype, total, values)
        if not len(present):
            return replace(known, values=0)
        if self.cells is CellType.ORDERED:
            return replace(known, distinct=len(self.order))
        if self.cells is CellType.CATEGORY:
            distinct, texts = self._levels_and_texts(present)
            words = sum(t.count(" ") for t in texts) / max(len(texts), 1)
            known = replace(known, distinct=distinct, words=words)
            strangers = self._words_among_numbers(present)
            if strangers:
                return replace(known, written="numbers", strangers=strangers)
            hardly_repeat = 2 * distinct > values and are_digits(texts)  # identifiers
            if not self.is_text or distinct < NUMBERS or hardly_repeat:
                return known
            written, examples = looks_written(sorted(texts))
            known = replace(known, written=written, examples=examples)
            return known if written != "numbers" else self._with_odd_cells(known, present, rows)
        if self.cells in (CellType.INTEGER, CellType.FLOAT):
            return _with_numbers(known, present, is_all=rows is None)
        return known

    def _with_odd_cells(self, known: Profile, present: Values, rows: int | None) -> Profile:
        """Add the cells that prevent text from being read as numbers, if most cells are numbers."""
        cells: list[Any] = present.tolist()
        if self.labels is not None:
            cells = [self.labels[code] for code in cells]
        times = Counter(str(cell) for cell in cells)
        odd = not_numbers(times)
        if 2 * len(odd) >= len(times):
            return known
        odd.sort(key=lambda text: (-times[text], text))
        count = sum(times[text] for text in odd) if rows is None else 0
        return replace(known, odd=tuple(odd), odd_cells=count)

    def _words_among_numbers(self, present: Values) -> tuple[str, ...]:
        """The different texts among cells most of which are floats; none for other columns."""
        if self.is_text or self.labels is not None or present.dtype.kind != "O":
            return ()
        words = [cell for cell in present.tolist() if isinstance(cell, str)]
        floats = sum(isinstance(cell, (float, np.floating)) for cell in present.tolist())
        mostly = floats + len(words) == len(present) and floats > len(words)
        return tuple(sorted(set(words))) if mostly else ()

    def _levels_and_texts(self, present: Values) -> tuple[int, list[str]]:
        if self.labels is not None:
            kept = len(self.labels) if self.absent is None else len(np.unique(present))
            sample: Sequence[object] = self.labels
        else:
            try:
                sample = list(dict.fromkeys(present.tolist()))
            except TypeError:
                held = " or ".join(sorted({type(cell).__name__ for cell in present.tolist()}))
                raise refused_type(self.name, held, cells=True) from None
            kept = len(sample)
        return kept, [text for text in sample[:_SAMPLE] if isinstance(text, str)]

    def only(self, levels: Sequence[Level]) -> TableColumn:
        """Return the column with all cells as missing that are none of these levels."""
        if self.labels is not None:
            places, occurring = self.values, self.labels
        else:
            places, occurring = factorise(self.name, self.whole_values)
        position = {level: i for i, level in enumerate(levels)}
        lookup = np.array([position.get(v, -1) for v in occurring], dtype=np.int64)
        if (lookup >= 0).all():
            return self
        codes = lookup[places]
        absent = codes < 0 if self.absent is None else self.absent | (codes < 0)
        return replace(self, values=np.maximum(codes, 0), labels=tuple(levels), absent=absent)

    def encode(self, levels: Sequence[Level] | None = None) -> tuple[Values, tuple[Level, ...]]:
        """Codes and levels: those given, or those that occur, sorted."""
        if self.labels is not None:
            places, found = self.values, self.labels
        else:
            places, found = factorise(self.name, self.whole_values)
        levels = sort_levels(found) if levels is None else tuple(levels)
        if len(levels) > MAX_LEVELS:
            raise too_many(self.name, len(levels))
        lookup = recoding(self.name, found, levels)
        if np.array_equal(lookup, np.arange(len(found))):
            return narrow(places, len(levels)), levels
        return narrow(lookup, len(levels))[places], levels

    @property
    def numbers(self) -> Values:
        """The cells as numbers: ordered categories by their position, Booleans as 0 and 1."""
        if self.cells is CellType.BOOLEAN:
            return self.values.astype(np.uint8)
        if self.cells is not CellType.ORDERED:
            return self.values
        assert self.labels is not None
        position = {level: place for place, level in enumerate(self.order)}
        return np.array([position[level] for level in self.labels], dtype=np.int64)[self.values]

    @property
    def whole_values(self) -> Values:
        """The cells, as integers if they are whole numbers stored as floats."""
        if self.cells is not CellType.FLOAT or not _are_whole(self.values):
            return self.values
        return self.values.astype(np.int64)


def _are_whole(values: Values) -> bool:
    """Whether floats are whole numbers that fit into an integer; the first ones mostly tell."""
    for part in (values[:_SAMPLE], values):
        with np.errstate(invalid="ignore"):
            if not bool(((part == np.floor(part)) & (np.abs(part) <= LARGEST_EXACT)).all()):
                return False
    return True


def _with_numbers(known: Profile, values: Values, *, is_all: bool) -> Profile:
    """Add what tells codes and identifiers from measurements, and count only what is needed."""
    if known.cells is CellType.FLOAT and not _are_whole(values):
        return known
    low, high = int(values.min()), int(values.max())
    distinct = len(np.unique(values[:_SAMPLE]))
    known = replace(known, whole=True, low=low, high=high, distinct=distinct)
    repeats = is_all and distinct < min(len(values), _SAMPLE)
    if len(values) <= _SAMPLE or (repeats and distinct > FEW):
        return known
    if high - low < SPAN:
        occurring = np.flatnonzero(np.bincount(offsets_from(values, low)))
        return replace(known, distinct=len(occurring))
    return replace(known, distinct=len(np.unique(values)))


def column_of_array(name: str, given: object) -> TableColumn:
    """Read one column of a dictionary of arrays or of an array."""
    try:
        values = np.asarray(given)
    except ValueError:  # lists of different lengths
        raise refused_type(name, "list", cells=True) from None
    if values.ndim != 1:
        raise SchemaError(
            f"Column {name!r} has {values.ndim} dimensions; a column has one. "
            "Give one array for each column."
        )
    dtype = str(values.dtype)
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        absent = np.ma.getmaskarray(given) | _nans(values, values.dtype)
        return _scattered(column_of_array(name, values[~absent]), absent)
    if values.dtype.kind == "O":
        absent = np.fromiter(map(is_missing, values), dtype=np.bool_, count=len(values))
        if absent.any():
            return _scattered(_column_of_objects(name, values[~absent]), absent)
        return _column_of_objects(name, values)
    cells = cell_type_of_array(name, values.dtype)
    absent = _nans(values, values.dtype)
    if cells is CellType.TEMPORAL:
        values = _seconds(values)
    is_text = cells is CellType.CATEGORY
    return TableColumn(name, cells, values, None, absent if absent.any() else None, dtype, is_text)


def _nans(values: Values, dtype: np.dtype[Any]) -> NDArray[np.bool_]:
    """Which cells are NaN or NaT; the sum tells at once when there are none."""
    if dtype.kind in "mM":
        return np.isnat(values)
    if dtype.kind != "f":
        return np.zeros(len(values), dtype=np.bool_)
    with np.errstate(all="ignore"):
        clean = bool(np.isfinite(values.sum()))
    return np.zeros(len(values), dtype=np.bool_) if clean else np.isnan(values)


def _seconds(values: Values) -> Values:
    """Dates as seconds since 1970, durations as seconds."""
    to = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
    seconds: Values = values.astype(to).astype(np.int64) / 1e6
    return seconds


def _scattered(part: TableColumn, absent: NDArray[np.bool_]) -> TableColumn:
    """The column of which `part` are the cells that are there."""
    if not len(part.values):
        return TableColumn(
            part.name, CellType.EMPTY, np.zeros(len(absent)), None, absent, part.dtype
        )
    values = np.empty(len(absent), dtype=part.values.dtype)
    values[absent] = part.values[0]
    values[~absent] = part.values
    inner = absent
    if part.absent is not None:  # NaN among what is not null
        inner = absent.copy()
        inner[~absent] = part.absent
    return replace(part, values=values, absent=inner)


def is_missing(value: object) -> bool:
    """Return whether a cell of a column of objects is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


_NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal, fractions.Fraction)


def _column_of_objects(name: str, values: Values) -> TableColumn:
    """Read a column of Python objects, none of which is missing, by what they are."""
    types = set(map(type, values))
    names = " or ".join(sorted(t.__name__ for t in types))
    is_duration = all(issubclass(t, dt.timedelta) for t in types)
    if types and (is_duration or all(issubclass(t, dt.date) for t in types)):
        try:
            seconds = _seconds(
                values.astype("timedelta64[us]" if is_duration else "datetime64[us]")
            )
        except (TypeError, ValueError):
            raise refused_type(name, names, temporal=True, cells=True) from None
        return TableColumn(name, CellType.TEMPORAL, seconds, None, None, names)
    if any(issubclass(t, (dt.date, dt.time, dt.timedelta)) for t in types):
        time_of_day = all(issubclass(t, dt.time) for t in types)
        raise refused_type(name, names, temporal=True, time_of_day=time_of_day, cells=True)
    booleans = {t for t in types if issubclass(t, (bool, np.bool_))}
    numbers = {t for t in types if issubclass(t, _NUMBERS)} - booleans
    if booleans and numbers:
        raise SchemaError(
            f"Column {name!r} mixes Booleans with numbers, and True equals 1. "
            "Convert the column to one type, for instance with astype(str) or astype(int)."
        )
    if types and types == booleans:
        return TableColumn(name, CellType.BOOLEAN, values.astype(np.bool_))
    if types and all(issubclass(t, (int, np.integer)) for t in types):
        integers = np.array(values.tolist())
        if integers.dtype.kind in "iu":
            return TableColumn(name, CellType.INTEGER, integers)
    if types and types == numbers:
        return TableColumn(name, CellType.FLOAT, _as_floats(name, values))
    is_text = all(issubclass(t, str) for t in types)
    return TableColumn(name, CellType.CATEGORY, values, is_text=is_text)


def _as_floats(name: str, values: Values) -> Values:
    """Python's numbers in double precision, which must not make different numbers equal."""
    try:
        floats: Values = values.astype(np.float64)
    except OverflowError:
        raise DataError(
            f"Column {name!r} has integers beyond the range of double precision, about 1.8e308. "
            "Divide them or take their logarithm; if they are names, convert the column to text."
        ) from None
    if _is_merged(floats) and any(value != values[0] for value in values):
        raise _too_close(name)
    return floats


def _is_merged(floats: Values) -> bool:
    """Whether numbers are all equal in double precision."""
    return len(floats) > 0 and bool((floats == floats[0]).all())


def _too_close(name: str) -> DataError:
    return DataError(
        f"Column {name!r} has different numbers near which double precision has only one: it holds "
        "about 16 digits. Subtract an offset, such as the smallest value; if the numbers are "
        "names, convert the column to text."
    )


def column_of_series(name: str, series: nw.Series[Any]) -> TableColumn:
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
    if series.null_count():
        absent = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
        return _scattered(column_of_series(name, series.drop_nulls()), absent)
    if len(series) == 0:
        return TableColumn(name, cells, np.empty(0))
    if cells is CellType.EMPTY:
        kind = str(getattr(series.to_native(), "dtype", dtype))
        if kind.startswith("Sparse"):  # pandas
            return column_of_array(name, series.to_numpy())
        raise refused_type(name, kind)
    if cells is CellType.TEMPORAL:
        return _column_of_times(name, series)
    if cells is CellType.CATEGORY:
        return _column_of_text(name, series)
    if isinstance(dtype, (nw.Decimal, nw.Int128, nw.UInt128)):
        values = series.cast(nw.Float64).to_numpy()
        if _is_merged(values) and series.n_unique() > 1:
            raise _too_close(name)
    else:
        values = series.to_numpy()
    absent = _nans(values, values.dtype)
    return TableColumn(name, cells, values, None, absent if absent.any() else None)


def _column_of_times(name: str, series: nw.Series[Any]) -> TableColumn:
    """Read dates and times as seconds since 1970, and durations as seconds."""
    import narwhals as nw

    dtype = series.dtype
    if isinstance(dtype, nw.Duration):
        micro = series.dt.total_microseconds()
    elif isinstance(dtype, (nw.Date, nw.Datetime)):
        micro = series.dt.timestamp("us")
    else:
        raise refused_type(name, str(dtype), time_of_day=True)
    values = np.asarray(micro.to_numpy(), dtype=np.float64) / 1e6
    return TableColumn(name, CellType.TEMPORAL, values, None, None, str(dtype))


def _column_of_text(name: str, series: nw.Series[Any]) -> TableColumn:
    """Code text inside the dataframe library, which is far quicker than over Python objects."""
    import narwhals as nw

    is_text = not isinstance(series.dtype, (nw.Categorical, nw.Enum))
    if not is_text:
        series = series.cast(nw.String)
    distinct = series.unique().to_list()
    type_of_codes = nw.UInt8 if len(distinct) <= 2**8 else nw.Int64
    places = series.replace_strict(distinct, list(range(len(distinct))), return_dtype=type_of_codes)
    labels = tuple(plain_level(v, name) for v in distinct)
    codes = narrow(places.to_numpy(), len(distinct))
    return TableColumn(name, CellType.CATEGORY, codes, labels, is_text=is_text)


def _column_of_categories(name: str, native: Any) -> TableColumn | None:
    """Read categories, which may be numbers, by the codes they have already.

    Returns None if they have no codes.
    """
    array = getattr(native, "array", native)  # the values of a pandas column
    if hasattr(array, "__arrow_array__") and not hasattr(array, "categories"):
        array = array.__arrow_array__()  # pandas with the types of Arrow
    order: list[Any] = []
    categories: list[Any] | dict[int, Any]
    if hasattr(array, "categories"):
        # Categories may be anything, such as the intervals of pandas.cut.
        categories = [
            c if isinstance(c, (str, int, float, np.generic)) else str(c)
            for c in array.categories.tolist()
        ]
        codes = np.asarray(array.codes)
        order = [*categories] if array.ordered else []
    elif hasattr(array, "dictionary_encode"):
        codes, categories = _one_dictionary(array)
        order = _order_of(array)
    elif hasattr(array, "to_physical") and not array.null_count():  # Polars
        physical = array.to_physical()
        rows = physical.arg_unique()
        categories = dict(zip(physical.gather(rows), array.gather(rows).to_list(), strict=True))
        codes = physical.to_numpy()
    else:
        return None
    absent = codes < 0
    if absent.all():
        return TableColumn(name, CellType.EMPTY, np.zeros(len(codes)), None, absent)
    some_absent = bool(absent.any())
    present = _occurring(codes[~absent] if some_absent else codes)
    lookup = narrow(np.zeros(int(present[-1]) + 1, dtype=np.int64), len(present))
    lookup[present] = np.arange(len(present))
    labels = tuple(plain_level(categories[i], name) for i in present.tolist())
    refuse_twins(name, labels)
    values = lookup[np.where(absent, 0, codes) if some_absent else codes]
    levels = tuple(plain_level(level, name) for level in order)
    cells = CellType.ORDERED if levels else CellType.CATEGORY
    return TableColumn(name, cells, values, labels, absent if some_absent else None, order=levels)


def _occurring(codes: Values) -> NDArray[np.intp]:
    """Return which codes occur; a part at a time, since NumPy counts copies of eight bytes."""
    occurs = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    step = max(SPAN, len(occurs))
    for start in range(0, len(codes), step):
        occurs |= np.bincount(codes[start : start + step], minlength=len(occurs)) > 0
    return np.flatnonzero(occurs)


def _order_of(array: Any) -> list[Any]:
    """The levels of an ordered Arrow dictionary; none if its chunks order them differently."""
    if not array.type.ordered:
        return []
    chunks = getattr(array, "chunks", [array])
    orders = [chunk.dictionary.drop_null().to_pylist() for chunk in chunks]
    return orders[0] if orders and all(own == orders[0] for own in orders) else []


def _one_dictionary(array: Any) -> tuple[Values, list[Any]]:
    """Codes of an Arrow dictionary array into values of which none occurs twice; -1 for null."""
    import pyarrow as pa

    own = array.type.value_type
    if not (pa.types.is_string(own) or pa.types.is_large_string(own) or pa.types.is_integer(own)):
        # Not every other value can be looked up: NaN is not equal to itself.
        array = array.cast(own).dictionary_encode()
        if isinstance(array, pa.ChunkedArray):
            array = array.unify_dictionaries().combine_chunks()
    # Chunks have dictionaries of their own, whose values may repeat or be null. Decoding them
    # would take many times the memory.
    place: dict[Any, int] = {}
    parts: list[Values] = [np.empty(0, np.int8)]
    for chunk in getattr(array, "chunks", [array]):
        values = chunk.dictionary.to_pylist()
        places = [-1 if v is None else place.setdefault(v, len(place)) for v in values]
        lookup = np.array([*places, -1], np.int8 if len(place) < 2**7 else np.int64)
        indices = chunk.indices
        codes = lookup[indices.fill_null(0).to_numpy(zero_copy_only=False)]
        if indices.null_count:
            codes[indices.is_null().to_numpy(zero_copy_only=False)] = -1
        parts.append(codes)
    return np.concatenate(parts), list(place)
