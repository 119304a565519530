"""The coordinator of a secure sum: it collects answers, and goes on with the steps of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

from isthmus.errors import AbortedError
from isthmus.joint.agreement.identity import Identity, Verifier
from isthmus.joint.secure_sum import envelopes
from isthmus.joint.secure_sum.envelopes import (
    COORDINATOR,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus.joint.secure_sum.limbs import LimbArray
from isthmus.joint.secure_sum.round import (
    COORDINATOR_STEPS,
    QUESTIONS,
    CoordinatorStep,
    ask,
    is_answer,
)
from isthmus.joint.secure_sum.terms import Terms
from isthmus.joint.transport.base import Transport, drive

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
