"""Ibis tables: DuckDB streams, PostgreSQL and other databases add up in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from isthmus.sources.tables.engines.arrow import moments_of_batches
from isthmus.sources.tables.engines.base import Computed, Engine, batch_rows, plain_names
from isthmus.sources.tables.engines.duckdb import DuckDBEngine
from isthmus.sources.tables.engines.sql import QUERIES, expressions, sums_by_sql
from isthmus.statistics import Kind, Schema


@final
@dataclass(frozen=True)
class IbisEngine(Engine):
    """An Ibis table."""

    table: Any

    @classmethod
    def renamed(cls, table: Any, names: Sequence[str]) -> IbisEngine:
        """Make the adapter of a table."""
        plain = plain_names(names)
        return cls(table.select(**{c: table[n] for c, n in zip(plain, names, strict=True)}))

    @property
    def site(self) -> str:
        """Name of the database behind it."""
        return f"Ibis ({self.table.get_backend().name})"

    def distinct(self, columns: Sequence[str], rows: int) -> list[int]:
        """Number of distinct values; not by narwhals, whose query PostgreSQL refuses."""
        head = self.table.limit(rows)
        answer = head.aggregate(**{c: head[c].nunique() for c in columns}).to_pyarrow()
        return [int(answer[c][0].as_py() or 0) for c in columns]

    def moments(self, schema: Schema, columns: Sequence[str]) -> Computed:
        """Choose the method that is fastest for the database behind the table."""
        backend = self.table.get_backend()
        continuous = [
            c for v, c in zip(schema.variables, columns, strict=True) if v.kind is Kind.CONTINUOUS
        ]
        table = _numbers(self.table.select(*columns), continuous)
        if backend.name == "duckdb":
            return DuckDBEngine(_relation(backend, table)).moments(schema, columns)
        if expressions(schema) <= QUERIES * 1600:
            return sums_by_sql(backend, table, schema, columns)
        if backend.name == "postgres":
            from isthmus.sources.tables.engines.postgres import moments_by_copy

            return moments_by_copy(backend, table, schema, columns)
        floats = table.mutate(**{c: table[c].cast("float64") for c in continuous})
        batches = floats.to_pyarrow_batches(chunk_size=batch_rows(len(schema)))
        return streamed(Computed.there(moments_of_batches(schema, batches)))


def _numbers(table: Any, continuous: Sequence[str]) -> Any:
    """Turn Booleans that are read as continuous into numbers; not all databases can cast them."""
    import ibis

    booleans = [c for c in continuous if table[c].type().is_boolean()]
    numbers = {c: ibis.cases((table[c], 1), (~table[c], 0)) for c in booleans}
    return table.mutate(**numbers) if numbers else table


def streamed(computed: Computed) -> Computed:
    """The same moments, with a disclosure that says that rows were streamed but not kept."""
    moments = computed.moments
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
