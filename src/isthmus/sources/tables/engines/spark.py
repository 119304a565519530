"""Spark: the workers add up their partitions, and each sends one row of sums."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.sources.tables.engines.base import (
    Computed,
    Engine,
    SummedPatterns,
    plain_names,
    unknown_level,
    usable_methods,
)
from isthmus.statistics import Kind, Moments, Schema
from isthmus.statistics.checks import (
    OVERFLOW,
    refuse_empty,
    refuse_infinite,
    refuse_missing,
    refuse_underflow,
)
from isthmus.statistics.patterns import PatternBuilder, PatternRows

SAMPLE = 10_000
INFINITE = "infinite"
"""Key under which workers report the number of infinite values."""


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
        """Add up each partition on its worker."""
        from pyspark.sql import functions as F  # noqa: N812

        chosen = [
            F.col(column).cast("double") if v.kind is Kind.CONTINUOUS else F.col(column)
            for v, column in zip(schema.variables, columns, strict=True)
        ]
        selected = self.table.select(*[c.alias(f"c{i}") for i, c in enumerate(chosen)])
        shift = self._shift(selected, schema)
        levels = [v.levels if v.kind is Kind.DISCRETE else None for v in schema.variables]
        work = _partial_sums(levels, shift.tolist())
        parts = _collected(selected, work, "sums array<double>")
        return _merged(schema, shift, [np.array(row[0]) for row in parts])

    def patterns(self, schema: Schema, columns: Sequence[str]) -> SummedPatterns:
        """Sum up each partition on its worker, by which values are missing."""
        from pyspark.sql import functions as F  # noqa: N812

        selected = self.table.select(
            *[F.col(column).cast("double").alias(f"c{i}") for i, column in enumerate(columns)]
        )
        shift = self._shift(selected, schema)
        answer = "there string, size bigint, factor array<double>"
        parts = _collected(selected, partial_patterns(shift.tolist()), answer)
        builder = PatternBuilder(schema, shift)
        infinite = np.zeros(len(schema), dtype=np.int64)
        for text, size, factor in parts:
            if text == INFINITE:
                infinite += np.array(factor, dtype=np.int64)
                continue
            there = np.array([c == "1" for c in text])
            builder.add_sums(there, size, np.array(factor).reshape(-1, 1 + int(there.sum())))
        refuse_infinite(dict(zip(schema.names, infinite.tolist(), strict=True)))
        refuse_empty(len(parts))
        patterns = PatternRows(*builder.finish())
        what = f"n, sums and products of patterns of missing values, {len(parts)} parts"
        return SummedPatterns(patterns, what, sum(1 + len(factor) for *_, factor in parts))

    @staticmethod
    def _shift(selected: Any, schema: Schema) -> NDArray[np.float64]:
        """Means of the first rows, for the continuous columns."""
        from pyspark.sql import functions as F  # noqa: N812

        shift = np.zeros(schema.width)
        wanted = [i for i, v in enumerate(schema.variables) if v.kind is Kind.CONTINUOUS]
        if wanted:
            asked = [f(f"c{i}") for i in wanted for f in (F.avg, F.min, F.max)]
            found = selected.limit(SAMPLE).agg(*asked).collect()[0]
            for i, mean, low, high in zip(
                wanted, found[::3], found[1::3], found[2::3], strict=True
            ):
                if mean is not None and np.isfinite(mean):
                    # A mean is rounded: between the extremes, that of a constant is the constant.
                    shift[schema.blocks[i][0]] = min(max(mean, low), high)
        return shift


def _collected(selected: Any, work: Callable[[Iterable[Any]], Iterator[Any]], form: str) -> Any:
    """Run the computation on the workers, and collect their answers."""
    with warnings.catch_warnings():
        # Spark warns of pandas 3 before every function on Arrow, which does not use pandas.
        warnings.filterwarnings("ignore", message=".*pandas.*", category=FutureWarning)
        return selected.mapInArrow(work, form).collect()


def partial_patterns(shift: list[float]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for the workers that sums up rows with missing values.

    It stands by itself, as `_partial_sums` does. For each pattern of missing values in a partition
    it gives which columns have values, the number of rows, and a factor of ones and values. What it
    gives under the name "infinite" are numbers of infinite values.
    """

    def add_up(batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np
        import pyarrow as pa

        sizes: dict[bytes, int] = {}
        factors: dict[bytes, Any] = {}
        infinite = np.zeros(len(shift))
        for batch in batches:
            columns = [x.to_numpy(zero_copy_only=False) for x in batch.columns]
            rows = np.stack(columns, axis=1) if batch.num_rows else np.zeros((0, len(shift)))
            infinite += np.isinf(rows).sum(axis=0)
            there = ~np.isnan(rows)
            rows = np.where(np.isfinite(rows), rows - np.array(shift), 0.0)
            kinds, which = np.unique(there, axis=0, return_inverse=True)
            for k, kind in enumerate(kinds):
                own = rows[which.ravel() == k][:, kind]
                key = kind.tobytes()
                design = np.column_stack([np.ones(len(own)), own])
                if key in factors:
                    design = np.concatenate([factors[key], design])
                few = len(design) <= design.shape[1]
                factors[key] = design if few else np.linalg.qr(design, mode="r")
                sizes[key] = sizes.get(key, 0) + len(own)
        texts = ["".join("1" if b else "0" for b in key) for key in factors]
        numbers = [f.ravel().tolist() for f in factors.values()]
        if infinite.any():
            texts.append("infinite")
            numbers.append(infinite.tolist())
        counted = [*sizes.values(), *([0] * (len(texts) - len(sizes)))]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(texts, type=pa.string()),
                pa.array(counted, type=pa.int64()),
                pa.array(numbers, type=pa.list_(pa.float64())),
            ],
            ["there", "size", "factor"],
        )

    return add_up


