"""The masks of a round, and the keys they come from: the same code at both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from isthmus.parties.identity import (
    KEY,
    Agreement,
    Secret,
    derive,
    digest,
    stream,
)
from isthmus.sources.horizontal.secure_sum.words import Words, from_bytes


@final
@dataclass(frozen=True)
class Bound:
    """What the keys of one round are bound to.

    Attributes
    ----------
    context
        Study, roster, round and request.
    keys
        Hash of the public keys that all sites were shown.
    """

    context: bytes
    keys: bytes

    @property
    def salt(self) -> bytes:
        """Both."""
        return self.context + self.keys

    def pair_mask(self, mine: Agreement, i: int, theirs: bytes, j: int) -> Secret:
        """The key of the mask between two sites; the same from either end."""
        low, high = sorted((i, j))
        return derive(mine.shared(theirs), self.salt, _info(b"pair mask", low, high))

    def standing_mask(self, shared: Secret, i: int, j: int) -> Secret:
        """The same, from a secret that two sites share for a whole study."""
        low, high = sorted((i, j))
        return derive(shared, self.salt, _info(b"standing mask", low, high))

    def self_mask(self, seed: Secret, i: int) -> Secret:
        """The key of a site's own mask."""
        return derive(seed, self.salt, _info(b"self mask", i, i))

    def channels(self, mine: Agreement, i: int, theirs: bytes, j: int) -> tuple[Secret, Secret]:
        """The keys for what `i` sends to `j`, and for what it receives from `j`."""
        low, high = sorted((i, j))
        both = derive(mine.shared(theirs), self.salt, _info(b"channel", low, high), 2 * KEY)
        up, down = Secret(both.reveal()[:KEY]), Secret(both.reveal()[KEY:])
        return (up, down) if i < j else (down, up)

    def envelope(self, sender: int, receiver: int) -> bytes:
        """What a sealed share is bound to."""
        return self.salt + _info(b"share", sender, receiver)


def commitment(seed: Secret, site: int, context: bytes) -> bytes:
    """Fixes a seed of 256 random bits without showing it."""
    return digest(b"isthmus seed", context, site.to_bytes(2, "little"), seed.reveal())


def expand(key: Secret, size: int, limbs: int) -> Words:
    """A mask of this many words."""
    return from_bytes(stream(key, 4 * size * limbs), limbs)


def sign_of(i: int, j: int) -> int:
    """The site that comes first in the roster adds the mask of a pair, the other takes it away."""
    return 1 if i < j else -1


def _info(purpose: bytes, i: int, j: int) -> bytes:
    return b"isthmus " + purpose + i.to_bytes(2, "little") + j.to_bytes(2, "little")
