"""One-message rounds, which need all sites: the site's side.

The sites agree on keys once. Each request then takes one answer per site, hidden under masks that
cancel in the sum over all these sites and in no other sum. Nothing is ever unmasked, so there are
no shares: if a site is missing, there is no sum.

With the keys, the sites tell each other what they remember of each other's ledgers. With each
answer a site states the head of its ledger, and the next request shows all of them to all sites.

A mask must never hide two different answers. Three measures ensure this: masks are bound to the
whole request; a site saves a request to disk before it computes, and answers the same request with
the same bytes; and it refuses another request with the same number.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, final

from isthmus.errors import LedgerError
from isthmus.joint.agreement.identity import (
    KEY,
    Agreement,
    Identity,
    Secret,
    Verifier,
    seal,
    unseal,
)
from isthmus.joint.agreement.identity import digest as hashed
from isthmus.joint.records.journal import Slot
from isthmus.joint.secure_sum import envelopes
from isthmus.joint.secure_sum.envelopes import (
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
)
from isthmus.joint.secure_sum.limbs import LimbAccumulator, to_bytes
from isthmus.joint.secure_sum.masks import RoundKeys, expand, sign_of
from isthmus.joint.secure_sum.release_gate import ReleaseGate
from isthmus.joint.secure_sum.terms import Terms

ONE_MESSAGE_FRAMES = frozenset(
    {EnvelopeKind.AGREE, EnvelopeKind.SETTLE, EnvelopeKind.MEMORIES, EnvelopeKind.SINGLE}
)


class RoundProgress(StrEnum):
    """How far a site has processed a request. The next request commits it."""

    NONE = "none"
    PREPARED = "prepared"
    SENT = "sent"


@final
@dataclass(frozen=True)
class _Saved:
    """State that a site keeps over a restart.

    `told` is what the site has told the others of their ledgers, sealed: each key is used once.
    `is_known` says that the others have told it the same, and that nothing is missing. `answered`
    is the last round that was answered with these keys.
    """

    number: int = 0
    members: frozenset[int] = frozenset()
    private: Secret = Secret(b"")
    publics: dict[int, bytes] = field(default_factory=dict)
    keys: bytes = b""
    pinned: int = 0
    request: bytes = b""
    progress: RoundProgress = RoundProgress.NONE
    sent: bytes = b""
    told: bytes = b""
    is_known: bool = False
    answered: int = 0
    state: bytes = b""

    def to_bytes(self) -> bytes:
        plain = {
            "number": self.number,
            "members": sorted(self.members),
            "private": self.private.reveal().hex(),
            "publics": {str(i): p.hex() for i, p in self.publics.items()},
            "keys": self.keys.hex(),
            "pinned": self.pinned,
            "request": self.request.hex(),
            "progress": self.progress.value,
            "sent": self.sent.hex(),
            "told": self.told.hex(),
            "is_known": self.is_known,
            "answered": self.answered,
        }
        head = json.dumps(plain, separators=(",", ":")).encode()
        return len(head).to_bytes(8, "little") + head + self.state

    @classmethod
    def read(cls, data: bytes) -> _Saved:
        end = 8 + int.from_bytes(data[:8], "little")
        plain: dict[str, Any] = json.loads(data[8:end])
        return cls(
            plain["number"],
            frozenset(plain["members"]),
            Secret(bytes.fromhex(plain["private"])),
            {int(i): bytes.fromhex(p) for i, p in plain["publics"].items()},
            bytes.fromhex(plain["keys"]),
            plain["pinned"],
            bytes.fromhex(plain["request"]),
            RoundProgress(plain["progress"]),
            bytes.fromhex(plain["sent"]),
            bytes.fromhex(plain["told"]),
            plain["is_known"],
            plain["answered"],
            data[end:],
        )


@final
class OneMessageSite:
    """A site in one-message rounds.

    Parameters
    ----------
    terms
        The sites, and how many of them must answer.
    identity, position
        The site's key, and its position in the roster.
    gate
        Decides what leaves the site.
    verifier
        Checks signatures.
    slot
        Keeps the state over a restart.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        position: int,
        gate: ReleaseGate,
        verifier: Verifier,
        slot: Slot,
    ) -> None:
        self._terms = terms
        self._identity = identity
        self._me = position
        self._gate = gate
        self._verifier = verifier
        self._slot = slot
        data = slot.read()
        self._saved = _Saved() if data is None else _Saved.read(data)
        self._shared: dict[int, Secret] = {}
        if self._saved.state:
            gate.restore(self._saved.state)

    @property
    def last(self) -> int:
        """The highest round in which a request was saved or a key was made."""
        return max(self._saved.number, self._saved.pinned)

    def answer(self, frame: Envelope) -> bytes:
        """Answer a frame of the coordinator, or raise `BrokenEnvelopeError`."""
        steps: dict[EnvelopeKind, Callable[[Envelope], bytes]] = {
            EnvelopeKind.AGREE: self._agree,
            EnvelopeKind.SETTLE: self._settle,
            EnvelopeKind.MEMORIES: self._hear,
            EnvelopeKind.SINGLE: self._single,
        }
        return steps[frame.kind](frame)

    def _agree(self, frame: Envelope) -> bytes:
        """Make a key for these sites, and save it."""
        if frame.round <= max(self._gate.last_round(), self.last):
            raise BrokenEnvelopeError(Refusal.REPLAY)
        members = envelopes.read_set(frame.body, len(self._terms.members))
        if self._me not in members:
            raise BrokenEnvelopeError(Refusal.BAD_ACTIVE_SET)
        if not self._terms.enough(members):
            raise BrokenEnvelopeError(Refusal.TOO_FEW)
        key = Agreement()
        self._gate.record_keys(frame.round, members)
        self._save(
            replace(
                self._saved,
                number=frame.round,
                members=members,
                private=key.secret(),
                publics={},
                keys=b"",
                told=b"",
                is_known=False,
                answered=0,
            )
        )
        context = envelopes.standing_context(self._terms, frame.round, members)
        body = Standing(context, key.public).body()
        return self._pack(EnvelopeKind.STANDING, frame.round, body)

    def _settle(self, frame: Envelope) -> bytes:
        """Check the keys of all sites, and save them."""
        saved = self._saved
        if not saved.number or frame.round != saved.number:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        keys = hashed(frame.body)
        if saved.keys and saved.keys != keys:
            raise BrokenEnvelopeError(Refusal.KEYS_CHANGED)
        context = envelopes.standing_context(self._terms, saved.number, saved.members)
        publics: dict[int, bytes] = {}
        for raw in envelopes.read_frames(frame.body, Standing.SIZE, len(self._terms.members)):
            sent = envelopes.opened(raw, self._terms, self._verifier)
            standing = Standing.read(sent)
            same = standing.context == context and sent.round == saved.number
            if not same or sent.sender in publics:
                raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, sent.sender)
            publics[sent.sender] = standing.mask
        if publics.get(self._me) != Agreement.from_secret(saved.private).public:
            raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, self._me)
        if publics.keys() != saved.members:
            raise BrokenEnvelopeError(Refusal.BAD_ACTIVE_SET)
        shared = self._secrets(saved.private, publics)
        told = saved.told or self._remembered(RoundKeys(context, keys), shared)
        self._save(replace(saved, publics=publics, keys=keys, told=told))
        return self._pack(EnvelopeKind.SETTLED, frame.round, keys + told)

    def _remembered(self, round_keys: RoundKeys, shared: dict[int, Secret]) -> bytes:
        """Return what this site knows of the ledger of each other site, for its eyes only."""
        return envelopes.write_entries(
            (
                j,
                seal(
                    round_keys.memory(secret, self._me, j),
                    self._gate.remembered(j),
                    round_keys.envelope(self._me, j),
                ),
            )
            for j, secret in shared.items()
        )

    def _hear(self, frame: Envelope) -> bytes:
        """Check that the ledger still has all entries that others remember."""
        saved = self._saved
        if not saved.keys or frame.round != saved.number:
            raise BrokenEnvelopeError(Refusal.REPLAY)
        stated, sealed = frame.body[: HeadStatement.SIZE], frame.body[HeadStatement.SIZE :]
        if stated != NO_STATEMENT:
            own = HeadStatement.read(stated, self._terms, self._me, self._verifier)
            self._gate.require_head(own.head)
        memories = envelopes.read_entries(sealed, envelopes.MEMORY, len(self._terms.members))
        if memories.keys() != saved.members - {self._me}:
            raise BrokenEnvelopeError(Refusal.BAD_ACTIVE_SET)
        context = envelopes.standing_context(self._terms, saved.number, saved.members)
        round_keys = RoundKeys(context, saved.keys)
        shared = self._shared or self._secrets(saved.private, saved.publics)
        for j, memory in memories.items():
            key = round_keys.memory(shared[j], j, self._me)
            head = unseal(key, memory, round_keys.envelope(j, self._me))
            if head is None:
                raise BrokenEnvelopeError(Refusal.BAD_SHARES, j)
            self._gate.require_head(head, j)
        self._save(replace(saved, is_known=True))
        return self._pack(EnvelopeKind.REMEMBERED, frame.round, saved.keys)

    def _secrets(self, private: Secret, publics: dict[int, bytes]) -> dict[int, Secret]:
        """Return the secret that this site shares with each other site."""
        mine = Agreement.from_secret(private)
        secrets = {}
        for j, public in publics.items():
            if j != self._me:
                try:
                    secrets[j] = mine.shared(public)
                except ValueError:  # a key of small order
                    raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, j) from None
        self._shared = secrets
        return secrets

    def _single(self, frame: Envelope) -> bytes:
        """Answer a request; the same request gets the same bytes."""
        saved, request = self._saved, hashed(frame.body)
        if not saved.is_known or frame.body[:KEY] != saved.keys:
            raise BrokenEnvelopeError(Refusal.NO_KEYS)
        heads, question = split_heads(frame.body[KEY:], len(self._terms.members))
        opening = RoundRequest.read(frame.round, question)
        again = bool(saved.pinned) and frame.round == saved.pinned
        if again and saved.request != request:
            raise BrokenEnvelopeError(Refusal.TWO_OPENINGS)
        if again and saved.progress is RoundProgress.SENT:
            self._gate.record_again(frame.round)
            return saved.sent
        if not again and frame.round <= max(self._gate.last_round(), self.last):
            raise BrokenEnvelopeError(Refusal.REPLAY)
        self._witness(heads)
        if not again:
            # Whatever happens next, even a crash: no other request gets a mask of this number.
            self._save(
                replace(
                    saved,
                    pinned=frame.round,
                    request=request,
                    progress=RoundProgress.PREPARED,
                    sent=b"",
                )
            )
        values = self._gate.answer(opening)
        if values.shape != (opening.size, opening.limbs):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
        context = envelopes.single_context(self._terms, opening, heads)
        total = LimbAccumulator(opening.size, opening.limbs)
        total.add(values)
        round_keys = RoundKeys(context, saved.keys)
        shared = self._shared or self._secrets(saved.private, saved.publics)
        for j, secret in shared.items():
            key = round_keys.standing_mask(secret, self._me, j)
            total.add(expand(key, opening), sign_of(self._me, j))
        self._gate.record(EnvelopeKind.SUMMAND, opening, saved.members)
        head = self._gate.head()  # of the entry about this answer
        stated = HeadStatement.sign(self._identity, self._terms, frame.round, head)
        body = context + to_bytes(total.total()) + stated.body()
        answer = self._pack(EnvelopeKind.SUMMAND, frame.round, body)
        sent = replace(
            self._saved,
            progress=RoundProgress.SENT,
            sent=answer,
            answered=frame.round,
            state=self._gate.state(),
        )
        try:
            self._save(sent)
        except BrokenEnvelopeError:
            self._gate.restore(self._saved.state)  # as after a restart
            raise
        return answer

    def _witness(self, heads: bytes) -> None:
        """Take what all sites said about their ledgers in the round before.

        The coordinator has it from every site, because there was no sum otherwise. The first round
        after an agreement on keys follows on what the sites told each other then.
        """
        members = self._saved.members if self._saved.answered else frozenset()
        given = envelopes.read_entries(heads, HeadStatement.SIZE, len(self._terms.members))
        if given.keys() != members:
            raise BrokenEnvelopeError(Refusal.WITNESS)
        known: dict[int, bytes] = {}
        for j, data in given.items():
            stated = HeadStatement.read(data, self._terms, j, self._verifier)
            if stated.number != self._saved.answered:
                raise BrokenEnvelopeError(Refusal.WITNESS, j)
            known[j] = stated.head
        if known:
            self._gate.require_head(known.pop(self._me))
        self._gate.witness(known)

    def _save(self, saved: _Saved) -> None:
        try:
            self._slot.write(saved.to_bytes())
        except LedgerError:
            raise BrokenEnvelopeError(Refusal.LEDGER) from None
        self._saved = saved

    def _pack(self, kind: EnvelopeKind, number: int, body: bytes) -> bytes:
        return envelopes.pack(kind, self._terms, number, self._me, body, self._identity)
