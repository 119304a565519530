"""DuckDB: Arrow batches are streamed through this process and not kept."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus import watch
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
    profiles_from,
)
from isthmus.tables.infer_kinds import Profile
from isthmus.tables.kinds import CellType


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

    def profile(
        self, columns: Mapping[str, CellType], counted: Collection[str], rows: int | None
    ) -> dict[str, Profile]:
        """Return the properties of columns; of floats from streamed rows.

        To plan 2,000 aggregates takes far longer than to read 10,000 rows of 500 columns.
        """
        numbers = {
            c: own for c, own in columns.items() if own is CellType.FLOAT and c not in counted
        }
        rest = {c: own for c, own in columns.items() if c not in numbers}
        found = super().profile(rest, counted, rows) if rest else {}
        if numbers:
            told = self._ranges(list(numbers), rows)
            found |= profiles_from(numbers, (), lambda _: told, at_once=len(numbers))
        return {c: found[c] for c in columns}

    def _ranges(self, columns: Sequence[str], rows: int | None) -> dict[str, float]:
        """Return how many values columns have, their ranges, and whether there are fractions."""
        some = self.table if rows is None else self.table.limit(rows)
        chosen = some.project(", ".join(f"CAST({c} AS DOUBLE) AS {c}" for c in columns))
        told = {"rows": 0.0} | {f"{c}_values": 0.0 for c in columns}
        for batch in _reader(chosen, batch_rows(len(columns))):
            told["rows"] += batch.num_rows
            for c, array in zip(columns, batch.columns, strict=True):
                values = (array.drop_null() if array.null_count else array).to_numpy()
                if not len(values):
                    continue
                low, high = float(values.min()), float(values.max())  # NaN if there is one
                if told[f"{c}_values"]:
                    low = float(np.minimum(low, told[f"{c}_low"]))
                    high = float(np.maximum(high, told[f"{c}_high"]))
                told[f"{c}_low"], told[f"{c}_high"] = low, high
                told[f"{c}_values"] += len(values)
                if not told.get(f"{c}_fractions"):
                    told[f"{c}_fractions"] = float((values != np.round(values)).any())
            watch.check()
        return told

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
