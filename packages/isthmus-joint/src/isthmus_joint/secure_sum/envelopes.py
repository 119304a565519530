"""Messages of secure sums as bytes: a fixed header, a body of fixed layout, a signature.

The layout is documented in the reference ("Messages of a secure sum"). Reading is strict: a frame
with one byte too many is rejected.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, final

from isthmus_joint.agreement.identity import KEY, SIGNATURE, TAG, Identity, Verifier, digest
from isthmus_joint.secure_sum.shamir import PIECES
from isthmus_joint.secure_sum.terms import Terms
from isthmus_joint.transport.base import RejectedMessageError

MAGIC = b"ISTH"
VERSION = 4
HEADER = struct.Struct("<4sBB32sIHI")
"""Magic number, version, kind, study, round, sender, length of the body."""

COORDINATOR = 0xFFFF
NO_SITE = 0xFFFF
LARGEST = 2**28
"""Longest body, in bytes."""

REQUEST = 2**20
"""Longest request, in bytes."""

LARGEST_RESULT = 2**24
"""Longest result, in bytes, that a coordinator sends to the sites."""

HEAD = KEY + SIGNATURE
"""The hash of the last entry of a ledger, and the signature of its owner on that entry."""

SHARE = 4 * PIECES
SEALED = 2 * SHARE + HEAD + TAG
"""Two shares, and the last entry of the receiver's ledger that the sender knows."""

_ENTRY = struct.Struct("<H")
_SHAPE = struct.Struct("<IB")
_OPENING = struct.Struct("<IBI")
_REFUSAL = struct.Struct("<HH")


class EnvelopeKind(IntEnum):
    """The kind of a frame. The coordinator sends odd kinds, sites send even ones."""

    OPEN = 1
    ADVERT = 2
    KEYS = 3
    SHARES = 4
    INBOX = 5
    MASKED = 6
    ACTIVE = 7
    CONSENT = 8
    UNMASK = 9
    REVEAL = 10
    REFUSE = 12
    RESULT = 13
    RECEIVED = 14
    RECEIPTS = 15
    CONFIRMED = 16


class Refusal(IntEnum):
    """Why a site did not answer a frame. The numbers are stable; the reference explains each."""

    MALFORMED = 1
    OTHER_STUDY = 2
    BAD_SIGNATURE = 3
    REPLAY = 4
    OUT_OF_ORDER = 5
    BAD_REQUEST = 6
    TOO_FEW = 7
    KEYS_CHANGED = 8
    BAD_SHARES = 9
    BAD_ACTIVE_SET = 10
    NO_CONSENT = 11
    POLICY = 12
    DATA = 13
    STOPPED = 14
    EXPIRED = 15
    LEDGER = 16
    OTHER_CODE = 17
    MEMBERSHIP = 18
    OTHER_DATA = 19
    REFUSED = 20
    WITNESS = 21
    OTHER_RESULT = 22


HIDDEN = frozenset(
    {
        Refusal.BAD_REQUEST,
        Refusal.POLICY,
        Refusal.DATA,
        Refusal.STOPPED,
        Refusal.EXPIRED,
        Refusal.LEDGER,
        Refusal.OTHER_CODE,
        Refusal.MEMBERSHIP,
        Refusal.OTHER_DATA,
        Refusal.WITNESS,
    }
)
"""Reasons that only the site knows. From outside they all look like `Refusal.REFUSED`."""

UNAUTHENTICATED = frozenset({Refusal.MALFORMED, Refusal.OTHER_STUDY, Refusal.BAD_SIGNATURE})
"""Refusals of frames that anyone could have sent."""


