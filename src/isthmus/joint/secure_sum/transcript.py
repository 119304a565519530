"""What everybody can check of a round: its public part, and the transcript that opens its sum.

The next step of a method follows from the sum of the step before. The coordinator sends the
transcript of that round along. Every site computes the sum from it, with the function that the
coordinator itself uses. So no coordinator can make up a sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Self, final

import numpy as np

from isthmus.joint.agreement.identity import KEY, Agreement, Secret, Verifier
from isthmus.joint.agreement.identity import digest as hashed
from isthmus.joint.secure_sum import envelopes, shamir
from isthmus.joint.secure_sum.envelopes import (
    Advert,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus.joint.secure_sum.limbs import LIMB, LimbAccumulator, LimbArray, from_bytes
from isthmus.joint.secure_sum.masks import RoundKeys, add_mask, commitment, sign_of
from isthmus.joint.secure_sum.terms import Terms

IN_TRANSCRIPT = (EnvelopeKind.MASKED, EnvelopeKind.CONSENT, EnvelopeKind.REVEAL)


@final
@dataclass(frozen=True)
class PublicRound:
    """What all sites of a round know once it has masked numbers.

    Attributes
    ----------
    number, size, limbs
        Number of the round; how many numbers it sums, and their length.
    context
        The hash of study, roster, round and request.
    adverts
        The keys of all sites, as they signed them: the body of ``KEYS``.
    sharing
        Positions of the sites that shared their secrets.
    """

    number: int
    size: int
    limbs: int
    context: bytes
    adverts: bytes
    sharing: frozenset[int]

    @property
    def shape(self) -> RoundRequest:
        """The numbers of the round, without what they are about."""
        return RoundRequest(self.number, b"", self.size, self.limbs)

    @cached_property
    def keys(self) -> RoundKeys:
        """The keys of the round."""
        return RoundKeys(self.context, hashed(self.adverts))

    @cached_property
    def peers(self) -> dict[int, Advert]:
        """The keys of each site, by position."""
        frames = map(envelopes.parse, envelopes.split_frames(self.adverts))
        return {frame.sender: Advert.read(frame) for frame in frames}

    def agreed(self, masked: Mapping[int, bytes]) -> bytes:
        """Return what the active sites sign, given the hash of the masked numbers of each."""
        sets = envelopes.write_set(self.sharing), envelopes.write_entries(masked.items())
        return hashed(b"isthmus active set 2", self.context, self.keys.keys, *sets)

    def is_about(self, request: RoundRequest, terms: Terms) -> bool:
        """Return whether this is the round of a request; its number is given by the round."""
        asked = RoundRequest(self.number, request.request, request.size, request.limbs)
        return asked.context(terms) == self.context

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "number": self.number,
            "size": self.size,
            "limbs": self.limbs,
            "context": self.context.hex(),
            "adverts": self.adverts.hex(),
            "sharing": sorted(self.sharing),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(
            plain["number"],
            plain["size"],
            plain["limbs"],
            bytes.fromhex(plain["context"]),
            bytes.fromhex(plain["adverts"]),
            frozenset(plain["sharing"]),
        )


def unmask(
    public: PublicRound,
    masked: LimbArray,
    active: frozenset[int],
    reveals: Mapping[int, bytes],
    terms: Terms,
) -> LimbArray:
    """Remove the masks from a sum.

    Parameters
    ----------
    masked
        The sum of the masked numbers of the active sites.
    reveals
        The bodies of ``REVEAL``, by position of the sender; as many as the threshold, or more.

    Raises
    ------
    BrokenEnvelopeError
        There are too few shares, or they are not those of what the sites committed to.
    """
    secrets = _joined(public, reveals, terms)
    total = LimbAccumulator(public.size, public.limbs)
    total.add(masked)
    for j, secret in secrets.items():
        advert = public.peers[j]
        if j in active:
            if commitment(secret, j, public.context) != advert.commitment:
                raise BrokenEnvelopeError(Refusal.BAD_SHARES, j)
            add_mask(total, public.keys.self_mask(secret, j), public.shape, -1)
            continue
        mask = Agreement.from_secret(secret)
        if mask.public != advert.mask:
            raise BrokenEnvelopeError(Refusal.BAD_SHARES, j)
        for i in active:
            key = public.keys.pair_mask(mask, j, public.peers[i].mask, i)
            add_mask(total, key, public.shape, -sign_of(i, j))
    return total.total()


def _joined(public: PublicRound, reveals: Mapping[int, bytes], terms: Terms) -> dict[int, Secret]:
    """Return the revealed secret of each site that shared its secrets."""
    positions, columns = sorted(reveals)[: terms.threshold], sorted(public.sharing)
    if len(positions) < terms.threshold:
        raise BrokenEnvelopeError(Refusal.TOO_FEW)
    shares = np.empty((len(positions), len(columns), shamir.PIECES), dtype=np.uint32)
    for row, i in enumerate(positions):
        entries = envelopes.read_entries(reveals[i], envelopes.SHARE, len(terms.members))
        if entries.keys() != public.sharing:
            raise BrokenEnvelopeError(Refusal.BAD_SHARES, i)
        data = b"".join(entries[j] for j in columns)
        shares[row] = np.frombuffer(data, LIMB).reshape(len(columns), -1)
    if shares.max() >= shamir.PRIME:
        raise BrokenEnvelopeError(Refusal.BAD_SHARES)
    try:
        secrets = [Secret(s) for s in shamir.join_many(positions, shares)]
    except ValueError:
        raise BrokenEnvelopeError(Refusal.BAD_SHARES) from None
    return dict(zip(columns, secrets, strict=True))


def round_of(transcript: bytes) -> int:
    """Return the number of the round of a transcript."""
    frames = envelopes.split_frames(transcript)
    if not frames:
        raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
    return envelopes.parse(frames[0]).round


def sum_of(transcript: bytes, public: PublicRound, terms: Terms, verifier: Verifier) -> LimbArray:
    """Check the transcript of a round, and return its sum.

    A transcript consists of the frames of sites as they were signed: the masked numbers of all
    active sites, their consents, and the shares that they revealed. An honest site consents to one
    active set, and to one hash of the masked numbers of each site, before anything is revealed. So
    there is one sum, whoever checks it.

    Raises
    ------
    BrokenEnvelopeError
        This is not what the sites signed in this round.
    """
    frames: dict[EnvelopeKind, dict[int, Envelope]] = {kind: {} for kind in IN_TRANSCRIPT}
    for raw in envelopes.split_frames(transcript):
        frame = envelopes.opened(raw, terms, verifier)
        of_kind = frames.get(frame.kind)
        if of_kind is None or frame.round != public.number or frame.sender in of_kind:
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST, frame.sender)
        of_kind[frame.sender] = frame
    masked, consents, reveals = (frames[kind] for kind in IN_TRANSCRIPT)
    active = frozenset(masked)
    if not (active <= public.sharing and terms.enough(active)):
        raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
    total = LimbAccumulator(public.size, public.limbs)
    for i, frame in masked.items():
        if not is_masked(frame, public.shape, public.context):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST, i)
        total.add(from_bytes(frame.body[KEY:], public.limbs))
    agreed = public.agreed({i: sha256(frame.body).digest() for i, frame in masked.items()})
    willing = [i for i, f in consents.items() if i in active and f.body[:KEY] == agreed]
    if len(willing) < terms.threshold or len(willing) != len(consents):
        raise BrokenEnvelopeError(Refusal.NO_CONSENT)
    shares = {i: frame.body for i, frame in reveals.items()}
    return unmask(public, total.total(), active, shares, terms)


def is_masked(frame: Envelope, request: RoundRequest, context: bytes) -> bool:
    """Return whether a frame has masked numbers for a request."""
    size = KEY + 4 * request.size * request.limbs
    return len(frame.body) == size and frame.body[:KEY] == context
