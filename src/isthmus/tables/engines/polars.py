"""Polars: batches of the streaming engine pass through this process and are not kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus import watch
from isthmus.arrays import Work
from isthmus.statistics import Kind, Schema, Variable
from isthmus.statistics.base import Positions, refuse_empty, refuse_missing
from isthmus.statistics.rows import MomentsBuilder
from isthmus.statistics.tally import PatternRows, TableCounter
from isthmus.tables.engines.base import (
    Computed,
    CountedTables,
    Engine,
    SummedPatterns,
    batch_rows,
    plain_names,
    unknown_level,
    usable_methods,
)

MISSING, UNKNOWN = -2, -1


@final
@dataclass(frozen=True)
class PolarsEngine(Engine):
    """A Polars lazy frame."""

    table: Any
    streams: ClassVar[bool] = True
    durations: ClassVar[bool] = True

    @classmethod
    def renamed(cls, table: Any, names: Sequence[str]) -> PolarsEngine:
        """Make the adapter of a lazy frame; by position, as Polars reads some names as patterns."""
        import polars as pl

        return cls(table.select(pl.nth(i).alias(c) for i, c in enumerate(plain_names(names))))

    @property
    def site(self) -> str:
        return "Polars"

    def of_table(self, table: Any) -> PolarsEngine:
        return PolarsEngine(table)

    def with_times(self, scales: Mapping[str, float]) -> PolarsEngine:
        import polars as pl

        types = self.table.collect_schema()
        times = {
            c: pl.col(c).dt.total_microseconds()
            if isinstance(types[c], pl.Duration)
            else pl.col(c).cast(pl.Datetime("us")).dt.timestamp("us")
            for c in scales
        }
        numbers = (time / (1e6 * scales[c]) for c, time in times.items())
        return PolarsEngine(self.table.with_columns(*numbers))

    def moments(self, schema: Schema, columns: Sequence[str]) -> Computed:
        """Stream numbers and codes and add up their products."""
        pairs = list(zip(schema.variables, columns, strict=True))
        selected = self.table.select(_expression(v, column) for v, column in pairs)
        builder = MomentsBuilder(schema)
        for batch in _batches(selected, batch_rows(len(schema))):
            builder.update([_column(v, batch[column], builder) for v, column in pairs])
            watch.check()
        return Computed.there(builder.finish())

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Batches of the streaming engine."""
        yield from _batches(self.table.select(list(columns)), rows)

    def sample(self, columns: Sequence[str], rows: int, total: int) -> Any:
        """Draw rows from the batches of one pass."""
        import polars as pl

        rng = np.random.default_rng(0)
        share = min(1.0, rows / max(total, 1))
        drawn = [
            batch.filter(pl.Series(rng.random(len(batch)) < share))
            for batch in self.batches(columns, batch_rows(len(columns)))
        ]
        return pl.concat(drawn)

    def count_tables(
        self, schema: Schema, columns: Sequence[str], sets: Sequence[Positions]
    ) -> Work[CountedTables]:
        """Stream codes once through the compiled core, which keeps the tables only."""
        counter = TableCounter(schema.cardinalities, sets)
        used = sorted({i for members in sets for i in members})
        chosen = [(i, schema.variables[i], columns[i]) for i in used]
        missing = dict.fromkeys((v.name for _, v, _ in chosen), 0)
        selected = self.table.select(_expression(v, column) for _, v, column in chosen)
        for batch in _batches(selected, batch_rows(len(chosen))):
            codes = counter.room(len(batch))
            for i, v, column in chosen:
                values = batch[column].to_numpy()
                if len(values) and values.min() < 0:
                    if (values == UNKNOWN).any():
                        raise unknown_level(v.name, v.levels)
                    missing[v.name] += int((values == MISSING).sum())
                    values = np.maximum(values, 0)
                codes[i] = values
            counter.update(codes)
            yield
        refuse_empty(counter.n)
        refuse_missing(missing, counter.n, usable_methods(schema))
        return CountedTables.there(counter.finish())

    def patterns(self, schema: Schema, columns: Sequence[str]) -> SummedPatterns:
        """Stream numbers and add up their products for each pattern of missing values."""
        selected = self.table.select(map(_expression, schema.variables, columns))
        batches = _batches(selected, batch_rows(len(schema)))
        blocks = (np.stack([batch[c].to_numpy() for c in columns], axis=1) for batch in batches)
        return SummedPatterns.there(PatternRows.of(schema, blocks))


def _batches(selected: Any, rows: int) -> Iterator[Any]:
    if hasattr(selected, "collect_batches"):
        yield from selected.collect_batches(
            chunk_size=rows, maintain_order=True, engine="streaming"
        )
    else:  # older versions cannot hand over batches
        yield from selected.collect(engine="streaming").iter_slices(rows)


def _expression(variable: Variable, column: str) -> Any:
    import polars as pl

    cells = pl.col(column)
    if variable.kind is Kind.CONTINUOUS:
        return cells.cast(pl.Float64)
    if all(isinstance(level, str) for level in variable.levels):
        cells = cells.cast(pl.String)  # categories are matched by their text
    codes = cells.replace_strict(
        list(variable.levels),
        list(range(len(variable.levels))),
        default=UNKNOWN,
        return_dtype=pl.Int32,
    )
    return pl.when(cells.is_null()).then(MISSING).otherwise(codes).cast(pl.Int32).alias(column)


def _column(variable: Variable, series: Any, builder: MomentsBuilder) -> NDArray[Any]:
    values: NDArray[Any]
    if variable.kind is Kind.CONTINUOUS:
        nulls = series.null_count()
        if nulls:
            builder.miss(variable.name, nulls)
            series = series.fill_null(0.0)
        values = series.to_numpy()
        return values
    values = series.to_numpy()
    if len(values) and values.min() < 0:
        if (values == UNKNOWN).any():
            raise unknown_level(variable.name, variable.levels)
        builder.miss(variable.name, int((values == MISSING).sum()))
        values = np.maximum(values, 0)
    return values
