"""Arrow batches into sums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.sources.tables.engines.base import unknown_level
from isthmus.statistics import Kind, Moments, MomentsBuilder, Schema, Variable
from isthmus.statistics.patterns import PatternRows


def moments_of_batches(schema: Schema, batches: Iterable[Any]) -> Moments:
    """Add up record batches whose columns are the variables of `schema`, in order."""
    builder = MomentsBuilder(schema)
    for batch in batches:
        columns = [
            _column(v, array, builder)
            for v, array in zip(schema.variables, batch.columns, strict=True)
        ]
        builder.update(columns)
    return builder.finish()


def patterns_of_batches(schema: Schema, batches: Iterable[Any]) -> PatternRows:
    """Sum up record batches of continuous variables by which of their values are missing."""
    return PatternRows.of(
        schema, (np.stack([_with_holes(x) for x in batch.columns], axis=1) for batch in batches)
    )


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
