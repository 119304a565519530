"""Which engine holds a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isthmus.errors import DataError
from isthmus.tables.engines.base import Engine
from isthmus.tables.names import as_narwhals, repeated_names_refused

if TYPE_CHECKING:
    import narwhals as nw


def is_lazy(data: object) -> bool:
    """Whether this is a table of an engine."""
    import narwhals as nw

    return isinstance(as_narwhals(data), nw.LazyFrame)


def names_of(frame: nw.LazyFrame[Any]) -> Sequence[str]:
    """Names of the columns, repeated ones included: a narwhals schema would drop those."""
    if frame.implementation.is_polars():
        with repeated_names_refused():
            return frame.collect_schema().names()
    return list(frame.to_native().columns)


def engine_of(
    frame: nw.LazyFrame[Any], names: Sequence[str], *, stream_rows: bool = False
) -> Engine:
    """The adapter for the engine behind a table, with its columns renamed to c0, c1 and so on."""
    native, kind = frame.to_native(), frame.implementation
    if kind.is_duckdb():
        from isthmus.tables.engines.duckdb import DuckDBEngine

        return DuckDBEngine.renamed(native, names)
    if kind.is_polars():
        from isthmus.tables.engines.polars import PolarsEngine

        return PolarsEngine.renamed(native, names)
    if kind.is_pyspark() or kind.is_pyspark_connect():
        from isthmus.tables.engines.spark import SparkEngine

        return SparkEngine.renamed(native, names)
    if kind.is_ibis():
        from isthmus.tables.engines.ibis import IbisEngine

        return replace(IbisEngine.renamed(native, names), stream_rows=stream_rows)
    raise DataError(
        f"Tables of {kind} are not supported. Give a Polars lazy frame, a DuckDB relation, "
        "a PySpark dataframe or an Ibis table, or collect the table first."
    )
