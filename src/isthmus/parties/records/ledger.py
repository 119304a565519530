"""The ledger of a site: what left it, with each entry chained to the one before."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, final

from isthmus.errors import LedgerError
from isthmus.parties.identity import Identity, Verifier, digest
from isthmus.parties.printable import printable
from isthmus.parties.records.events import REPAIRED
from isthmus.parties.records.journal import sync_folder

FORMAT = "isthmus-ledger/2"
FORMAT_1 = "isthmus-ledger/1"
"""Entries of earlier versions, which were not signed."""

START = "0" * 64
SECRET = 32
CUT = {
    "policy": 8,
    "code": 15,
    "dependencies": 8,
    "study": 16,
    "data": 16,
    "trace": 16,
    "asked": 16,
    "request": 120,
    "question": 120,
}
"""Number of characters of these values that are shown to people; the file holds all."""

Entry: TypeAlias = Mapping[str, Any]


class Ledger(ABC):
    """A list of entries to which entries can only be added."""

    _identity: Identity | None = None

    def bind(self, identity: Identity) -> None:
        """Sign all further entries, after checking the signatures of the earlier ones.

        Raises
        ------
        LedgerError
            An entry that should be signed is not, or was changed.
        """
        require_signed(self.entries())
        self._identity = identity

    def head(self) -> str:
        """Return the hash of the last entry."""
        entries = self.entries()
        return str(entries[-1]["hash"]) if entries else START

    @abstractmethod
    def append(self, event: str, **details: Any) -> Entry:
        """Add an entry. When this returns, it is on disk."""

    @abstractmethod
    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first."""

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
        last = self._entries[-1] if self._entries else None
        entry = _chained(last, event, details, self._identity)
        self._entries.append(entry)
        return entry

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first."""
        return tuple(self._entries)

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
        entry = _chained(last, event, details, self._identity)
        line = _canonical(entry) + b"\n"
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
        last = b"".join(_canonical(e) + b"\n" for e in own)
        tail = os.pread(handle, len(last), max(size - len(last), 0)) if last else b""
        if tail != last or (not own and size):
            raise LedgerError(
                f"Another process changed the ledger {self._path} while it was open. Only one "
                "process may write to it; stop the other process and open the ledger again."
            )

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first."""
        return tuple(self._entries)

    @property
    def _folder(self) -> Path:
        return self._path.with_name(self._path.name + ".kept")

    def keep(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        if self.kept(name) is None:
            self._write(name, data)
        return name

    def kept(self, name: str) -> bytes | None:
        path = self._folder / name
        data = path.read_bytes() if path.exists() else None
        return data if data is not None and hashlib.sha256(data).hexdigest() == name else None

    def secret(self) -> bytes:
        path = self._folder / "key"
        if not path.exists():
            self._write("key", secrets.token_bytes(SECRET))
        return path.read_bytes()

    def _write(self, name: str, data: bytes) -> None:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            beside = self._folder / f"{name}.new"
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._folder / name)
            sync_folder(self._folder)
        except OSError as error:
            raise LedgerError(
                f"The folder {self._folder} cannot be written ({error.strerror or error}), so "
                "nothing is sent. Free some disk space, or repair the file system."
            ) from error


