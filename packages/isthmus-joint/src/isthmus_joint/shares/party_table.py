"""The table of one party: identifiers, and the columns that the study says it holds."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Integers
from isthmus.errors import DataError, MissingValuesError, SchemaError, counted
from isthmus.statistics import Kind, Schema
from isthmus.tables.conversion import persons_in
from isthmus.tables.frame import Frame
from isthmus.tables.names import as_narwhals
from isthmus_joint.agreement.identity import Identity
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.roster import Persons
from isthmus_joint.agreement.study import Study
from isthmus_joint.extracts.checks import ReleaseCandidates
from isthmus_joint.shares.protocol import IdentifierKind, two_parties
from isthmus_joint.shares.requests import CrossMoments, OwnTables

PIECE = 10_000
"""Values of a fingerprint that are written at a time."""

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
SHOWN = 3
"""Error messages name at most this many rows, and never an identifier."""


def canonical(values: Iterable[Any], kind: IdentifierKind, column: str) -> list[str]:
    """Return identifiers as text in one form.

    Text is brought into Unicode normal form C. Integers are written in decimal, without leading
    zeros.

    Raises
    ------
    DataError
        Values are missing, not of this kind, ambiguous or repeated. The message names rows, never
        an identifier.
    """
    given = [_plain(v) for v in values]
    missing = [i for i, v in enumerate(given) if v is None]
    if missing:
        raise MissingValuesError(
            f"The identifier {column!r} is missing in {_rows(missing)}. Remove these rows."
        )
    read = _text if kind is IdentifierKind.TEXT else _integer
    found = [read(v) for v in given]
    wrong = [i for i, v in enumerate(found) if v is None]
    if wrong:
        raise DataError(f"{column!r} in {_rows(wrong)}: {_REASONS[kind]}")
    known = [v for v in found if v is not None]
    _require_distinct(known, column)
    return known


_REASONS = {
    IdentifierKind.TEXT: (
        "the study says that identifiers are text. These are not text, are empty, or have spaces "
        "at an end or control characters. Numbers lose leading zeros when a table is read: keep "
        "the column as text, and remove spaces."
    ),
    IdentifierKind.INTEGER: (
        "the study says that identifiers are integers. These are not, or are text with leading "
        "zeros, spaces or signs, which the other party may write in another way. If leading zeros "
        "matter, draft the study with identifiers that are text."
    ),
}


def _plain(value: Any) -> Any:
    """Return a value of Python; ``None`` if it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    missing = value is None or (isinstance(value, float) and value != value)
    return None if missing else value


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = unicodedata.normalize("NFC", value)
    odd = text != text.strip() or any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text)
    return None if odd or not text else text


def _integer(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value)
    return text if INTEGER.fullmatch(text) else None


def _require_distinct(found: list[str], column: str) -> None:
    first: dict[str, int] = {}
    repeated = []
    for i, value in enumerate(found):
        if first.setdefault(value, i) != i:
            repeated += [first[value], i]
    if repeated:
        raise DataError(
            f"Some identifiers in {column!r} occur more than once, for instance in "
            f"{_rows(sorted(set(repeated)))}. Each person needs exactly one row: combine or remove "
            "repeated rows. Identifiers that look alike can be equal after Unicode normalisation."
        )


def _rows(positions: list[int]) -> str:
    shown = ", ".join(str(i + 1) for i in positions[:SHOWN])
    more = f" and {len(positions) - SHOWN} more" if len(positions) > SHOWN else ""
    return f"row {shown}" if len(positions) == 1 else f"rows {shown}{more}"


def hashed(identifiers: list[str], key: bytes) -> list[str]:
    """Return a keyed hash of each identifier, so that the engine does not get identifiers.

    The key is made of random numbers of both parties, is new in each attempt, and is never written
    to disk.
    """
    start = hmac.new(key, digestmod=hashlib.sha256)
    hashes = []
    for value in identifiers:
        each = start.copy()
        each.update(value.encode())
        hashes.append(each.hexdigest())
    return hashes


