"""State that survives a crash: the journal of a coordinator, a site or a party; folder locks.

The ledger records what left a site; the journal records where to resume. Both are synchronised to
disk before anything is sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, TypeAlias, final

from isthmus.errors import FederationError, LedgerError
from isthmus_joint.agreement.roster import printable
from isthmus_joint.records.private_files import append_bytes, file_locks, sync_folder, writing

Record: TypeAlias = Mapping[str, Any]
"""Plain data for JSON."""

CHECKSUM = 64
"""Length of the checksum before each line, in hexadecimal digits."""


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
        fcntl = file_locks()

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


LONGEST_NOTE = 300
"""Maximum number of bytes to read of the note about the holder."""


@final
class FolderLock:
    """The right to write to the ledger and to the state in a folder, until `close`.

    The operating system releases the lock when the process ends, however it ends.

    Parameters
    ----------
    purpose
        Purpose of the lock, for the message to other processes: "isthmus site join".

    Raises
    ------
    FederationError
        Another process holds the lock. The message says which one.
    """

    def __init__(self, folder: str | os.PathLike[str], purpose: str) -> None:
        fcntl = file_locks()

        path = Path(folder) / "lock"
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._handle, LONGEST_NOTE, 0).decode("utf-8", "replace")
            os.close(self._handle)
            raise FederationError(
                f"Another process uses the folder {folder}: "
                f"{printable(holder) or 'it has not said which one'}. Wait until it ends, or stop "
                "it: only one process at a time may write to a ledger."
            ) from error
        since = datetime.now(UTC).isoformat(timespec="seconds")
        note = f"process {os.getpid()} on {socket.gethostname()}, {purpose}, since {since}"
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, note.encode()[:LONGEST_NOTE], 0)

    def close(self) -> None:
        """Release the lock."""
        os.ftruncate(self._handle, 0)
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- Kinds of ledger entries ---------------------------------------------------------------------
#
# The kinds of entries that a protocol writes into a ledger, and why something does not leave.


@final
@dataclass(frozen=True)
class Event:
    """A kind of ledger entry.

    Attributes
    ----------
    name
        Name in the ledger, the same in all protocols that use it.
    opens_round
        Whether it is the first entry of a round. Such entries count towards the limits on rounds.
    sends_statistic
        Whether a statistic leaves the site at this entry. Such entries count towards the limits on
        queries.
    reveals_result
        Whether a result over the parties named in the entry is known afterwards.
    """

    name: str
    opens_round: bool = False
    sends_statistic: bool = False
    reveals_result: bool = False


REFUSED = Event("refused")
REPAIRED = Event("repaired")
"""A torn last line was removed from the ledger."""

RESTORED = Event("restored", opens_round=True, sends_statistic=True)
"""A round that a restored ledger lacks and others remember, and the end of such a restoration."""

COMMON = (REFUSED, REPAIRED, RESTORED)
"""Entries of every protocol."""


class Denial(StrEnum):
    """The reasons that do not depend on the protocol."""

    POLICY = "policy"
    DATA = "data"
    STOPPED = "stopped"
    EXPIRED = "expired"
    LEDGER = "ledger"
    OTHER_CODE = "other_code"
    MEMBERSHIP = "membership"
    OTHER_DATA = "other_data"


@final
class DeniedError(Exception):
    """Something may not leave the site. The protocol turns this into its own refusal."""

    def __init__(self, reason: Denial) -> None:
        super().__init__(reason.value.replace("_", " "))
        self.reason = reason
