"""Sums that a request quotes: every site can check them from the signed answers of all sites.

A request may build on the sum of an earlier one-message round, which only the coordinator has seen.
It then quotes the answers of that round as they were signed. The masks cancel in their sum, so
every site computes it by itself, and no coordinator can make up another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

from isthmus.joint.agreement.identity import KEY, Verifier
from isthmus.joint.secure_sum import envelopes
from isthmus.joint.secure_sum.envelopes import (
    BrokenEnvelopeError,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus.joint.secure_sum.heads import HeadStatement
from isthmus.joint.secure_sum.limbs import LimbAccumulator, LimbArray, from_bytes
from isthmus.joint.secure_sum.terms import Terms


@final
@dataclass(frozen=True)
class AnsweredRound:
    """A one-message round that a site has answered.

    Attributes
    ----------
    number
        Number of the round.
    members
        Positions of the sites that its sum is over.
    size, limbs
        How many numbers were summed, and their length.
    """

    number: int
    members: frozenset[int]
    size: int
    limbs: int

    @classmethod
    def of(cls, opening: RoundRequest, members: frozenset[int]) -> Self:
        """Describe the round of an opening."""
        return cls(opening.number, members, opening.size, opening.limbs)

    def sum_of(
        self, answers: Sequence[bytes], terms: Terms, position: int, verifier: Verifier
    ) -> LimbArray:
        """Add up the answers of all sites.

        A site signs one answer per round. What its own answer is bound to, that of each other site
        must be bound to as well: the whole request, and the heads of the ledgers.

        Parameters
        ----------
        answers
            The frames, as they were signed.
        terms
            The sites and their keys.
        position
            The position of this site in the roster.
        verifier
            Checks signatures.

        Raises
        ------
        BrokenEnvelopeError
            These are not the answers of this round, one of each site, as the sites signed them.
        """
        total = LimbAccumulator(self.size, self.limbs)
        end = KEY + 4 * self.size * self.limbs
        contexts: dict[int, bytes] = {}
        for data in answers:
            frame = envelopes.opened(data, terms, verifier)
            is_answer = (
                frame.kind is EnvelopeKind.SUMMAND
                and frame.round == self.number
                and len(frame.body) == end + HeadStatement.SIZE
                and frame.sender in self.members - contexts.keys()
            )
            if not is_answer:
                raise BrokenEnvelopeError(Refusal.BAD_REQUEST, frame.sender)
            contexts[frame.sender] = frame.body[:KEY]
            total.add(from_bytes(frame.body[KEY:end], self.limbs))
        if contexts.keys() != self.members or set(contexts.values()) != {contexts.get(position)}:
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
        return total.total()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "number": self.number,
            "members": sorted(self.members),
            "size": self.size,
            "limbs": self.limbs,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(
            plain["number"],
            frozenset(plain["members"]),
            plain["size"],
            plain["limbs"],
        )
