"""The gate through which everything leaves a site, as the protocol sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from isthmus.joint.secure_sum.envelopes import (
    HEAD,
    BrokenEnvelopeError,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus.joint.secure_sum.limbs import LimbArray


class ReleaseGate(ABC):
    """Decides what leaves a site, and writes it to the ledger before it does."""

    @abstractmethod
    def last_round(self) -> int:
        """Return the highest round ever opened in this study, or zero; restarts count too."""

    @abstractmethod
    def answer(self, opening: RoundRequest) -> LimbArray:
        """Return the numbers to be summed, or raise `BrokenEnvelopeError` to refuse the request."""

    @abstractmethod
    def record(
        self, kind: EnvelopeKind, opening: RoundRequest, active: frozenset[int] | None
    ) -> None:
        """Record that a frame of this kind is about to leave, or raise to refuse it."""

    @abstractmethod
    def record_keys(self, number: int, sites: frozenset[int]) -> None:
        """Record that a key for one-message rounds is about to leave, or raise to refuse it."""

    @abstractmethod
    def record_again(self, number: int) -> None:
        """Record that the same answer is about to leave once more, or raise to refuse it."""

    @abstractmethod
    def refused(self, why: Refusal, number: int, question: bytes = b"") -> None:
        """Record that a frame was not answered, with the whole question that it asked."""

    def head(self) -> bytes:
        """Return hash and signature of the last entry of the ledger, which other sites keep."""
        return bytes(HEAD)

    def remembered(self, position: int) -> bytes:
        """Return the last head of another site's ledger that this site has seen, or zeros."""
        return bytes(HEAD)

    def witness(self, heads: Mapping[int, bytes]) -> None:
        """Take the heads of other sites' ledgers, to be kept with the next record.

        Raise `BrokenEnvelopeError` if a site has not signed its own.
        """
        _ = heads

    def require_head(self, head: bytes, told_by: int | None = None) -> None:
        """Raise `BrokenEnvelopeError` unless the ledger contains an entry that others remember.

        What another site says counts only with this site's own signature on the entry. Otherwise it
        could make up an entry, and nobody would let this site take part any more.

        Parameters
        ----------
        head
            Hash and signature of the entry.
        told_by
            The site that says so, if it is another one than this.
        """
        _ = head, told_by

    def receive_result(self, number: int, signed: bytes) -> bytes:
        """Keep the result of the study, and return its hash; or raise to refuse it.

        Parameters
        ----------
        number
            Number of the last round.
        signed
            The coordinator's signature, then the result.
        """
        raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER)

    def confirm_result(self, number: int, own: bytes, confirmed: Mapping[int, bytes]) -> None:
        """Write down which sites have confirmed the result; raise if one has another result.

        Parameters
        ----------
        number
            Number of the last round.
        own
            The hash that this site has confirmed.
        confirmed
            The hash that each site has confirmed, by position; including this one.
        """
        raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER)

    def state(self) -> bytes:
        """Return what later answers depend on besides the data, to be kept over a restart."""
        return b""

    def restore(self, state: bytes) -> None:
        """Continue from what `state` returned."""
        assert not state
