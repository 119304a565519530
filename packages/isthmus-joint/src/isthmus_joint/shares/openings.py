"""What a run of two parties opens: the one place where that is recorded, spent and repeated.

To open a value, both parties write their shares of it to their journals and exchange commitments to
them. A party that has the other's commitment knows that the other has its share on disk. It then
writes the opening to its journal and to its ledger, and only then its share leaves. From then on
the opening is spent: in whatever attempt at the run, this party sends this share of this value
again, or nothing. If the journal does not know what the ledger does, it is nothing.

So after a crash at any moment the parties exchange the same shares again and find the same value,
or no share has left and they compute the value again. A party that claims to have lost its share,
or comes with another one, ends the run. Nothing is taken from the memory of the other party.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError, RefusedError
from isthmus_joint.agreement.identity import Verifier
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.study import Study, code_hash
from isthmus_joint.records.journal import Journal
from isthmus_joint.records.ledger import Ledger
from isthmus_joint.records.ledger_entries import START, signed_bytes
from isthmus_joint.records.ledger_writer import LedgerWriter, SiteRules
from isthmus_joint.shares import alignment
from isthmus_joint.shares.party_table import PartyTable
from isthmus_joint.shares.protocol import ALIGNING, TwoParties, two_parties
from isthmus_joint.shares.requests import OwnTables
from isthmus_joint.transport.pinned_channel import PinnedChannel

DONE = "done"
"""How a run ends that came to its end."""

HASH = re.compile("[0-9a-f]{64}")
SALT = 16
PIECE = 1 << 20
"""Maximum number of bytes of a share in one message."""


@final
@dataclass(frozen=True)
class HeldShare:
    """A party's own share of a value that may be opened, as its journal has it.

    Attributes
    ----------
    session
        The attempt in which it was computed, which both parties name alike.
    data
        A random salt and the share.
    commitment
        The other party's commitment to its share. Once it is here, the own share may have left.
    """

    session: str
    data: bytes
    commitment: str = ""

    @property
    def spent(self) -> bool:
        """Whether the share may have left."""
        return bool(self.commitment)


@final
@dataclass(frozen=True)
class PastRun:
    """The latest run, as a journal has it or as the other party states it.

    Attributes
    ----------
    finished
        Whether it came to its end, or can never be resumed.
    closed
        Whether it can never be resumed: it was ended early, or is of another request. A run that
        came to its end can be, as long as the other party needs its result.
    rows
        How many people both parties have; zero before that is known.
    sessions
        In which attempt the share of each value was computed.
    """

    number: int = 0
    finished: bool = True
    rows: int = 0
    sessions: Mapping[str, str] = field(default_factory=dict)
    closed: bool = False


@final
@dataclass(frozen=True)
class NextRun:
    """The run that both parties agree on.

    Attributes
    ----------
    rows
        How many people both parties have, if both of them still know who they are; else zero.
    settled
        Values of which both parties have shares of the same attempt. These are exchanged again,
        whatever is computed now.
    """

    number: int
    rows: int = 0
    settled: frozenset[str] = frozenset()


@final
class RunJournal:
    """The journal of a party's runs in one study."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def past(self, request: str) -> PastRun:
        """Return the latest run, for a party that is about to run this request."""
        run = PastRun()
        for record in self._journal.records():
            if record["run"] != run.number:
                run = PastRun(int(record["run"]), finished=False)
            closed = run.closed or record.get("end", DONE) != DONE
            closed = closed or record.get("request", request) != request
            rows = int(record.get("rows", run.rows))
            finished = run.finished or closed or "end" in record
            run = replace(run, finished=finished, rows=rows, closed=closed)
        held = self.shares(run.number)
        return replace(run, sessions={label: share.session for label, share in held.items()})

    def shares(self, number: int) -> dict[str, HeldShare]:
        """Return the own share of each value of a run, in the order in which they were opened."""
        held: dict[str, HeldShare] = {}
        for record in self._journal.records():
            if record["run"] == number and "share" in record:
                data = base64.b64decode(record["share"])
                held[record["opening"]] = HeldShare(record["session"], data)
            elif record["run"] == number and "commitment" in record:
                label = record["opening"]
                held[label] = replace(held[label], commitment=record["commitment"])
        return held

    def open(self, number: int, request: str) -> None:
        """Write that a run of a request begins."""
        if self.past(request).number != number:
            self._journal.append({"request": request, "run": number})

    def align(self, number: int, positions: NDArray[np.intp], people: int) -> None:
        """Write how rows are aligned, and how many people are common."""
        text = alignment.written(positions)
        self._journal.append({"run": number, "rows": people, "positions": text})

    def positions(self, number: int) -> NDArray[np.intp] | None:
        """Return how rows are aligned, if that is known for this run."""
        for record in reversed(self._journal.records()):
            if record["run"] == number and "positions" in record:
                return alignment.read(record["positions"])
        return None

    def hold(self, number: int, label: str, share: HeldShare) -> None:
        """Write the own share of a value, before the other party knows that there is one."""
        text = base64.b64encode(share.data).decode()
        made = {"opening": label, "session": share.session, "share": text}
        self._journal.append({"run": number, **made})

    def spend(self, number: int, label: str, commitment: str) -> None:
        """Write that the own share of a value is about to leave."""
        self._journal.append({"run": number, "opening": label, "commitment": commitment})

    def end(self, number: int, how: str) -> None:
        """Write that a run is over and cannot be resumed."""
        self._journal.append({"run": number, "end": how})


