"""The data of a site as they were when it joined a study."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

import numpy as np

from isthmus.errors import DataError, MismatchError, SchemaError
from isthmus.joint.agreement.persons import Persons
from isthmus.joint.disclosure.row_hashes import chunks
from isthmus.joint.federation.stored_rows import RowStore, StoredRows
from isthmus.sources.base import Source
from isthmus.sources.tables.engines.find import is_lazy
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.lazy import Lazy
from isthmus.sources.tables.missing import KeepMissing
from isthmus.sources.tables.persons import PersonCodes, persons_in
from isthmus.sources.tables.series import Series
from isthmus.statistics import CountPlan, Kind, Schema
from isthmus.types import Floats, Integers

Hide = Callable[[Floats, Integers | None], Floats]
"""Returns rows with more missing values, given the rows and the persons that they describe."""


def local_source(data: object, schema: Schema, *, holes: bool = False) -> Source:
    """Return the data of a site as a source, read as a study says.

    Parameters
    ----------
    data
        The site's table or source.
    schema
        The variables of the study.
    holes
        Whether values may be missing.
    """
    if isinstance(data, Source):
        if data.schema() != schema:
            raise DataError("The source does not have the variables and levels of the study.")
        return data
    if isinstance(data, Mapping) or not is_lazy(data):
        return Frame(data, schema=schema, missing=KeepMissing() if holes else None)
    return Lazy(data, schema=schema)


def rows_with_holes(source: Source) -> Floats:
    """Return the rows of a site, with NaN for missing values. Tables of an engine are fetched."""
    if isinstance(source, Lazy):
        schema = source.schema()
        parts = [
            Frame(batch, schema=schema, missing=KeepMissing()).rows_with_holes()
            for batch in source.fetch(schema.names)
            if len(batch[schema.names[0]])
        ]
        return np.concatenate([np.zeros((0, len(schema))), *parts])
    return source.rows_with_holes() if isinstance(source, Frame) else source.rows()


@final
class Snapshot:
    """A copy of the variables of a study, which does not change with the table.

    Tables of an engine are fetched by one query, batch by batch. A live table can therefore not
    show a person who is admitted between two answers. The rows are in an order that depends on
    their values only, whatever the order in which the table returns them.

    Parameters
    ----------
    data
        The site's table or source.
    schema
        The variables of the study.
    persons
        The persons that the rows describe.
    folder
        A folder for the rows of a table of an engine, where they are in a file that nobody else can
        open. ``None`` keeps them in memory, as those of other tables.
    hide
        Hides values of rare patterns of missing values; ``None`` if no value may be missing.

    Attributes
    ----------
    values
        The rows that statistics are computed from.
    original
        The rows before values were hidden.

    Raises
    ------
    MismatchError
        The source has no rows, so that no rule can be checked.
    """

    def __init__(
        self,
        data: object,
        schema: Schema,
        persons: Persons,
        folder: str | os.PathLike[str] | None = None,
        hide: Hide | None = None,
    ) -> None:
        column, holes = persons.column, hide is not None
        source = local_source(data, schema, holes=holes)
        if column and isinstance(source, Series):
            raise SchemaError(
                "In a study of time series, the realisations are the persons. Identify them with "
                "by=, and state persons = 'rows' in the policy."
            )
        engine = isinstance(source, Lazy)
        self.folder = folder if engine else None
        self.values: Floats
        owners: Integers | None
        with RowStore(len(schema), self.folder) as store:
            if isinstance(source, Lazy):
                codes = PersonCodes()
                for batch in _batches(source, schema, column):
                    table = {n: batch[n] for n in schema.names}
                    store.add(rows_with_holes(local_source(table, schema, holes=holes)))
                    if column:
                        codes.add(batch, column)
                owners = codes.finish() if column else None
            else:
                store.add(rows_with_holes(source) if holes else source.rows())
                owners = persons_in(data, column) if column else None
            self.values, order = store.finish()
        if owners is None and schema.lags and not persons.not_persons:
            owners = _owners(source, len(self.values))
        self.persons: Integers | None = None if owners is None else owners[order]
        self.source: Source = StoredRows(schema, self.values)
        self.original = self.values
        if hide is not None and np.isnan(self.values).any():
            self.values = hide(self.values, self.persons)
            self.values.flags.writeable = False
            self.source = Frame(
                self.values, names=schema.names, schema=schema, missing=KeepMissing()
            )
        self._checksum = self._digest()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    def is_unchanged(self) -> bool:
        """Whether the copy is still what it was."""
        return self._digest() == self._checksum

    def _digest(self) -> bytes:
        content = hashlib.blake2b()
        for rows in chunks(len(self.values)):
            content.update(np.ascontiguousarray(self.values[rows]).data)
        return content.digest()


def _batches(source: Lazy, schema: Schema, column: str) -> Iterator[dict[str, Any]]:
    """Yield the columns of the study and that of the persons, some rows at a time."""
    names = [*schema.names, *([column] if column and column not in schema.names else [])]
    for batch in source.fetch(names):
        if len(batch[names[0]]):
            yield batch


def snapshot_of(
    data: object,
    schema: Schema,
    persons: Persons,
    folder: str | os.PathLike[str] | None = None,
    hide: Hide | None = None,
) -> Snapshot | None:
    """Return a snapshot; ``None`` if the data are a source without rows."""
    try:
        return Snapshot(data, schema, persons, folder, hide)
    except MismatchError:
        return None


def fingerprint_of_sums(source: Source, schema: Schema, key: bytes) -> str:
    """Identify data without rows by their sums, without revealing them: keyed."""
    fingerprint = hmac.new(key, digestmod=hashlib.sha256)
    if isinstance(source, Frame) and source.has_missing:
        rows = np.sort(source.rows_with_holes(), axis=0)
        fingerprint.update(rows.tobytes())
        return fingerprint.hexdigest()
    continuous, discrete = schema.of_kind(Kind.CONTINUOUS), schema.of_kind(Kind.DISCRETE)
    if continuous:
        moments = source.moments(continuous)
        values = [moments.n, *moments.mean().tolist()]
        values += moments.covariance().diagonal().tolist()
        # An engine may add in another order next time.
        fingerprint.update(" ".join(f"{v:.7g}" for v in values).encode())
    if discrete:
        counts = source.counts(CountPlan.sets([n] for n in discrete))
        fingerprint.update(repr([counts.table([n]).tolist() for n in discrete]).encode())
    return fingerprint.hexdigest()


def _owners(source: Source, rows: int) -> Integers:
    """Return the realisation of each row of a time series; one for all if nothing is known."""
    return source.owners if isinstance(source, Series) else np.zeros(rows, dtype=np.int64)
