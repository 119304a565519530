"""Spark: the workers add up their partitions, then each other's sums; the driver gets one sum."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Work
from isthmus.errors import DataError
from isthmus.statistics import Kind, Moments, Schema
from isthmus.statistics.base import (
    OVERFLOW,
    Positions,
    refuse_empty,
    refuse_infinite,
    refuse_missing,
    refuse_underflow,
)
from isthmus.statistics.tally import PatternBuilder, PatternRows
from isthmus.tables.engines.base import (
    Computed,
    CountedTables,
    Engine,
    SummedPatterns,
    plain_names,
    unknown_level,
    usable_methods,
)
from isthmus.tables.engines.spark_workers import (
    INFINITE,
    OnPartition,
    add_blocks,
    join_patterns,
    middle,
    partial_counts,
    partial_patterns,
    partial_sums,
)


@final
@dataclass(frozen=True)
class SparkEngine(Engine):
    """A PySpark dataframe."""

    table: Any

    @classmethod
    def renamed(cls, table: Any, names: Sequence[str]) -> SparkEngine:
        """Make the adapter of a dataframe."""
        return cls(table.toDF(*plain_names(names)))

    @property
    def site(self) -> str:
        return "Spark"

    def of_table(self, table: Any) -> SparkEngine:
        return SparkEngine(table)

    def with_times(self, scales: Mapping[str, float]) -> SparkEngine:
        from pyspark.sql import functions as F  # noqa: N812

        # Against an origin of the same kind, so that the time zone of the session has no effect.
        origin = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
        numbers = {
            c: F.expr(f"timestampdiff(MICROSECOND, {origin}, {c})") / (1e6 * scale)
            for c, scale in scales.items()
        }
        return SparkEngine(self.table.withColumns(numbers))

    def moments(self, schema: Schema, columns: Sequence[str]) -> Computed:
        """Add up on the workers, and fetch one triangle of sums."""
        selected = self._selected(schema, columns)
        shift = _shift(selected, schema)
        levels = [v.levels if v.kind is Kind.DISCRETE else None for v in schema.variables]
        total, size = _added_up(selected, partial_sums(levels, shift.tolist()))
        return Computed(
            _moments(schema, shift, total),
            f"n, sums and products of {schema.width} columns, added up by the workers",
            size,
        )

    def patterns(self, schema: Schema, columns: Sequence[str]) -> SummedPatterns:
        """Sum up on the workers, by which values are missing."""
        selected = self._selected(schema, columns)
        shift = _shift(selected, schema)
        form = "pattern string, part int, place int, size bigint, numbers binary"
        parts = _mapped(selected, partial_patterns(shift.tolist()), form)
        sums = parts.repartition("pattern").sortWithinPartitions("pattern", "part", "place")
        records = _mapped(sums, join_patterns(len(schema)), form).collect()
        builder = PatternBuilder(schema, shift)
        factors: dict[str, list[Any]] = {}
        for record in records:
            factors.setdefault(record["pattern"], []).append(record)
        infinite = np.zeros(len(schema), dtype=np.int64)
        for record in factors.pop(INFINITE, []):
            counts = np.frombuffer(record["numbers"]).astype(np.int64)
            infinite[len(infinite) - len(counts) :] += counts
        refuse_infinite(dict(zip(schema.names, infinite.tolist(), strict=True)))
        refuse_empty(len(factors))
        for pattern, own in factors.items():
            there = np.array([c == "1" for c in pattern])
            factor = np.zeros((len(own), 1 + int(there.sum())))
            for row, record in zip(factor, own, strict=True):
                numbers = np.frombuffer(record["numbers"])
                row[len(row) - len(numbers) :] = numbers
            builder.add_sums(there, sum(record["size"] for record in own), factor)
        what = f"n, sums and products of {len(factors)} patterns of missing values"
        size = len(factors) + sum(len(record["numbers"]) // 8 for record in records)
        return SummedPatterns(PatternRows(*builder.finish()), what, size)

    def count_tables(
        self, schema: Schema, columns: Sequence[str], sets: Sequence[Positions]
    ) -> Work[CountedTables]:
        """Count all sets in one pass on the workers, and fetch the cells of their tables."""
        used = sorted({i for members in sets for i in members})
        place = {i: k for k, i in enumerate(used)}
        part = schema.subset([schema.names[i] for i in used])
        levels = [v.levels for v in part.variables]
        work = partial_counts(levels, [[place[i] for i in members] for members in sets])
        total, size = _added_up(self._selected(part, [columns[i] for i in used]), work)
        yield
        refuse_empty(total.size)
        n, d = int(total[0]), len(part)
        odd = total[1 : 1 + 2 * d].reshape(d, 2).astype(np.int64)
        missing = dict(zip(part.names, odd[:, 0].tolist(), strict=True))
        refuse_missing(missing, n, usable_methods(schema))
        for v, strange in zip(part.variables, odd[:, 1].tolist(), strict=True):
            if strange:
                raise unknown_level(v.name, v.levels)
        shapes = [tuple(schema.cardinalities[list(members)].tolist()) for members in sets]
        ends = np.cumsum([1 + 2 * d, *(math.prod(shape) for shape in shapes)])
        cells = np.split(total.astype(np.int64), ends)[1:-1]
        return CountedTables([c.reshape(s) for c, s in zip(cells, shapes, strict=True)], size)

    def _selected(self, schema: Schema, columns: Sequence[str]) -> Any:
        """These columns, named c0, c1 and so on; the continuous ones as numbers.

        Partitions are joined until there are no more than Spark makes in a shuffle: a task adds up
        several before it sends anything, so that little is sent however many partitions there are.
        """
        from pyspark.sql import functions as F  # noqa: N812

        chosen = [
            F.col(column).cast("double") if v.kind is Kind.CONTINUOUS else F.col(column)
            for v, column in zip(schema.variables, columns, strict=True)
        ]
        table = self.table.select(*[c.alias(f"c{i}") for i, c in enumerate(chosen)])
        most = table.sparkSession.conf.get("spark.sql.shuffle.partitions")
        return table.coalesce(int(most)) if most.isdigit() else table


def _mapped(table: Any, work: OnPartition, form: str) -> Any:
    """Apply a function to the record batches of each partition, on its worker."""
    with warnings.catch_warnings():
        # Spark warns of pandas 3 before every function on Arrow, which does not use pandas.
        warnings.filterwarnings("ignore", message=".*pandas.*", category=FutureWarning)
        return table.mapInArrow(work, form)


def _shift(selected: Any, schema: Schema) -> NDArray[np.float64]:
    """Means of the first rows, for the continuous columns.

    For a limit at the root of a query, Spark evaluates a few partitions at a time until there are
    enough records; a limit below an aggregation would read all partitions. The first record is all
    that is needed, but if it were the limit, its worker would be stopped instead of used again.
    """
    shift = np.zeros(schema.width)
    wanted = [i for i, v in enumerate(schema.variables) if v.kind is Kind.CONTINUOUS]
    if wanted:
        table = selected.select(*[f"c{i}" for i in wanted])
        for record in _mapped(table, middle(), "numbers binary").limit(2).collect()[:1]:
            shift[[schema.blocks[i][0] for i in wanted]] = np.frombuffer(record["numbers"])
    return shift


def _added_up(selected: Any, work: OnPartition) -> tuple[NDArray[np.float64], int]:
    """Sum of the vectors that `work` makes of each partition, and how many numbers were sent.

    The vectors are cut into blocks, and each block is summed by one worker: the driver receives as
    many numbers as one vector has, whatever the number of partitions. Workers add in the order of
    the partitions, so that the sum is the same in every run.
    """
    form = "block int, part int, numbers binary"
    parts = _mapped(selected, work, form)
    blocks = parts.repartition("block").sortWithinPartitions("block", "part")
    records = _mapped(blocks, add_blocks(), form).collect()
    records.sort(key=lambda record: record["block"])
    received = [np.frombuffer(record["numbers"]) for record in records]
    return np.concatenate(received or [np.zeros(0)]), sum(part.size for part in received)


def _moments(schema: Schema, shift: NDArray[np.float64], total: NDArray[np.float64]) -> Moments:
    """Unpack the sums of the workers, and refuse what they saw."""
    d, p = len(schema), schema.width
    refuse_empty(total.size)
    rows, spoiled = int(total[0]), int(total[1])
    odd = total[2 : 2 + 4 * d].reshape(d, 4).astype(np.int64)
    missing = (odd[:, 0] + odd[:, 1]).tolist()
    refuse_missing(dict(zip(schema.names, missing, strict=True)), rows, usable_methods(schema))
    refuse_infinite(dict(zip(schema.names, odd[:, 2].tolist(), strict=True)))
    for v, strange in zip(schema.variables, odd[:, 3].tolist(), strict=True):
        if strange:
            raise unknown_level(v.name, v.levels)
    if spoiled:
        raise DataError(OVERFLOW)
    sums, triangle = np.split(total[2 + 4 * d :], [p])
    gram = np.empty((p, p))
    above = np.triu_indices(p)
    gram[above] = gram.T[above] = triangle
    refuse_underflow(schema.column_names, sums != 0.0, gram.diagonal())
    return Moments(schema, rows, shift, sums, gram)
