"""The coordinator of a secure sum: it collects answers, and goes on with the steps of a round."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, final

from isthmus.errors import AbortedError, FederationError
from isthmus_joint.agreement.identity import KEY, Identity, Verifier
from isthmus_joint.secure_sum import envelopes
from isthmus_joint.secure_sum.envelopes import (
    COORDINATOR,
    LARGEST_RESULT,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus_joint.secure_sum.round import (
    COORDINATOR_STEPS,
    QUESTIONS,
    SITE_STEPS,
    CoordinatorStep,
    Message,
    ReleaseGate,
    RoundSecrets,
    SiteRound,
    SiteStep,
    advertise,
    ask,
    is_answer,
)
from isthmus_joint.secure_sum.terms import LimbArray, Terms
from isthmus_joint.transport.base import Transport, drive

AWAITED = {
    EnvelopeKind.ADVERT: "keys",
    EnvelopeKind.SHARES: "shares",
    EnvelopeKind.MASKED: "masked numbers",
    EnvelopeKind.CONSENT: "signatures on the active set",
    EnvelopeKind.REVEAL: "shares that unmask the sum",
}
"""What the coordinator waits for, in words."""

SUMMED = (EnvelopeKind.ADVERT, EnvelopeKind.SHARES, EnvelopeKind.MASKED)
"""A site that gives these answers is in the sum; its numbers count if it fails later."""


@final
class Coordinator:
    """One round of a secure sum.

    Call `begin`, deliver the frames to the sites, pass each answer to `receive`, and call `advance`
    when all sites have answered or the waiting time is over. Repeat until `advance` returns no
    more frames. Then `total` is the sum over the `active` sites.

    Parameters
    ----------
    terms
        The sites, and how many of them must answer.
    identity
        The coordinator's key, which the study names.
    request
        The request.
    asked
        Names of the sites to ask; all by default.
    is_complete
        Whether the sum must be over all sites that are asked, and not only over those that answer.
    keeps_transcript
        Whether a later request follows from the sum.
    verifier
        Checks signatures.
    note
        Called with the names of the active sites before shares are requested.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        request: RoundRequest,
        *,
        asked: Iterable[str] | None = None,
        is_complete: bool = False,
        keeps_transcript: bool = False,
        verifier: Verifier | None = None,
        note: Callable[[tuple[str, ...]], None] = lambda _: None,
    ) -> None:
        self._terms = terms
        self._identity = identity
        self._verifier = Verifier() if verifier is None else verifier
        self._note = note
        self.request = request
        names = [m.name for m in terms.members] if asked is None else asked
        self._first = ask(
            terms,
            request,
            frozenset(terms.position(name) for name in names),
            is_complete=is_complete,
            keeps_transcript=keeps_transcript,
        )
        self._state = self._first[0]
        self._got: dict[int, Envelope] = {}
        self.refusals: dict[str, Refusal] = {}
        self.is_over = False

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the sites whose numbers are in the sum."""
        return self._names(self._state.active)

    @property
    def total(self) -> LimbArray:
        """The sum, once the round is complete."""
        awaits = self._state.awaits
        if self._state.total is None or awaits is not None:
            raise AbortedError(
                "There is no sum: the round was aborted."
                if self.is_over or awaits is None
                else f"There is no sum yet: the round waits for {AWAITED[awaits]}."
            )
        return self._state.total

    @property
    def transcript(self) -> bytes:
        """The frames from which every site can compute the sum."""
        return self._state.transcript

    def begin(self) -> dict[str, bytes]:
        """Return the first frame for each site."""
        return self._sent(self._first)

    def receive(self, data: bytes) -> None:
        """Take a frame of a site, or raise `BrokenEnvelopeError` and change nothing."""
        frame = envelopes.opened(data, self._terms, self._verifier)
        if frame.round != self.request.number:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        if frame.kind is EnvelopeKind.REFUSE:
            why, _ = envelopes.read_refusal(frame.body)
            self.refusals.setdefault(self._terms.members[frame.sender].name, why)
            return
        if self.is_over or frame.kind is not self._state.awaits:
            raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER, frame.sender)
        if frame.sender not in self._state.asked or frame.sender in self._got:
            raise BrokenEnvelopeError(Refusal.REPLAY, frame.sender)
        if not is_answer(self._state, frame):
            raise BrokenEnvelopeError(Refusal.MALFORMED, frame.sender)
        self._got[frame.sender] = frame

    def advance(self) -> dict[str, bytes]:
        """Continue with the sites that answered; no frames means that the sum is complete.

        Raises
        ------
        AbortedError
            Too few sites answered. No sum is formed, now or later.
        """
        state, awaits = self._state, self._state.awaits
        got, self._got = self._got, {}
        assert awaits is not None
        lacking = state.is_complete and awaits in SUMMED and got.keys() != state.asked
        if lacking or not self._terms.enough(frozenset(got)):
            raise self._aborted(frozenset(got), awaits)
        try:
            return self._sent(COORDINATOR_STEPS[awaits](state, got))
        except BrokenEnvelopeError as error:
            self.is_over = True
            raise AbortedError(
                f"Round {self.request.number} was aborted: the shares do not match the secrets "
                "that the sites committed to, so one of the sites sent a wrong share. No sum was "
                f"formed ({error})."
            ) from None

    def _sent(self, step: CoordinatorStep) -> dict[str, bytes]:
        state, bodies, active = step
        if active is not None:
            self._note(self._names(active))
        self._state = state
        if state.awaits is None:
            self.is_over = True
            return {}
        kind, number = QUESTIONS[state.awaits], self.request.number
        packed: dict[bytes, bytes] = {}
        for body in bodies.values():
            if body not in packed:
                packed[body] = envelopes.pack(
                    kind, self._terms, number, COORDINATOR, body, self._identity
                )
        return {self._terms.members[i].name: packed[bodies[i]] for i in sorted(bodies)}

    def _aborted(self, answered: frozenset[int], awaits: EnvelopeKind) -> AbortedError:
        missing = self._names(self._state.asked - answered)
        said = {n: self.refusals[n] for n in missing if n in self.refusals}
        # A site that was started again does not know the round any more, or has opened it already.
        refused = {n: why for n, why in said.items() if why is not Refusal.REPLAY}
        silent = tuple(n for n in missing if n not in said)
        needed = (
            f"{self._terms.threshold} sites of {self._terms.organisations} organisations are "
            "required"
        )
        if self._state.is_complete:
            needed = f"all {len(self._state.asked)} sites that were asked are required"
        self.is_over = True
        return AbortedError(
            f"Round {self.request.number} was aborted while waiting for {AWAITED[awaits]}: "
            f"{len(answered)} sites answered, {needed}. Silent: {list(silent)}. Refused: "
            f"{ {n: why.name.lower() for n, why in said.items()} }. No sum was "
            "formed; run again when the sites are available. The ledger of a site that refused "
            "says why; 'membership' means that other sites took part in earlier sums of the study, "
            "or that its policy names the sites with only_with.",
            silent=() if refused else missing,  # else waiting would not help
        )

    def _names(self, positions: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._terms.members[i].name for i in sorted(positions))

    def __repr__(self) -> str:
        waits = "nothing" if self._state.awaits is None else AWAITED[self._state.awaits]
        return f"Coordinator(round={self.request.number}, waiting for {waits})"


def run_round(coordinator: Coordinator, transport: Transport) -> LimbArray:
    """Run a round to its end and return the sum over the coordinator's `active` sites.

    Raises
    ------
    AbortedError
        Too few sites were left. Only the names of the silent ones are known.
    """
    drive(coordinator, transport)
    return coordinator.total


# --- The result of a study, sent and confirmed ---------------------------------------------------
#
# The result of a study: the coordinator sends it, sites keep it and confirm it to each other.


class ResultKeeper(Protocol):
    """Keeps the result of a study at a site."""

    def receive(self, number: int, signed: bytes) -> bytes:
        """Keep a result, behind its signature, and return its hash; or raise to refuse it."""

    def confirm(self, number: int, own: bytes, confirmed: Mapping[int, bytes]) -> None:
        """Write down which sites have confirmed the result; raise if one has another result."""


def answer_result(
    frame: Envelope, terms: Terms, position: int, keeper: ResultKeeper, verifier: Verifier
) -> tuple[EnvelopeKind, bytes]:
    """Answer a result, or the confirmations of other sites, at the site of this position."""
    if frame.kind is EnvelopeKind.RESULT:
        return EnvelopeKind.RECEIVED, keeper.receive(frame.round, frame.body)
    confirmed: dict[int, bytes] = {}
    for raw in envelopes.read_frames(frame.body, KEY, len(terms.members)):
        sent = envelopes.opened(raw, terms, verifier)
        if sent.kind is not EnvelopeKind.RECEIVED or sent.sender in confirmed:
            raise BrokenEnvelopeError(Refusal.MALFORMED, sent.sender)
        confirmed[sent.sender] = sent.body
    own = confirmed.get(position)
    if own is None:
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    keeper.confirm(frame.round, own, confirmed)
    return EnvelopeKind.CONFIRMED, own


@final
class ResultRound:
    """Sends the result of a study to sites, which confirm its hash, and then all confirmations.

    A site that has another result than the others sees it in their confirmations, which they sign.
    A site that is silent gets the result when the run is repeated.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        number: int,
        members: frozenset[int],
        result: bytes,
        signature: bytes,
        verifier: Verifier | None = None,
    ) -> None:
        if len(result) > LARGEST_RESULT:
            raise FederationError(
                f"The result has {len(result)} bytes; at most {LARGEST_RESULT} can be sent to the "
                "sites. Give it to them in another way."
            )
        self._terms = terms
        self._identity = identity
        self._number = number
        self._asked = members
        self._verifier = Verifier() if verifier is None else verifier
        self._awaited = EnvelopeKind.RECEIVED
        self._signed = signature + result
        self._hash = hashlib.sha256(result).digest()
        self._got: dict[int, Envelope] = {}
        self._received: tuple[int, ...] = ()

    @property
    def received(self) -> tuple[str, ...]:
        """Names of the sites that have confirmed the result."""
        return tuple(self._terms.members[i].name for i in sorted(self._received or self._got))

    def begin(self) -> dict[str, bytes]:
        """Return the result for each site."""
        return self._sent(EnvelopeKind.RESULT, self._signed)

    def receive(self, data: bytes) -> None:
        """Take a frame of a site, or raise `BrokenEnvelopeError` and change nothing."""
        frame = envelopes.opened(data, self._terms, self._verifier)
        if frame.round != self._number:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        if frame.kind is EnvelopeKind.REFUSE:
            return
        if frame.kind is not self._awaited or frame.body != self._hash:
            raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER, frame.sender)
        if frame.sender not in self._asked or frame.sender in self._got:
            raise BrokenEnvelopeError(Refusal.REPLAY, frame.sender)
        self._got[frame.sender] = frame

    def advance(self) -> dict[str, bytes]:
        """Return the confirmations of all sites for each of them, then nothing."""
        if self._awaited is EnvelopeKind.CONFIRMED or not self._got:
            return {}
        body = b"".join(f.raw for _, f in sorted(self._got.items()))
        self._received, self._asked = tuple(self._got), frozenset(self._got)
        self._awaited, self._got = EnvelopeKind.CONFIRMED, {}
        return self._sent(EnvelopeKind.RECEIPTS, body)

    def _sent(self, kind: EnvelopeKind, body: bytes) -> dict[str, bytes]:
        frame = envelopes.pack(kind, self._terms, self._number, COORDINATOR, body, self._identity)
        return {self._terms.members[i].name: frame for i in sorted(self._asked)}


