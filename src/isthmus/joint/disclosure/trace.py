"""The trace of a site's data: what two releases need to be compared, without the values."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import LedgerError
from isthmus.joint.disclosure.row_hashes import Words, bits_of, chunks, mixed
from isthmus.statistics import Schema
from isthmus.types import Floats, Integers

LANES = 4
"""Number of sums of 64 bits in a fingerprint."""

MISSING = np.uint32(0)
"""The hash of a missing value."""

IDENTIFIER = "\0identifier "
"""Prefix of the names of identifier columns; no variable has such a name."""

ORIGINAL = "\0original "
"""Prefix of the names of columns that contain values before some were hidden."""


@final
@dataclass(frozen=True, eq=False)
class Trace:
    """Keyed hashes of the rows of a site.

    A trace contains no value, and without the key of the site nobody can compute one. Two traces
    with the same key tell how many persons differ between two versions of a table, on any of their
    common variables.

    Attributes
    ----------
    key
        Identifies the key.
    names
        The variables.
    cells
        A hash of each value, shape (rows, variables).
    owners
        The person of each row, as codes from zero.
    discrete
        Names of the discrete variables.
    """

    key: str
    names: tuple[str, ...]
    cells: NDArray[np.uint32]
    owners: Integers
    discrete: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        secret: bytes,
        schema: Schema,
        values: Floats,
        owners: Integers | None,
        identifiers: tuple[str, Sequence[str]] | None = None,
        folder: str | os.PathLike[str] | None = None,
        original: Floats | None = None,
    ) -> Trace:
        """Compute the trace of rows.

        Parameters
        ----------
        secret
            The key of the site.
        schema, values
            The variables, and the rows with levels as codes.
        owners
            The person of each row; ``None`` if every row is a person of its own.
        identifiers
            Name and values of a column that identifies persons. It becomes one more column of the
            trace, so that an exchange of two persons with the same values is a difference. Without
            it, persons are compared by their values alone.
        folder
            Folder for the hashes, which are in an unnamed file; ``None`` keeps them in memory.
        original
            The rows before values were hidden, if some were. Persons are compared by these, too.
        """
        cells = _empty_cells(values.shape, folder)
        key = _word(secret, b"value")
        levels = {
            i: np.array([_hash_of_level(secret, v) for v in variable.levels], np.uint64)
            for i, variable in enumerate(schema.variables)
            if variable.levels
        }
        for rows in chunks(len(values)):
            for i, column in enumerate(np.asarray(values[rows]).T):
                hashes = (
                    levels[i][column.astype(np.int64)]
                    if i in levels
                    else mixed(bits_of(column) ^ key)
                )
                cells[rows, i] = hashes >> np.uint64(32)
                if i not in levels:  # zero stands for a missing value, and for nothing else
                    known = cells[rows, i]
                    known[known == MISSING] = 1
                    known[np.isnan(column)] = MISSING
        if owners is None:
            owners = np.arange(len(values), dtype=np.int64)
        names = schema.names
        if identifiers is not None:
            name, people = identifiers
            hashes = np.array([_word(secret, b"person", p.encode()) for p in people], np.uint64)
            cells = np.column_stack([cells, (hashes >> np.uint64(32)).astype(np.uint32)])
            names = (*names, IDENTIFIER + name)
        if original is not None:
            before = cls.of(secret, schema, original, owners)
            cells = np.column_stack([cells, before.cells])
            names = (*names, *(ORIGINAL + name for name in schema.names))
        discrete = tuple(v.name for v in schema.variables if v.levels)
        return cls(_name_of(secret), names, cells, owners, discrete)

    def fingerprint(self, secret: bytes) -> str:
        """Identify the rows and whose they are, as a multiset: their order does not matter.

        The hashes of rows, or of persons with several rows, are added up in several lanes modulo
        2^64 (Clarke et al. 2003, "Incremental multiset hash functions"), and the sums are hashed.
        """
        number, people = len(self.cells), len(np.unique(self.owners))
        sums = [0] * LANES
        salts = [_word(secret, b"lane %d" % i) for i in range(LANES)]
        if people == number:
            parts = (mixed(self.rows(self.names, rows)) for rows in chunks(number))
        else:
            per_person = _per_person(self.rows(self.names), self.owners)
            parts = (per_person[some] for some in chunks(len(per_person)))
        for words in parts:
            for i, salt in enumerate(salts):
                sums[i] = (sums[i] + int(mixed(words ^ salt).sum(dtype=np.uint64))) % 2**64
        text = f"{number} rows of {people} persons {sums}".encode()
        return hmac.new(secret, text, hashlib.sha256).hexdigest()

    def persons_apart(self, other: Trace) -> int | None:
        """Return how many persons differ on the common variables; ``None`` if there are none.

        Persons are compared by their values, because identifiers may be reassigned. If both traces
        have the same column of identifiers, they are compared by both as well, and so are the
        values before some were hidden. If values are missing, the rows of each pattern of missing
        values, of each variable and of each pair are compared, too. The smallest difference counts
        that is not zero. It is at most the number of rows that differ.
        """
        common = [n for n in self.names if n in other.names and not n.startswith(ORIGINAL)]
        values = [name for name in common if not name.startswith(IDENTIFIER)]
        if not values:
            return None
        apart = [self._apart_on(names, other) for names in (values, common)]
        apart += self._apart_by_holes(values, other)
        if any(n.startswith(ORIGINAL) for n in (*self.names, *other.names)):
            apart += [self.unhidden().persons_apart(other.unhidden()) or 0]
        return min((number for number in apart if number), default=0)

    def unhidden(self) -> Trace:
        """Return the trace of the values before some were hidden."""
        kept = [n for n in self.names if not n.startswith((ORIGINAL, IDENTIFIER))]
        columns = [
            self.names.index(ORIGINAL + n if ORIGINAL + n in self.names else n) for n in kept
        ]
        return Trace(self.key, tuple(kept), self.cells[:, columns], self.owners, self.discrete)

    def _apart_by_holes(self, common: Sequence[str], other: Trace) -> list[int]:
        """Compare what sums over incomplete rows can tell apart.

        These are the rows of each pattern of missing values, and the rows that have a value of one
        variable, or of two.
        """
        mine, theirs = self._known(common), other._known(common)
        if mine.all() and theirs.all():
            return []
        found = []
        rows, others = self.rows(common), other.rows(common)
        for pattern in np.unique(np.concatenate([mine, theirs]), axis=0):
            own, its = ((known == pattern).all(axis=1) for known in (mine, theirs))
            found.append(
                persons_apart_in(rows[own], self.owners[own], others[its], other.owners[its])
            )
        for i, j in itertools.combinations_with_replacement(range(len(common)), 2):
            both = [common[i], common[j]] if i < j else [common[i]]
            own, its = (known[:, i] & known[:, j] for known in (mine, theirs))
            found.append(
                persons_apart_in(
                    self.rows(both)[own], self.owners[own], other.rows(both)[its], other.owners[its]
                )
            )
        return found

    def _known(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Return which values are not missing."""
        return np.asarray(self.cells[:, [self.names.index(name) for name in names]] != MISSING)

    def _apart_on(self, common: Sequence[str], other: Trace) -> int:
        """Return how many persons differ on these variables."""
        return persons_apart_in(self.rows(common), self.owners, other.rows(common), other.owners)

    def rows(self, names: Sequence[str], some: slice | None = None) -> Words:
        """Return one hash per row, of these variables; of all rows by default."""
        columns = [(self.names.index(name), _word(b"", name.encode())) for name in names]
        found = np.zeros(len(self.cells) if some is None else some.stop - some.start, np.uint64)
        start = 0 if some is None else some.start
        for part in chunks(len(found)):
            cells = self.cells[start + part.start : start + part.stop]
            for i, word in columns:
                found[part] += mixed(cells[:, i].astype(np.uint64) ^ word)
        return found

    def to_chunks(self) -> Iterator[bytes]:
        """Return the trace in pieces, to be kept."""
        head = {"key": self.key, "names": list(self.names), "discrete": list(self.discrete)}
        text = json.dumps(head, separators=(",", ":")).encode()
        yield len(text).to_bytes(8, "little") + text
        for array, kind in ((self.owners, "<i8"), (self.cells, "<u4")):
            for rows in chunks(len(array)):
                yield array[rows].astype(kind).tobytes()

    def to_bytes(self) -> bytes:
        """Return the trace, to be kept."""
        return b"".join(self.to_chunks())

    @classmethod
    def read(cls, data: bytes | mmap) -> Trace:
        """Read what `to_bytes` returned."""
        try:
            start = 8 + int.from_bytes(data[:8], "little")
            head: dict[str, Any] = json.loads(data[8:start])
            names = tuple(head["names"])
            rows = (len(data) - start) // (8 + 4 * len(names))
            owners = np.frombuffer(data, "<i8", rows, start)
            cells = np.frombuffer(data, "<u4", rows * len(names), start + owners.nbytes)
            cells, discrete = cells.reshape(rows, len(names)), tuple(head.get("discrete", ()))
            return cls(head["key"], names, cells, owners, discrete)
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError("A kept trace of earlier data cannot be read.") from error


