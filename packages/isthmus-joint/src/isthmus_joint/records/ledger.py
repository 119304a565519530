"""The ledger of a site: what left it, with each entry chained to the one before."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from abc import ABC, abstractmethod
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self, final

from isthmus.errors import LedgerError
from isthmus_joint.agreement.identity import Identity
from isthmus_joint.agreement.protocol_catalogue import known_event
from isthmus_joint.agreement.roster import printable
from isthmus_joint.noise.accounting import Spending
from isthmus_joint.records.journal import REPAIRED, RESTORED, FolderLock
from isthmus_joint.records.ledger_entries import (
    START,
    Entry,
    canonical,
    chained,
    lines_of,
    parts,
    remember,
    require_heads,
    require_signed,
    signed_bytes,
    verified,
    verify,
)
from isthmus_joint.records.private_files import (
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


# --- Rounds and queries that a ledger counts -----------------------------------------------------
#
# What the rules of a site ask about the entries of a ledger, without reading all of them again.

Place = tuple[Any, Any]


@final
class LedgerTally:
    """Numbers of rounds and queries in the entries of a ledger, for limits on them.

    A question is counted once until its answer is known to somebody, and then once per answer. So a
    question that is asked again after a round without a result does not count again: a site that is
    silent at a bad moment cannot use up what the others allow.

    Attributes
    ----------
    questions
        Number of questions, including refused ones.
    openings
        How often a round was opened, including repeated questions.
    statistics
        How many statistics were sent; as for questions, once until there is a result.
    last_round
        The highest round that was opened, or zero.
    earliest
        The time of the earliest entry; ``None`` if there are none.
    """

    def __init__(self) -> None:
        self.questions = 0
        self.openings = 0
        self.statistics = 0
        self.last_round = 0
        self.earliest: str | None = None
        self._asked: dict[Place, Place] = {}
        self._known: set[Place] = set()
        self._answers: Counter[Place] = Counter()
        self._pending: set[Place] = set()

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """Count entries."""
        tally = cls()
        for entry in entries:
            tally.add(entry)
        return tally

    def add(self, entry: Entry) -> None:
        """Count one more entry."""
        event, time = known_event(entry["event"]), entry["time"]
        self.earliest = time if self.earliest is None else min(time, self.earliest)
        place = entry.get("study"), entry.get("round")
        if event.opens_round or entry.get("counted") is True:
            self.openings += 1
            self.last_round = max(self.last_round, entry.get("round", 0))
            question = place[0], entry.get("asked", place)
            self._asked[place] = question
            if question not in self._known:
                self._known.add(question)
                self.questions += max(self._answers[question], 1)
        question = self._asked.get(place, place)
        if event.sends_statistic and (event.opens_round or question not in self._pending):
            self._pending.add(question)
            self.statistics += 1
            self._answers[question] += 1
            if question in self._known and self._answers[question] > 1:
                self.questions += 1
        if event.reveals_result:
            self._pending.discard(question)


@final
class LedgerIndex:
    """Facts about entries, which each new entry updates.

    Every question to a site needs these facts. Collecting them from all entries would make each
    question slower than the one before.

    Attributes
    ----------
    heads
        The last head of each other party's ledger, by key.
    signed_heads
        The last of these that its owner has signed, with the signature behind it.
    fingerprints
        Fingerprints of the data of statistics, by the name of the event.
    received
        The entries about results that the site received.
    results
        The keys of the sites behind each result.
    studies
        The studies in which a statistic was sent.
    exact_rows
        Number of rows of the extract of each study in which exact sums were sent.
    columns
        Fingerprints of the columns shared with another party, by its organisation and by column.
    answers
        Hash of the kept answer with noise to each question.
    restored
        Whether something left that is known from others only.
    """

    def __init__(self) -> None:
        self.tally = LedgerTally()
        self.hashes: set[str] = set()
        self.heads: dict[str, str] = {}
        self.signed_heads: dict[str, str] = {}
        self.fingerprints: dict[str, set[str]] = {}
        self.received: list[Entry] = []
        self.results: set[frozenset[str]] = set()
        self.studies: set[str] = set()
        self.exact_rows: dict[str, int] = {}
        self.columns: dict[str, dict[str, set[str]]] = {}
        self.noisy: list[Entry] = []
        self.answers: dict[str, str] = {}
        self.restored = False

    def add(self, entry: Entry) -> None:
        """Add one more entry."""
        self.tally.add(entry)
        self.hashes |= {entry["hash"], *entry.get("restored", ())}
        self.restored |= entry["event"] == RESTORED.name
        remember(self.heads, entry)
        signed = entry.get("head_signatures", {})
        remember(
            self.signed_heads,
            {
                field: {k: h + signed[h] for k, h in entry.get(field, {}).items() if h in signed}
                for field in ("seen", "heads")
            },
        )
        if "data" in entry:
            self.fingerprints.setdefault(entry["event"], set()).add(entry["data"])
        if "result" in entry:
            self.received.append(entry)
        if known_event(entry["event"]).reveals_result:
            self.results.add(frozenset(entry.get("keys", ())))
        if known_event(entry["event"]).sends_statistic:
            self.studies.add(entry["study"])
        if "rows" in entry and "rho" not in entry:
            self.exact_rows[entry["study"]] = entry["rows"]
        if "columns" in entry:
            shared = self.columns.setdefault(entry["with"], {})
            for name, fingerprint in entry["columns"].items():
                shared.setdefault(name, set()).add(fingerprint)
        if "rho" in entry:
            self.noisy.append(entry)
        if "answer" in entry:
            self.answers.setdefault(entry["asked"], entry["answer"])

    def rho(self) -> float:
        """Return the cost of all answers with noise; repetitions cost nothing."""
        return Spending.of(self.noisy).total


# --- A ledger as text for people ----------------------------------------------------------------

CUT = {
    "policy": 8,
    "code": 15,
    "dependencies": 8,
    "study": 16,
    "data": 16,
    "asked": 16,
    "answer": 16,
    "request": 120,
    "question": 120,
}
"""Number of characters of these values that are shown to people; the file holds all."""


def readable(entries: Iterable[Entry]) -> str:
    """Return one line per entry, for people; values that only programs need are shortened."""
    hidden = {"format", "number", "time", "event", "previous", "hash"}
    hidden |= {"signer", "signature", "heads", "seen", "head_signatures", "keys"}
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
            what = e.get("what", asked.get(place, "unknown request"))
            key = place[0], what, e.get("form", "plain")
            sent.setdefault(key, []).append(e["numbers"])
    return "\n".join(
        f"{len(sizes)} × {what}; {sum(sizes):,} numbers in total, protected by {form} "
        f"(study {_short('study', study)})"
        for (study, what, form), sizes in sent.items()
    )


def received_results(entries: Iterable[Entry]) -> str:
    """Return one line per result that the site received: which sites have the same one."""
    results: dict[tuple[str, str], set[str]] = {}
    disputed: dict[str, set[str]] = {}
    for e in entries:
        study = e.get("study", "")
        if "result" in e:
            results.setdefault((study, e["result"]), set()).update(e.get("sites", ()))
        disputed.setdefault(study, set()).update(e.get("other_results", ()))
    lines = []
    for (study, result), sites in results.items():
        told = f"confirmed by {', '.join(sorted(sites))}"
        if disputed[study]:
            others = ", ".join(sorted(disputed[study]))
            told = f"{others} got another result; the coordinator has signed both: do not use it"
        elif not sites:
            told = "no other site has confirmed that it got the same one"
        lines.append(f"{result[:16]}… (study {_short('study', study)}): {printable(told)}")
    return "\n".join(lines)


def _short(key: str, value: Any) -> str:
    text, most = printable(str(value)), CUT.get(key, 2**31)
    return text if len(text) <= most else text[:most] + "…"
