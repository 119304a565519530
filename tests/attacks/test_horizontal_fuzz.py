"""Frames of garbage: a site and a coordinator under fire stay up and say nothing.

About a minute with ISTHMUS_FUZZ_FRAMES=300000; a million by hand.
"""

from __future__ import annotations

import os
import random

import pytest
from tests.joint.federation.rosters import Party, ints

from isthmus_joint.secure_sum import envelopes as fr
from isthmus_joint.secure_sum.envelopes import BrokenEnvelopeError, EnvelopeKind
from isthmus_joint.secure_sum.sides import run_round

FRAMES = int(os.environ.get("ISTHMUS_FUZZ_FRAMES", "20000"))


def mutated(rng: random.Random, frames: list[bytes]) -> bytes:
    data = bytearray(rng.choice(frames))
    for _ in range(rng.randint(1, 4)):
        way = rng.randrange(6)
        at = rng.randrange(len(data) + 1)
        if way == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif way == 1:
            del data[at : at + rng.randrange(1, 80)]
        elif way == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 80))
        elif way == 3:
            other = rng.choice(frames)
            data[at:] = other[at:]
        elif way == 4:
            data += data[:at]
        elif len(data) >= fr.HEADER.size:
            # A header that fits the length, so that more than the header is looked at.
            length = max(len(data) - fr.HEADER.size - 64, 0)
            data[fr.HEADER.size - 4 : fr.HEADER.size] = length.to_bytes(4, "little")
    return bytes(data)


@pytest.mark.long
@pytest.mark.parametrize("stage", range(5))
def test_mutated_frames(stage: int) -> None:
    rng = random.Random(stage)
    party = Party(3)
    known: list[bytes] = []
    for earlier in range(stage + 1):
        fresh = Party(3)
        known += fresh.up_to(earlier)[1].values()
    coordinator, outgoing = party.up_to(stage)
    known += outgoing.values()
    valid = set(outgoing.values())
    for _ in range(FRAMES // 10):
        data = mutated(rng, known)
        if data in valid:
            continue
        answer = fr.parse(party.sites[0].handle(data))
        assert answer.kind is EnvelopeKind.REFUSE
        with pytest.raises(BrokenEnvelopeError):
            coordinator.receive(data)
    # Still up, in the middle of the same round.
    while outgoing:
        for good in party.answers(outgoing).values():
            coordinator.receive(good)
        outgoing = coordinator.advance()
    assert ints(coordinator.total) == party.expected(coordinator.active)


@pytest.mark.long
@pytest.mark.parametrize("stage", range(5))
def test_mutated_frames_that_the_coordinator_signed(stage: int) -> None:
    """A malicious coordinator signs all it sends; only the right frame gets a right answer."""
    rng = random.Random(stage)
    party = Party(3)
    number = 0
    for _ in range(FRAMES // 400):
        number += 1
        coordinator = party.coordinator(number)
        outgoing = coordinator.begin()
        for _ in range(stage):
            for answer in party.answers(outgoing).values():
                coordinator.receive(answer)
            outgoing = coordinator.advance()
        frame = fr.parse(outgoing["s0"])
        body = mutated(rng, [frame.body or b"x"])
        if body == frame.body or stage == 0:
            continue
        site, keeper = party.sites[0], party.keepers[0]
        before = keeper.recorded.count(EnvelopeKind.REVEAL)
        reply = fr.parse(site.handle(party.signed(frame.kind, body, number)))
        if stage == 3 and reply.kind is EnvelopeKind.CONSENT:  # to something that nobody else signs
            with pytest.raises(BrokenEnvelopeError):
                coordinator.receive(reply.raw)
            continue
        assert reply.kind is EnvelopeKind.REFUSE
        assert keeper.recorded.count(EnvelopeKind.REVEAL) == before
    again = party.coordinator(number + 1)
    assert ints(run_round(again, party.transport())) == party.expected(again.active)
