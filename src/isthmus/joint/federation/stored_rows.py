"""Rows that were copied from a table, in memory or in a file, as a source."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.disclosure.row_hashes import canonical_order, chunks
from isthmus.plurals import counted
from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source, countable
from isthmus.statistics import (
    CodedRows,
    CountPlan,
    Counts,
    Expansion,
    Kind,
    Moments,
    MomentsBuilder,
    Schema,
)
from isthmus.statistics.coded import as_codes
from isthmus.types import Floats, Integers


@final
class StoredRows(Source):
    """Rows of numbers, levels as codes, that do not change.

    Statistics are added up chunk by chunk, so that rows in a file are never all in memory.

    Parameters
    ----------
    schema
        The variables, possibly with basis functions.
    values
        The rows, in memory or mapped from a file.
    columns
        The column of each variable; all in their order by default.
    """

    def __init__(
        self, schema: Schema, values: Floats, columns: Sequence[int] | None = None
    ) -> None:
        self._schema = schema
        self._values = values
        self._columns = tuple(range(len(schema)) if columns is None else columns)

    def schema(self) -> Schema:
        return self._schema

    @property
    def number(self) -> int:
        """Number of rows."""
        return len(self._values)

    def part(self, rows: slice, names: Sequence[str] | None = None) -> Floats:
        """Return some rows of these variables; of all by default."""
        wanted = range(len(self._schema)) if names is None else self._schema.indices(names)
        return np.asarray(self._values[rows][:, [self._columns[i] for i in wanted]])

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        schema = self._schema if names is None else self._schema.subset(names)
        builder = MomentsBuilder(schema)
        for rows in chunks(self.number):
            part = self.part(rows, schema.names)
            columns: list[NDArray[np.generic]] = [
                part[:, i].astype(np.int64) if v.kind is Kind.DISCRETE else part[:, i]
                for i, v in enumerate(schema.variables)
            ]
            builder.update(columns)
        return builder.finish()

    def counts(self, plan: CountPlan) -> Counts:
        schema = countable(self._schema, plan)
        return Counts.from_rows(schema, self._coded, plan=plan)

    @cached_property
    def _coded(self) -> CodedRows:
        """The codes of all discrete variables, each in one or two bytes."""
        discrete = self._schema.of_kind(Kind.DISCRETE)
        sizes = self._schema.subset(discrete).cardinalities
        codes = as_codes(np.zeros((len(discrete), self.number), dtype=np.uint8), sizes)
        for rows in chunks(self.number):
            codes[:, rows] = self.part(rows, discrete).T
        coded = CodedRows(codes)
        # With fewer cells than rows the distinct rows are found quickly, and are all we need.
        return coded.distinct(sizes) if math.prod(sizes.tolist()) <= self.number // 4 else coded

    def rows(self) -> Floats:
        if self._columns == tuple(range(self._values.shape[1])):
            return self._values
        return self.part(slice(None))

    def with_features(self, expansion: Expansion) -> StoredRows:
        schema = expansion.widen(self._schema)
        places = [self._columns[i] for i in self._schema.indices(schema.names)]
        return StoredRows(schema, self._values, places)

    def disclosure(self) -> Disclosure:
        return Disclosure.none()

    def __repr__(self) -> str:
        variables = counted(len(self._schema), "variable")
        return f"StoredRows({counted(self.number, 'row')}, {variables})"


@final
class RowStore:
    """Takes rows batch by batch, and puts them into an order that depends on their values only.

    A database returns rows in any order. Whatever depends on the order of the rows would otherwise
    differ between two readings of the same table.

    Parameters
    ----------
    width
        Number of columns.
    folder
        Where to put the rows: in a file that has no name, so that nobody else can open it and
        nothing is left behind. ``None`` keeps them in memory.
    """

    def __init__(self, width: int, folder: str | os.PathLike[str] | None) -> None:
        self._width = width
        self._folder = folder
        self._rows = 0
        self._batches: list[Floats] = []
        self._file = None
        if folder is not None:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, batch: Floats) -> None:
        """Add rows."""
        self._rows += len(batch)
        if self._file is None:
            self._batches.append(batch)
        else:
            self._file.write(np.ascontiguousarray(batch, dtype=np.float64).data)

    def finish(self) -> tuple[Floats, Integers]:
        """Return all rows, which cannot be written to, and the position at which each arrived."""
        arrived = self._arrived()
        order = canonical_order(arrived)
        if self._folder is None:
            values: Floats = arrived[order]
        else:
            with tempfile.TemporaryFile(dir=self._folder) as sorted_rows:
                for rows in chunks(self._rows):
                    sorted_rows.write(np.ascontiguousarray(arrived[order[rows]]).data)
                values = self._mapped(sorted_rows)
        values.flags.writeable = False
        return values, order

    def _arrived(self) -> Floats:
        if self._file is not None:
            return self._mapped(self._file)
        if len(self._batches) == 1:
            return self._batches[0]
        return np.concatenate([np.zeros((0, self._width)), *self._batches])

    def _mapped(self, file: Any) -> Floats:
        if not self._rows:
            return np.zeros((0, self._width))
        file.flush()
        mapped: Floats = np.memmap(
            file, dtype=np.float64, mode="r", shape=(self._rows, self._width)
        )
        return mapped