@final
class BrokenEnvelopeError(RejectedMessageError):
    """A frame that cannot be accepted.

    Parameters
    ----------
    why
        The reason.
    blamed
        Position of the site that caused it, if that is known.
    evidence
        What the ledger of the site says about it besides the reason.
    """

    def __init__(
        self, why: Refusal, blamed: int = NO_SITE, evidence: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(why.name.lower())
        self.why = why
        self.blamed = blamed
        self.evidence = dict(evidence or {})


@final
@dataclass(frozen=True)
class Envelope:
    """A frame with a valid layout. `opened` also checks who signed it."""

    kind: EnvelopeKind
    study: bytes
    round: int
    sender: int
    body: bytes
    raw: bytes


def pack(
    kind: EnvelopeKind, terms: Terms, number: int, sender: int, body: bytes, identity: Identity
) -> bytes:
    """Return a signed frame."""
    head = HEADER.pack(MAGIC, VERSION, kind, terms.study, number, sender, len(body))
    return head + body + identity.sign(_signed(head, body))


def size_of(body: int) -> int:
    """Return the length of a frame with a body of this length."""
    return HEADER.size + body + SIGNATURE


def parse(data: bytes) -> Envelope:
    """Read the layout of a frame; `BrokenEnvelopeError` for anything else."""
    if not HEADER.size + SIGNATURE <= len(data) <= size_of(LARGEST):
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    magic, version, kind, study, number, sender, length = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION or len(data) != size_of(length):
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    try:
        frame_kind = EnvelopeKind(kind)
    except ValueError:
        raise BrokenEnvelopeError(Refusal.MALFORMED) from None
    body = bytes(data[HEADER.size : HEADER.size + length])
    return Envelope(frame_kind, study, number, sender, body, bytes(data))


def opened(data: bytes, terms: Terms, verifier: Verifier) -> Envelope:
    """Read a frame and check its study, sender and signature."""
    frame = parse(data)
    if frame.study != terms.study:
        raise BrokenEnvelopeError(Refusal.OTHER_STUDY)
    if frame.kind % 2:
        if frame.sender != COORDINATOR:
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        key = terms.coordinator
    elif frame.sender < len(terms.members):
        key = terms.members[frame.sender].key
    else:
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    head, signature = frame.raw[: HEADER.size], frame.raw[-SIGNATURE:]
    if not verifier.verify(key, signature, _signed(head, frame.body)):
        raise BrokenEnvelopeError(Refusal.BAD_SIGNATURE)
    return frame


def _signed(head: bytes, body: bytes) -> bytes:
    return digest(b"isthmus frame", head, body)


# --- Bodies of envelopes -------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class RoundRequest:
    """The request of a round.

    Attributes
    ----------
    number
        Number of the round, larger than that of every earlier round.
    request
        The request, as bytes.
    size
        How many numbers will be summed.
    limbs
        Length of a number in limbs of 32 bits.
    transcript
        The transcript of the round that the request follows from, if there is one.
    """

    number: int
    request: bytes
    size: int
    limbs: int
    transcript: bytes = b""

    def context(self, terms: Terms) -> bytes:
        """Return the hash that every key and every signature of the round is bound to."""
        about = _SHAPE.pack(self.size, self.limbs) + self.number.to_bytes(8, "little")
        return digest(b"isthmus secure sum 1", terms.digest, about, self.request)

    def body(self) -> bytes:
        """Return the body of its frame."""
        shape = _OPENING.pack(self.size, self.limbs, len(self.request))
        return shape + self.request + self.transcript

    @classmethod
    def read(cls, number: int, body: bytes) -> RoundRequest:
        """Read what `body` wrote."""
        if len(body) < _OPENING.size:
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        size, limbs, length = _OPENING.unpack_from(body)
        end = _OPENING.size + length
        if length > REQUEST or len(body) < end:
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        if not 1 <= limbs <= 8 or size < 1 or 4 * size * limbs > LARGEST - KEY:
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
        return cls(number, body[_OPENING.size : end], size, limbs, body[end:])


@final
@dataclass(frozen=True)
class Advert:
    """The public keys of a site for one round, and the last entry of its ledger."""

    context: bytes
    channel: bytes
    mask: bytes
    commitment: bytes
    head: bytes = bytes(HEAD)

    SIZE = 4 * KEY + HEAD

    def body(self) -> bytes:
        """Return the body of its frame."""
        return self.context + self.channel + self.mask + self.commitment + self.head

    @classmethod
    def read(cls, frame: Envelope) -> Advert:
        """Read what `body` wrote."""
        if frame.kind is not EnvelopeKind.ADVERT or len(frame.body) != cls.SIZE:
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        context, channel, mask, commitment = (
            frame.body[i : i + KEY] for i in range(0, 4 * KEY, KEY)
        )
        return cls(context, channel, mask, commitment, frame.body[4 * KEY :])


def write_entries(entries: Iterable[tuple[int, bytes]]) -> bytes:
    """Write one blob per site, all of the same size, in ascending order of sites."""
    return b"".join(_ENTRY.pack(i) + blob for i, blob in sorted(entries))


def read_entries(body: bytes, size: int, sites: int) -> dict[int, bytes]:
    """Read what `write_entries` wrote, for blobs of this size."""
    step = _ENTRY.size + size
    if len(body) % step or len(body) // step > sites:
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    entries: dict[int, bytes] = {}
    last = -1
    for at in range(0, len(body), step):
        (i,) = _ENTRY.unpack_from(body, at)
        if not last < i < sites:
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        entries[i] = body[at + _ENTRY.size : at + step]
        last = i
    return entries


def read_frames(body: bytes, size: int, sites: int) -> list[bytes]:
    """Split a body that consists of complete frames of the same size."""
    step = size_of(size)
    if len(body) % step or len(body) // step > sites:
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    return [body[i : i + step] for i in range(0, len(body), step)]


def split_frames(data: bytes) -> list[bytes]:
    """Split complete frames of any sizes that follow each other."""
    frames: list[bytes] = []
    at = 0
    while at < len(data):
        if len(data) - at < HEADER.size:
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        end = at + size_of(HEADER.unpack_from(data, at)[-1])
        frames.append(data[at:end])  # `parse` refuses one that is cut off
        at = end
    return frames


def write_set(members: Iterable[int]) -> bytes:
    """Write a set of sites."""
    return write_entries((i, b"") for i in members)


def write_refusal(why: Refusal, blamed: int = NO_SITE) -> bytes:
    """Write that a site does not answer; why, and whom it blames, where that is no secret."""
    if why in HIDDEN:
        why, blamed = Refusal.REFUSED, NO_SITE
    return _REFUSAL.pack(why, blamed)


def read_refusal(body: bytes) -> tuple[Refusal, int]:
    """Read what `write_refusal` wrote."""
    if len(body) != _REFUSAL.size:
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    why, blamed = _REFUSAL.unpack(body)
    try:
        return Refusal(why), blamed
    except ValueError:
        raise BrokenEnvelopeError(Refusal.MALFORMED) from None
