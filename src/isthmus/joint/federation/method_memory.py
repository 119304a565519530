"""What a site keeps between the steps of a method: its state, and the rounds that it follows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, final

from isthmus.errors import IsthmusError, LedgerError
from isthmus.joint.agreement.identity import Verifier
from isthmus.joint.federation.requests.base import SumRequest
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.requests.steps import MethodState, StepRequest
from isthmus.joint.records.journal import MemorySlot, Slot
from isthmus.joint.secure_sum.envelopes import BrokenEnvelopeError, Refusal, RoundRequest
from isthmus.joint.secure_sum.terms import Terms
from isthmus.joint.secure_sum.transcript import PublicRound, round_of, sum_of


@final
@dataclass
class _Progress:
    """How far a method is.

    `answered` is the last round in which masked numbers left, and `followed` the round from whose
    sum the request of that round followed. A round that failed is asked again, with the same
    transcript, so that both are needed.
    """

    state: MethodState
    answered: PublicRound | None = None
    followed: PublicRound | None = None
    follows: PublicRound | None = None

    def to_dict(self) -> dict[str, Any]:
        rounds = (self.answered, self.followed)
        return {
            "state": self.state.to_bytes().decode("latin-1"),
            "rounds": [None if r is None else r.to_dict() for r in rounds],
        }


@final
class MethodMemory:
    """The states of methods at a site, which survive a restart.

    Parameters
    ----------
    terms, grid, verifier
        The sites, the units of the study, and what checks signatures.
    slot
        Keeps everything over a restart; in memory by default.
    """

    def __init__(
        self,
        terms: Terms,
        grid: FixedPointEncoding,
        verifier: Verifier,
        slot: Slot | None = None,
    ) -> None:
        self._terms = terms
        self._grid = grid
        self._verifier = verifier
        self._slot = MemorySlot() if slot is None else slot
        self._methods: dict[str, _Progress] = {}
        plain: dict[str, Any] = json.loads(self._slot.read() or b"{}")
        for name, given in plain.items():
            rounds = [None if r is None else PublicRound.from_dict(r) for r in given["rounds"]]
            state = MethodState(grid)
            state.restore(given["state"].encode("latin-1"))
            self._methods[name] = _Progress(state, *rounds)

    def state_of(self, request: StepRequest[Any]) -> MethodState:
        """Return the state that the method of a request keeps at this site."""
        return self._progress(request).state

    def _progress(self, request: StepRequest[Any]) -> _Progress:
        return self._methods.setdefault(request.name, _Progress(MethodState(self._grid)))

    def follow(self, request: SumRequest[Any], transcript: bytes) -> None:
        """Compute the sum that a request follows from, and take it into the state.

        Raises
        ------
        BrokenEnvelopeError
            The transcript is not what the sites signed in the round of the previous request.
        """
        before = request.previous if isinstance(request, StepRequest) else None
        if before is None or not transcript:
            if before is not None or transcript:
                raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
            return
        assert isinstance(request, StepRequest)
        progress = self._progress(request)
        asked = RoundRequest(0, before.to_bytes(), before.size(self._grid), before.limbs)
        try:
            number = round_of(transcript)
            rounds = [r for r in (progress.answered, progress.followed) if r is not None]
            public = next((r for r in rounds if r.number == number), None)
            if public is None or not public.is_about(asked, self._terms):
                raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
            total = sum_of(transcript, public, self._terms, self._verifier)
            progress.state.take(request, total)
        except (BrokenEnvelopeError, IsthmusError):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST) from None
        progress.follows = public

    def answered(self, request: SumRequest[Any], public: PublicRound) -> None:
        """Keep the state on disk, and the round in which the site is about to answer."""
        if not isinstance(request, StepRequest):
            return
        progress = self._progress(request)
        progress.answered = public
        progress.followed = progress.follows if request.step else None
        plain = {name: progress.to_dict() for name, progress in self._methods.items()}
        try:
            self._slot.write(json.dumps(plain, separators=(",", ":")).encode())
        except LedgerError:
            raise BrokenEnvelopeError(Refusal.LEDGER) from None
