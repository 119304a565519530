"""Statements of sites about their ledgers, which the coordinator keeps and passes on.

With its last message of a round, a site signs the hash of the last entry of its ledger. In the next
round the coordinator shows it what it said. A site whose ledger does not contain that entry any
more has lost the end of it, and refuses.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self, final

from isthmus.joint.agreement.identity import SIGNATURE, Identity, Verifier, digest
from isthmus.joint.secure_sum.envelopes import (
    HEAD,
    BrokenEnvelopeError,
    Refusal,
    write_entries,
)
from isthmus.joint.secure_sum.terms import Terms

_NUMBER = struct.Struct("<I")
_COUNT = struct.Struct("<H")


@final
@dataclass(frozen=True)
class HeadStatement:
    """The signed statement of a site about the last entry of its ledger in a round.

    Attributes
    ----------
    number
        Number of the round.
    head
        Hash of the entry, and the signature on it; zeros if the site keeps no ledger.
    signature
        The signature of the site.
    """

    number: int
    head: bytes
    signature: bytes

    SIZE: ClassVar[int] = _NUMBER.size + HEAD + SIGNATURE

    @classmethod
    def sign(cls, identity: Identity, terms: Terms, number: int, head: bytes) -> Self:
        """State the head of the own ledger."""
        return cls(number, head, identity.sign(_signed(terms, identity.public, number, head)))

    def body(self) -> bytes:
        """Return the statement as bytes."""
        return _NUMBER.pack(self.number) + self.head + self.signature

    @classmethod
    def read(cls, data: bytes, terms: Terms, position: int, verifier: Verifier) -> Self:
        """Read what `body` wrote, and check that the site at this position has signed it."""
        if len(data) != cls.SIZE:
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        (number,) = _NUMBER.unpack_from(data)
        head, signature = data[_NUMBER.size : -SIGNATURE], data[-SIGNATURE:]
        key = terms.members[position].key
        if not verifier.verify(key, signature, _signed(terms, key, number, head)):
            raise BrokenEnvelopeError(Refusal.BAD_SIGNATURE, position)
        return cls(number, head, signature)


NO_STATEMENT = bytes(HeadStatement.SIZE)
"""Stands for a statement that the coordinator does not have."""


def _signed(terms: Terms, key: bytes, number: int, head: bytes) -> bytes:
    return digest(b"isthmus ledger head 2", terms.digest, key, _NUMBER.pack(number), head)


def write_heads(heads: Mapping[int, bytes]) -> bytes:
    """Write the statements of sites, by position, with their number in front."""
    return _COUNT.pack(len(heads)) + write_entries(heads.items())


def split_heads(body: bytes, sites: int) -> tuple[bytes, bytes]:
    """Split a body into the statements at its beginning, to be read as entries, and the rest."""
    if len(body) < _COUNT.size:
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    (count,) = _COUNT.unpack_from(body)
    end = _COUNT.size + count * (_COUNT.size + HeadStatement.SIZE)
    if count > sites or len(body) < end:
        raise BrokenEnvelopeError(Refusal.MALFORMED)
    return body[_COUNT.size : end], body[end:]
