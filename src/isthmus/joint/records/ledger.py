"""The ledger of a site: what left it, with each entry chained to the one before."""

from __future__ import annotations

import hashlib
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, final

from isthmus.errors import LedgerError
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.records.journal import sync_folder
from isthmus.joint.records.ledger_entries import START, Entry, canonical, chained
from isthmus.joint.records.ledger_verification import require_signed, verify

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
        entries = self.entries(self._checked)
        require_signed(entries)
        self._checked += len(entries)
        self._identity = identity

    def head(self) -> str:
        """Return the hash of the last entry."""
        last = self.entries(-1)
        return str(last[0]["hash"]) if last else START

    @abstractmethod
    def append(self, event: str, **details: Any) -> Entry:
        """Add an entry. When this returns, it is on disk."""

    @abstractmethod
    def entries(self, start: int = 0) -> tuple[Entry, ...]:
        """Return all entries, oldest first, or those from a position on; -1 is the last entry."""

    @abstractmethod
    def keep(self, data: bytes | Iterable[bytes]) -> str:
        """Keep bytes that an entry refers to, whole or in pieces, and return their hash."""

    @abstractmethod
    def kept(self, name: str) -> bytes | mmap | None:
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
        last = self._entries[-1] if self._entries else None
        entry = chained(last, event, details, self._identity)
        self._entries.append(entry)
        return entry

    def entries(self, start: int = 0) -> tuple[Entry, ...]:
        return tuple(self._entries[start:])

    def keep(self, data: bytes | Iterable[bytes]) -> str:
        whole = b"".join(_pieces(data))
        name = hashlib.sha256(whole).hexdigest()
        self._kept[name] = whole
        return name

    def kept(self, name: str) -> bytes | mmap | None:
        return self._kept.get(name)

    def secret(self) -> bytes:
        return self._secret


@final
class FileLedger(Ledger):
    """A ledger in a file of JSON lines, synchronised to disk before anything is sent.

    Parameters
    ----------
    path
        The file, which is created if it does not exist. It is verified when it is opened. What its
        entries refer to is kept in the folder of the same name with ``.kept`` at its end.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if not self._path.exists():
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.fsync(handle)
            os.close(handle)
            sync_folder(self._path.parent)
        self._entries = list(verify(self._path))
        self._earlier = len(self._entries) - self._path.read_bytes().count(b"\n")

    def append(self, event: str, **details: Any) -> Entry:
        """Add an entry, or raise `LedgerError` if it cannot be written.

        An entry cannot be written after another process has written to the file.
        """
        import fcntl  # not available on every system

        last = self._entries[-1] if self._entries else None
        entry = chained(last, event, details, self._identity)
        line = canonical(entry) + b"\n"
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_APPEND)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                self._require_own(handle)
                before = os.fstat(handle).st_size
                try:
                    if os.write(handle, line) != len(line):
                        raise OSError("the disk is full")
                    os.fsync(handle)
                except OSError:
                    os.ftruncate(handle, before)  # an incomplete entry would break the chain
                    raise
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerError(
                f"The ledger {self._path} cannot be written ({error.strerror or error}), so "
                "nothing is sent. Free some disk space, or repair the file system."
            ) from error
        self._entries.append(entry)
        return entry

    def _require_own(self, handle: int) -> None:
        size = os.fstat(handle).st_size
        # After a rotation the file is empty, and the last entry is in an earlier part.
        own = self._entries[-1:] if self._entries[self._earlier :] else []
        last = b"".join(canonical(e) + b"\n" for e in own)
        tail = os.pread(handle, len(last), max(size - len(last), 0)) if last else b""
        if tail != last or (not own and size):
            raise LedgerError(
                f"Another process changed the ledger {self._path} while it was open. Only one "
                "process may write to it; stop the other process and open the ledger again."
            )

    def entries(self, start: int = 0) -> tuple[Entry, ...]:
        return tuple(self._entries[start:])

    @property
    def _folder(self) -> Path:
        return self._path.with_name(self._path.name + ".kept")

    def keep(self, data: bytes | Iterable[bytes]) -> str:
        return self._write(None, data)

    def kept(self, name: str) -> bytes | mmap | None:
        path = self._folder / name
        if not path.exists() or not path.stat().st_size:
            return None
        with path.open("rb") as file:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
        return data if hashlib.sha256(data).hexdigest() == name else None

    def secret(self) -> bytes:
        path = self._folder / "key"
        if not path.exists():
            self._write("key", secrets.token_bytes(SECRET))
        return path.read_bytes()

    def _write(self, name: str | None, data: bytes | Iterable[bytes]) -> str:
        """Write a file in one step, and return its name, by default the hash of its content."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            beside, content = self._folder / "new", hashlib.sha256()
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                for piece in _pieces(data):
                    content.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            name = content.hexdigest() if name is None else name
            beside.replace(self._folder / name)
            sync_folder(self._folder)
            return name
        except OSError as error:
            raise LedgerError(
                f"The folder {self._folder} cannot be written ({error.strerror or error}), so "
                "nothing is sent. Free some disk space, or repair the file system."
            ) from error


def _pieces(data: bytes | Iterable[bytes]) -> Iterable[bytes]:
    return (data,) if isinstance(data, bytes) else data
