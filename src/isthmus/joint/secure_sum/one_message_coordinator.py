"""One-message rounds, which need all sites: the coordinator's side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import final

from isthmus.errors import AbortedError
from isthmus.joint.agreement.identity import KEY, Identity, Verifier
from isthmus.joint.agreement.identity import digest as hashed
from isthmus.joint.secure_sum import envelopes
from isthmus.joint.secure_sum.coordinator import Coordinator
from isthmus.joint.secure_sum.envelopes import (
    COORDINATOR,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
    Standing,
)
from isthmus.joint.secure_sum.heads import (
    NO_STATEMENT,
    HeadStatement,
    split_heads,
    write_heads,
)
from isthmus.joint.secure_sum.limbs import LimbAccumulator, LimbArray, from_bytes
from isthmus.joint.secure_sum.terms import Terms
from isthmus.joint.transport.base import Transport, drive


class AllSitesRound(ABC):
    """A round that needs an answer from every one of its sites."""

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        number: int,
        members: frozenset[int],
        verifier: Verifier | None,
    ) -> None:
        self._terms = terms
        self._identity = identity
        self._number = number
        self._members = members
        self._verifier = Verifier() if verifier is None else verifier
        self._awaited = EnvelopeKind.REFUSE
        self._frames: dict[str, bytes] = {}
        self._got: dict[int, Envelope] = {}
        self.refusals: dict[str, Refusal] = {}

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the sites of the round."""
        return tuple(self._terms.members[i].name for i in sorted(self._members))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the sites that have not answered yet."""
        left = sorted(self._members - self._got.keys())
        names = (self._terms.members[i].name for i in left)
        return tuple(n for n in names if n not in self.refusals)

    def receive(self, data: bytes) -> None:
        """Take a frame of a site, or raise `BrokenEnvelopeError` and change nothing."""
        frame = envelopes.opened(data, self._terms, self._verifier)
        if frame.round != self._number:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        if frame.kind is EnvelopeKind.REFUSE:
            why, _ = envelopes.read_refusal(frame.body)
            self.refusals.setdefault(self._terms.members[frame.sender].name, why)
            return
        if frame.kind is not self._awaited:
            raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER, frame.sender)
        if frame.sender not in self._members or frame.sender in self._got:
            raise BrokenEnvelopeError(Refusal.REPLAY, frame.sender)
        if not self._is_answer(frame):
            raise BrokenEnvelopeError(Refusal.MALFORMED, frame.sender)
        self._got[frame.sender] = frame

    @abstractmethod
    def _is_answer(self, frame: Envelope) -> bool:
        """Return whether this is an answer to the current frame."""

    def _send(self, kind: EnvelopeKind, body: bytes, awaited: EnvelopeKind) -> dict[str, bytes]:
        """Return the same frame for every site of the round."""
        self._awaited, self._got = awaited, {}
        self._frames = dict.fromkeys(self.active, self._packed(kind, body))
        return dict(self._frames)

    def _send_each(
        self, kind: EnvelopeKind, bodies: Mapping[int, bytes], awaited: EnvelopeKind
    ) -> dict[str, bytes]:
        """Return a frame with its own body for each site."""
        self._awaited, self._got = awaited, {}
        members = self._terms.members
        self._frames = {members[i].name: self._packed(kind, b) for i, b in bodies.items()}
        return dict(self._frames)

    def _packed(self, kind: EnvelopeKind, body: bytes) -> bytes:
        return envelopes.pack(kind, self._terms, self._number, COORDINATOR, body, self._identity)

    def again(self) -> dict[str, bytes]:
        """Return the same frame for the silent sites, which answer it with the same bytes."""
        return {name: self._frames[name] for name in self.waiting}

    def _require_all(self) -> None:
        if self._got.keys() == self._members:
            return
        said = {n: why.name.lower() for n, why in self.refusals.items()}
        raise AbortedError(
            f"Round {self._number} was aborted: {len(self._got)} sites answered, and all sites of "
            f"the earlier sums are required. Silent: {list(self.waiting)}. Refused: {said}. No sum "
            "was formed; the answers that arrived reveal nothing without the others. The ledger of "
            "a site that refused says why.",
            silent=self.waiting,
        )


@final
class KeyRound(AllSitesRound):
    """Agrees on keys for one-message rounds, and passes on what sites remember of each other.

    Parameters
    ----------
    terms, identity, verifier
        As for `Coordinator`.
    number
        Number of the round.
    members
        Positions of the sites that all these sums will be over.
    heads
        The latest statement of each site about its ledger, by position, to be shown to it again.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        number: int,
        members: frozenset[int],
        verifier: Verifier | None = None,
        heads: Mapping[int, bytes] | None = None,
    ) -> None:
        super().__init__(terms, identity, number, members, verifier)
        self._context = envelopes.standing_context(terms, number, members)
        self._heads = dict(heads or {})
        self.keys = b""

    def begin(self) -> dict[str, bytes]:
        """Return the first frame for each site."""
        return self._send(
            EnvelopeKind.AGREE, envelopes.write_set(self._members), EnvelopeKind.STANDING
        )

    def _is_answer(self, frame: Envelope) -> bool:
        if frame.kind is EnvelopeKind.STANDING:
            return Standing.read(frame).context == self._context
        if frame.kind is EnvelopeKind.SETTLED:
            memories = envelopes.read_entries(
                frame.body[KEY:], envelopes.MEMORY, len(self._terms.members)
            )
            others = self._members - {frame.sender}
            return frame.body[:KEY] == self.keys and memories.keys() == others
        return frame.body == self.keys

    def advance(self) -> dict[str, bytes]:
        """Return all keys for every site, then what others remember of it, then nothing."""
        self._require_all()
        if self._awaited is EnvelopeKind.REMEMBERED:
            return {}
        if self._awaited is EnvelopeKind.SETTLED:
            return self._send_memories()
        body = b"".join(f.raw for _, f in sorted(self._got.items()))
        self.keys = hashed(body)
        return self._send(EnvelopeKind.SETTLE, body, EnvelopeKind.SETTLED)

    def _send_memories(self) -> dict[str, bytes]:
        sites = len(self._terms.members)
        boxes: dict[int, list[tuple[int, bytes]]] = {i: [] for i in self._members}
        for sender, frame in self._got.items():
            for receiver, memory in envelopes.read_entries(
                frame.body[KEY:], envelopes.MEMORY, sites
            ).items():
                boxes[receiver].append((sender, memory))
        bodies = {
            i: self._heads.get(i, NO_STATEMENT) + envelopes.write_entries(box)
            for i, box in boxes.items()
        }
        return self._send_each(EnvelopeKind.MEMORIES, bodies, EnvelopeKind.REMEMBERED)

    def again(self) -> dict[str, bytes]:
        """Return the later frames for silent sites; the first is never sent twice."""
        return super().again() if self._awaited is not EnvelopeKind.STANDING else {}


