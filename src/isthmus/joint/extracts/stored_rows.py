"""The rows of an extract, in memory or in a file, as a source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.plurals import counted
from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source, countable
from isthmus.sources.tables.frame import Frame
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
from isthmus.types import Floats

CHUNK = 2**16
"""Number of rows that are in memory at once, where they are in a file."""


def chunks(rows: int) -> Iterator[slice]:
    """Yield slices that cover all rows."""
    for start in range(0, rows, CHUNK):
        yield slice(start, min(start + CHUNK, rows))


@final
class StoredRows(Source):
    """Rows of numbers, levels as codes, that do not change.

    Statistics are added up chunk by chunk, so that rows in a file are never all in memory.

    Parameters
    ----------
    values
        The rows, in memory or mapped from a file, with one column per variable.
    """

    def __init__(self, schema: Schema, values: Floats) -> None:
        self._schema = schema
        self._values = values

    def schema(self) -> Schema:
        return self._schema

    @property
    def number(self) -> int:
        """Number of rows."""
        return len(self._values)

    def part(self, rows: slice, names: Sequence[str] | None = None) -> Floats:
        """Return some rows of these variables; of all by default."""
        part = self._values[rows]
        return np.asarray(part if names is None else part[:, list(self._schema.indices(names))])

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
        return self._values

    def with_features(self, expansion: Expansion) -> Source:
        names = expansion.names  # all continuous
        rows = self.part(slice(None), names)
        return Frame(rows, names=names, schema=self._schema.subset(names)).with_features(expansion)

    def disclosure(self) -> Disclosure:
        return Disclosure.none()

    def __repr__(self) -> str:
        variables = counted(len(self._schema), "variable")
        return f"StoredRows({counted(self.number, 'row')}, {variables})"
