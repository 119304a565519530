"""Asks for one sum after another, and can be killed at any time."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar, final

from isthmus.errors import AbortedError, FederationError
from isthmus.parties.agreement.study import Study
from isthmus.parties.identity import Identity, Verifier, digest
from isthmus.parties.records.journal import Journal, MemoryJournal, Record
from isthmus.parties.transport.base import Transport, drive, run_round
from isthmus.sources.horizontal.requests.sums import Message, Request
from isthmus.sources.horizontal.secure_sum.coordinator import Coordinator
from isthmus.sources.horizontal.secure_sum.frames import Opening
from isthmus.sources.horizontal.secure_sum.gathering import KeyRound, SingleRound
from isthmus.sources.horizontal.secure_sum.words import Words, from_bytes, to_bytes

T = TypeVar("T")

STEPS = frozenset({Message.CONSENSUS, Message.NETWORKS})
"""Statistics that need all sites in every round, for many rounds."""


ANEW = "anew"


def begin_anew(journal: Journal, study: Study) -> None:
    """Let nobody take up the sums in a journal; numbers of rounds, keys and sites stay."""
    journal.append({"event": ANEW, "study": study.identity.hex(), "round": 0})


@final
class Leader:
    """Forms the sums of a study, one by one, and keeps them in a journal.

    With the journal of a leader that was killed, what was summed before is not asked for again:
    whoever asks the same questions in the same order gets the same sums. A round of several
    exchanges that was cut short is given up and opened anew with a higher number. A sum of one
    message each is asked for once more: sites give the same answers.

    Parameters
    ----------
    study, identity, transport, verifier
        As for `Federation`.
    journal
        What was opened and summed; in memory if not given.
    first_round
        Number of the first round.
    """

    def __init__(
        self,
        study: Study,
        identity: Identity,
        transport: Transport,
        verifier: Verifier | None = None,
        journal: Journal | None = None,
        first_round: int = 1,
    ) -> None:
        self._study = study
        self._identity = identity
        self._transport = transport
        self._verifier = verifier
        self._journal = MemoryJournal() if journal is None else journal
        self._next = first_round
        self._keys: tuple[bytes, tuple[str, ...]] | None = None
        self._open: Record | None = None
        self._sums: list[Record] = []
        self._before: tuple[str, ...] | None = None
        self._at = 0
        self.active: tuple[str, ...] | None = None
        for record in self._journal.records():
            self._take(record)

    @property
    def kept(self) -> int:
        """How many sums are known; those of an earlier run are not asked for again."""
        return len(self._sums)

    def _take(self, record: Record) -> None:
        """Know what was written."""
        if record["study"] != self._study.identity.hex():
            raise FederationError(
                "The journal is of another study. Give each study a journal of its own."
            )
        self._next = max(self._next, record["round"] + 1)
        event = record["event"]
        if event == "keys":
            self._keys = bytes.fromhex(record["keys"]), tuple(record["sites"])
        elif event == "single":
            self._open = record
        elif event == "sum":
            self._sums.append(record)
            self._before = tuple(record["sites"])
            self._open = None
        elif event == ANEW:
            self._sums.clear()
            self._open = None

    def _write(self, event: str, number: int, **details: Any) -> None:
        mine = self._study.identity.hex()
        record = {"event": event, "study": mine, "round": number, **details}
        self._journal.append(record)
        self._take(record)

    def ask(self, request: Request) -> tuple[Words, tuple[str, ...]]:
        """The sum for this question, and whose numbers are in it.

        Raises
        ------
        AbortedError
            There is no sum; the message names the sites.
        """
        asked = digest(request.to_bytes()).hex()
        if self._at == len(self._sums):
            self._form(request, asked)
        held = self._sums[self._at]
        if held["request"] != asked:
            raise FederationError(
                f"Sum {self._at + 1} in the journal is of another question. A run is taken up with "
                "the same method and the same options; with others, begin one anew (--anew): "
                "it asks the sites again, and uses up rounds of the study."
            )
        self._at += 1
        self.active = tuple(held["sites"])
        return from_bytes(base64.b64decode(held["sum"]), request.limbs), self.active

    def _form(self, request: Request, asked: str) -> None:
        """Ask, until there is a sum or it is no use to wait."""
        if request.message in STEPS and self._study.fixed_membership:
            words, active, number = self._single(request, asked)
        else:
            words, active, number = self._patiently(lambda: self._several(request))
        data = base64.b64encode(to_bytes(words)).decode()
        self._write("sum", number, request=asked, sites=list(active), sum=data)

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Open a new round when silent sites are back."""
        while True:
            try:
                return attempt()
            except AbortedError as error:
                if not error.silent or not self._transport.wait(error.silent):
                    raise

    def _opening(self, request: Request, number: int) -> Opening:
        return Opening(number, request.to_bytes(), request.size(self._study.grid), request.limbs)

    def _several(self, request: Request) -> tuple[Words, tuple[str, ...], int]:
        """A round that can lose sites; five exchanges."""
        number, fixed = self._next, self._study.fixed_membership
        self._write("open", number)
        active = self._before
        led = Coordinator(
            self._study.terms,
            self._identity,
            self._opening(request, number),
            asked=active if fixed else None,
            complete=fixed and active is not None,
            verifier=self._verifier,
        )
        return run_round(led, self._transport), led.active, number

    def _single(self, request: Request, asked: str) -> tuple[Words, tuple[str, ...], int]:
        """A round that needs all sites; one exchange."""
        keys, sites = self._agreed()
        if self._open is None:
            self._write("single", self._next, request=asked)
        assert self._open is not None
        if self._open["request"] != asked:
            raise FederationError(
                "The journal ends with another question. A run is taken up with the same method "
                "and the same options; with others, begin one anew (--anew)."
            )
        number = self._open["round"]
        members = self._positions(sites)
        opening = self._opening(request, number)
        led = SingleRound(self._study.terms, self._identity, opening, members, keys, self._verifier)
        return run_round(led, self._transport), led.active, number

    def _agreed(self) -> tuple[bytes, tuple[str, ...]]:
        """Keys for the sites of the earlier sums, or for all; agreed on once."""
        sites = self._before or self._names()
        if self._keys is None or self._keys[1] != sites:
            self._patiently(lambda: self._agree(sites))
        assert self._keys is not None
        return self._keys

    def _agree(self, sites: tuple[str, ...]) -> None:
        number = self._next
        self._write("open", number)
        members = self._positions(sites)
        led = KeyRound(self._study.terms, self._identity, number, members, self._verifier)
        drive(led, self._transport)
        self._write("keys", number, keys=led.keys.hex(), sites=list(sites))

    def _names(self) -> tuple[str, ...]:
        return tuple(m.name for m in self._study.members)

    def _positions(self, sites: tuple[str, ...]) -> frozenset[int]:
        return frozenset(self._study.terms.position(name) for name in sites)
