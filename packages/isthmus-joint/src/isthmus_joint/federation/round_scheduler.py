"""Schedules the rounds of a study one after another, and can resume after a crash."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, final

from isthmus.errors import AbortedError, DataError, FederationError
from isthmus_joint.agreement.identity import Identity, Verifier, digest
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.received_results import sign_result
from isthmus_joint.federation.requests.base import StepRequest, SumRequest
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.records.journal import Journal, MemoryJournal, Record
from isthmus_joint.secure_sum.envelopes import RoundRequest
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.secure_sum.sides import Coordinator, ResultRound, run_round
from isthmus_joint.secure_sum.terms import LimbArray, from_bytes, to_bytes
from isthmus_joint.transport.base import Transport, drive

RESTART, ACTIVE, SUM = "restart", "active", "sum"
"""Records of the journal: sums are discarded; sites are asked to unmask; there is a sum."""

ATTEMPTS = 100
"""How often a round is repeated at most because sites fail in it, before the run is aborted."""

OTHER_OPTIONS = (
    "A run can only be resumed with the same method and the same options. To use others, start "
    "again with --restart: the sites are then asked again, which uses up rounds of the study."
)


def restart(journal: Journal, study: Study) -> None:
    """Discard the sums in a journal. The numbers of rounds and the sites are kept."""
    journal.append({"event": RESTART, "study": study.identity.hex(), "round": 0})


@final
class RoundScheduler:
    """Runs the rounds of a study one by one, and keeps the sums in a journal.

    A scheduler with the journal of one that was killed resumes its run: the same requests in the
    same order return the same sums, and sums in the journal are not requested again. An
    interrupted round is abandoned and repeated with a higher number.

    A sum needs every site of the study but those `without`. Nobody is left out because of a bad
    moment; with ``None``, whoever is silent in the first sum is. Once sites were asked to unmask a
    sum, all sums are over the same sites. These are written to the journal before the sites are
    asked.
    """

    def __init__(
        self,
        study: Study,
        identity: Identity,
        transport: Transport,
        verifier: Verifier | None = None,
        journal: Journal | None = None,
        first_round: int = 1,
        without: Iterable[str] | None = (),
    ) -> None:
        self._study = study
        self._terms = secure_sums(study.protocol).terms(study.roster)
        self._grid = FixedPointEncoding.of(study)
        self._identity = identity
        self._transport = transport
        self._verifier = verifier
        self._journal = MemoryJournal() if journal is None else journal
        self._next = first_round
        self._sums: list[Record] = []
        self._before: tuple[str, ...] | None = None
        self._position = 0
        self.active: tuple[str, ...] | None = None
        for record in self._journal.records():
            self._take(record)
        self._asked = None if without is None else self._members_without(frozenset(without))

    def _members_without(self, absent: frozenset[str]) -> tuple[str, ...]:
        """Return the sites of every sum, or raise `FederationError` if there can be none."""
        names = [m.name for m in self._study.members]
        strangers = sorted(absent.difference(names))
        if strangers:
            raise FederationError(
                f"{strangers} are not sites of this study and cannot be left out; it has {names}."
            )
        if self._before is not None and absent.intersection(self._before):
            raise FederationError(
                f"The sums so far are over {list(self._before)}, and all sums of a study are over "
                f"the same sites, so {sorted(absent.intersection(self._before))} cannot be left "
                "out. Wait for them, or draft another study."
            )
        asked = tuple(name for name in names if name not in absent)
        if not self._terms.enough(frozenset(map(self._terms.position, asked))):
            raise FederationError(
                f"Without {sorted(absent)}, {len(asked)} sites are left; this study needs "
                f"{self._terms.threshold} sites of {self._terms.organisations} organisations. "
                "Draft a study of the sites that can take part."
            )
        return asked

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the sites that the next sum is asked from."""
        everyone = tuple(m.name for m in self._study.members)
        return self._before or self._asked or everyone

    @property
    def kept(self) -> int:
        """Number of sums in the journal, which are not requested again."""
        return len(self._sums)

    @property
    def used(self) -> int:
        """Number of sums that this run has asked for."""
        return self._position

    def _take(self, record: Record) -> None:
        """Update the state with a record of the journal."""
        if record["study"] != self._study.identity.hex():
            raise FederationError(
                "The journal belongs to another study. Use one journal per study."
            )
        self._next = max(self._next, record["round"] + 1)
        event = record["event"]
        if event == ACTIVE:
            self._before = tuple(record["sites"])
        elif event == SUM:
            self._sums.append(record)
        elif event == RESTART:
            self._sums.clear()

    def _write(self, event: str, number: int, **details: Any) -> None:
        mine = self._study.identity.hex()
        record = {"event": event, "study": mine, "round": number, **details}
        self._journal.append(record)
        self._take(record)

    def ask(self, request: SumRequest[Any]) -> tuple[LimbArray, tuple[str, ...]]:
        """Return the sum for a request, and the names of the sites in it.

        Raises
        ------
        AbortedError
            No sum was formed. The message names the sites that are silent or refused.
        """
        asked = digest(request.to_bytes()).hex()
        if self._position == len(self._sums):
            self._form(request, asked)
        record = self._sums[self._position]
        if record["request"] != asked:
            raise FederationError(
                f"Sum {self._position + 1} in the journal belongs to another request. "
                + OTHER_OPTIONS
            )
        self._position += 1
        self.active = tuple(record["sites"])
        return from_bytes(base64.b64decode(record["sum"]), request.limbs), self.active

    def _form(self, request: SumRequest[Any], asked: str) -> None:
        """Send the request until there is a sum, or until waiting is of no use."""
        total, round_ = self._completed(request)
        self._require_plausible(request, total, round_)
        details = {"sum": base64.b64encode(to_bytes(total)).decode()}
        if isinstance(request, StepRequest):
            details["transcript"] = base64.b64encode(round_.transcript).decode()
        sites = list(round_.active)
        self._write(SUM, round_.request.number, request=asked, sites=sites, **details)

    def _require_plausible(
        self, request: SumRequest[Any], total: LimbArray, round_: Coordinator
    ) -> None:
        """Raise `AbortedError` for a sum that makes no sense, which is then not written down.

        Noise can make any sum look strange.
        """
        if self._study.privacy is not None:
            return
        try:
            request.require_plausible(total, self._grid)
        except DataError as error:
            raise AbortedError(
                f"The sum of round {round_.request.number} was discarded. {error} One of the sites "
                f"{list(round_.active)} sent wrong numbers. Ask them which version they run and "
                "whether their ledgers are in order, and run again."
            ) from None

    def send_result(self, result: bytes) -> tuple[str, ...]:
        """Send a result to the sites whose numbers are in it; return those that confirm it."""
        everyone = self._terms.roster.everyone
        signature = sign_result(self._identity, self._study.identity, result)
        round_ = ResultRound(
            self._terms,
            self._identity,
            max(self._next - 1, 1),
            frozenset(map(self._terms.position, self._before)) if self._before else everyone,
            result,
            signature,
            self._verifier,
        )
        drive(round_, self._transport)
        return round_.received

    def _completed(self, request: SumRequest[Any]) -> tuple[LimbArray, Coordinator]:
        """Run a round, and another one whenever silent sites are back."""
        for _ in range(ATTEMPTS):
            try:
                return self._round(request)
            except AbortedError as error:
                if not error.silent or not self._transport.wait(error.silent):
                    raise
        return self._round(request)

    def _round(self, request: SumRequest[Any]) -> tuple[LimbArray, Coordinator]:
        """Run one round."""
        number = self._next
        self._write("open", number)
        transcript = b""
        if isinstance(request, StepRequest) and request.step:
            if not self._position:
                raise FederationError("The first request of a method must be for its first step.")
            before = self._sums[self._position - 1].get("transcript", "")
            transcript = base64.b64decode(before)
        size = request.size(self._grid)
        active = self._asked if self._before is None else self._before
        round_ = Coordinator(
            self._terms,
            self._identity,
            RoundRequest(number, request.to_bytes(), size, request.limbs, transcript),
            asked=active,
            is_complete=active is not None,
            keeps_transcript=isinstance(request, StepRequest),
            verifier=self._verifier,
            note=lambda sites: self._write(ACTIVE, number, sites=list(sites)),
        )
        return run_round(round_, self._transport), round_
