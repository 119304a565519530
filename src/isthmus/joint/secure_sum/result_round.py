"""Sends the result to the sites that took part."""

from __future__ import annotations

import hashlib
from typing import final

from isthmus.errors import FederationError
from isthmus.joint.agreement.identity import Identity, Verifier
from isthmus.joint.secure_sum.envelopes import LARGEST_RESULT, Envelope, EnvelopeKind
from isthmus.joint.secure_sum.one_message_coordinator import AllSitesRound
from isthmus.joint.secure_sum.terms import Terms


@final
class ResultRound(AllSitesRound):
    """Sends the result of a study to sites, which confirm its hash, and then all confirmations.

    A site that has another result than the others sees it in their confirmations, which they sign.

    Parameters
    ----------
    terms, identity, verifier
        As for `Coordinator`.
    number
        Number of the last round.
    members
        Positions of the sites.
    result
        The result.
    signature
        The coordinator's signature on it.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        number: int,
        members: frozenset[int],
        result: bytes,
        signature: bytes,
        verifier: Verifier | None = None,
    ) -> None:
        super().__init__(terms, identity, number, members, verifier)
        if len(result) > LARGEST_RESULT:
            raise FederationError(
                f"The result has {len(result)} bytes; at most {LARGEST_RESULT} can be sent to the "
                "sites. Give it to them in another way."
            )
        self._received: dict[int, Envelope] = {}
        self._signed = signature + result
        self._hash = hashlib.sha256(result).digest()

    @property
    def received(self) -> tuple[str, ...]:
        """Names of the sites that have confirmed the result."""
        return tuple(self._terms.members[i].name for i in sorted(self._received or self._got))

    def begin(self) -> dict[str, bytes]:
        """Return the result for each site."""
        return self._send(EnvelopeKind.RESULT, self._signed, EnvelopeKind.RECEIVED)

    def _is_answer(self, frame: Envelope) -> bool:
        return frame.body == self._hash

    def again(self) -> dict[str, bytes]:
        """Return nothing: a site that is silent gets the result when the run is repeated."""
        return {}

    def advance(self) -> dict[str, bytes]:
        """Return the confirmations of all sites for each of them, then nothing."""
        if self._awaited is EnvelopeKind.CONFIRMED or not self._got:
            return {}
        self._received = self._got
        body = b"".join(f.raw for _, f in sorted(self._received.items()))
        return self._send_each(
            EnvelopeKind.RECEIPTS, dict.fromkeys(self._received, body), EnvelopeKind.CONFIRMED
        )