def next_run(own: PastRun, other: PastRun, name: str) -> NextRun:
    """Return the run that follows from both journals; `AbortedError` if they contradict."""
    open_runs = {run.number for run in (own, other) if not run.finished}
    latest = max(own.number, other.number)
    if not open_runs:
        return NextRun(latest + 1)
    if open_runs != {latest}:
        raise AbortedError(
            f"This party and {name!r} remember different runs ({own.number} and {other.number}). "
            "One of the journals was lost or replaced: restore it, or draft a new study.",
            reason="other journal",
        )
    if own.number != other.number:
        return NextRun(latest)
    if own.closed or other.closed:
        return NextRun(latest + 1)
    if own.rows != other.rows and own.rows and other.rows:
        raise AbortedError(
            f"This party and {name!r} remember different numbers of common people "
            f"({own.rows} and {other.rows}). Draft a new study.",
            reason="other number of rows",
        )
    settled = frozenset(dict(own.sessions.items() & other.sessions.items()))
    return NextRun(latest, own.rows if own.rows == other.rows else 0, settled)


@final
class Openings:
    """Opens the values of one run, each at most once.

    Parameters
    ----------
    limit
        How many values the request opens at most.
    spend
        Writes to the ledger that a value is about to be opened, or raises.
    """

    def __init__(
        self,
        journal: RunJournal,
        run: NextRun,
        session: str,
        channel: PinnedChannel,
        timeout: float,
        rank: int,
        limit: int,
        spend: Callable[[str], None],
    ) -> None:
        held = journal.shares(run.number)
        self._held = {label: held[label] for label in held if label in run.settled}
        self._journal = journal
        self._run = run
        self._session = session
        self._channel = channel
        self._timeout = timeout
        self._rank = rank
        self._limit = limit
        self._spend = spend
        self._opened: set[str] = set()

    def open(self, label: str, share: bytes, *, gives: bool, takes: bool) -> bytes:
        """Exchange shares of a value, and return the own one and, if it was taken, the other's.

        Parameters
        ----------
        share
            The share that was computed in this attempt; that of an earlier one goes before it.
        gives, takes
            Whether the other party, and whether this party, learns the value.
        """
        if label in self._opened or len(self._opened) >= self._limit:
            raise AbortedError(
                f"The engine asked to open {label!r}, which the request does not open (again). "
                "Nothing was opened.",
                reason="engine",
            )
        self._opened.add(label)
        held = self._held.get(label)
        if held is None:
            held = HeldShare(self._session, secrets.token_bytes(SALT) + share)
            self._journal.hold(self._run.number, label, held)
        self._channel.send({"commitment": _commitment(self._rank, held.session, label, held.data)})
        theirs = self._channel.take("commitment", self._timeout)
        if not (isinstance(theirs, str) and HASH.fullmatch(theirs)):
            raise self._broken(label)
        if not held.spent:
            self._journal.spend(self._run.number, label, theirs)
        elif theirs != held.commitment:
            raise self._broken(label)
        self._spend(label)
        if gives:
            for start in range(0, len(held.data), PIECE):
                piece = held.data[start : start + PIECE]
                self._channel.send({"share": base64.b64encode(piece).decode()})
        other = self._take(len(held.data)) if takes else b""
        if takes and (
            len(other) != len(held.data)
            or _commitment(1 - self._rank, held.session, label, other) != theirs
        ):
            raise self._broken(label)
        return held.data[SALT:] + other[SALT:]

    def _take(self, size: int) -> bytes:
        """Receive as many pieces as a share of this size has."""
        pieces = [self._channel.take("share", self._timeout) for _ in range(0, size, PIECE)]
        try:
            return b"".join(base64.b64decode(piece) for piece in pieces)
        except (ValueError, TypeError):
            return b""

    def _broken(self, label: str) -> AbortedError:
        return AbortedError(
            f"The other party sent another share of {label!r} than the one it had committed to, or "
            "one of another size. The value is not used, and not opened again.",
            reason="other share",
        )