@final
class OneMessageRound(AllSitesRound):
    """A secure sum with one message per site.

    Parameters
    ----------
    terms, identity, verifier
        As for `Coordinator`.
    opening
        The request.
    members
        Positions of the sites that agreed on keys.
    keys
        The hash of the keys, `KeyRound.keys`.
    heads
        Statements of all sites about their ledgers in the previous round with these keys, by
        position; empty in the first round.

    Attributes
    ----------
    heads
        The same after this round, once it is complete.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        opening: RoundRequest,
        members: frozenset[int],
        keys: bytes,
        verifier: Verifier | None = None,
        heads: Mapping[int, bytes] | None = None,
    ) -> None:
        super().__init__(terms, identity, opening.number, members, verifier)
        self.opening = opening
        self.heads: dict[int, bytes] = {}
        self._keys = keys
        self._before = write_heads(heads or {})
        given, _ = split_heads(self._before, len(terms.members))
        self._context = envelopes.single_context(terms, opening, given)
        self._total: LimbArray | None = None

    @property
    def total(self) -> LimbArray:
        """The sum, once the round is complete."""
        if self._total is None:
            raise AbortedError("There is no sum yet: some sites have not answered.")
        return self._total

    @property
    def answers(self) -> tuple[bytes, ...]:
        """The signed answers of the sites, which later requests may quote."""
        return tuple(frame.raw for _, frame in sorted(self._got.items()))

    def begin(self) -> dict[str, bytes]:
        """Return the only frame for each site."""
        body = self._keys + self._before + self.opening.body()
        return self._send(EnvelopeKind.SINGLE, body, EnvelopeKind.SUMMAND)

    def _is_answer(self, frame: Envelope) -> bool:
        expected = KEY + 4 * self.opening.size * self.opening.limbs + HeadStatement.SIZE
        if len(frame.body) != expected or frame.body[:KEY] != self._context:
            return False
        data = frame.body[-HeadStatement.SIZE :]
        stated = HeadStatement.read(data, self._terms, frame.sender, self._verifier)
        return stated.number == self._number

    def advance(self) -> dict[str, bytes]:
        """Compute the sum; the masks cancel because all sites answered."""
        self._require_all()
        total = LimbAccumulator(self.opening.size, self.opening.limbs)
        for frame in self._got.values():
            numbers = frame.body[KEY : -HeadStatement.SIZE]
            total.add(from_bytes(numbers, self.opening.limbs))
        self.heads = {i: f.body[-HeadStatement.SIZE :] for i, f in self._got.items()}
        self._total = total.total()
        return {}


def run_round(coordinator: Coordinator | OneMessageRound, transport: Transport) -> LimbArray:
    """Run a round to its end and return the sum over the coordinator's `active` sites.

    Raises
    ------
    AbortedError
        Too few sites were left. Only the names of the silent ones are known.
    """
    drive(coordinator, transport)
    return coordinator.total