def parts(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a ledger, oldest first: those that `rotate` put aside, and the last."""
    last = Path(path)
    return [*sorted(last.parent.glob(last.name + ".part-*")), last]


def verify(
    path: str | os.PathLike[str], *, head: str | None = None, keys: Iterable[bytes] | None = None
) -> tuple[Entry, ...]:
    """Verify all entries of a ledger.

    Parameters
    ----------
    path
        The file. Parts that `rotate` put aside are found beside it.
    head
        The hash of an entry that the ledger must contain, noted elsewhere earlier. A chain alone
        cannot show that entries were removed from its end.
    keys
        Public keys of the site. If they are given, one of them must have signed every entry,
        except those of earlier versions.

    Returns
    -------
    tuple
        The entries.

    Raises
    ------
    LedgerError
        The ledger was changed. The message names the first line that is wrong.
    """
    data = b"".join(part.read_bytes() for part in parts(path))
    lines = data.split(b"\n")
    if lines.pop() != b"":
        raise LedgerError(
            f"The ledger {path} ends in the middle of line {len(lines) + 1}: it was cut off. "
            "After a power failure, 'isthmus ledger repair' puts the incomplete line aside. "
            "Otherwise keep the file as it is, and find out who had access to it."
        )
    entries: list[Entry] = []
    before = START
    known = {FORMAT, FORMAT_1}
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            valid = (
                entry["previous"] == before
                and entry["number"] == number
                and entry["format"] in known
                and entry["hash"] == _hash(entry)
                and _canonical(entry) == line
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            valid = False
        if not valid:
            raise LedgerError(
                f"The ledger {path} was changed: line {number} does not follow from the ones "
                "before it. Keep the file as it is, and find out who had access to it."
            )
        if entry["format"] == FORMAT:
            known = {FORMAT}
        before = entry["hash"]
        entries.append(entry)
    if keys is not None:
        require_signed(entries, {key.hex() for key in keys})
    if head is not None and head != START and all(e["hash"] != head for e in entries):
        raise LedgerError(
            f"The ledger {path} does not contain the entry {head[:16]}… that was noted earlier: "
            "its end was cut off, or it is another ledger."
        )
    return tuple(entries)


def require_signed(entries: Iterable[Entry], keys: set[str] | None = None) -> None:
    """Raise `LedgerError` for an entry that is not signed, or by none of these keys."""
    verifier = Verifier()
    for entry in entries:
        if entry["format"] == FORMAT_1:
            continue
        signer, value = str(entry.get("signer", "")), str(entry.get("signature", ""))
        try:
            valid = (keys is None or signer in keys) and verifier.verify(
                bytes.fromhex(signer), bytes.fromhex(value), _signed(entry["hash"])
            )
        except ValueError:
            valid = False
        if not valid:
            raise LedgerError(
                f"Entry {entry['number']} of the ledger is not signed by this site: someone else "
                "wrote it. Keep the file as it is, and find out who had access to it."
            )


def repair(path: str | os.PathLike[str], identity: Identity) -> int:
    """Put an incomplete last line aside, and write an entry about it.

    An entry is on disk before anything is sent. Whatever an incomplete line describes did not
    happen.

    Returns
    -------
    int
        Length of the incomplete line; zero if the ledger is complete.
    """
    last = Path(path)
    data = last.read_bytes()
    kept, _, torn = data.rpartition(b"\n")
    if not torn:
        verify(path)
        return 0
    aside = last.with_name(f"{last.name}.torn-{hashlib.sha256(torn).hexdigest()[:16]}")
    aside.write_bytes(torn)
    aside.chmod(0o600)
    with last.open("r+b") as file:
        file.truncate(len(kept) + 1 if kept else 0)
        os.fsync(file.fileno())
    ledger = FileLedger(path)
    ledger.bind(identity)
    ledger.append(REPAIRED.name, bytes=len(torn), sha256=hashlib.sha256(torn).hexdigest())
    return len(torn)


def rotate(path: str | os.PathLike[str]) -> Path:
    """Put the entries so far aside, and begin a new file that continues the chain."""
    last = Path(path)
    verify(path)
    aside = last.with_name(f"{last.name}.part-{len(parts(path)):06}")
    last.rename(aside)
    handle = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.fsync(handle)
    os.close(handle)
    sync_folder(last.parent)
    return aside


def readable(entries: Iterable[Entry]) -> str:
    """Return one line per entry, for people; values that only programs need are shortened."""
    hidden = {"format", "number", "time", "event", "previous", "hash"}
    hidden |= {"signer", "signature", "heads", "variables", "organisations"}
    lines = []
    for e in entries:
        rest = ", ".join(f"{k}: {_short(k, v)}" for k, v in e.items() if k not in hidden)
        lines.append(f"{e['number']:>5}  {e['time']}  {e['event']:<9} {rest}")
    return "\n".join(lines)


def summary(entries: Iterable[Entry]) -> str:
    """Return one line per kind of statistic and study: how often it left, how many numbers."""
    asked: dict[tuple[str, int], str] = {}
    sent: dict[tuple[str, str, str], list[int]] = {}
    for e in entries:
        place = e.get("study", ""), e.get("round", 0)
        if "request" in e:
            asked[place] = e["what"]
        if "numbers" in e:
            key = place[0], asked.get(place, "unknown request"), e.get("form", "plain")
            sent.setdefault(key, []).append(e["numbers"])
    return "\n".join(
        f"{len(sizes)} × {what}; {sum(sizes):,} numbers in total, protected by {form} "
        f"(study {_short('study', study)})"
        for (study, what, form), sizes in sent.items()
    )


def _short(key: str, value: Any) -> str:
    text, most = printable(str(value)), CUT.get(key, 2**31)
    return text if len(text) <= most else text[:most] + "…"


def _chained(
    last: Entry | None, event: str, details: Mapping[str, Any], identity: Identity | None
) -> Entry:
    entry: dict[str, Any] = {
        "format": FORMAT,
        "number": 1 if last is None else last["number"] + 1,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "event": event,
        **details,
        "previous": START if last is None else last["hash"],
    }
    if identity is not None:
        entry["signer"] = identity.public.hex()
    entry["hash"] = _hash(entry)
    if identity is not None:
        entry["signature"] = identity.sign(_signed(entry["hash"])).hex()
    return entry


def _signed(entry: str) -> bytes:
    return digest(b"isthmus ledger entry", entry.encode())


def _hash(entry: Entry) -> str:
    rest = {k: v for k, v in entry.items() if k not in ("hash", "signature")}
    return hashlib.sha256(_canonical(rest)).hexdigest()


def _canonical(entry: Entry) -> bytes:
    return json.dumps(dict(entry), ensure_ascii=True, separators=(",", ":")).encode()