def _commitment(rank: int, session: str, label: str, data: bytes) -> str:
    """Return a hash that fixes a share and, because of its salt, tells nothing about it."""
    bound = json.dumps([rank, session, label]).encode()
    return hashlib.sha256(data[:SALT] + hashlib.sha256(bound).digest() + data[SALT:]).hexdigest()


# --- Rules of a party that do not depend on who the people in common are ------------------------


def refusals(
    study: Study, policy: Policy, ledger: Ledger, name: str, table: PartyTable
) -> list[str]:
    """Return why a party would refuse a run now; writes nothing and needs no signatures."""
    forbidden = policy.violations(study)
    broken = forbidden + table_violations(study, policy)
    broken += people_violations(two_parties(study.protocol), name, len(table.identifiers))
    writer = LedgerWriter(study, policy, ledger)
    broken += other_tables(writer, table)
    if forbidden:  # no rules are made for a study that the policy does not allow
        return broken
    rules = SiteRules(study, policy, writer, lambda: datetime.now(UTC), code_hash())
    try:
        rules.require_open()
    except RefusedError as error:
        broken.append(str(error).rstrip("."))
    return broken + rules.limits()


def table_violations(study: Study, policy: Policy) -> list[str]:
    """Return a phrase for each rule that the own tables of a study break."""
    if OwnTables.name not in study.requests:
        return []
    broken = OwnTables.of(study).violations(study)
    given, least = two_parties(study.protocol).minimum_cell, policy.minimum_cell
    if given < least:
        broken.append(
            f"the study releases tables with cells of {given} people; the policy needs at least "
            f"{least}"
        )
    return broken


def people_violations(terms: TwoParties, name: str, people: int) -> list[str]:
    """Return a phrase if a party comes with too few or too many people."""
    least, most = terms.minimum_cohort, terms.holding(name).people
    if least <= people <= most:
        return []
    return [f"{name} comes with {people} people; the study allows {least} to {most}"]


def other_tables(writer: LedgerWriter, table: PartyTable) -> list[str]:
    """Return a phrase if earlier runs of the study were over another table."""
    known = writer.here.fingerprints.get(ALIGNING.name, set())
    if not known - {table.fingerprint}:
        return []
    text = (
        "earlier runs of this study were over another table, and two results of different tables "
        "reveal more than one. Use the same table. A new study with the same organisation needs it "
        "as well, for columns that were shared"
    )
    return [text]


# --- Reads what the other party claims in its greeting; anything else is an error ---------------

HASH_DIGITS = 64
HEAD = re.compile("[0-9a-f]{64}([0-9a-f]{128})?")
"""The hash of an entry and its signature. `bytes.fromhex` would also read blanks, without end."""


def read_head(head: object, key: bytes) -> str:
    """Return the hash of a ledger's entry and its signature by this key from a message."""
    text = head if isinstance(head, str) and HEAD.fullmatch(head) else ""
    entry, signature = text[:HASH_DIGITS], bytes.fromhex(text[HASH_DIGITS:])
    if text != START and not Verifier().verify(key, signature, signed_bytes(entry)):
        raise AbortedError(
            "The other party sent a hash of its ledger or of this party's that the owner of the "
            "ledger has not signed. Check that both parties have the same version.",
            reason="broken message",
        )
    return text


def read_past(claims: Mapping[str, Any], most: int) -> PastRun:
    """Read what a party claims about its latest run; anything else is an error.

    Each run counts at one of the two parties at least, so that there are at most `most`.
    """
    finished, closed, sessions = map(claims.get, ("finished", "closed", "sessions"))
    number, rows = read_number(claims.get("run")), read_number(claims.get("rows"))
    if not isinstance(finished, bool) or not isinstance(closed, bool) or number > most:
        raise incomplete()
    if not isinstance(sessions, Mapping):
        raise incomplete()
    named = {str(label): str(session) for label, session in sessions.items()}
    return PastRun(number, finished or closed, rows, named, closed)


def read_number(value: object) -> int:
    """Return a number that is not negative from a message."""
    if type(value) is not int or value < 0:
        raise incomplete()
    return value


def incomplete() -> AbortedError:
    """Return the error for a greeting that cannot be read."""
    return AbortedError(
        "The other party sent a greeting that is not complete. Check that both parties have the "
        "same version.",
        reason="broken message",
    )
