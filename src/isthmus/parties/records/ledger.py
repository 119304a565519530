"""The ledger: what left a site, each entry chained to the one before."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, final

from isthmus.errors import LedgerError

FORMAT = "isthmus-ledger/1"
START = "0" * 64
CUT = {"study": 16, "data": 16, "request": 120}
"""So much of these is shown to people; the file holds all."""

Entry: TypeAlias = Mapping[str, Any]


class Ledger(ABC):
    """Entries that are only ever added."""

    @abstractmethod
    def append(self, event: str, **details: Any) -> Entry:
        """Add an entry; when this returns, it is written."""

    @abstractmethod
    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""


@final
class MemoryLedger(Ledger):
    """A ledger that ends with the process, for simulations."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def append(self, event: str, **details: Any) -> Entry:
        """Add an entry."""
        found = _chained(self._entries[-1] if self._entries else None, event, details)
        self._entries.append(found)
        return found

    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)


@final
class FileLedger(Ledger):
    """A ledger in a file of JSON lines, synced to disk before anything is sent.

    Parameters
    ----------
    path
        The file; made if it is not there. It is checked when it is opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if not self._path.exists():
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.fsync(handle)
            os.close(handle)
            _sync_folder(self._path.parent)
        self._entries = list(verify(self._path))

    def append(self, event: str, **details: Any) -> Entry:
        """Add an entry; `LedgerError` when it cannot be written, or another process wrote."""
        import fcntl  # not on every system, and needed only where a ledger is written

        found = _chained(self._entries[-1] if self._entries else None, event, details)
        line = _canonical(found) + b"\n"
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
                    os.ftruncate(handle, before)  # half an entry would break the chain
                    raise
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerError(
                f"The ledger {self._path} cannot be written ({error.strerror or error}), so "
                "nothing is sent. Make room, or repair the file system."
            ) from error
        self._entries.append(found)
        return found

    def _require_own(self, handle: int) -> None:
        expected = sum(len(_canonical(e)) + 1 for e in self._entries[-1:])
        size = os.fstat(handle).st_size
        tail = os.pread(handle, expected, max(size - expected, 0)) if expected else b""
        last = _canonical(self._entries[-1]) + b"\n" if self._entries else b""
        if tail != last or (not self._entries and size):
            raise LedgerError(
                f"The ledger {self._path} was changed by someone else while it was open. "
                "Only one process of a site may write to it; open it again to go on."
            )

    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)


def verify(path: str | os.PathLike[str], *, head: str | None = None) -> tuple[Entry, ...]:
    """Check a ledger from its first entry to its last.

    Parameters
    ----------
    path
        The file.
    head
        The hash of an entry that must be in it, as noted elsewhere earlier: a chain alone cannot
        show that its end was cut off.

    Returns
    -------
    tuple
        The entries.

    Raises
    ------
    LedgerError
        The line at which the chain breaks.
    """
    data = Path(path).read_bytes()
    lines = data.split(b"\n")
    if lines.pop() != b"":
        raise LedgerError(f"The ledger {path} ends in the middle of line {len(lines) + 1}.")
    found: list[Entry] = []
    before = START
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            right = (
                entry["previous"] == before
                and entry["number"] == number
                and entry["format"] == FORMAT
                and entry["hash"] == _hash(entry)
                and _canonical(entry) == line
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            right = False
        if not right:
            raise LedgerError(
                f"The ledger {path} was changed: line {number} does not follow from the ones "
                "before it. Keep the file as it is, and ask who had access to it."
            )
        before = entry["hash"]
        found.append(entry)
    if head is not None and head != START and all(e["hash"] != head for e in found):
        raise LedgerError(
            f"The ledger {path} lacks the entry {head[:16]}… that was noted earlier: its end was "
            "cut off, or it is another ledger."
        )
    return tuple(found)


def readable(entries: Iterable[Entry]) -> str:
    """A line for each entry, for people; what only programs need is cut short."""
    hidden = {"format", "number", "time", "event", "previous", "hash"}
    lines = []
    for e in entries:
        rest = ", ".join(f"{k}: {_short(k, v)}" for k, v in e.items() if k not in hidden)
        lines.append(f"{e['number']:>5}  {e['time']}  {e['event']:<9} {rest}")
    return "\n".join(lines)


def summary(entries: Iterable[Entry]) -> str:
    """A line for each kind of statistic that left in each study: how often, how many numbers."""
    asked: dict[tuple[str, int], str] = {}
    found: dict[tuple[str, str], list[int]] = {}
    for e in entries:
        place = e.get("study", ""), e.get("round", 0)
        if "request" in e:
            asked[place] = e["what"]
        if "numbers" in e:
            found.setdefault((place[0], asked.get(place, "?")), []).append(e["numbers"])
    return "\n".join(
        f"{len(sizes)} × {what}; {sum(sizes):,} numbers in all, hidden in sums "
        f"(study {_short('study', study)})"
        for (study, what), sizes in found.items()
    )


def _short(key: str, value: Any) -> str:
    text, most = str(value), CUT.get(key, 2**31)
    return text if len(text) <= most else text[:most] + "…"


def _chained(last: Entry | None, event: str, details: Mapping[str, Any]) -> Entry:
    entry: dict[str, Any] = {
        "format": FORMAT,
        "number": 1 if last is None else last["number"] + 1,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "event": event,
        **details,
        "previous": START if last is None else last["hash"],
    }
    entry["hash"] = _hash(entry)
    return entry


def _hash(entry: Entry) -> str:
    rest = {k: v for k, v in entry.items() if k != "hash"}
    return hashlib.sha256(_canonical(rest)).hexdigest()


def _canonical(entry: Entry) -> bytes:
    return json.dumps(dict(entry), ensure_ascii=True, separators=(",", ":")).encode()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
