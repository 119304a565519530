"""Freezing: from a table of a site to rows that no longer change.

Rows that lack a value are dropped, and values are clipped to the bounds of the study.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, SchemaError, counted
from isthmus.results.reading import Disclosure
from isthmus.statistics import CountPlan, Counts, Expansion, Kind, Moments, Schema
from isthmus.statistics.coded import CodedRows, as_codes
from isthmus.statistics.rows import MomentsBuilder
from isthmus.tables.base import Source, countable
from isthmus.tables.conversion import person_words
from isthmus.tables.engines.find import is_lazy
from isthmus.tables.frame import Frame
from isthmus.tables.lazy import Lazy
from isthmus.tables.missing import KeepMissing
from isthmus.tables.series import Series
from isthmus_joint.agreement.study import Bounds

Words = NDArray[np.uint64]


@final
class FrozenRows(NamedTuple):
    """Rows that no longer change, and what happened on the way.

    Attributes
    ----------
    values
        The rows, levels as codes, NaN for values that may be missing.
    persons
        The person that each row describes, as codes from zero; ``None`` if each row is a person of
        its own.
    dropped
        Number of rows that lacked a value, an identifier, or had a level that is not listed.
    clipped
        Number of rows with a value outside of the bounds.
    absent, outside
        Number of rows that were dropped because of each variable, and that were clipped in it;
        only variables with such rows are listed.
    """

    values: Floats
    persons: Integers | None
    dropped: int
    clipped: int
    absent: Mapping[str, int]
    outside: Mapping[str, int]

    def why_dropped(self) -> str:
        """Return which variables rows were dropped because of, with numbers of rows."""
        return _counts(self.absent)

    def why_clipped(self) -> str:
        """Return in which variables rows were clipped, with numbers of rows."""
        return _counts(self.outside)

    def remarks(self) -> str:
        """Return sentences about rows that were dropped or clipped, for an error."""
        text = ""
        if self.absent:
            text += (
                f" {counted(self.dropped, 'row')} of the table lacked a value or had a level "
                f"that the study does not list, and were dropped: {self.why_dropped()}."
            )
        if self.outside:
            text += (
                f" Values outside of the bounds of the study were clipped: {self.why_clipped()}."
            )
        return text


def _counts(rows: Mapping[str, int]) -> str:
    names = sorted(rows, key=lambda name: -rows[name])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(f"{name!r} ({rows[name]:,})" for name in names[:5]) + more


def read_rows(
    data: object, schema: Schema, column: str
) -> tuple[Floats, Words | None, NDArray[np.bool_]]:
    """Return all rows with NaN for missing values, their persons, and which rows name nobody.

    A `column` identifies persons, if it is not empty; they are given as hashes.
    """
    values, persons, nobody = [np.zeros((0, len(schema)))], [np.zeros(0, np.uint64)], [_none(0)]
    for table in _batches(data, schema, column):
        if isinstance(table, Source):
            values.append(table.rows())
            if isinstance(table, Series):
                if column:
                    raise SchemaError(
                        "In a study of time series, the realisations are the persons. Identify "
                        "them with by=, and state persons = 'rows' in the policy."
                    )
                persons.append(table.owners.astype(np.uint64))
            elif schema.lags:  # nobody knows where one realisation ends
                persons.append(np.zeros(len(values[-1]), dtype=np.uint64))
            elif column:
                raise SchemaError(f"A source has no column {column!r} that identifies persons.")
            nobody.append(_none(len(values[-1])))
            continue
        values.append(Frame(table, schema=schema, missing=KeepMissing()).rows_with_holes())
        if column:
            words, missing = person_words(table, column)
            persons.append(words)
            nobody.append(missing)
        else:
            if schema.lags:
                persons.append(np.zeros(len(values[-1]), dtype=np.uint64))
            nobody.append(_none(len(values[-1])))
    owners = np.concatenate(persons) if column or schema.lags else None
    return np.concatenate(values), owners, np.concatenate(nobody)


def _none(rows: int) -> NDArray[np.bool_]:
    return np.zeros(rows, dtype=np.bool_)


def _batches(data: object, schema: Schema, column: str) -> Iterator[object]:
    """Yield the table, some rows at a time if an engine holds them."""
    if isinstance(data, Source):
        _require_schema(data, schema)
    if not isinstance(data, Lazy) and (isinstance(data, Source | Mapping) or not is_lazy(data)):
        yield data
        return
    table = data if isinstance(data, Lazy) else Lazy(data, schema=schema)
    names = [*schema.names, *([column] if column and column not in schema.names else [])]
    for batch in table.fetch(names):
        if len(batch[names[0]]):
            yield batch


def local_source(data: object, schema: Schema, *, holes: bool = False) -> Source:
    """Return the data of a simulated site as a source, read as a study says."""
    if isinstance(data, Source):
        _require_schema(data, schema)
        return data
    if isinstance(data, Mapping) or not is_lazy(data):
        return Frame(data, schema=schema, missing=KeepMissing() if holes else None)
    return Lazy(data, schema=schema)


def rows_with_holes(source: Source) -> Floats:
    """Return the rows of a site, with NaN for missing values. Tables of an engine are fetched."""
    if isinstance(source, Lazy):
        return read_rows(source, source.schema(), "")[0]
    return source.rows_with_holes() if isinstance(source, Frame) else source.rows()


def _require_schema(source: Source, schema: Schema) -> None:
    if source.schema() != schema:
        raise DataError("The source does not have the variables and levels of the study.")


def freeze_rows(
    rows: tuple[Floats, Words | None, NDArray[np.bool_]],
    schema: Schema,
    bounds: Bounds,
    *,
    holes: bool = False,
) -> FrozenRows:
    """Drop rows that lack a value, and clip values.

    Parameters
    ----------
    holes
        Whether values of continuous variables may be missing.
    """
    values, words, nobody = rows
    continuous = [schema.index(name) for name in schema.of_kind(Kind.CONTINUOUS)]
    absent = np.isnan(values)
    if holes:
        absent[:, continuous] = False
    keep = ~absent.any(axis=1) & ~nobody
    # Rows without any value say nothing, and are not counted.
    keep &= ~np.isnan(values).all(axis=1)
    values = np.array(values[keep], dtype=np.float64)
    outside, clipped = _none(len(values)), {}
    for i in continuous:
        low, high = bounds[schema.names[i]]
        beyond = (values[:, i] < low) | (values[:, i] > high)
        outside |= beyond
        clipped[schema.names[i]] = int(beyond.sum())
        values[:, i] = np.clip(values[:, i], low, high)
    values.flags.writeable = False
    lacking = dict(zip(schema.names, absent.sum(axis=0).tolist(), strict=True))
    return FrozenRows(
        values,
        None if words is None else np.unique(words[keep], return_inverse=True)[1].reshape(-1),
        int((~keep).sum()),
        int(outside.sum()),
        {name: rows for name, rows in lacking.items() if rows},
        {name: rows for name, rows in clipped.items() if rows},
    )


# --- The rows of an extract, in memory or in a file, as a source --------------------------------

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
