"""Freezing: from a table of a site to rows that no longer change.

Rows that lack a value are dropped, values are clipped to the bounds of the study and blurred within
one resolution, and the rows are put into an order that does not depend on the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.joint.agreement.variables import Bounds, Resolutions
from isthmus.joint.cohorts.row_hashes import Words, canonical_order
from isthmus.sources.base import Source
from isthmus.sources.tables.columns import LARGEST_EXACT
from isthmus.sources.tables.engines.find import is_lazy
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.lazy import Lazy
from isthmus.sources.tables.missing import KeepMissing
from isthmus.sources.tables.persons import person_words
from isthmus.sources.tables.series import Series
from isthmus.statistics import Kind, Schema
from isthmus.types import Floats

STEPS = 2**16
"""Number of values within one resolution that a blurred value can have."""


@final
class FrozenRows(NamedTuple):
    """Rows that no longer change, and what happened on the way.

    Attributes
    ----------
    values
        The rows, levels as codes, NaN for values that may be missing.
    persons
        The person that each row describes, as a keyed hash or a number; ``None`` if each row is a
        person of its own.
    dropped
        Number of rows that lacked a value, an identifier, or had a level that is not listed.
    clipped
        Number of rows with a value outside of the bounds.
    known
        Number of persons who were left out because they are in another cohort.
    absent, outside
        Number of rows that were dropped because of each variable, and that were clipped in it;
        only variables with such rows are listed.
    """

    values: Floats
    persons: Words | None
    dropped: int
    clipped: int
    known: int
    absent: Mapping[str, int]
    outside: Mapping[str, int]

    def why_dropped(self) -> str:
        """Return which variables rows were dropped because of, with numbers of rows."""
        return _counts(self.absent)

    def why_clipped(self) -> str:
        """Return in which variables rows were clipped, with numbers of rows."""
        return _counts(self.outside)


def _counts(rows: Mapping[str, int]) -> str:
    names = sorted(rows, key=lambda name: -rows[name])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(f"{name!r} ({rows[name]:,})" for name in names[:5]) + more


def read_rows(
    data: object, schema: Schema, column: str, key: bytes
) -> tuple[Floats, Words | None, NDArray[np.bool_]]:
    """Return all rows with NaN for missing values, their persons, and which rows name nobody.

    A `column` identifies persons, if it is not empty; `key` is that of the hashes of identifiers.
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
            words, missing = person_words(table, column, key)
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
        return read_rows(source, source.schema(), "", b"")[0]
    return source.rows_with_holes() if isinstance(source, Frame) else source.rows()


def _require_schema(source: Source, schema: Schema) -> None:
    if source.schema() != schema:
        raise DataError("The source does not have the variables and levels of the study.")


def freeze_rows(
    rows: tuple[Floats, Words | None, NDArray[np.bool_]],
    schema: Schema,
    bounds: Bounds,
    resolutions: Resolutions,
    *,
    holes: bool = False,
    known: Words | None = None,
) -> FrozenRows:
    """Drop, clip, blur and order rows.

    Parameters
    ----------
    rows
        What `read_rows` returned.
    resolutions
        Within how wide an interval each continuous variable is blurred; empty for not at all.
    known
        Persons who are in other cohorts, and are left out.
    """
    values, persons, nobody = rows
    continuous = [schema.index(name) for name in schema.of_kind(Kind.CONTINUOUS)]
    absent = np.isnan(values)
    if holes:
        absent[:, continuous] = False
    keep = ~absent.any(axis=1) & ~nobody
    dropped, left_out = int((~keep).sum()), 0
    if known is not None and persons is not None:
        again = keep & np.isin(persons, known)
        left_out = len(np.unique(persons[again]))
        keep &= ~again
    values = np.array(values[keep], dtype=np.float64)
    persons = None if persons is None else persons[keep]
    outside, beyond = _none(len(values)), {}
    for i in continuous:
        name, column = schema.names[i], values[:, i]
        low, high = bounds[name]
        beyond[name] = (column < low) | (column > high)
        outside |= beyond[name]
        values[:, i] = (
            blurred(column, low, high, resolutions[name])
            if name in resolutions
            else np.clip(column, low, high)
        )
    order = canonical_order(values)
    values = values[order]
    values.flags.writeable = False
    owners = None if persons is None else persons[order]
    lacking = dict(zip(schema.names, absent.sum(axis=0).tolist(), strict=True))
    clipped = {name: int(rows.sum()) for name, rows in beyond.items()}
    return FrozenRows(
        values,
        owners,
        dropped,
        int(outside.sum()),
        left_out,
        {name: rows for name, rows in lacking.items() if rows},
        {name: rows for name, rows in clipped.items() if rows},
    )


def blurred(values: Floats, low: float, high: float, resolution: float) -> Floats:
    """Return values at random places of an interval of one resolution around each of them.

    Every result is a multiple of ``resolution / STEPS``, and its remainder modulo ``resolution`` is
    uniformly distributed and independent of the value. What sums of such numbers are modulo the
    resolution has therefore a distribution that does not depend on the data. The resolution is a
    power of two, so that no rounding of floating-point numbers is involved.

    Parameters
    ----------
    values
        The values, which are clipped first, so that the results are within the bounds.
    """
    unit = resolution / STEPS
    if max(abs(low), abs(high)) / unit >= LARGEST_EXACT:
        raise DataError(
            f"A resolution of {resolution} is too fine for values between {low} and {high}. "
            "Subtract a constant from the variable, or state a coarser resolution."
        )
    first = np.ceil((low + resolution / 2) / unit)
    last = np.floor((high - resolution / 2) / unit)
    whole = np.clip(np.rint(np.clip(values, low, high) / unit), first, last)
    found: Floats = (whole + (draw(len(values)) - STEPS // 2)) * unit
    return found


def draw(size: int) -> Floats:
    """Return random whole numbers below `STEPS`, from the system's random numbers."""
    return np.frombuffer(os.urandom(2 * size), dtype="<u2").astype(np.float64)
