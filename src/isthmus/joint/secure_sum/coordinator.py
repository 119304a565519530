"""The coordinator's side of a secure sum that tolerates failing sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import final

import numpy as np

from isthmus.errors import AbortedError
from isthmus.joint.agreement.identity import (
    KEY,
    Agreement,
    Identity,
    Secret,
    Verifier,
)
from isthmus.joint.agreement.identity import digest as hashed
from isthmus.joint.secure_sum import envelopes, shamir
from isthmus.joint.secure_sum.envelopes import (
    COORDINATOR,
    Advert,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus.joint.secure_sum.heads import NO_STATEMENT, HeadStatement
from isthmus.joint.secure_sum.limbs import LIMB, LimbAccumulator, LimbArray, from_bytes
from isthmus.joint.secure_sum.masks import RoundKeys, commitment, expand, sign_of
from isthmus.joint.secure_sum.terms import Terms


class RoundStage(StrEnum):
    """The stages of a round, named by what the coordinator waits for."""

    ADVERTS = "keys"
    SHARES = "shares"
    MASKED = "masked numbers"
    CONSENTS = "signatures on the active set"
    REVEALS = "shares that unmask the sum"
    DONE = "nothing"


AWAITED = {
    RoundStage.ADVERTS: EnvelopeKind.ADVERT,
    RoundStage.SHARES: EnvelopeKind.SHARES,
    RoundStage.MASKED: EnvelopeKind.MASKED,
    RoundStage.CONSENTS: EnvelopeKind.CONSENT,
    RoundStage.REVEALS: EnvelopeKind.REVEAL,
}

SUMMED = (RoundStage.ADVERTS, RoundStage.SHARES, RoundStage.MASKED)
"""A site that answers at these stages is in the sum; its numbers count if it fails later."""


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
    opening
        The request.
    asked
        Names of the sites to ask; all by default.
    complete
        Whether the sum must be over all sites that are asked, and not only over those that answer.
    verifier
        Checks signatures.
    heads
        The latest statement of each site about its ledger, by position, to be shown to it again.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        opening: RoundRequest,
        *,
        asked: Iterable[str] | None = None,
        complete: bool = False,
        verifier: Verifier | None = None,
        heads: Mapping[int, bytes] | None = None,
    ) -> None:
        self.heads: dict[int, bytes] = dict(heads or {})
        self._terms = terms
        self._identity = identity
        self.opening = opening
        self._verifier = Verifier() if verifier is None else verifier
        self._context = opening.context(terms)
        self._round_keys = RoundKeys(self._context, b"")
        self.stage = RoundStage.ADVERTS
        names = [m.name for m in terms.members] if asked is None else asked
        self._asked = frozenset(terms.position(name) for name in names)
        self._complete = complete
        self._got: dict[int, Envelope] = {}
        self.refusals: dict[str, Refusal] = {}
        self._keys: dict[int, Advert] = {}
        self._sharing: frozenset[int] = frozenset()
        self._active: frozenset[int] = frozenset()
        self._sum = LimbAccumulator(opening.size, opening.limbs)
        self._total: LimbArray | None = None

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the sites whose numbers are in the sum."""
        return tuple(self._terms.members[i].name for i in sorted(self._active))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the sites that have not answered yet."""
        left = self._asked - self._got.keys()
        names = (self._terms.members[i].name for i in sorted(left))
        return tuple(n for n in names if n not in self.refusals)

    @property
    def total(self) -> LimbArray:
        """The sum, once the round is complete."""
        if self._total is None:
            if self.stage is RoundStage.DONE:
                raise AbortedError("There is no sum: the round was aborted.")
            raise AbortedError(f"There is no sum yet: the round waits for {self.stage.value}.")
        return self._total

    def begin(self) -> dict[str, bytes]:
        """Return the first frame for each site."""
        return self._to_all(EnvelopeKind.OPEN, self.opening.body())

    def again(self) -> dict[str, bytes]:
        """Return nothing: frames of such a round are never sent twice."""
        return {}

    def receive(self, data: bytes) -> None:
        """Take a frame of a site, or raise `BrokenEnvelopeError` and change nothing."""
        frame = envelopes.opened(data, self._terms, self._verifier)
        if frame.round != self.opening.number:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        if frame.kind is EnvelopeKind.REFUSE:
            why, _ = envelopes.read_refusal(frame.body)
            self.refusals.setdefault(self._terms.members[frame.sender].name, why)
            return
        if self.stage is RoundStage.DONE or frame.kind is not AWAITED[self.stage]:
            raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER, frame.sender)
        if frame.sender not in self._asked or frame.sender in self._got:
            raise BrokenEnvelopeError(Refusal.REPLAY, frame.sender)
        self._check(frame)
        self._got[frame.sender] = frame

    def _check(self, frame: Envelope) -> None:
        body, sites = frame.body, len(self._terms.members)
        if frame.kind is EnvelopeKind.ADVERT:
            right = Advert.read(frame).context == self._context
        elif frame.kind is EnvelopeKind.SHARES:
            peers = self._keys.keys() - {frame.sender}
            entries = envelopes.read_entries(body[KEY:], envelopes.SEALED, sites)
            right = body[:KEY] == self._round_keys.keys and entries.keys() == peers
        elif frame.kind is EnvelopeKind.MASKED:
            expected = KEY + 4 * self.opening.size * self.opening.limbs
            right = len(body) == expected and body[:KEY] == self._context
        elif frame.kind is EnvelopeKind.CONSENT:
            # Behind it is the last entry of the site's ledger.
            right = body[: -envelopes.HEAD] == self._agreed()
        else:
            shares, stated = body[: -HeadStatement.SIZE], body[-HeadStatement.SIZE :]
            HeadStatement.read(stated, self._terms, frame.sender, self._verifier)
            right = envelopes.read_entries(shares, envelopes.SHARE, sites).keys() == self._sharing
        if not right:
            raise BrokenEnvelopeError(Refusal.MALFORMED, frame.sender)

    def advance(self) -> dict[str, bytes]:
        """Continue with the sites that answered; no frames means that the sum is complete.

        Raises
        ------
        AbortedError
            Too few sites answered. No sum is formed, now or later.
        """
        got, self._got = self._got, {}
        lacking = self._complete and self.stage in SUMMED and got.keys() != self._asked
        if lacking or not self._terms.enough(frozenset(got)):
            raise self._aborted(frozenset(got))
        self._asked = frozenset(got)
        if self.stage is RoundStage.ADVERTS:
            return self._send_keys(got)
        if self.stage is RoundStage.SHARES:
            return self._send_shares(got)
        if self.stage is RoundStage.MASKED:
            return self._send_active(got)
        if self.stage is RoundStage.CONSENTS:
            self.stage = RoundStage.REVEALS
            return self._to_all(
                EnvelopeKind.UNMASK, b"".join(f.raw for _, f in sorted(got.items()))
            )
        if self.stage is RoundStage.REVEALS:
            self.heads |= {i: f.body[-HeadStatement.SIZE :] for i, f in got.items()}
            self._unmask(got)
            self.stage = RoundStage.DONE
        return {}

    def _aborted(self, answered: frozenset[int]) -> AbortedError:
        silent = [self._terms.members[i].name for i in sorted(self._asked - answered)]
        said = {n: self.refusals[n].name.lower() for n in silent if n in self.refusals}
        quiet = [n for n in silent if n not in said]
        needed = (
            f"{self._terms.threshold} sites of {self._terms.organisations} organisations are "
            "required"
        )
        if self._complete:
            needed = "all sites of the earlier sums are required"
        self._asked = frozenset()
        self.stage, at = RoundStage.DONE, self.stage
        return AbortedError(
            f"Round {self.opening.number} was aborted while waiting for {at.value}: "
            f"{len(answered)} sites answered, {needed}. Silent: {quiet}. Refused: {said}. "
            "No sum was formed; run again when the sites are available. The ledger of a site that "
            "refused says why.",
            silent=tuple(quiet),
        )

    def _send_keys(self, got: dict[int, Envelope]) -> dict[str, bytes]:
        self._keys = {i: Advert.read(f) for i, f in got.items()}
        body = b"".join(f.raw for _, f in sorted(got.items()))
        self._round_keys = RoundKeys(self._context, hashed(body))
        self.stage = RoundStage.SHARES
        return self._to_all(EnvelopeKind.KEYS, body)

    def _send_shares(self, got: dict[int, Envelope]) -> dict[str, bytes]:
        self._sharing = frozenset(got)
        self.stage = RoundStage.MASKED
        boxes: dict[int, list[tuple[int, bytes]]] = {i: [] for i in got}
        for sender, frame in got.items():
            entries = envelopes.read_entries(
                frame.body[KEY:], envelopes.SEALED, len(self._terms.members)
            )
            for receiver in boxes.keys() & entries.keys():
                boxes[receiver].append((sender, entries[receiver]))
        return {
            self._terms.members[i].name: self._pack(
                EnvelopeKind.INBOX, self.heads.get(i, NO_STATEMENT) + envelopes.write_entries(box)
            )
            for i, box in boxes.items()
        }

    def _send_active(self, got: dict[int, Envelope]) -> dict[str, bytes]:
        self._active = frozenset(got)
        for frame in got.values():
            self._sum.add(from_bytes(frame.body[KEY:], self.opening.limbs))
        self.stage = RoundStage.CONSENTS
        return self._to_all(EnvelopeKind.ACTIVE, envelopes.write_set(self._active))

    def _agreed(self) -> bytes:
        return envelopes.agreed(self._context, self._round_keys.keys, self._sharing, self._active)

    def _unmask(self, got: dict[int, Envelope]) -> None:
        positions = sorted(got)[: self._terms.threshold]
        columns = sorted(self._sharing)
        sites = len(self._terms.members)
        shares = np.empty((len(positions), len(columns), shamir.PIECES), dtype=np.uint32)
        for row, i in enumerate(positions):
            shared = got[i].body[: -HeadStatement.SIZE]
            entries = envelopes.read_entries(shared, envelopes.SHARE, sites)
            data = b"".join(entries[j] for j in columns)
            shares[row] = np.frombuffer(data, LIMB).reshape(len(columns), -1)
        if shares.max() >= shamir.PRIME:
            raise self._wrong_shares()
        try:
            secrets = [Secret(s) for s in shamir.join_many(positions, shares)]
        except ValueError:
            raise self._wrong_shares() from None
        for j, secret in zip(columns, secrets, strict=True):
            if j in self._active:
                self._take_self_mask(j, secret)
            else:
                self._take_pair_masks(j, secret)
        self._total = self._sum.total()

    def _take_self_mask(self, j: int, seed: Secret) -> None:
        if commitment(seed, j, self._context) != self._keys[j].commitment:
            raise self._wrong_shares()
        self._sum.add(expand(self._round_keys.self_mask(seed, j), self.opening), -1)

    def _take_pair_masks(self, j: int, secret: Secret) -> None:
        mask = Agreement.from_secret(secret)
        if mask.public != self._keys[j].mask:
            raise self._wrong_shares()
        for i in self._active:
            key = self._round_keys.pair_mask(mask, j, self._keys[i].mask, i)
            self._sum.add(expand(key, self.opening), -sign_of(i, j))

    def _wrong_shares(self) -> AbortedError:
        self.stage = RoundStage.DONE
        return AbortedError(
            f"Round {self.opening.number} was aborted: the shares do not match the secrets that "
            "the sites committed to, so one of the sites sent a wrong share. No sum was formed."
        )

    def _to_all(self, kind: EnvelopeKind, body: bytes) -> dict[str, bytes]:
        frame = self._pack(kind, body)
        return {self._terms.members[i].name: frame for i in sorted(self._asked)}

    def _pack(self, kind: EnvelopeKind, body: bytes) -> bytes:
        number = self.opening.number
        return envelopes.pack(kind, self._terms, number, COORDINATOR, body, self._identity)

    def __repr__(self) -> str:
        return f"Coordinator(round={self.opening.number}, waiting for {self.stage.value})"
