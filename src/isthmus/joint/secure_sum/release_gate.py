"""The gate through which everything leaves a site, as the protocol sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from isthmus.joint.secure_sum.envelopes import BrokenEnvelopeError, EnvelopeKind, RoundRequest
from isthmus.joint.secure_sum.limbs import LimbArray
from isthmus.joint.secure_sum.transcript import PublicRound


@final
@dataclass(frozen=True)
class Leaving:
    """What is about to leave a site.

    Attributes
    ----------
    kind
        The kind of the message.
    request
        The request of the round.
    public
        With masked numbers: the public part of the round.
    active
        With a share that unmasks the sum: positions of the sites that the sum is over.
    seen
        With masked numbers: the heads of other ledgers, by position, which their sites signed.
    heads
        With a share that unmasks the sum: the same, of sites that have consented, and so have
        confirmed that they still have what others remember of their ledgers.
    told
        With masked numbers: the heads of this site's own ledger that others remember, by their
        positions. Each has this site's own signature.
    """

    kind: EnvelopeKind
    request: RoundRequest
    public: PublicRound | None = None
    active: frozenset[int] | None = None
    seen: Mapping[int, bytes] = field(default_factory=dict)
    heads: Mapping[int, bytes] = field(default_factory=dict)
    told: Mapping[int, bytes] = field(default_factory=dict)


class ReleaseGate(ABC):
    """Approves what leaves a site, and writes it to the ledger before it does."""

    @abstractmethod
    def last_round(self) -> int:
        """Return the highest round ever opened in this study, or zero; restarts count too."""

    @abstractmethod
    def approve(self, request: RoundRequest) -> LimbArray:
        """Return the numbers to be summed, or raise `BrokenEnvelopeError` to refuse the request."""

    @abstractmethod
    def record(self, leaving: Leaving) -> None:
        """Record what is about to leave, or raise `BrokenEnvelopeError` to keep it."""

    @abstractmethod
    def refused(self, error: BrokenEnvelopeError, number: int, question: bytes) -> None:
        """Record that a message was not answered, with the question that it asked, if any."""

    def heads(self) -> Mapping[int, bytes]:
        """Return the head of the own ledger, and those of other ledgers as far as remembered.

        They are given by the positions of the sites. Witnesses exchange them: a site whose ledger
        was cut learns it from the others.
        """
        return {}
