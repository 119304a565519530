"""The table of one party: identifiers, and the columns that the study says it holds."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MissingValuesError, SchemaError
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.agreement.persons import Persons
from isthmus.joint.agreement.study import Study
from isthmus.joint.shares.identifiers import canonical, hashed
from isthmus.joint.shares.protocol import two_parties
from isthmus.plurals import counted
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.names import as_narwhals
from isthmus.sources.tables.persons import persons_in
from isthmus.statistics import Kind, Schema
from isthmus.types import Integers


@final
@dataclass(frozen=True, eq=False)
class PartyTable:
    """The rows of one party, as the study reads them.

    Attributes
    ----------
    hashes
        A hash of each person's identifier.
    columns
        Their values, shape (rows, variables); levels as codes.
    fingerprint
        Identifies the table without revealing it: only this party has the key.
    identifiers
        The identifier of each row, in the form in which it is compared.
    persons
        The person of each row, as codes from zero; ``None`` if every row is a person of its own.
    """

    hashes: list[str] = field(repr=False)
    names: tuple[str, ...]
    columns: NDArray[np.float64] = field(repr=False)
    fingerprint: str
    identifiers: list[str] = field(repr=False)
    persons: Integers | None = field(default=None, repr=False)

    @classmethod
    def read(
        cls,
        data: object,
        study: Study,
        name: str,
        identity: Identity,
        persons: Persons = Persons(),
    ) -> PartyTable:
        """Read a table in memory; errors name columns and rows, and never an identifier."""
        terms = two_parties(study.protocol)
        names = terms.holding(name).columns
        identifiers = canonical(
            _identifiers(data, terms.identifier), terms.identifier_kind, terms.identifier
        )
        try:
            columns = Frame(data, schema=study.schema.subset(names)).rows()
        except MissingValuesError as error:
            raise MissingValuesError(
                f"{str(error).split('. ')[0]}. Two parties cannot compute with missing values: "
                "remove these rows, or draft the study with a level of their own for them."
            ) from None
        if len(columns) != len(identifiers):
            raise SchemaError(
                f"There are {len(identifiers)} identifiers and {len(columns)} rows of variables."
            )
        _require_bounds(columns, names, study)
        hashes = hashed(identifiers, study.identity)
        counted = persons.column and persons.column != terms.identifier
        return cls(
            hashes,
            names,
            columns,
            _fingerprint(hashes, columns, study, identity),
            identifiers,
            persons_in(data, persons.column) if counted else None,
        )

    def fingerprints(self, schema: Schema, rows: NDArray[np.intp], secret: bytes) -> dict[str, str]:
        """Return a keyed fingerprint of each column: of who has which value, in any order of rows."""
        order = rows[np.argsort([self.identifiers[i] for i in rows], kind="stable")]
        people = [self.identifiers[i] for i in order]
        prints = {}
        for i, name in enumerate(self.names):
            values, levels = self.columns[order, i].tolist(), schema[name].levels
            cells = [levels[int(v)] for v in values] if levels else values
            text = repr((name, people, cells)).encode()
            prints[name] = hmac.new(secret, text, hashlib.sha256).hexdigest()
        return prints


def _identifiers(data: object, column: str) -> list[Any]:
    columns: Any = data if isinstance(data, Mapping) else as_narwhals(data)
    held = list(columns) if isinstance(data, Mapping) else list(getattr(columns, "columns", ()))
    if column not in held:
        raise SchemaError(
            f"The table lacks the identifier {column!r} that the study names. It has: {held[:20]}."
        )
    if isinstance(data, Mapping):
        return list(columns[column])
    values: list[Any] = columns.get_column(column).to_list()
    return values


def _require_bounds(columns: NDArray[np.float64], names: tuple[str, ...], study: Study) -> None:
    for i, name in enumerate(names):
        if study.schema[name].kind is not Kind.CONTINUOUS:
            continue
        low, high = study.bounds[name]
        outside = ~((columns[:, i] >= low) & (columns[:, i] <= high))
        if outside.any():
            raise DataError(
                f"{name!r} has {counted(int(outside.sum()), 'value')} outside of the bounds "
                f"{low:g} to {high:g} that the study states. Correct the values, or draft another "
                "study."
            )


def _fingerprint(
    hashes: list[str], columns: NDArray[np.float64], study: Study, identity: Identity
) -> str:
    key = identity.fingerprint_key(b"data of " + study.identity)
    made = hmac.new(key.reveal(), digestmod=hashlib.sha256)
    order = np.argsort(hashes)
    made.update("".join(hashes[i] for i in order).encode())
    made.update(np.ascontiguousarray(columns[order]).tobytes())
    return made.hexdigest()