# --- A site --------------------------------------------------------------------------------------
#
# A site in secure sums: it checks who sent a message, and answers it with the steps of a round.


@final
class Site:
    """One site of a study.

    Frames that are not authentic change nothing. An authentic frame that breaks the protocol ends
    the round at this site, which then deletes the secrets of the round.

    Parameters
    ----------
    terms
        The sites, and how many of them must answer.
    identity
        The site's own key, which must be in the roster.
    gate
        Approves and records what leaves the site.
    verifier
        Checks signatures. Sites in one process may share one.
    results
        Keeps the result of the study. Without it, results are refused.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        gate: ReleaseGate,
        *,
        verifier: Verifier | None = None,
        results: ResultKeeper | None = None,
    ) -> None:
        self._terms = terms
        self._identity = identity
        self._gate = gate
        self._verifier = Verifier() if verifier is None else verifier
        self._results = results
        keys = [m.key for m in terms.members]
        if identity.public not in keys:
            raise FederationError(
                "This identity is not in the roster of the study. "
                "Load the identity that the study names, or ask its author to add your public key."
            )
        self.position = keys.index(identity.public)
        self._round: SiteRound | None = None

    @property
    def name(self) -> str:
        """The name of the site in the roster."""
        return self._terms.members[self.position].name

    def handle(self, data: bytes) -> bytes:
        """Answer a frame of the coordinator, possibly with a refusal. No input makes it raise."""
        number, question = 0, b""
        try:
            frame = envelopes.opened(data, self._terms, self._verifier)
            number = frame.round
            if frame.kind is EnvelopeKind.OPEN:
                request = RoundRequest.read(number, frame.body)
                question = request.request
                return self._open(request)
            return self._answer(frame)
        except BrokenEnvelopeError as error:
            broken = error
        except Exception:  # noqa: BLE001 - whatever a coordinator sends, the site keeps running
            self._round = None
            broken = BrokenEnvelopeError(Refusal.BAD_REQUEST)
        self._gate.refused(broken, number, question)
        body = envelopes.write_refusal(broken.why, broken.blamed)
        return self._pack(EnvelopeKind.REFUSE, number, body)

    def _open(self, request: RoundRequest) -> bytes:
        last = 0 if self._round is None else self._round.request.number
        if request.number <= max(last, self._gate.last_round()):
            raise BrokenEnvelopeError(Refusal.REPLAY)
        self._round = None
        values = self._gate.approve(request)
        if values.shape != (request.size, request.limbs):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
        secrets, heads = RoundSecrets.fresh(), self._gate.heads()
        place = self._terms, self.position, self._verifier
        return self._sent(advertise(place, request, values, secrets, heads))

    def _answer(self, frame: Envelope) -> bytes:
        if frame.kind in (EnvelopeKind.RESULT, EnvelopeKind.RECEIPTS):
            if self._results is None:
                raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER)
            kind, body = answer_result(
                frame, self._terms, self.position, self._results, self._verifier
            )
            return self._pack(kind, frame.round, body)
        active = self._round
        if active is None or frame.round != active.request.number:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        if frame.kind is not active.awaits:
            raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER)
        self._round = None  # deletes the secrets of the round, if the step fails
        message = Message(frame.body, self._gate.heads())
        return self._sent(SITE_STEPS[frame.kind](active, message))

    def _sent(self, step: SiteStep) -> bytes:
        state, body, leaving = step
        self._gate.record(leaving)
        self._round = None if state.awaits is None else state
        return self._pack(leaving.kind, state.request.number, body)

    def _pack(self, kind: EnvelopeKind, number: int, body: bytes) -> bytes:
        return envelopes.pack(kind, self._terms, number, self.position, body, self._identity)

    def __repr__(self) -> str:
        return f"Site({self.name!r})"
