"""A site in secure sums: it checks who sent a message, and answers it with the steps of a round."""

from __future__ import annotations

from typing import final

from isthmus.errors import FederationError
from isthmus.joint.agreement.identity import Identity, Verifier
from isthmus.joint.secure_sum import envelopes
from isthmus.joint.secure_sum.envelopes import (
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus.joint.secure_sum.release_gate import ReleaseGate
from isthmus.joint.secure_sum.result_round import ResultKeeper, answer_result
from isthmus.joint.secure_sum.round import (
    SITE_STEPS,
    Message,
    RoundSecrets,
    SiteRound,
    SiteStep,
    advertise,
)
from isthmus.joint.secure_sum.terms import Terms


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
