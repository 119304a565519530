"""The data of a site as they were when it joined a study."""

from __future__ import annotations

import hashlib
import hmac
from functools import cached_property
from typing import final

import numpy as np

from isthmus.errors import DataError, MismatchError, SchemaError
from isthmus.parties.agreement.persons import Persons
from isthmus.sources.base import Source
from isthmus.sources.tables.engines.find import is_lazy
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.lazy import Lazy
from isthmus.sources.tables.persons import persons_in
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
    """A copy of the variables of a study, in memory, which does not change with the table.

    Tables of an engine are fetched by one query. A live table can therefore not show a person who
    is admitted between two answers.

    Parameters
    ----------
    data
        The site's table or source.
    schema
        The variables of the study.
    persons
        Who the rows describe.

    Raises
    ------
    MismatchError
        The source has no rows, so that no rule can be checked.
    """

    def __init__(self, data: object, schema: Schema, persons: Persons) -> None:
        source = local_source(data, schema)
        column = persons.column
        if isinstance(source, Lazy):
            names = [*schema.names, *([column] if column else [])]
            fetched = source.fetch(names)
            data = fetched
            source = Frame({n: fetched[n] for n in schema.names}, schema=schema)
        elif isinstance(source, Frame):
            source = source.snapshot()
        self.source: Source = source
        self.values: Floats = source.rows()
        self.values.flags.writeable = False
        self.persons: Integers | None = None
        if column and isinstance(source, Series):
            raise SchemaError(
                "In a study of time series, the realisations are the persons. Identify them with "
                "by=, and state persons = 'rows' in the policy."
            )
        if column:
            self.persons = persons_in(data, column)
        elif schema.lags and not persons.are_nobody:
            self.persons = _owners(source, len(self.values))
        self._checksum = self._digest()

    @cached_property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    def is_unchanged(self) -> bool:
        """Whether the copy is still what it was."""
        return self._digest() == self._checksum

    def _digest(self) -> bytes:
        return hashlib.blake2b(self.source.rows().tobytes()).digest()


def snapshot_of(data: object, schema: Schema, persons: Persons) -> Snapshot | None:
    """Return a snapshot; ``None`` if the data are a source without rows."""
    try:
        return Snapshot(data, schema, persons)
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
