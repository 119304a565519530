"""The site's side of secure sums: it answers each frame with a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from isthmus.errors import FederationError
from isthmus.joint.agreement.identity import (
    KEY,
    Agreement,
    Identity,
    Secret,
    Verifier,
    seal,
    unseal,
)
from isthmus.joint.agreement.identity import digest as hashed
from isthmus.joint.records.journal import MemorySlot, Slot
from isthmus.joint.secure_sum import envelopes, shamir
from isthmus.joint.secure_sum.envelopes import (
    Advert,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus.joint.secure_sum.heads import NO_STATEMENT, HeadStatement
from isthmus.joint.secure_sum.limbs import LimbAccumulator, LimbArray, to_bytes
from isthmus.joint.secure_sum.masks import RoundKeys, commitment, expand, sign_of
from isthmus.joint.secure_sum.one_message_site import (
    ONE_MESSAGE_FRAMES,
    OneMessageSite,
)
from isthmus.joint.secure_sum.release_gate import ReleaseGate
from isthmus.joint.secure_sum.terms import Terms

QUESTIONS = frozenset({EnvelopeKind.OPEN, EnvelopeKind.AGREE, EnvelopeKind.SINGLE})
"""Frames that ask for something, in contrast to those that continue a round."""


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
        Decides what leaves the site.
    verifier
        Checks signatures. Sites in one process may share one.
    slot
        Keeps what one-message rounds need over a restart.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        gate: ReleaseGate,
        *,
        verifier: Verifier | None = None,
        slot: Slot | None = None,
    ) -> None:
        self._terms = terms
        self._identity = identity
        self._gate = gate
        self._verifier = Verifier() if verifier is None else verifier
        keys = [m.key for m in terms.members]
        if identity.public not in keys:
            raise FederationError(
                "This identity is not in the roster of the study. "
                "Load the identity that the study names, or ask its author to add your public key."
            )
        self.position = keys.index(identity.public)
        self._round: _Round | None = None
        slot = MemorySlot() if slot is None else slot
        self._one_message = OneMessageSite(
            terms, identity, self.position, gate, self._verifier, slot
        )

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
            question = frame.body if frame.kind in QUESTIONS else b""
            return self._answer(frame)
        except BrokenEnvelopeError as error:
            broken = error
        except Exception:  # noqa: BLE001 - whatever a coordinator sends, the site keeps running
            self._round = None
            broken = BrokenEnvelopeError(Refusal.BAD_REQUEST)
        self._gate.refused(broken.why, number, question)
        body = envelopes.write_refusal(broken.why, broken.blamed)
        return self._pack(EnvelopeKind.REFUSE, number, body)

    def _answer(self, frame: Envelope) -> bytes:
        if frame.kind is EnvelopeKind.OPEN:
            return self._open(frame)
        if frame.kind in ONE_MESSAGE_FRAMES:
            return self._one_message.answer(frame)
        if frame.kind is EnvelopeKind.RESULT:
            received = self._gate.receive_result(frame.round, frame.body)
            return self._pack(EnvelopeKind.RECEIVED, frame.round, received)
        if frame.kind is EnvelopeKind.RECEIPTS:
            return self._confirm(frame)
        active = self._round
        if active is None or frame.round != active.opening.number:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        if frame.kind is not active.expected:
            raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER)
        try:
            kind, body = active.step(frame)
            self._gate.record(kind, active.opening, active.active)
        except BrokenEnvelopeError:
            self._round = None  # deletes the secrets of the round
            raise
        if kind is EnvelopeKind.REVEAL:
            self._round = None
            body += self._stated(frame.round)
        if kind is EnvelopeKind.CONSENT:
            body += self._gate.head()  # of the entry about this consent
        return self._pack(kind, frame.round, body)

    def _stated(self, number: int) -> bytes:
        """Return a statement about the entry that was written last, to be shown again."""
        head = self._gate.head()
        return HeadStatement.sign(self._identity, self._terms, number, head).body()

    def _confirm(self, frame: Envelope) -> bytes:
        """Check that other sites have confirmed the same result, and write down who."""
        confirmed: dict[int, bytes] = {}
        for raw in envelopes.read_frames(frame.body, KEY, len(self._terms.members)):
            sent = envelopes.opened(raw, self._terms, self._verifier)
            if sent.kind is not EnvelopeKind.RECEIVED or sent.sender in confirmed:
                raise BrokenEnvelopeError(Refusal.MALFORMED, sent.sender)
            confirmed[sent.sender] = sent.body
        own = confirmed.get(self.position)
        if own is None:
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        self._gate.confirm_result(frame.round, own, confirmed)
        return self._pack(EnvelopeKind.CONFIRMED, frame.round, own)

    def _open(self, frame: Envelope) -> bytes:
        last = max(self._gate.last_round(), self._one_message.last)
        if self._round is not None:
            last = max(last, self._round.opening.number)
        if frame.round <= last:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        self._round = None
        opening = RoundRequest.read(frame.round, frame.body)
        values = self._gate.answer(opening)
        if values.shape != (opening.size, opening.limbs):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
        self._gate.record(EnvelopeKind.ADVERT, opening, None)
        started = _Round(self._terms, self.position, opening, values, self._verifier, self._gate)
        self._round = started
        return self._pack(EnvelopeKind.ADVERT, frame.round, started.advert.body())

    def _pack(self, kind: EnvelopeKind, number: int, body: bytes) -> bytes:
        return envelopes.pack(kind, self._terms, number, self.position, body, self._identity)

    def __repr__(self) -> str:
        return f"Site({self.name!r})"


class _Round:
    """The state of a site during one round."""

    def __init__(
        self,
        terms: Terms,
        position: int,
        opening: RoundRequest,
        values: LimbArray,
        verifier: Verifier,
        gate: ReleaseGate,
    ) -> None:
        self._terms = terms
        self._me = position
        self._values = values
        self._verifier = verifier
        self._gate = gate
        self.opening = opening
        self.active: frozenset[int] | None = None
        self.expected = EnvelopeKind.KEYS
        self._channel = Agreement()
        self._mask = Agreement()
        self._seed = Secret.fresh()
        context = opening.context(terms)
        self._keys = RoundKeys(context, b"")
        self.advert = Advert(
            context,
            self._channel.public,
            self._mask.public,
            commitment(self._seed, position, context),
            gate.head(),
        )
        self._masks: dict[int, bytes] = {}
        self._inward: dict[int, Secret] = {}
        self._sharing: frozenset[int] = frozenset()
        self._shares: dict[int, Secret] = {}
        self._own = Secret(b"")

    def step(self, frame: Envelope) -> tuple[EnvelopeKind, bytes]:
        """Take the next frame and return the kind and the body of the answer."""
        steps: dict[EnvelopeKind, Callable[[Envelope], tuple[EnvelopeKind, bytes]]] = {
            EnvelopeKind.KEYS: self._share,
            EnvelopeKind.INBOX: self._masked,
            EnvelopeKind.ACTIVE: self._consent,
            EnvelopeKind.UNMASK: self._reveal,
        }
        return steps[frame.kind](frame)

    def _share(self, frame: Envelope) -> tuple[EnvelopeKind, bytes]:
        """Check the keys of all sites, and send each site a share of both secrets."""
        count = len(self._terms.members)
        peers: dict[int, Advert] = {}
        for raw in envelopes.read_frames(frame.body, Advert.SIZE, count):
            sent = envelopes.opened(raw, self._terms, self._verifier)
            advert = Advert.read(sent)
            same = advert.context == self.advert.context and sent.round == self.opening.number
            if not same or sent.sender in peers:
                raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, sent.sender)
            peers[sent.sender] = advert
        if peers.get(self._me) != self.advert:
            raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, self._me)
        if not self._terms.enough(frozenset(peers)):
            raise BrokenEnvelopeError(Refusal.TOO_FEW)
        self._masks = {j: advert.mask for j, advert in peers.items()}
        self._keys = RoundKeys(self.advert.context, hashed(frame.body))
        shares = np.concatenate(
            [
                shamir.split(secret.reveal(), self._terms.threshold, count)
                for secret in (self._seed, self._mask.secret())
            ],
            axis=1,
        ).astype("<u4")
        self._own = Secret(shares[self._me].tobytes())
        sealed = []
        for j, advert in peers.items():
            if j != self._me:
                outward, self._inward[j] = self._channels(j, advert)
                told = shares[j].tobytes() + self._gate.remembered(j)
                sealed.append((j, seal(outward, told, self._keys.envelope(self._me, j))))
        self._gate.witness({j: a.head for j, a in peers.items() if j != self._me})
        self.expected = EnvelopeKind.INBOX
        return EnvelopeKind.SHARES, self._keys.keys + envelopes.write_entries(sealed)

    def _channels(self, j: int, advert: Advert) -> tuple[Secret, Secret]:
        try:
            return self._keys.channels(self._channel, self._me, advert.channel, j)
        except ValueError:  # a key of small order
            raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, j) from None

    def _masked(self, frame: Envelope) -> tuple[EnvelopeKind, bytes]:
        """Take the shares of the other sites, and send the masked numbers."""
        stated, sealed_shares = frame.body[: HeadStatement.SIZE], frame.body[HeadStatement.SIZE :]
        if stated != NO_STATEMENT:
            own = HeadStatement.read(stated, self._terms, self._me, self._verifier)
            self._gate.require_head(own.head)
        inbox = envelopes.read_entries(sealed_shares, envelopes.SEALED, len(self._terms.members))
        if not inbox.keys() <= self._inward.keys():
            raise BrokenEnvelopeError(Refusal.BAD_SHARES)
        self._sharing = frozenset(inbox) | {self._me}
        if not self._terms.enough(self._sharing):
            raise BrokenEnvelopeError(Refusal.TOO_FEW)
        for j, sealed in inbox.items():
            share = unseal(self._inward[j], sealed, self._keys.envelope(j, self._me))
            if share is None:
                raise BrokenEnvelopeError(Refusal.BAD_SHARES, j)
            self._gate.require_head(share[2 * envelopes.SHARE :], j)
            self._shares[j] = Secret(share[: 2 * envelopes.SHARE])
        self._shares[self._me] = self._own
        self._inward.clear()
        total = LimbAccumulator(self.opening.size, self.opening.limbs)
        total.add(self._values)
        total.add(expand(self._keys.self_mask(self._seed, self._me), self.opening))
        for j in inbox:
            try:
                key = self._keys.pair_mask(self._mask, self._me, self._masks[j], j)
            except ValueError:
                raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, j) from None
            total.add(expand(key, self.opening), sign_of(self._me, j))
        self.expected = EnvelopeKind.ACTIVE
        return EnvelopeKind.MASKED, self._keys.context + to_bytes(total.total())

    def _consent(self, frame: Envelope) -> tuple[EnvelopeKind, bytes]:
        """Sign the only active set that this site will unmask in this round."""
        active = envelopes.read_set(frame.body, len(self._terms.members))
        if self._me not in active or not active <= self._sharing:
            raise BrokenEnvelopeError(Refusal.BAD_ACTIVE_SET)
        if not self._terms.enough(active):
            raise BrokenEnvelopeError(Refusal.TOO_FEW)
        self.active = active
        self.expected = EnvelopeKind.UNMASK
        return EnvelopeKind.CONSENT, self._agreed(active)

    def _agreed(self, active: frozenset[int]) -> bytes:
        return envelopes.agreed(self._keys.context, self._keys.keys, self._sharing, active)

    def _reveal(self, frame: Envelope) -> tuple[EnvelopeKind, bytes]:
        """Send one share per site: of its own mask if it is active, else of its pair masks.

        The signed active set decides which of the two; nobody can request the other.
        """
        assert self.active is not None
        agreed = self._agreed(self.active)
        heads: dict[int, bytes] = {}
        size = len(agreed) + envelopes.HEAD
        for raw in envelopes.read_frames(frame.body, size, len(self._terms.members)):
            sent = envelopes.opened(raw, self._terms, self._verifier)
            right = sent.kind is EnvelopeKind.CONSENT and sent.round == self.opening.number
            if (
                not right
                or sent.body[: -envelopes.HEAD] != agreed
                or sent.sender not in self.active
            ):
                raise BrokenEnvelopeError(Refusal.NO_CONSENT, sent.sender)
            heads[sent.sender] = sent.body[-envelopes.HEAD :]
        self._gate.witness({j: head for j, head in heads.items() if j != self._me})
        if len(heads) < self._terms.threshold:
            raise BrokenEnvelopeError(Refusal.NO_CONSENT)
        entries = []
        for j, share in self._shares.items():
            start = 0 if j in self.active else envelopes.SHARE
            entries.append((j, share.reveal()[start : start + envelopes.SHARE]))
        return EnvelopeKind.REVEAL, envelopes.write_entries(entries)
