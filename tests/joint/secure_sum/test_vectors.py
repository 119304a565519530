"""The test vectors of the reference are what this implementation sends."""

from __future__ import annotations

import json

from tests.joint.secure_sum.vectors import FILE, LOST, NUMBERS, vectors

from isthmus_joint import Member, Roster
from isthmus_joint.agreement.identity import Verifier
from isthmus_joint.secure_sum.envelopes import (
    HEADER,
    EnvelopeKind,
    RoundRequest,
    opened,
    parse,
    read_entries,
)
from isthmus_joint.secure_sum.protocol import PublicRound, sum_of
from isthmus_joint.secure_sum.terms import Terms, to_ints


def test_the_reference_has_what_is_sent() -> None:
    found = vectors()
    assert json.loads(FILE.read_text()) == found
    kinds = {message["kind"] for message in found["messages"]}
    assert kinds == {kind.name for kind in EnvelopeKind}


def test_the_sum_follows_from_the_file_alone() -> None:
    """As in a second implementation: signatures, transcript, and masks of a site that failed."""
    found = json.loads(FILE.read_text())
    members = tuple(
        Member(s["name"], s["organisation"], bytes.fromhex(s["key"])) for s in found["sites"]
    )
    roster = Roster(bytes.fromhex(found["study"]), members, bytes.fromhex(found["coordinator"]))
    terms, verifier = Terms(roster, found["threshold"], found["organisations"]), Verifier()
    assert terms.digest.hex() == found["roster"]
    frames = [opened(bytes.fromhex(m["frame"]), terms, verifier) for m in found["messages"]]
    keys = next(f for f in frames if f.kind is EnvelopeKind.KEYS)
    asked = RoundRequest.read(1, frames[0].body)
    public = PublicRound(1, 2, 2, asked.context(terms), keys.body, frozenset(range(4)))
    second = next(f for f in frames if f.kind is EnvelopeKind.OPEN and f.round == 2)
    transcript = RoundRequest.read(2, second.body).transcript
    assert parse(transcript[: HEADER.size + 48 + 64]).kind is EnvelopeKind.MASKED
    total = to_ints(sum_of(transcript, public, terms, verifier))
    assert total == found["sum"]
    assert total == [sum(NUMBERS[i][k] for i in range(4) if i != LOST) for k in range(2)]
    active = next(f for f in frames if f.kind is EnvelopeKind.ACTIVE)
    assert read_entries(active.body, 32, 4).keys() == {0, 1, 2}
