"""What Spark's workers run.

Each function here returns a function that stands by itself, so that workers need NumPy, PyArrow and
PySpark but not this library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

OnPartition = Callable[[Iterable[Any]], Iterator[Any]]
"""From the record batches of a partition to other record batches."""

BLOCK = 1_024
"""Numbers per record. Spark hands Python up to 10,000 records at a time: 80 MB."""

SAMPLE = 10_000
"""Number of rows from which shifts are computed."""

READ = 20
"""Batches to read after the first one: a worker that leaves data unread cannot be used again."""

INFINITE = "infinite"
"""In place of a pattern: what follows is the number of infinite values of each column."""


def middle() -> OnPartition:
    """Means of the first rows of a partition, which has only continuous columns."""
    most, read = SAMPLE, READ

    def mean_of_first(batches: Iterable[Any]) -> Iterator[Any]:
        from itertools import islice

        import numpy as np
        import pyarrow as pa

        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        for _ in islice(batches, read):
            pass
        means = np.zeros(first.num_columns)
        for i, array in enumerate(first.slice(0, most).columns):
            values = array.drop_null().to_numpy(zero_copy_only=False)
            with np.errstate(all="ignore"):
                mean = values.mean() if len(values) else np.nan
            if np.isfinite(mean):
                # A mean is rounded: between the extremes, that of a constant is the constant.
                means[i] = min(max(mean, values.min()), values.max())
        yield pa.RecordBatch.from_arrays([pa.array([means.tobytes()], pa.binary())], ["numbers"])

    return mean_of_first


def partial_sums(levels: list[tuple[Any, ...] | None], shift: list[float]) -> OnPartition:
    """Add up the rows of a partition.

    The vector of sums has the number of rows, the number of batches that overflowed, for each
    variable the numbers of nulls, NaN, infinities and unknown levels, then sums, and the upper
    triangle of the products.
    """
    blocks = _blocks()

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
        if not rows:
            return
        packed = np.concatenate([[rows, spoiled], odd.ravel(), sums, gram[np.triu_indices(p)]])
        yield blocks(packed)

    return add_up


def partial_counts(levels: list[tuple[Any, ...]], sets: list[list[int]]) -> OnPartition:
    """Count the rows of a partition, all discrete.

    The vector of counts has the number of rows, for each variable the numbers of nulls and of
    unknown levels, then the cells of the table of each set.
    """
    blocks = _blocks()

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, odd = 0, np.zeros((len(levels), 2))
        shapes = [tuple(len(levels[i]) for i in members) for members in sets]
        tables = [np.zeros(int(np.prod(shape))) for shape in shapes]
        for batch in batches:
            rows += batch.num_rows
            codes = []
            for i, (array, known) in enumerate(zip(batch.columns, levels, strict=True)):
                places = pc.index_in(array, value_set=pa.array(known, type=array.type))
                odd[i] += [array.null_count, places.null_count - array.null_count]
                codes.append(places.fill_null(0).to_numpy(zero_copy_only=False))
            for members, shape, table in zip(sets, shapes, tables, strict=True):
                cells = np.zeros(batch.num_rows, dtype=np.int64)
                for i, size in zip(members, shape, strict=True):
                    cells = cells * size + codes[i]
                table += np.bincount(cells, minlength=len(table))
        if rows:
            yield blocks(np.concatenate([[rows], odd.ravel(), *tables]))

    return count


def _blocks() -> Callable[[Any], Any]:
    """The function that cuts the vector of a partition into records."""
    length = BLOCK

    def blocks(packed: Any) -> Any:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context else 0
        cut = [packed[i : i + length].tobytes() for i in range(0, len(packed), length)]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(range(len(cut)), pa.int32()),
                pa.array([part] * len(cut), pa.int32()),
                pa.array(cut, pa.binary()),
            ],
            ["block", "part", "numbers"],
        )

    return blocks


def add_blocks() -> OnPartition:
    """Add up the blocks of sums with the same number, in the order in which they come."""

    def add(batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np
        import pyarrow as pa

        totals: dict[int, Any] = {}
        for batch in batches:
            for block, numbers in zip(batch.column(0).to_pylist(), batch.column(2), strict=True):
                more = np.frombuffer(numbers.as_buffer())
                if block in totals:
                    totals[block] += more
                else:
                    totals[block] = more.copy()
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(list(totals), pa.int32()),
                pa.array([0] * len(totals), pa.int32()),
                pa.array([total.tobytes() for total in totals.values()], pa.binary()),
            ],
            ["block", "part", "numbers"],
        )

    return add


def partial_patterns(shift: list[float]) -> OnPartition:
    """Sum up the rows of a partition by which values are missing.

    For each pattern of missing values it gives the rows of a factor of ones and values, without the
    zeros at their beginning; the first one also has the number of rows of the table.
    """
    records, reduced = _factors()

    def add_up(batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np
        from pyspark import TaskContext

        sizes: dict[str, int] = {}
        factors: dict[str, Any] = {}
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
                pattern = "".join("1" if b else "0" for b in kind)
                design = np.column_stack([np.ones(len(own)), own])
                if pattern in factors:
                    design = np.concatenate([factors[pattern], design])
                factors[pattern] = reduced(design)
                sizes[pattern] = sizes.get(pattern, 0) + len(own)
        context = TaskContext.get()
        part = context.partitionId() if context else 0
        if infinite.any():
            yield records("infinite", part, 0, infinite[None, :])
        for pattern, factor in factors.items():
            yield records(pattern, part, sizes[pattern], factor)

    return add_up


def join_patterns(columns: int) -> OnPartition:
    """Join the factors of each pattern, whose records come one after the other."""
    records, reduced = _factors()

    def joined(pattern: str, rows: list[Any]) -> Any:
        import numpy as np

        design = np.array(rows)
        return design.sum(axis=0, keepdims=True) if pattern == "infinite" else reduced(design)

    def join(batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np

        pattern, size = "", 0
        rows: list[Any] = []
        for batch in batches:
            patterns, sizes = (batch.column(i).to_pylist() for i in (0, 3))
            for own, more, numbers in zip(patterns, sizes, batch.column(4), strict=True):
                if own != pattern:
                    if rows:
                        yield records(pattern, 0, size, joined(pattern, rows))
                    pattern, size, rows = own, 0, []
                width = columns if own == "infinite" else 1 + own.count("1")
                values = np.frombuffer(numbers.as_buffer())
                rows.append(np.concatenate([np.zeros(width - len(values)), values]))
                size += more
                if len(rows) > 2 * width:
                    rows = list(joined(own, rows))
        if rows:
            yield records(pattern, 0, size, joined(pattern, rows))

    return join


def _factors() -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """Two functions: one writes the rows of a factor as records, one makes a factor of rows."""

    def records(pattern: str, part: int, size: int, factor: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        rows = [np.trim_zeros(row, "f").tobytes() for row in factor]
        rest = len(rows) - 1
        return pa.RecordBatch.from_arrays(
            [
                pa.array([pattern] * len(rows), pa.string()),
                pa.array([part] * len(rows), pa.int32()),
                pa.array(range(len(rows)), pa.int32()),
                pa.array([size, *[0] * rest], pa.int64()),
                pa.array(rows, pa.binary()),
            ],
            ["pattern", "part", "place", "size", "numbers"],
        )

    def reduced(design: Any) -> Any:
        import numpy as np

        return design if len(design) <= design.shape[1] else np.linalg.qr(design, mode="r")

    return records, reduced
