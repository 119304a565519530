"""The ledger of a site: what left it, with each entry chained to the one before."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, final

from isthmus.errors import LedgerError
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.records.events import REPAIRED
from isthmus.joint.records.journal import FolderLock
from isthmus.joint.records.ledger_entries import (
    START,
    Entry,
    canonical,
    chained,
    lines_of,
    parts,
    require_heads,
    require_signed,
    signed_bytes,
    verified,
    verify,
)
from isthmus.joint.records.private_files import (
    append_bytes,
    file_locks,
    replace_private,
    write_private,
    writing,
)

SECRET = 32


class Ledger(ABC):
    """A list of entries to which entries can only be added."""

    _identity: Identity | None = None
    _checked = 0  # number of entries whose signatures were checked already

    def bind(self, identity: Identity) -> None:
        """Sign all further entries, after checking the signatures of the earlier ones.

        Raises
        ------
        LedgerError
            An entry that should be signed is not, or was changed.
        """
        require_signed(self.read(self._checked))
        self._checked = len(self)
        self._identity = identity

    def head(self) -> str:
        """Return the hash of the last entry."""
        return START if self.last is None else str(self.last["hash"])

    def signed_head(self) -> bytes:
        """Return the hash of the last entry, signed for other parties to remember.

        The signature is that of today's identity, also if an earlier key has signed the entry.
        Empty if there is no entry, or nobody signs.
        """
        if self.last is None or self._identity is None:
            return b""
        return bytes.fromhex(self.head()) + self._identity.sign(signed_bytes(self.head()))

    def entries(self, start: int = 0) -> tuple[Entry, ...]:
        """Return all entries, oldest first, or those from a position on."""
        return tuple(self.read(start))

    @property
    @abstractmethod
    def last(self) -> Entry | None:
        """The last entry; ``None`` if the ledger is empty."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of entries."""

    @abstractmethod
    def append(self, event: str, **details: Any) -> Entry:
        """Add an entry. When this returns, it is on disk."""

    @abstractmethod
    def read(self, start: int = 0) -> Iterator[Entry]:
        """Read the entries one by one, oldest first, from a position on."""

    @abstractmethod
    def keep(self, data: bytes) -> str:
        """Keep bytes that an entry refers to, and return their hash."""

    @abstractmethod
    def kept(self, name: str) -> bytes | None:
        """Return the bytes of this hash; ``None`` if they are lost or were changed."""

    @abstractmethod
    def secret(self) -> bytes:
        """Return a random key that stays the same as long as the ledger exists."""


