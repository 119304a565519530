"""What a site keeps between the steps of a method: the sums, and the rounds that they are from."""

from __future__ import annotations

import base64
from typing import Any, final

from isthmus.errors import IsthmusError, LedgerError
from isthmus.joint.agreement.identity import Verifier
from isthmus.joint.federation.requests.base import SumRequest
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.requests.steps import MethodState, StepRequest
from isthmus.joint.records.journal import Journal, MemoryJournal
from isthmus.joint.secure_sum.envelopes import BrokenEnvelopeError, Refusal, RoundRequest
from isthmus.joint.secure_sum.limbs import LimbArray, from_bytes, to_bytes
from isthmus.joint.secure_sum.terms import Terms
from isthmus.joint.secure_sum.transcript import PublicRound, round_of, sum_of
from isthmus.sources.base import Source


@final
class MethodMemory:
    """The methods of a study at a site, which survive a restart."""

    def __init__(
        self,
        terms: Terms,
        grid: FixedPointEncoding,
        verifier: Verifier,
        journal: Journal | None = None,
    ) -> None:
        self._terms = terms
        self._grid = grid
        self._verifier = verifier
        self._journal = MemoryJournal() if journal is None else journal
        self._methods: dict[str, MethodState] = {}
        for record in self._journal.records():
            state, limbs = self._state(record["method"]), record["limbs"]
            del state.sums[max(record["step"] - 1, 0) :]
            state.sums += [from_bytes(base64.b64decode(text), limbs) for text in record["sum"]]
            rounds = [None if r is None else PublicRound.from_dict(r) for r in record["rounds"]]
            state.answered, state.followed = rounds

    def _state(self, method: str) -> MethodState:
        return self._methods.setdefault(method, MethodState(self._grid))

    def contribution(self, request: StepRequest[Any], source: Source) -> LimbArray:
        """Compute the contribution of the site to a step."""
        return self._state(request.name).answer(request, source)

    def follow(self, request: SumRequest[Any], transcript: bytes) -> None:
        """Compute the sum that a request follows from, and take it into the state.

        Raises
        ------
        BrokenEnvelopeError
            The transcript is not what the sites signed in the round of the previous request, which
            was for the step before, with the same options.
        """
        before = request.previous if isinstance(request, StepRequest) else None
        if before is None or not transcript:
            if before is not None or transcript:
                raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
            return
        assert isinstance(request, StepRequest)
        state = self._state(request.name)
        asked = RoundRequest(0, before.to_bytes(), before.size(self._grid), before.limbs)
        try:
            number = round_of(transcript)
            rounds = [r for r in (state.answered, state.followed) if r is not None]
            public = next((r for r in rounds if r.number == number), None)
            if public is None or not public.is_about(asked, self._terms):
                raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
            total = sum_of(transcript, public, self._terms, self._verifier)
            state.take(request, total)
        except (BrokenEnvelopeError, IsthmusError):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST) from None
        state.follows = public

    def answered(self, request: SumRequest[Any], public: PublicRound) -> None:
        """Keep the sums on disk, and the round in which the site is about to answer."""
        if not isinstance(request, StepRequest):
            return
        state = self._state(request.name)
        state.answered = public
        state.followed = state.follows if request.step else None
        rounds = (state.answered, state.followed)
        record = {
            "method": request.name,
            "step": request.step,
            "limbs": request.limbs,
            # Earlier sums are in earlier records.
            "sum": [base64.b64encode(to_bytes(s)).decode() for s in state.sums[-1:]],
            "rounds": [None if r is None else r.to_dict() for r in rounds],
        }
        try:
            self._journal.append(record)
        except LedgerError:
            raise BrokenEnvelopeError(Refusal.LEDGER) from None