def _per_person(rows: Words, owners: Integers) -> Words:
    """Return one hash per person, of all rows of the person in any order."""
    found = np.zeros(owners.max(initial=-1) + 1, dtype=np.uint64)
    np.add.at(found, owners, mixed(rows))
    return found


def persons_apart_in(ours: Words, owners: Integers, theirs: Words, others: Integers) -> int:
    """Return how many persons differ, by the hashes of their rows."""
    mine, its = (np.unique(o, return_inverse=True)[1].reshape(-1) for o in (owners, others))
    by_row = _apart(mixed(ours), mixed(theirs))
    return min(by_row, _apart(_per_person(ours, mine), _per_person(theirs, its)))


def _apart(ours: Words, theirs: Words) -> int:
    """Return how many elements of either multiset are not in the other, whichever are more."""
    both = np.concatenate([ours, theirs])
    codes = np.unique(both, return_inverse=True)[1].reshape(-1)
    sign = np.repeat([1, -1], [len(ours), len(theirs)])
    excess = np.zeros(codes.max(initial=-1) + 1, dtype=np.int64)
    np.add.at(excess, codes, sign)
    return int(max(excess[excess > 0].sum(), -excess[excess < 0].sum()))


def _name_of(secret: bytes) -> str:
    return hashlib.sha256(b"isthmus trace key" + secret).hexdigest()


def _word(secret: bytes, purpose: bytes, what: bytes = b"") -> np.uint64:
    """Return 64 bits of a keyed hash."""
    whole = len(purpose).to_bytes(8, "little") + purpose + what
    return np.uint64(int.from_bytes(hmac.digest(secret, whole, "sha256")[:8], "little"))


def _hash_of_level(secret: bytes, level: object) -> np.uint64:
    """Hash a level; a number has the hash of the same number in a continuous variable."""
    if isinstance(level, (bool, int, float)):
        return np.uint64(mixed(bits_of(np.array([float(level)])) ^ _word(secret, b"value"))[0])
    return _word(secret, b"level", repr(level).encode())


def _empty_cells(
    shape: tuple[int, ...], folder: str | os.PathLike[str] | None
) -> NDArray[np.uint32]:
    if folder is None or 0 in shape:
        return np.zeros(shape, dtype=np.uint32)
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, dtype=np.uint32, mode="w+", shape=shape)
