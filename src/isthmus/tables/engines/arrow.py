"""Arrow batches into sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus import watch
from isthmus.arrays import Work
from isthmus.statistics import Kind, Level, Moments, Schema, Variable
from isthmus.statistics.base import Positions, refuse_empty, refuse_missing
from isthmus.statistics.rows import MomentsBuilder
from isthmus.statistics.tally import PatternRows, TableCounter
from isthmus.tables.engines.base import CountedTables, unknown_level, usable_methods

_NO_LEVEL = 2**16
"""Stands for an integer between levels that is none."""


def moments_of_batches(schema: Schema, batches: Iterable[Any]) -> Moments:
    """Add up record batches whose columns are the variables of `schema`, in order."""
    builder = MomentsBuilder(schema)
    for batch in batches:
        columns = [
            _column(v, array, builder)
            for v, array in zip(schema.variables, batch.columns, strict=True)
        ]
        builder.update(columns)
        watch.check()
    return builder.finish()


def patterns_of_batches(schema: Schema, batches: Iterable[Any]) -> PatternRows:
    """Sum up record batches of continuous variables by which of their values are missing."""

    def blocks() -> Iterator[NDArray[Any]]:
        for batch in batches:
            yield np.stack([_with_holes(x) for x in batch.columns], axis=1)
            watch.check()

    return PatternRows.of(schema, blocks())


def tables_of_batches(
    schema: Schema, sets: Sequence[Positions], batches: Iterable[Any]
) -> Work[CountedTables]:
    """Count record batches whose columns are the discrete variables of `schema`, in order."""
    counter = TableCounter(schema.cardinalities, sets)
    lookups = [_lookup(v.levels) for v in schema.variables]
    missing = dict.fromkeys(schema.names, 0)
    for batch in batches:
        codes = counter.room(batch.num_rows)
        for i, (v, array) in enumerate(zip(schema.variables, batch.columns, strict=True)):
            missing[v.name] += array.null_count
            codes[i] = _quick_codes(v, array, lookups[i])
        counter.update(codes)
        yield
    refuse_empty(counter.n)
    refuse_missing(missing, counter.n, usable_methods(schema))
    return CountedTables.there(counter.finish())


def _lookup(levels: Sequence[Level]) -> tuple[int, NDArray[np.uint32]] | None:
    """The smallest level, and the code of each integer from there on; None for other levels."""
    whole = [level for level in levels if type(level) is int]
    if len(whole) < len(levels) or max(whole) - min(whole) >= 2**16:
        return None
    low = min(whole)
    table = np.full(max(whole) - low + 1, _NO_LEVEL, np.uint32)
    table[np.array(whole) - low] = np.arange(len(whole))
    return low, table


def _quick_codes(
    variable: Variable, array: Any, lookup: tuple[int, NDArray[np.uint32]] | None
) -> NDArray[Any]:
    """Codes of levels; small integers are looked up in a table, which is several times faster."""
    import pyarrow as pa

    if lookup is None or array.null_count or not pa.types.is_integer(array.type):
        return _codes(variable, array, array.null_count)
    low, table = lookup
    values: NDArray[Any] = array.to_numpy()
    if len(values) == 0:
        return values
    if values.min() < low or values.max() >= low + len(table):
        raise unknown_level(variable.name, variable.levels)
    if low == 0 and np.array_equal(table, np.arange(len(table))):
        return values
    codes = table[values.astype(np.int64, copy=False) - low]
    if codes.max() == _NO_LEVEL:
        raise unknown_level(variable.name, variable.levels)
    return codes


def _with_holes(array: Any) -> NDArray[Any]:
    """Numbers, with NaN for nulls."""
    import pyarrow as pa

    if array.type != pa.float64():
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _column(variable: Variable, array: Any, builder: MomentsBuilder) -> NDArray[Any]:
    import pyarrow as pa

    nulls = array.null_count
    if nulls:
        builder.miss(variable.name, nulls)
    if variable.kind is Kind.CONTINUOUS:
        if array.type != pa.float64():
            array = array.cast(pa.float64(), safe=False)
        # What stands in for a null does not matter: the builder refuses in the end.
        filled = array.fill_null(0.0) if nulls else array
        return np.asarray(filled.to_numpy(zero_copy_only=False))
    return _codes(variable, array, nulls)


def _codes(variable: Variable, array: Any, nulls: int) -> NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    places = pc.index_in(array, value_set=pa.array(variable.levels, type=array.type))
    if places.null_count > nulls:
        raise unknown_level(variable.name, variable.levels)
    filled = places.fill_null(0) if nulls else places
    return np.asarray(filled.to_numpy(zero_copy_only=False))