@final
class MemoryLedger(Ledger):
    """A ledger in memory, for simulations."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._kept: dict[str, bytes] = {}
        self._secret = secrets.token_bytes(SECRET)

    def append(self, event: str, **details: Any) -> Entry:
        entry = chained(self.last, event, details, self._identity)
        self._entries.append(entry)
        return entry

    @property
    def last(self) -> Entry | None:
        return self._entries[-1] if self._entries else None

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, start: int = 0) -> Iterator[Entry]:
        return iter(self._entries[start:])

    def keep(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self._kept[name] = data
        return name

    def kept(self, name: str) -> bytes | None:
        return self._kept.get(name)

    def secret(self) -> bytes:
        return self._secret


@final
class FileLedger(Ledger):
    """A ledger in a file of JSON lines, synchronised to disk before anything is sent.

    The entries stay in the file: in memory are only the last one and where each of them ends.

    Parameters
    ----------
    path
        The file, which is created if it does not exist. It is verified when it is opened. What its
        entries refer to is kept in the folder of the same name with ``.kept`` at its end.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if not self._path.exists():
            write_private(self._path)
        self._ends = array("Q")
        self._earlier = sum(part.stat().st_size for part in parts(path)[:-1])
        last = deque(verified(path, self._measured(lines_of(path))), maxlen=1)
        self._last: Entry | None = last[0] if last else None

    def _measured(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            self._ends.append(self._size + len(line))
            yield line

    @property
    def _size(self) -> int:
        return self._ends[-1] if self._ends else 0

    def append(self, event: str, **details: Any) -> Entry:
        """Add an entry, or raise `LedgerError` if it cannot be written.

        An entry cannot be written after another process has written to the file.
        """
        fcntl = file_locks()

        entry = chained(self._last, event, details, self._identity)
        line = canonical(entry) + b"\n"
        with writing(self._path):
            handle = os.open(self._path, os.O_RDWR | os.O_APPEND)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                self._require_own(handle)
                append_bytes(handle, line)
            finally:
                os.close(handle)
        self._ends.append(self._size + len(line))
        self._last = entry
        return entry

    def _require_own(self, handle: int) -> None:
        size = os.fstat(handle).st_size
        # After a rotation the file is empty, and the last entry is in an earlier part.
        last = canonical(self._last) + b"\n" if size and self._last is not None else b""
        tail = os.pread(handle, len(last), max(size - len(last), 0))
        if size != self._size - self._earlier or tail != last:
            raise self._changed()

    def _changed(self) -> LedgerError:
        return LedgerError(
            f"Another process changed the ledger {self._path} while it was open. Only one "
            "process may write to it; stop the other process and open the ledger again."
        )

    @property
    def last(self) -> Entry | None:
        return self._last

    def __len__(self) -> int:
        return len(self._ends)

    def read(self, start: int = 0) -> Iterator[Entry]:
        if start < len(self._ends):
            at = self._ends[start - 1] if start else 0
            lines = lines_of(self._path, at)
            for end in self._ends[start:]:
                line = next(lines, b"")
                at += len(line)
                if at != end:
                    raise self._changed()
                yield json.loads(line)

    @property
    def _folder(self) -> Path:
        return self._path.with_name(self._path.name + ".kept")

    def keep(self, data: bytes) -> str:
        return self._write(hashlib.sha256(data).hexdigest(), data)

    def kept(self, name: str) -> bytes | None:
        path = self._folder / name
        data = path.read_bytes() if path.exists() else b""
        return data if hashlib.sha256(data).hexdigest() == name else None

    def secret(self) -> bytes:
        path = self._folder / "key"
        if not path.exists():
            self._write("key", secrets.token_bytes(SECRET))
        return path.read_bytes()

    def _write(self, name: str, data: bytes) -> str:
        with writing(self._folder):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            replace_private(self._folder / name, data)
        return name


def repair(path: str | os.PathLike[str], identity: Identity, *, heads: Iterable[str] = ()) -> int:
    """Put an incomplete last line aside, and write an entry about it.

    An entry is on disk before anything is sent. Whatever an incomplete line describes did not
    happen, if a crash has torn it. If another site has seen the entry, somebody has cut it.

    Parameters
    ----------
    path
        The file.
    identity
        The key of the site.
    heads
        Hashes of entries of this ledger that other sites remember (``isthmus ledger heads``).

    Returns
    -------
    int
        Length of the incomplete line; zero if the ledger is complete.

    Raises
    ------
    LedgerError
        The ledger was changed, or an entry that others remember is not in it. Nothing is repaired.
    FederationError
        A site or another command uses the ledger.
    """
    last = Path(path)
    with FolderLock(last.parent, "the repair of the ledger"):
        torn = b"".join(deque(lines_of(path), maxlen=1))
        torn = b"" if torn.endswith(b"\n") else torn
        try:
            complete = (line for line in lines_of(path) if line.endswith(b"\n"))
            require_heads(path, verified(path, complete), heads)
        except LedgerError as error:
            if not torn:
                raise
            raise LedgerError(
                f"{error} The incomplete last line is not repaired: if a crash had torn it, the "
                "lines before it would be intact, and nobody would know more than they say."
            ) from error
        if not torn:
            return 0
        aside = last.with_name(f"{last.name}.torn-{hashlib.sha256(torn).hexdigest()[:16]}")
        replace_private(aside, torn)
        with last.open("r+b") as file:
            file.truncate(last.stat().st_size - len(torn))
            os.fsync(file.fileno())
        ledger = FileLedger(path)
        ledger.bind(identity)
        ledger.append(REPAIRED.name, bytes=len(torn), sha256=hashlib.sha256(torn).hexdigest())
        return len(torn)


def rotate(path: str | os.PathLike[str]) -> Path:
    """Put the entries so far aside, and begin a new file that continues the chain.

    Raises
    ------
    FederationError
        A site or another command uses the ledger.
    """
    last = Path(path)
    with FolderLock(last.parent, "the rotation of the ledger"):
        verify(path)
        aside = last.with_name(f"{last.name}.part-{len(parts(path)):06}")
        last.rename(aside)
        write_private(last)
        return aside
