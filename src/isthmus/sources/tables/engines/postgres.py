"""PostgreSQL with very many columns or missing values: a binary COPY streams rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.sources.tables.engines.base import (
    Computed,
    SummedPatterns,
    batch_rows,
    rows_streamed,
    unknown_level,
)
from isthmus.sources.tables.engines.sql import Writer
from isthmus.statistics import Kind, MomentsBuilder, Schema, Variable
from isthmus.statistics.patterns import PatternRows

PREFIX, SUFFIX = 19, 2
"""Bytes before the first row and after the last one of a binary COPY without extensions."""


def moments_by_copy(backend: Any, table: Any, schema: Schema, columns: Sequence[str]) -> Computed:
    """Stream all cells as doubles: every row then has the same number of bytes."""
    builder = MomentsBuilder(schema)
    for rows in _streamed(backend, table, schema, columns):
        builder.update([_checked(v, rows[:, i]) for i, v in enumerate(schema.variables)])
    moments = builder.finish()
    return Computed(moments, rows_streamed(moments.n, len(schema)), moments.n * len(schema))


def patterns_by_copy(
    backend: Any, table: Any, schema: Schema, columns: Sequence[str]
) -> SummedPatterns:
    """Stream all cells as doubles, and sum them up by which of them are missing."""
    blocks = _streamed(backend, table, schema, columns)
    return SummedPatterns.streamed(PatternRows.of(schema, blocks))


def _streamed(
    backend: Any, table: Any, schema: Schema, columns: Sequence[str]
) -> Iterator[NDArray[np.float64]]:
    writer = Writer(backend, table, dict(zip(schema.names, columns, strict=True)))
    cells = [_cell(writer, v) for v in schema.variables]
    query = f"COPY (SELECT {', '.join(cells)} FROM ({backend.compile(table)}) AS isthmus_rows) "
    query += "TO STDOUT (FORMAT BINARY)"
    with backend.con.cursor() as cursor, cursor.copy(query) as copy:
        yield from _blocks(copy, len(schema))


def _cell(writer: Writer, variable: Variable) -> str:
    """A double: NaN for null, minus one for a value that is not a level."""
    name = writer.column(variable.name)
    if variable.kind is Kind.CONTINUOUS:
        text = name
    else:
        cases = " ".join(
            f"WHEN {name} = {writer.value(level)} THEN {i}"
            for i, level in enumerate(variable.levels)
        )
        text = f"CASE WHEN {name} IS NULL THEN NULL {cases} ELSE -1 END"
    return f"COALESCE({writer.real(text)}, 'NaN')"


def _blocks(copy: Any, columns: int) -> Iterator[NDArray[np.float64]]:
    row = np.dtype([("fields", ">i2"), ("cells", [("size", ">i4"), ("value", ">f8")], (columns,))])
    held = bytearray()
    skip = PREFIX
    wanted = batch_rows(columns) * row.itemsize
    for chunk in copy:
        held += chunk
        if skip and len(held) >= skip:
            del held[:skip]
            skip = 0
        if not skip and len(held) >= wanted + SUFFIX:
            yield _parsed(held[:wanted], row)
            del held[:wanted]
    yield _parsed(held[: len(held) - len(held) % row.itemsize], row)


def _parsed(data: bytearray, row: np.dtype[Any]) -> NDArray[np.float64]:
    cells = np.frombuffer(bytes(data), dtype=row)["cells"]["value"]
    return np.ascontiguousarray(cells, dtype=np.float64)


def _checked(variable: Variable, values: NDArray[np.float64]) -> NDArray[np.float64]:
    if variable.kind is Kind.DISCRETE and len(values) and np.nanmin(values, initial=0.0) < 0:
        raise unknown_level(variable.name, variable.levels)
    return values
