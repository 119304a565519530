"""What survives a kill: one slot of a site, and the list of what a coordinator did.

A ledger says what left; a journal says where to go on. Both are synced before anything is sent.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, final

from isthmus.errors import LedgerError

Record: TypeAlias = Mapping[str, Any]
"""Plain data for JSON."""

SUM = 64
"""Hexadecimal digits of the hash before each line."""


class Slot(ABC):
    """Holds one value; a new one takes the place of the old one as a whole, or not at all."""

    @abstractmethod
    def read(self) -> bytes | None:
        """The value, or ``None`` before the first."""

    @abstractmethod
    def write(self, value: bytes) -> None:
        """Put a value; when this returns, it is on the disk."""


@final
class MemorySlot(Slot):
    """A slot that ends with the process, for simulations."""

    def __init__(self) -> None:
        self._value: bytes | None = None

    def read(self) -> bytes | None:
        """The value."""
        return self._value

    def write(self, value: bytes) -> None:
        """Put a value."""
        self._value = value


@final
class FileSlot(Slot):
    """A slot in a file that only its owner may read.

    Parameters
    ----------
    path
        The file. A file beside it takes the new value before it takes the old one's place.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def read(self) -> bytes | None:
        """The value; `LedgerError` when the file was changed."""
        if not self._path.exists():
            return None
        data = self._path.read_bytes()
        found = data[SUM:]
        if data[:SUM] != _sum(found):
            raise LedgerError(
                f"The file {self._path} was changed. Without it this site cannot go on with its "
                "sums of one message each: put back what was there, or begin a new study."
            )
        return found

    def write(self, value: bytes) -> None:
        """Put a value; `LedgerError` when it cannot be written."""
        beside = self._path.with_name(self._path.name + ".new")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                _write(handle, _sum(value) + value)
            finally:
                os.close(handle)
            beside.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise _unwritable(self._path, error) from error


class Journal(ABC):
    """Records that are only ever added."""

    @abstractmethod
    def append(self, record: Record) -> None:
        """Add a record; when this returns, it is written."""

    @abstractmethod
    def records(self) -> tuple[Record, ...]:
        """All records, oldest first."""


@final
class MemoryJournal(Journal):
    """A journal that ends with the process."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def append(self, record: Record) -> None:
        """Add a record."""
        self._records.append(record)

    def records(self) -> tuple[Record, ...]:
        """All records, oldest first."""
        return tuple(self._records)


@final
class FileJournal(Journal):
    """A journal in a file of lines: a hash, a space, a record as JSON.

    Parameters
    ----------
    path
        The file; made if it is not there. A line that was cut off by a crash at its end is
        dropped: what it told of was not done yet.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        new = not self._path.exists()
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        if new:
            sync_folder(self._path.parent)
        self._lock()
        self._records, size = self._read()
        os.ftruncate(self._handle, size)
        os.fsync(self._handle)

    def _lock(self) -> None:
        import fcntl  # not on every system, and needed only where a journal is kept

        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._handle)
            raise LedgerError(
                f"Another process works with the journal {self._path}. Wait for it, or end it."
            ) from error

    def _read(self) -> tuple[list[Record], int]:
        lines = self._path.read_bytes().split(b"\n")
        found: list[Record] = []
        size = 0
        for number, line in enumerate(lines[:-1], start=1):
            if line[:SUM] != _sum(line[SUM + 1 :]):
                if number == len(lines) - 1:
                    break
                raise LedgerError(f"The journal {self._path} was changed in line {number}.")
            found.append(json.loads(line[SUM + 1 :]))
            size += len(line) + 1
        return found, size

    def append(self, record: Record) -> None:
        """Add a record; `LedgerError` when it cannot be written."""
        text = json.dumps(dict(record), separators=(",", ":"), allow_nan=False).encode()
        before = os.fstat(self._handle).st_size
        try:
            _write(self._handle, _sum(text) + b" " + text + b"\n")
        except OSError as error:
            os.ftruncate(self._handle, before)
            raise _unwritable(self._path, error) from error
        self._records.append(record)

    def records(self) -> tuple[Record, ...]:
        """All records, oldest first."""
        return tuple(self._records)

    def close(self) -> None:
        """Let another process work with it."""
        os.close(self._handle)


def sync_folder(folder: Path) -> None:
    """Make sure that a new name in a folder is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)


def _sum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _unwritable(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"The file {path} cannot be written ({error.strerror or error}), so nothing is sent. "
        "Make room, or repair the file system."
    )