def _partial_sums(
    levels: list[tuple[Any, ...] | None], shift: list[float]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for the workers.

    It stands by itself, so that workers need NumPy and PyArrow but not this library. It gives one
    array a partition: rows, spoiled blocks, then for each variable nulls, NaN, infinities and
    unknown levels, then sums and products.
    """

    def add_up(batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        p, rows, spoiled = len(shift), 0, 0
        odd = np.zeros((len(levels), 4))
        sums, gram = np.zeros(p), np.zeros((p, p))
        for batch in batches:
            rows += batch.num_rows
            z = np.empty((p, batch.num_rows))
            at = 0
            for i, (array, known) in enumerate(zip(batch.columns, levels, strict=True)):
                odd[i, 0] += array.null_count
                if known is None:
                    values = array.fill_null(0.0).to_numpy(zero_copy_only=False)
                    odd[i, 1] += np.isnan(values).sum()
                    odd[i, 2] += np.isinf(values).sum()
                    z[at] = values - shift[at]
                    at += 1
                else:
                    codes = pc.index_in(array, value_set=pa.array(known, type=array.type))
                    odd[i, 3] += codes.null_count - array.null_count
                    codes = codes.fill_null(0).to_numpy(zero_copy_only=False)
                    for j in range(1, len(known)):
                        z[at] = codes == j
                        at += 1
            with np.errstate(all="ignore"):
                more = z @ z.T
            if np.isfinite(more).all():
                sums += z.sum(axis=1)
                gram += more
            else:
                spoiled += 1
        packed = np.concatenate([[rows, spoiled], odd.ravel(), sums, gram.ravel()])
        yield pa.RecordBatch.from_arrays(
            [pa.array([packed.tolist()], type=pa.list_(pa.float64()))], ["sums"]
        )

    return add_up


def _merged(
    schema: Schema, shift: NDArray[np.float64], parts: list[NDArray[np.float64]]
) -> Computed:
    """Add the parts of the workers, and refuse what they saw."""
    d, p = len(schema), schema.width
    total = np.sum(parts, axis=0) if parts else np.zeros(2 + 4 * d + p + p * p)
    rows, spoiled = int(total[0]), int(total[1])
    odd = total[2 : 2 + 4 * d].reshape(d, 4).astype(np.int64)
    missing = (odd[:, 0] + odd[:, 1]).tolist()
    found = dict(zip(schema.names, missing, strict=True))
    refuse_missing(found, rows, usable_methods(schema))
    refuse_infinite(dict(zip(schema.names, odd[:, 2].tolist(), strict=True)))
    refuse_empty(rows)
    for v, strange in zip(schema.variables, odd[:, 3].tolist(), strict=True):
        if strange:
            raise unknown_level(v.name, v.levels)
    if spoiled:
        raise DataError(OVERFLOW)
    sums = total[2 + 4 * d : 2 + 4 * d + p]
    gram = total[2 + 4 * d + p :].reshape(p, p)
    refuse_underflow(schema.column_names, sums != 0.0, gram.diagonal())
    moments = Moments(schema, rows, shift, sums, (gram + gram.T) / 2)
    size = sum(part.size for part in parts)
    what = f"sums and products of {p} columns from {len(parts)} partitions"
    return Computed(moments, what, size)
