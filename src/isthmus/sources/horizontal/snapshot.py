"""The data of a site as they were when it joined a study."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator
from typing import Any, final

import numpy as np

from isthmus.errors import DataError, MismatchError, SchemaError
from isthmus.parties.agreement.persons import Persons
from isthmus.parties.disclosure.row_hashes import chunks
from isthmus.sources.base import Source
from isthmus.sources.horizontal.stored_rows import RowStore, StoredRows
from isthmus.sources.tables.engines.find import is_lazy
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.lazy import Lazy
from isthmus.sources.tables.persons import PersonCodes, persons_in
from isthmus.sources.tables.series import Series
from isthmus.statistics import Kind, Plan, Schema
from isthmus.types import Floats, Integers


def local_source(data: object, schema: Schema) -> Source:
    """Return the data of a site as a source, read as a study says."""
    if isinstance(data, Source):
        if data.schema() != schema:
            raise DataError("The source does not have the variables and levels of the study.")
        return data
    return Lazy(data, schema=schema) if is_lazy(data) else Frame(data, schema=schema)


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
        Who the rows describe.
    folder
        A folder for the rows of a table of an engine, where they are in a file that nobody else can
        open. ``None`` keeps them in memory, as those of other tables.

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
    ) -> None:
        source = local_source(data, schema)
        column = persons.column
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
                    store.add(Frame({n: batch[n] for n in schema.names}, schema=schema).rows())
                    if column:
                        codes.add(batch, column)
                owners = codes.finish() if column else None
            else:
                store.add(source.rows())
                owners = persons_in(data, column) if column else None
            self.values, order = store.finish()
        if owners is None and schema.lags and not persons.are_nobody:
            owners = _owners(source, len(self.values))
        self.persons: Integers | None = None if owners is None else owners[order]
        self.source: Source = StoredRows(schema, self.values)
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
) -> Snapshot | None:
    """Return a snapshot; ``None`` if the data are a source without rows."""
    try:
        return Snapshot(data, schema, persons, folder)
    except MismatchError:
        return None


def fingerprint_of_sums(source: Source, schema: Schema, key: bytes) -> str:
    """Identify data without rows by their sums, without revealing them: keyed."""
    fingerprint = hmac.new(key, digestmod=hashlib.sha256)
    continuous, discrete = schema.of_kind(Kind.CONTINUOUS), schema.of_kind(Kind.DISCRETE)
    if continuous:
        moments = source.moments(continuous)
        values = [moments.n, *moments.mean().tolist()]
        values += moments.covariance().diagonal().tolist()
        # An engine may add in another order next time.
        fingerprint.update(" ".join(f"{v:.7g}" for v in values).encode())
    if discrete:
        counts = source.counts(Plan.sets([n] for n in discrete))
        fingerprint.update(repr([counts.table([n]).tolist() for n in discrete]).encode())
    return fingerprint.hexdigest()


def _owners(source: Source, rows: int) -> Integers:
    """Return the realisation of each row of a time series; one for all if nothing is known."""
    return source.owners if isinstance(source, Series) else np.zeros(rows, dtype=np.int64)