@final
@dataclass(frozen=True, eq=False)
class PartyTable:
    """The rows of one party, as the study reads them.

    Attributes
    ----------
    columns
        Values, shape (rows, variables); levels as codes.
    fingerprint
        Identifies the table without revealing it: only this party has the key.
    identifiers
        The identifier of each row, in the form in which it is compared.
    persons
        The person of each row, as codes from zero; ``None`` if every row is a person of its own.
    """

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
        except SchemaError as error:
            raise SchemaError(
                f"{error} The study states which columns {name!r} holds, and their levels: check "
                "that this is the table and the HOME of this party, or draft the study again."
            ) from None
        if len(columns) != len(identifiers):
            raise SchemaError(
                f"There are {len(identifiers)} identifiers and {len(columns)} rows of variables."
            )
        _require_bounds(columns, names, study)
        counted = persons.column and persons.column != terms.identifier
        return cls(
            names,
            columns,
            _fingerprint(identifiers, columns, study, identity),
            identifiers,
            persons_in(data, persons.column) if counted else None,
        )

    def fingerprints(self, schema: Schema, rows: NDArray[np.intp], secret: bytes) -> dict[str, str]:
        """Return a keyed fingerprint of who has which value of each column, in any order."""
        texts = [
            np.array([self.identifiers[i] for i in rows[k : k + PIECE]])
            for k in range(0, len(rows), PIECE)
        ]
        order = rows[np.argsort(np.concatenate(texts), kind="stable")] if texts else rows
        prints = {}
        for i, name in enumerate(self.names):
            values, levels = self.columns[order, i].tolist(), schema[name].levels
            people = map(self.identifiers.__getitem__, order.tolist())
            cells = (levels[int(v)] for v in values) if levels else values
            made = hmac.new(secret, f"({name!r}, [".encode(), hashlib.sha256)
            for text in chain(_listed(people), [b"], ["], _listed(cells), [b"])"]):
                made.update(text)
            prints[name] = made.hexdigest()
        return prints


def _listed(values: Iterable[object]) -> Iterator[bytes]:
    """Yield what values are written as in a list, a few at a time.

    To write millions at once would keep a party from giving signs of life.
    """
    rest, separator = iter(values), ""
    while piece := list(islice(rest, PIECE)):
        yield (separator + ", ".join(map(repr, piece))).encode()
        separator = ", "


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
    identifiers: list[str], columns: NDArray[np.float64], study: Study, identity: Identity
) -> str:
    key = identity.fingerprint_key(b"data of " + study.identity)
    made = hmac.new(key.reveal(), digestmod=hashlib.sha256)
    order = sorted(range(len(identifiers)), key=identifiers.__getitem__)
    made.update(repr([identifiers[i] for i in order]).encode())
    made.update(np.ascontiguousarray(columns[order]).tobytes())
    return made.hexdigest()


def stricter(policy: Policy, study: Study) -> Policy:
    """Return a policy with the rules on data of the study, where these are stricter."""
    terms = two_parties(study.protocol)
    return replace(
        policy,
        minimum_cohort=max(policy.minimum_cohort, terms.minimum_cohort),
        minimum_cell=max(policy.minimum_cell, terms.minimum_cell),
        largest_share=min(policy.largest_share, terms.largest_share),
        columns_per_row=min(policy.columns_per_row, terms.columns_per_row),
    )


def material_of(
    study: Study, name: str, table: PartyTable, rows: NDArray[np.intp]
) -> ReleaseCandidates:
    """Return the most that the requests of a study could release about some rows of a party.

    A network is neither a sum nor a table, so that of its rows only the number of persons matters.

    Parameters
    ----------
    rows
        The positions of the rows that the results are over.
    """
    terms = two_parties(study.protocol)
    persons = None if table.persons is None else table.persons[rows]
    if persons is not None:
        persons = np.unique(persons, return_inverse=True)[1].reshape(-1)
    values = table.columns[rows]
    more = _cells(study, name) if OwnTables.name in study.requests else 0
    if CrossMoments.name not in study.requests:
        return ReleaseCandidates({}, values[:, :0], more_columns=more, persons=persons)
    columns = {column: values[:, i] for i, column in enumerate(table.names)}
    more += len(terms.other(name).columns)
    return ReleaseCandidates(columns, values, more_columns=more, persons=persons)


def _cells(study: Study, name: str) -> int:
    """Return the largest number of cells that the other party can learn, whatever the network."""
    terms, schema = two_parties(study.protocol), study.schema
    own = terms.holding(name).columns
    total = 0
    for i, variable in enumerate(terms.order):
        before = terms.order[:i]
        if variable in own or not set(own).intersection(before) or terms.max_parents < 1:
            continue
        sizes = sorted((len(schema[v].levels) for v in before), reverse=True)
        total += len(schema[variable].levels) * math.prod(sizes[: terms.max_parents])
    return total


def constant_columns(study: Study, table: PartyTable, rows: NDArray[np.intp]) -> list[str]:
    """Return the names of continuous columns that are constant in these rows."""
    kinds = [study.schema[name].kind for name in table.names]
    spread = np.ptp(table.columns[rows], axis=0) if len(rows) else np.zeros(len(kinds))
    return [
        name
        for name, kind, width in zip(table.names, kinds, spread, strict=True)
        if kind is Kind.CONTINUOUS and width == 0
    ]
