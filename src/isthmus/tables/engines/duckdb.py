"""DuckDB: Arrow batches are streamed through this process and not kept."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from isthmus.arrays import Work
from isthmus.statistics import Kind, Schema
from isthmus.statistics.base import Positions
from isthmus.tables.engines.arrow import moments_of_batches, patterns_of_batches, tables_of_batches
from isthmus.tables.engines.base import (
    Computed,
    CountedTables,
    Engine,
    SummedPatterns,
    batch_rows,
    plain_names,
)


@atexit.register
def _release_cached_types() -> None:
    """Empty a cache of narwhals, as DuckDB 2.0 prints pages on leaks if its types are in it."""
    namespaces = sys.modules.get("narwhals._namespace")
    clear = getattr(getattr(namespaces, "_builtin_namespace", None), "cache_clear", None)
    if clear is not None:
        clear()


@final
@dataclass(frozen=True)
class DuckDBEngine(Engine):
    """A DuckDB relation."""

    table: Any
    streams: ClassVar[bool] = True
    durations: ClassVar[bool] = True

    @classmethod
    def renamed(cls, table: Any, names: Sequence[str]) -> DuckDBEngine:
        """Make the adapter of a relation; columns are found by position, as names ignore case."""
        plain = plain_names(names)
        chosen = ", ".join(f"#{i} AS {column}" for i, column in enumerate(plain, start=1))
        return cls(table.project(chosen))

    @property
    def site(self) -> str:
        return "DuckDB"

    def of_table(self, table: Any) -> DuckDBEngine:
        return DuckDBEngine(table)

    def with_times(self, scales: Mapping[str, float]) -> DuckDBEngine:
        types = dict(zip(self.table.columns, map(str, self.table.types), strict=True))
        times = {c: c if types[c] == "INTERVAL" else f"CAST({c} AS TIMESTAMP)" for c in scales}
        chosen = (f"epoch({times[c]}) / {s!r} AS {c}" for c, s in scales.items())
        return DuckDBEngine(self.table.project(f"* REPLACE ({', '.join(chosen)})"))

    def moments(self, schema: Schema, columns: Sequence[str]) -> Computed:
        """Stream the columns and add up their products: faster than SQL from ten columns on."""
        return Computed.there(moments_of_batches(schema, self._batches(schema, columns)))

    def patterns(self, schema: Schema, columns: Sequence[str]) -> SummedPatterns:
        """Stream the columns and add up their products for each pattern of missing values."""
        return SummedPatterns.there(patterns_of_batches(schema, self._batches(schema, columns)))

    def sample(self, columns: Sequence[str], rows: int, total: int) -> Any:
        """Draw rows by a query that reads the table once."""
        chosen = self.table.project(", ".join(columns))
        if total <= rows:
            return chosen.to_arrow_table()
        percent = 100.0 * rows / total
        query = f"SELECT * FROM isthmus_rows USING SAMPLE {percent:.9f}% (bernoulli, 1)"
        return chosen.query("isthmus_rows", query).to_arrow_table()

    def count_tables(
        self, schema: Schema, columns: Sequence[str], sets: Sequence[Positions]
    ) -> Work[CountedTables]:
        """Stream the columns once through the compiled core, which keeps the tables only."""
        used = sorted({i for members in sets for i in members})
        place = {i: k for k, i in enumerate(used)}
        part = schema.subset(schema.names[i] for i in used)
        moved = [tuple(place[i] for i in members) for members in sets]
        batches = self._batches(part, [columns[i] for i in used])
        return (yield from tables_of_batches(part, moved, batches))

    def _batches(self, schema: Schema, columns: Sequence[str]) -> Iterable[Any]:
        chosen = [
            f"CAST({column} AS DOUBLE) AS {column}" if v.kind is Kind.CONTINUOUS else column
            for v, column in zip(schema.variables, columns, strict=True)
        ]
        selected = self.table.project(", ".join(chosen))
        batches: Iterable[Any] = _reader(selected, batch_rows(len(schema)))
        return batches

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of Arrow, as DuckDB streams them."""
        import pyarrow as pa

        for batch in _reader(self.table.project(", ".join(columns)), rows):
            yield pa.Table.from_batches([batch])


def _reader(relation: Any, rows: int) -> Any:
    # Older versions call the same thing by another name.
    open_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    return open_reader(rows)
