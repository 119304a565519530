"""Sites and coordinators for the tests of secure sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isthmus_joint import Identity, InProcess, Member, Roster
from isthmus_joint.agreement.identity import Verifier
from isthmus_joint.secure_sum.envelopes import (
    COORDINATOR,
    BrokenEnvelopeError,
    EnvelopeKind,
    Refusal,
    RoundRequest,
    pack,
)
from isthmus_joint.secure_sum.protocol import PublicRound
from isthmus_joint.secure_sum.round import Leaving, ReleaseGate
from isthmus_joint.secure_sum.sides import Coordinator, Site
from isthmus_joint.secure_sum.terms import LimbArray, Terms, from_ints, to_ints

STUDY = bytes(range(32))
LIMBS = 4


@dataclass
class Open(ReleaseGate):
    """Lets everything leave."""

    values: LimbArray
    last: int = 0
    recorded: list[EnvelopeKind] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    public: PublicRound | None = None

    def last_round(self) -> int:
        return self.last

    def approve(self, request: RoundRequest) -> LimbArray:
        return self.values

    def record(self, leaving: Leaving) -> None:
        self.last = max(self.last, leaving.request.number)
        self.recorded.append(leaving.kind)
        self.public = leaving.public or self.public

    def refused(self, error: BrokenEnvelopeError, number: int, question: bytes) -> None:
        self.refusals.append(error.why)


class Party:
    """A roster of sites with random numbers."""

    def __init__(self, sites: int, size: int = 5, *, seed: int = 0, study: bytes = STUDY) -> None:
        rng = np.random.default_rng(seed)
        self.identities = [Identity.generate() for _ in range(sites)]
        self.boss = Identity.generate()
        members = tuple(
            Member(f"s{i}", f"organisation {i}", key.public)
            for i, key in enumerate(self.identities)
        )
        self.terms = Terms(Roster(study, members, self.boss.public))
        self.numbers = [
            [int.from_bytes(rng.bytes(14), "little") - 2**111 for _ in range(size)]
            for _ in range(sites)
        ]
        self.size = size
        self.verifier = Verifier()
        self.keepers = [Open(from_ints(x, LIMBS)) for x in self.numbers]
        self.sites = [self.revived(i) for i in range(sites)]

    def revived(self, i: int) -> Site:
        """The site after a restart: what its keeper knows is all it knows."""
        return Site(self.terms, self.identities[i], self.keepers[i], verifier=self.verifier)

    def coordinator(self, number: int = 1, request: bytes = b"numbers") -> Coordinator:
        asked = RoundRequest(number, request, self.size, LIMBS)
        return Coordinator(
            self.terms, self.boss, asked, keeps_transcript=True, verifier=self.verifier
        )

    def handlers(self) -> dict[str, Callable[[bytes], bytes]]:
        return {site.name: site.handle for site in self.sites}

    def transport(
        self, lost: Iterable[tuple[str, int]] = (), muted: Iterable[tuple[str, int]] = ()
    ) -> InProcess:
        return InProcess(self.handlers(), lost=lost, muted=muted)

    def signed(self, kind: EnvelopeKind, body: bytes, number: int = 1) -> bytes:
        """A frame that the coordinator signs: what a malicious one would send."""
        return pack(kind, self.terms, number, COORDINATOR, body, self.boss)

    def expected(self, names: Iterable[str]) -> list[int]:
        rows = [self.numbers[self.terms.position(n)] for n in names]
        return [sum(column) for column in zip(*rows, strict=True)]

    def answers(self, outgoing: Mapping[str, bytes]) -> dict[str, bytes]:
        handlers = self.handlers()
        return {name: handlers[name](frame) for name, frame in outgoing.items()}

    def up_to(self, exchanges: int) -> tuple[Coordinator, dict[str, bytes]]:
        """A round after some complete exchanges, and the frames it would send next."""
        coordinator = self.coordinator()
        outgoing = coordinator.begin()
        for _ in range(exchanges):
            for answer in self.answers(outgoing).values():
                coordinator.receive(answer)
            outgoing = coordinator.advance()
        return coordinator, outgoing


def ints(words: NDArray[np.uint32]) -> list[int]:
    return to_ints(words)
