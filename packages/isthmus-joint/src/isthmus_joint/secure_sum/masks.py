"""The masks of a round and the keys that they are derived from, for sites and coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from isthmus_joint.agreement.identity import KEY, Agreement, Secret, derive, digest, stream
from isthmus_joint.secure_sum.envelopes import RoundRequest
from isthmus_joint.secure_sum.terms import LimbAccumulator


@final
@dataclass(frozen=True)
class RoundKeys:
    """Derives the keys of one round, all bound to what the round is about.

    Attributes
    ----------
    context
        Hash of study, roster, round and request.
    keys
        Hash of the public keys that all sites were shown.
    """

    context: bytes
    keys: bytes

    @property
    def salt(self) -> bytes:
        """The salt of every key: context and keys."""
        return self.context + self.keys

    def pair_mask(self, mine: Agreement, i: int, theirs: bytes, j: int) -> Secret:
        """Return the key of the mask between two sites; both sites derive the same."""
        low, high = sorted((i, j))
        return derive(mine.shared(theirs), self.salt, _info(b"pair mask", low, high))

    def self_mask(self, seed: Secret, i: int) -> Secret:
        """Return the key of a site's own mask."""
        return derive(seed, self.salt, _info(b"self mask", i, i))

    def channels(self, mine: Agreement, i: int, theirs: bytes, j: int) -> tuple[Secret, Secret]:
        """Return the keys for messages from `i` to `j` and from `j` to `i`."""
        low, high = sorted((i, j))
        both = derive(mine.shared(theirs), self.salt, _info(b"channel", low, high), 2 * KEY)
        up, down = Secret(both.reveal()[:KEY]), Secret(both.reveal()[KEY:])
        return (up, down) if i < j else (down, up)

    def envelope(self, sender: int, receiver: int) -> bytes:
        """Return the bytes that an encrypted share is bound to."""
        return self.salt + _info(b"share", sender, receiver)


def commitment(seed: Secret, site: int, context: bytes) -> bytes:
    """Commit to a seed of 256 random bits without revealing it."""
    return digest(b"isthmus seed", context, site.to_bytes(2, "little"), seed.reveal())


def add_mask(total: LimbAccumulator, key: Secret, opening: RoundRequest, sign: int = 1) -> None:
    """Add the mask of a key for the numbers that a round sums, or subtract it."""
    total.add_bytes(stream(key, 4 * opening.size * opening.limbs), sign)


def sign_of(i: int, j: int) -> int:
    """Return the sign of a pair's mask: the first site adds it, the second subtracts it."""
    return 1 if i < j else -1


def _info(purpose: bytes, i: int, j: int) -> bytes:
    return b"isthmus " + purpose + i.to_bytes(2, "little") + j.to_bytes(2, "little")
