"""State that survives a crash: the slot of a party, and the journal of a coordinator or a site.

The ledger records what left a site; the journal records where to resume. Both are synchronised to
disk before anything is sent.
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
from isthmus.joint.records.private_files import append_bytes, replace_private, sync_folder, writing

Record: TypeAlias = Mapping[str, Any]
"""Plain data for JSON."""

CHECKSUM = 64
"""Length of the checksum before each line, in hexadecimal digits."""


@final
class FileSlot:
    """Holds one value in a file that only its owner can read, replaced completely or not at all.

    Parameters
    ----------
    path
        The file. A new value is written to a temporary file first.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def read(self) -> bytes | None:
        """Return the value, or ``None``; raise `LedgerError` if the file was changed."""
        if not self._path.exists():
            return None
        data = self._path.read_bytes()
        value = data[CHECKSUM:]
        if data[:CHECKSUM] != _checksum(value):
            raise LedgerError(
                f"The file {self._path} was changed. Without it this site cannot continue the "
                "study: restore the file, or start a new study."
            )
        return value

    def write(self, value: bytes) -> None:
        """Replace the value, or raise `LedgerError` if it cannot be written."""
        with writing(self._path):
            replace_private(self._path, _checksum(value) + value)


class Journal(ABC):
    """A list of records to which records can only be added."""

    @abstractmethod
    def append(self, record: Record) -> None:
        """Add a record. When this returns, it is on disk."""

    @abstractmethod
    def records(self) -> tuple[Record, ...]:
        """Return all records, oldest first."""


@final
class MemoryJournal(Journal):
    """A journal in memory."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def append(self, record: Record) -> None:
        self._records.append(record)

    def records(self) -> tuple[Record, ...]:
        return tuple(self._records)


@final
class FileJournal(Journal):
    """A journal in a file, one line per record: a checksum, a space, and the record as JSON.

    Parameters
    ----------
    path
        The file, which is created if it does not exist. An incomplete last line, left by a crash,
        is dropped: what it describes was not done yet.
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
        import fcntl  # not available on every system

        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._handle)
            raise LedgerError(
                f"Another process uses the journal {self._path}. Wait until it ends, or stop it."
            ) from error

    def _read(self) -> tuple[list[Record], int]:
        lines = self._path.read_bytes().split(b"\n")
        records: list[Record] = []
        size = 0
        for number, line in enumerate(lines[:-1], start=1):
            if line[:CHECKSUM] != _checksum(line[CHECKSUM + 1 :]):
                if number == len(lines) - 1:
                    break
                raise LedgerError(
                    f"The journal {self._path} was changed in line {number}. Restore the file."
                )
            records.append(json.loads(line[CHECKSUM + 1 :]))
            size += len(line) + 1
        return records, size

    def append(self, record: Record) -> None:
        """Add a record, or raise `LedgerError` if it cannot be written."""
        text = json.dumps(dict(record), separators=(",", ":"), allow_nan=False).encode()
        with writing(self._path):
            append_bytes(self._handle, _checksum(text) + b" " + text + b"\n")
        self._records.append(record)

    def records(self) -> tuple[Record, ...]:
        return tuple(self._records)

    def close(self) -> None:
        """Close the file, so that another process can use it."""
        os.close(self._handle)


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
