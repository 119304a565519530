"""The result of a study: the coordinator sends it, sites keep it and confirm it to each other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol, final

from isthmus.errors import FederationError
from isthmus.joint.agreement.identity import KEY, Identity, Verifier
from isthmus.joint.secure_sum import envelopes
from isthmus.joint.secure_sum.envelopes import (
    COORDINATOR,
    LARGEST_RESULT,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
)
from isthmus.joint.secure_sum.terms import Terms


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
