"""Sums of one message each, for rounds that need all sites: the site's side.

Keys are agreed on once. Then a question brings one answer, hidden under masks that cancel in the
sum over all these sites and in no other. Nothing is ever unmasked, so there are no shares: when a
site is missing, there is no sum.

A mask must not hide two different answers. Three things see to that: masks are bound to the
whole question; a site pins a question on its disk before it computes, and answers the same
question with the same bytes; and it refuses another question of the same number.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, final

from isthmus.errors import LedgerError
from isthmus.parties.agreement.roster import Terms
from isthmus.parties.identity import (
    KEY,
    Agreement,
    Identity,
    Secret,
    Verifier,
)
from isthmus.parties.identity import digest as hashed
from isthmus.parties.records.journal import Slot
from isthmus.sources.horizontal.secure_sum import frames
from isthmus.sources.horizontal.secure_sum.frames import (
    BrokenFrameError,
    Frame,
    FrameKind,
    Opening,
    Refusal,
    Standing,
)
from isthmus.sources.horizontal.secure_sum.keeper import Keeper
from isthmus.sources.horizontal.secure_sum.masks import Bound, expand, sign_of
from isthmus.sources.horizontal.secure_sum.words import Accumulator, to_bytes

SINGLES = frozenset({FrameKind.AGREE, FrameKind.SETTLE, FrameKind.SINGLE})


class Progress(StrEnum):
    """How far a site is with a question. It is committed when the next one comes."""

    NONE = "none"
    PREPARED = "prepared"
    SENT = "sent"


@final
@dataclass(frozen=True)
class _Held:
    """What a site must not forget."""

    number: int = 0
    members: frozenset[int] = frozenset()
    private: Secret = Secret(b"")
    publics: dict[int, bytes] = field(default_factory=dict)
    keys: bytes = b""
    pinned: int = 0
    question: bytes = b""
    progress: Progress = Progress.NONE
    sent: bytes = b""
    state: bytes = b""

    def to_bytes(self) -> bytes:
        plain = {
            "number": self.number,
            "members": sorted(self.members),
            "private": self.private.reveal().hex(),
            "publics": {str(i): p.hex() for i, p in self.publics.items()},
            "keys": self.keys.hex(),
            "pinned": self.pinned,
            "question": self.question.hex(),
            "progress": self.progress.value,
            "sent": self.sent.hex(),
        }
        head = json.dumps(plain, separators=(",", ":")).encode()
        return len(head).to_bytes(8, "little") + head + self.state

    @classmethod
    def read(cls, data: bytes) -> _Held:
        end = 8 + int.from_bytes(data[:8], "little")
        plain: dict[str, Any] = json.loads(data[8:end])
        return cls(
            plain["number"],
            frozenset(plain["members"]),
            Secret(bytes.fromhex(plain["private"])),
            {int(i): bytes.fromhex(p) for i, p in plain["publics"].items()},
            bytes.fromhex(plain["keys"]),
            plain["pinned"],
            bytes.fromhex(plain["question"]),
            Progress(plain["progress"]),
            bytes.fromhex(plain["sent"]),
            data[end:],
        )


@final
class Singles:
    """A site's part in sums of one message each.

    Parameters
    ----------
    terms
        What was agreed on.
    identity, position
        The site's key, and its place in the roster.
    keeper
        Who decides what leaves.
    verifier
        Checks signatures.
    slot
        Where all of this is kept.
    """

    def __init__(
        self,
        terms: Terms,
        identity: Identity,
        position: int,
        keeper: Keeper,
        verifier: Verifier,
        slot: Slot,
    ) -> None:
        self._terms = terms
        self._identity = identity
        self._me = position
        self._keeper = keeper
        self._verifier = verifier
        self._slot = slot
        kept = slot.read()
        self._held = _Held() if kept is None else _Held.read(kept)
        self._shared: dict[int, Secret] = {}
        if self._held.state:
            keeper.restore(self._held.state)

    @property
    def last(self) -> int:
        """The highest number that was pinned or agreed on."""
        return max(self._held.number, self._held.pinned)

    def answer(self, frame: Frame) -> bytes:
        """Answer a frame of the coordinator, or raise `BrokenFrameError`."""
        steps: dict[FrameKind, Callable[[Frame], bytes]] = {
            FrameKind.AGREE: self._agree,
            FrameKind.SETTLE: self._settle,
            FrameKind.SINGLE: self._single,
        }
        return steps[frame.kind](frame)

    def _agree(self, frame: Frame) -> bytes:
        """Make a key for these sites, and keep it."""
        if frame.round <= max(self._keeper.last_round(), self.last):
            raise BrokenFrameError(Refusal.REPLAY)
        members = frames.read_set(frame.body, len(self._terms.members))
        if self._me not in members:
            raise BrokenFrameError(Refusal.BAD_ACTIVE_SET)
        if not self._terms.enough(members):
            raise BrokenFrameError(Refusal.TOO_FEW)
        key = Agreement()
        self._keeper.record_keys(frame.round, members)
        self._keep(
            replace(
                self._held,
                number=frame.round,
                members=members,
                private=key.secret(),
                publics={},
                keys=b"",
            )
        )
        context = frames.standing_context(self._terms, frame.round, members)
        body = Standing(context, key.public).body()
        return self._pack(FrameKind.STANDING, frame.round, body)

    def _settle(self, frame: Frame) -> bytes:
        """Check the keys of all, and pin them."""
        held = self._held
        if not held.number or frame.round != held.number:
            raise BrokenFrameError(Refusal.REPLAY)
        keys = hashed(frame.body)
        if held.keys and held.keys != keys:
            raise BrokenFrameError(Refusal.KEYS_CHANGED)
        context = frames.standing_context(self._terms, held.number, held.members)
        publics: dict[int, bytes] = {}
        for raw in frames.read_frames(frame.body, Standing.SIZE, len(self._terms.members)):
            sent = frames.opened(raw, self._terms, self._verifier)
            found = Standing.read(sent)
            same = found.context == context and sent.round == held.number
            if not same or sent.sender in publics:
                raise BrokenFrameError(Refusal.KEYS_CHANGED, sent.sender)
            publics[sent.sender] = found.mask
        if publics.get(self._me) != Agreement.from_secret(held.private).public:
            raise BrokenFrameError(Refusal.KEYS_CHANGED, self._me)
        if publics.keys() != held.members:
            raise BrokenFrameError(Refusal.BAD_ACTIVE_SET)
        self._secrets(held.private, publics)
        self._keep(replace(held, publics=publics, keys=keys))
        return self._pack(FrameKind.SETTLED, frame.round, keys)

    def _secrets(self, private: Secret, publics: dict[int, bytes]) -> dict[int, Secret]:
        """What this site shares with each other one."""
        mine = Agreement.from_secret(private)
        found = {}
        for j, public in publics.items():
            if j != self._me:
                try:
                    found[j] = mine.shared(public)
                except ValueError:  # a key of small order
                    raise BrokenFrameError(Refusal.KEYS_CHANGED, j) from None
        self._shared = found
        return found

    def _single(self, frame: Frame) -> bytes:
        """Answer a question; the same one with the same bytes."""
        held, question = self._held, hashed(frame.body)
        if not held.keys or frame.body[:KEY] != held.keys:
            raise BrokenFrameError(Refusal.NO_KEYS)
        opening = Opening.read(frame.round, frame.body[KEY:])
        again = bool(held.pinned) and frame.round == held.pinned
        if again and held.question != question:
            raise BrokenFrameError(Refusal.TWO_OPENINGS)
        if again and held.progress is Progress.SENT:
            self._keeper.record_again(frame.round)
            return held.sent
        if not again:
            if frame.round <= max(self._keeper.last_round(), self.last):
                raise BrokenFrameError(Refusal.REPLAY)
            # Whatever follows, and whatever is lost with a crash: no other question gets a mask
            # of this number.
            self._keep(
                replace(
                    held,
                    pinned=frame.round,
                    question=question,
                    progress=Progress.PREPARED,
                    sent=b"",
                )
            )
        values = self._keeper.answer(opening)
        if values.shape != (opening.size, opening.limbs):
            raise BrokenFrameError(Refusal.BAD_REQUEST)
        context = frames.single_context(self._terms, opening)
        total = Accumulator(opening.size, opening.limbs)
        total.add(values)
        bound = Bound(context, held.keys)
        shared = self._shared or self._secrets(held.private, held.publics)
        for j, secret in shared.items():
            key = bound.standing_mask(secret, self._me, j)
            total.add(expand(key, opening.size, opening.limbs), sign_of(self._me, j))
        self._keeper.record(FrameKind.SUMMAND, opening, held.members)
        body = context + to_bytes(total.total())
        answer = self._pack(FrameKind.SUMMAND, frame.round, body)
        state = self._keeper.state()
        self._keep(replace(self._held, progress=Progress.SENT, sent=answer, state=state))
        return answer

    def _keep(self, held: _Held) -> None:
        try:
            self._slot.write(held.to_bytes())
        except LedgerError:
            raise BrokenFrameError(Refusal.LEDGER) from None
        self._held = held

    def _pack(self, kind: FrameKind, number: int, body: bytes) -> bytes:
        return frames.pack(kind, self._terms, number, self._me, body, self._identity)
