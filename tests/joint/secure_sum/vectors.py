"""Test vectors of secure sums: every message of two rounds, from fixed keys and random numbers.

    python -m tests.joint.secure_sum.vectors

writes them to the reference, where a second implementation finds them.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from isthmus_joint import Identity, Member, Roster
from isthmus_joint.agreement.identity import Secret, Verifier
from isthmus_joint.federation.received_results import sign_result
from isthmus_joint.secure_sum.envelopes import (
    COORDINATOR,
    EnvelopeKind,
    Refusal,
    RoundRequest,
    opened,
    pack,
    write_refusal,
)
from isthmus_joint.secure_sum.round import (
    COORDINATOR_STEPS,
    QUESTIONS,
    SITE_STEPS,
    CoordinatorRound,
    Message,
    RoundSecrets,
    SiteRound,
    advertise,
    ask,
)
from isthmus_joint.secure_sum.terms import Terms, from_ints, to_ints

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
FILE = REFERENCE / "secure-sum-vectors.json"
SITES, LIMBS, LOST = 4, 2, 3
STUDY = bytes(range(32))
NUMBERS = {i: [10 + i, -(100**i)] for i in range(SITES)}
RESULT = b'{"dag":1}'


def secret(text: str) -> bytes:
    """The random number of a name."""
    return hashlib.sha256(text.encode()).digest()


def identity(name: str) -> Identity:
    return Identity(Ed25519PrivateKey.from_private_bytes(secret(f"identity of {name}")))


class Round:
    """One round; the last site fails after it has shared its secrets."""

    def __init__(self, number: int, transcript: bytes = b"") -> None:
        self.keys = [identity(f"site {i}") for i in range(SITES)]
        self.boss = identity("coordinator")
        members = tuple(
            Member(f"site {i}", f"organisation {i}", k.public) for i, k in enumerate(self.keys)
        )
        self.terms = Terms(Roster(STUDY, members, self.boss.public))
        self.verifier = Verifier()
        text = b'{"totals":["a"]}' if number == 1 else b'{"totals":["b"]}'
        self.request = RoundRequest(number, text, 2, LIMBS, transcript)
        self.messages: list[dict[str, Any]] = []
        self.sites: dict[int, SiteRound] = {}
        self.state = self.run()

    def run(self) -> CoordinatorRound:
        state, bodies, _ = ask(
            self.terms, self.request, frozenset(range(SITES)), keeps_transcript=True
        )
        while state.awaits is not None:
            answers = {}
            for i, body in sorted(bodies.items()):
                if i == LOST and state.awaits is EnvelopeKind.MASKED:
                    continue
                self.note(QUESTIONS[state.awaits], None, i, body)
                answer = self.note(state.awaits, i, None, self.answer(i, state.awaits, body))
                answers[i] = opened(answer, self.terms, self.verifier)
            state, bodies, _ = COORDINATOR_STEPS[state.awaits](state, answers)
        return state

    def answer(self, i: int, awaits: EnvelopeKind, body: bytes) -> bytes:
        if awaits is EnvelopeKind.ADVERT:
            names = ("channel key", "mask key", "seed", "polynomials")
            number = self.request.number
            drawn = (Secret(secret(f"{n} of site {i} in round {number}")) for n in names)
            values, place = from_ints(NUMBERS[i], LIMBS), (self.terms, i, self.verifier)
            step = advertise(place, self.request, values, RoundSecrets(*drawn), {})
        else:
            step = SITE_STEPS[QUESTIONS[awaits]](self.sites[i], Message(body))
        self.sites[i] = step[0]
        return step[1]

    def note(
        self, kind: EnvelopeKind, sender: int | None, receiver: int | None, body: bytes
    ) -> bytes:
        """Pack a message, and keep it unless the same was sent to another site."""
        key, position = (self.boss, COORDINATOR) if sender is None else (self.keys[sender], sender)
        frame = pack(kind, self.terms, self.request.number, position, body, key)
        about = {"kind": kind.name, "round": self.request.number}
        about |= {"from": "coordinator"} if sender is None else {"from": f"site {sender}"}
        if kind is EnvelopeKind.INBOX:
            about["to"] = f"site {receiver}"
        found = about | {"frame": frame.hex()}
        if found not in self.messages:
            self.messages.append(found)
        return frame


def vectors() -> dict[str, Any]:
    """All vectors, as plain data."""
    first = Round(1)
    second = Round(2, first.state.transcript)
    signature = sign_result(second.boss, STUDY, RESULT)
    digest = hashlib.sha256(RESULT).digest()
    second.note(EnvelopeKind.RESULT, None, None, signature + RESULT)
    receipts = [second.note(EnvelopeKind.RECEIVED, i, None, digest) for i in range(SITES - 1)]
    second.note(EnvelopeKind.RECEIPTS, None, None, b"".join(receipts))
    second.note(EnvelopeKind.CONFIRMED, 0, None, digest)
    second.note(EnvelopeKind.REFUSE, 0, None, write_refusal(Refusal.REPLAY))
    assert first.state.total is not None
    return {
        "study": STUDY.hex(),
        "sites": [
            {"name": m.name, "organisation": m.organisation, "key": m.key.hex(), "numbers": n}
            for m, n in zip(first.terms.members, NUMBERS.values(), strict=True)
        ],
        "coordinator": first.boss.public.hex(),
        "threshold": first.terms.threshold,
        "organisations": first.terms.organisations,
        "roster": first.terms.digest.hex(),
        "sum": to_ints(first.state.total),
        "messages": first.messages + second.messages,
    }


def main() -> None:
    found = vectors()
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
