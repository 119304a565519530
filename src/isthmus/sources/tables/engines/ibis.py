"""Ibis tables: DuckDB streams, PostgreSQL and other databases add up in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from isthmus.sources.tables.engines.arrow import moments_of_batches
from isthmus.sources.tables.engines.base import Computed, Engine, batch_rows
from isthmus.sources.tables.engines.duckdb import DuckDBEngine
from isthmus.sources.tables.engines.sql import QUERIES, expressions, sums_by_sql
from isthmus.statistics import Kind, Schema


@final
@dataclass(frozen=True)
class IbisEngine(Engine):
    """An Ibis table."""

    table: Any

    @property
    def site(self) -> str:
        """Name of the database behind it."""
        return f"Ibis ({self.table.get_backend().name})"

    def distinct(self, names: Sequence[str], rows: int) -> list[int]:
        """Number of distinct values; not by narwhals, whose query PostgreSQL refuses."""
        head = self.table.limit(rows)
        wanted = {f"c{i}": head[n].nunique() for i, n in enumerate(names)}
        found = head.aggregate(**wanted).to_pyarrow()
        return [int(found[f"c{i}"][0].as_py() or 0) for i in range(len(names))]

    def moments(self, schema: Schema) -> Computed:
        """Choose what the database behind the table does best."""
        backend = self.table.get_backend()
        table = _numbers(self.table.select(*schema.names), schema)
        if backend.name == "duckdb":
            return DuckDBEngine(_relation(backend, table)).moments(schema)
        if expressions(schema) <= QUERIES * 1600:
            return sums_by_sql(backend, table, schema)
        if backend.name == "postgres":
            from isthmus.sources.tables.engines.postgres import moments_by_copy

            return moments_by_copy(backend, table, schema)
        wanted = {
            v.name: table[v.name].cast("float64")
            for v in schema.variables
            if v.kind is Kind.CONTINUOUS
        }
        batches = table.mutate(**wanted).to_pyarrow_batches(chunk_size=batch_rows(len(schema)))
        return streamed(Computed.there(moments_of_batches(schema, batches)))


def _numbers(table: Any, schema: Schema) -> Any:
    """Booleans that are read as continuous become numbers, which not all databases can cast."""
    import ibis

    truths = [n for n in schema.of_kind(Kind.CONTINUOUS) if table[n].type().is_boolean()]
    wanted = {n: ibis.cases((table[n], 1), (~table[n], 0)) for n in truths}
    return table.mutate(**wanted) if wanted else table


def streamed(found: Computed) -> Computed:
    """Say that rows crossed over, though none were kept."""
    moments = found.moments
    size = moments.n * len(moments.schema)
    what = f"{moments.n} rows of {len(moments.schema)} variables, streamed and not kept"
    return Computed(moments, what, size)


def _relation(backend: Any, table: Any) -> Any:
    """The same query as a DuckDB relation, whose Arrow reader Ibis does not reach."""
    import duckdb

    text = backend.compile(table)
    try:
        return backend.con.sql(text)
    except duckdb.CatalogException:
        backend.to_pyarrow(table.limit(0))  # registers tables that live in memory
        return backend.con.sql(text)
