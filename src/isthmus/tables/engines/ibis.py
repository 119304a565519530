"""Ibis tables: DuckDB streams in this process, other databases add up in SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.statistics import Kind, Schema, Variable
from isthmus.statistics.rows import MomentsBuilder
from isthmus.statistics.tally import PatternRows
from isthmus.tables.engines.arrow import moments_of_batches, patterns_of_batches
from isthmus.tables.engines.base import (
    Computed,
    Engine,
    SummedPatterns,
    batch_rows,
    plain_names,
    profiles_from,
    rows_streamed,
    unknown_level,
)
from isthmus.tables.engines.duckdb import DuckDBEngine
from isthmus.tables.engines.sql import (
    CHUNK,
    Writer,
    expressions,
    is_nan,
    patterns_by_sql,
    sums_by_sql,
)
from isthmus.tables.infer_kinds import Profile
from isthmus.tables.kinds import CellType

QUERIES = 4
"""With more scans of the table than this, streaming its rows is faster."""

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


@final
@dataclass(frozen=True)
class IbisEngine(Engine):
    """An Ibis table.

    Attributes
    ----------
    table
        The table.
    stream_rows
        Whether a database other than DuckDB may send its rows where that is faster.
    """

    table: Any
    stream_rows: bool = False

    @classmethod
    def renamed(cls, table: Any, names: Sequence[str]) -> IbisEngine:
        """Make the adapter of a table."""
        plain = plain_names(names)
        return cls(table.select(**{c: table[n] for c, n in zip(plain, names, strict=True)}))

    @property
    def site(self) -> str:
        return f"Ibis ({self.table.get_backend().name})"

    def profile(
        self, columns: Mapping[str, CellType], counted: Collection[str], rows: int | None
    ) -> dict[str, Profile]:
        """Return the properties of columns; not by narwhals, whose query PostgreSQL refuses."""
        import ibis

        head = self.table if rows is None else self.table.limit(rows)

        def ask(part: Mapping[str, CellType]) -> dict[str, Any]:
            wanted = {"rows": head.count()}
            for c, cells in part.items():
                column = head[c]
                if cells is CellType.FLOAT:
                    column = column.cast("float64")
                    # Ibis rounds to integers, which NaN and large numbers are not.
                    fractions = ibis.cases(
                        (is_nan(column), False),
                        (column.abs() <= 2.0**53, column != column.round()),
                        else_=True,
                    )
                    wanted[f"{c}_fractions"] = fractions.sum()
                wanted[f"{c}_values"] = column.count()
                if c in counted:
                    wanted[f"{c}_distinct"] = column.nunique()
                if cells in (CellType.INTEGER, CellType.FLOAT):
                    wanted |= {f"{c}_low": column.min(), f"{c}_high": column.max()}
                elif cells is CellType.CATEGORY:
                    spaces = column.length() - column.replace(" ", "").length()
                    wanted[f"{c}_spaces"] = spaces.sum()
            answer = head.aggregate(**wanted).to_pyarrow()
            return {name: answer[name][0].as_py() for name in answer.column_names}

        return profiles_from(columns, counted, ask)

    def of_table(self, table: Any) -> IbisEngine:
        return replace(self, table=table)

    def with_times(self, scales: Mapping[str, float]) -> IbisEngine:
        numbers = {
            c: self.table[c].cast("timestamp").epoch_seconds().cast("float64") / scale
            for c, scale in scales.items()
        }
        return replace(self, table=self.table.mutate(**numbers))

    def moments(self, schema: Schema, columns: Sequence[str]) -> Computed:
        """Choose the method that is fastest for the database behind the table."""
        backend = self.table.get_backend()
        continuous = [
            c for v, c in zip(schema.variables, columns, strict=True) if v.kind is Kind.CONTINUOUS
        ]
        table = _numbers(self.table.select(*columns), continuous)
        if backend.name == "duckdb":
            return DuckDBEngine(_relation(backend, table)).moments(schema, columns)
        if not self.stream_rows or expressions(schema) <= QUERIES * CHUNK:
            return sums_by_sql(backend, table, schema, columns)
        if backend.name == "postgres":
            return moments_by_copy(backend, table, schema, columns)
        moments = moments_of_batches(schema, _batches(table, continuous))
        what = rows_streamed(moments.n, len(schema))
        return Computed(moments, what, moments.n * len(schema))

    def patterns(self, schema: Schema, columns: Sequence[str]) -> SummedPatterns:
        """Sum up by queries that group by which values are missing, or stream the columns."""
        backend = self.table.get_backend()
        table = _numbers(self.table.select(*columns), columns)
        if backend.name == "duckdb":
            return DuckDBEngine(_relation(backend, table)).patterns(schema, columns)
        if not self.stream_rows:
            return patterns_by_sql(backend, _with_nulls(table, columns), schema, columns)
        if backend.name == "postgres":
            return patterns_by_copy(backend, table, schema, columns)
        return SummedPatterns.streamed(patterns_of_batches(schema, _batches(table, columns)))

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of Arrow, as the database returns them."""
        import pyarrow as pa

        backend, table = self.table.get_backend(), self.table.select(*columns)
        if backend.name == "duckdb":
            yield from DuckDBEngine(_relation(backend, table)).batches(columns, rows)
            return
        for batch in table.to_pyarrow_batches(chunk_size=rows):
            yield pa.Table.from_batches([batch])


def _batches(table: Any, continuous: Sequence[str]) -> Any:
    floats = table.mutate(**{c: table[c].cast("float64") for c in continuous})
    return floats.to_pyarrow_batches(chunk_size=batch_rows(len(table.columns)))


def _numbers(table: Any, continuous: Sequence[str]) -> Any:
    """Turn Booleans that are read as continuous into numbers; not all databases can cast them."""
    import ibis

    booleans = [c for c in continuous if table[c].type().is_boolean()]
    numbers = {c: ibis.cases((table[c], 1), (~table[c], 0)) for c in booleans}
    return table.mutate(**numbers) if numbers else table


def _with_nulls(table: Any, columns: Sequence[str]) -> Any:
    """Columns of numbers with null in place of NaN."""
    import ibis

    floats = {c: table[c].cast("float64") for c in columns}
    return table.mutate(**{c: ibis.cases((~is_nan(x), x)) for c, x in floats.items()})


def _relation(backend: Any, table: Any) -> Any:
    """The same query as a DuckDB relation, whose Arrow reader Ibis does not reach."""
    import duckdb

    text = backend.compile(table)
    try:
        return backend.con.sql(text)
    except duckdb.CatalogException:
        backend.to_pyarrow(table.limit(0))  # registers tables that live in memory
        return backend.con.sql(text)
