"""Schedules the rounds of a study one after another, and can resume after a crash."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar, final

from isthmus.errors import AbortedError, FederationError
from isthmus.joint.agreement.identity import Identity, Verifier, digest
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.base import SumRequest
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.requests.steps import StepRequest
from isthmus.joint.federation.study_terms import terms_of
from isthmus.joint.records.journal import Journal, MemoryJournal, Record
from isthmus.joint.records.results import sign_result
from isthmus.joint.secure_sum.coordinator import Coordinator
from isthmus.joint.secure_sum.envelopes import RoundRequest
from isthmus.joint.secure_sum.limbs import LimbArray, from_bytes, to_bytes
from isthmus.joint.secure_sum.one_message_coordinator import KeyRound, OneMessageRound, run_round
from isthmus.joint.secure_sum.protocol import secure_sums
from isthmus.joint.secure_sum.result_round import ResultRound
from isthmus.joint.transport.base import Transport, drive

T = TypeVar("T")

RESTART = "restart"

OTHER_OPTIONS = (
    "A run can only be resumed with the same method and the same options. To use others, start "
    "again with --restart: the sites are then asked again, which uses up rounds of the study."
)


def restart(journal: Journal, study: Study) -> None:
    """Discard the sums in a journal. The numbers of rounds, the keys and the sites are kept."""
    journal.append({"event": RESTART, "study": study.identity.hex(), "round": 0})


@final
class RoundScheduler:
    """Runs the rounds of a study one by one, and keeps the sums in a journal.

    A scheduler with the journal of one that was killed resumes its run: the same requests in the
    same order return the same sums, and sums in the journal are not requested again. An
    interrupted round of several exchanges is abandoned and repeated with a higher number. The
    request of an interrupted one-message round is sent again, and the sites give the same answers.

    Parameters
    ----------
    study, identity, transport, verifier
        As for `Federation`.
    journal
        Records rounds and sums; in memory by default.
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
        self._fixed_membership = secure_sums(study.protocol).fixed_membership
        self._terms = terms_of(study)
        self._grid = FixedPointEncoding.of(study)
        self._identity = identity
        self._transport = transport
        self._verifier = verifier
        self._journal = MemoryJournal() if journal is None else journal
        self._next = first_round
        self._keys: tuple[bytes, tuple[str, ...]] | None = None
        self._open: Record | None = None
        self._heads: dict[int, bytes] = {}
        self._chain: dict[int, bytes] = {}
        self._sums: list[Record] = []
        self._before: tuple[str, ...] | None = None
        self._position = 0
        self.active: tuple[str, ...] | None = None
        for record in self._journal.records():
            self._take(record)

    @property
    def kept(self) -> int:
        """Number of sums in the journal, which are not requested again."""
        return len(self._sums)

    @property
    def used(self) -> int:
        """Number of sums that this run has asked for."""
        return self._position

    @property
    def answers(self) -> tuple[bytes, ...]:
        """The signed answers behind the last sum, if later requests may quote them."""
        record = self._sums[self._position - 1]
        return tuple(base64.b64decode(text) for text in record.get("answers", ()))

    def _take(self, record: Record) -> None:
        """Update the state with a record of the journal."""
        if record["study"] != self._study.identity.hex():
            raise FederationError(
                "The journal belongs to another study. Use one journal per study."
            )
        self._next = max(self._next, record["round"] + 1)
        event = record["event"]
        if event == "keys":
            self._keys = bytes.fromhex(record["keys"]), tuple(record["sites"])
            self._chain = {}
        elif event == "single":
            self._open = record
        elif event == "sum":
            self._sums.append(record)
            self._before = tuple(record["sites"])
            heads = {int(i): bytes.fromhex(h) for i, h in record.get("heads", {}).items()}
            self._heads |= heads
            if self._open is not None and self._open["round"] == record["round"]:
                self._chain = heads
            self._abandon(unless=record["round"])
        elif event == RESTART:
            self._sums.clear()
            self._abandon()

    def _abandon(self, unless: int = 0) -> None:
        """Forget a one-message round that was begun, unless it is the one that is complete.

        Some sites may have answered it and others not, so that they have to agree on keys again.
        """
        if self._open is not None and self._open["round"] != unless:
            self._keys = None
        self._open = None

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
        round_: Coordinator | OneMessageRound
        details: dict[str, Any] = {}
        if request.needs_all_sites and self._fixed_membership:
            total, single = self._one_message(request, asked)
            if isinstance(request, StepRequest):
                answers = [base64.b64encode(answer).decode() for answer in single.answers]
                details["answers"] = answers
            round_ = single
        else:
            total, round_ = self._with_waiting(lambda: self._fault_tolerant(request))
        data = base64.b64encode(to_bytes(total)).decode()
        heads = {str(i): head.hex() for i, head in round_.heads.items()}
        number, active = round_.opening.number, list(round_.active)
        self._write("sum", number, request=asked, sites=active, sum=data, heads=heads, **details)

    def send_result(self, result: bytes) -> tuple[str, ...]:
        """Send a result to the sites whose numbers are in it; return those that confirm it."""
        sites = self._before or self._names()
        signature = sign_result(self._identity, self._study.identity, result)
        round_ = ResultRound(
            self._terms,
            self._identity,
            max(self._next - 1, 1),
            self._positions(sites),
            result,
            signature,
            self._verifier,
        )
        drive(round_, self._transport)
        return round_.received

    def _with_waiting(self, attempt: Callable[[], T]) -> T:
        """Start a new round when silent sites are back."""
        while True:
            try:
                return attempt()
            except AbortedError as error:
                if not error.silent or not self._transport.wait(error.silent):
                    raise

    def _opening(self, request: SumRequest[Any], number: int) -> RoundRequest:
        return RoundRequest(number, request.to_bytes(), request.size(self._grid), request.limbs)

    def _fault_tolerant(self, request: SumRequest[Any]) -> tuple[LimbArray, Coordinator]:
        """Run a round of five exchanges, which tolerates failing sites."""
        number, fixed = self._next, self._fixed_membership
        self._write("open", number)
        active = self._before
        round_ = Coordinator(
            self._terms,
            self._identity,
            self._opening(request, number),
            asked=active if fixed else None,
            complete=fixed and active is not None,
            verifier=self._verifier,
            heads=self._heads,
        )
        return run_round(round_, self._transport), round_

    def _one_message(
        self, request: SumRequest[Any], asked: str
    ) -> tuple[LimbArray, OneMessageRound]:
        """Run a round of one exchange, which needs all sites."""
        keys, sites = self._agreed()
        if self._open is None:
            self._write("single", self._next, request=asked)
        assert self._open is not None
        if self._open["request"] != asked:
            raise FederationError(f"The journal ends with another request. {OTHER_OPTIONS}")
        number = self._open["round"]
        members = self._positions(sites)
        opening = self._opening(request, number)
        round_ = OneMessageRound(
            self._terms, self._identity, opening, members, keys, self._verifier, self._chain
        )
        return run_round(round_, self._transport), round_

    def _agreed(self) -> tuple[bytes, tuple[str, ...]]:
        """Return the keys of the sites of the earlier sums, or of all sites; agree on them once."""
        sites = self._before or self._names()
        if self._keys is None or self._keys[1] != sites:
            self._with_waiting(lambda: self._agree(sites))
        assert self._keys is not None
        return self._keys

    def _agree(self, sites: tuple[str, ...]) -> None:
        number = self._next
        self._write("open", number)
        members = self._positions(sites)
        round_ = KeyRound(self._terms, self._identity, number, members, self._verifier, self._heads)
        drive(round_, self._transport)
        self._write("keys", number, keys=round_.keys.hex(), sites=list(sites))

    def _names(self) -> tuple[str, ...]:
        return tuple(m.name for m in self._study.members)

    def _positions(self, sites: tuple[str, ...]) -> frozenset[int]:
        return frozenset(self._terms.position(name) for name in sites)
