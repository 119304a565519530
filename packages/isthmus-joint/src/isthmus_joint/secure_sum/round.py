"""One round of a secure sum: five exchanges, in this order.

| | the coordinator | a site |
| --- | --- | --- |
| 1 | `ask`: the request | `advertise`: new public keys |
| 2 | `show_keys`: the keys of all sites | `share`: encrypted shares of its secrets |
| 3 | `pass_shares`: the shares for this site | `mask`: its masked numbers |
| 4 | `name_active`: the sites that answered | `consent`: its signature on them |
| 5 | `ask_shares`: the signatures | `reveal`: one share per site |
| | `finish`: the sum | |

Every function takes a state and the bodies of messages, and returns the next state, the bodies to
be sent, and what must be written down before they are. It changes nothing, draws no random numbers,
and signs nothing: `site.py` and `coordinator.py` do. The bytes are specified in the reference
("Messages of a secure sum").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypeAlias, final

import numpy as np

from isthmus_joint.agreement.identity import KEY, Agreement, Secret, Verifier, derive, seal, unseal
from isthmus_joint.records.ledger_entries import signed_bytes
from isthmus_joint.secure_sum import envelopes, shamir
from isthmus_joint.secure_sum.envelopes import (
    HEAD,
    SHARE,
    Advert,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus_joint.secure_sum.masks import RoundKeys, add_mask, commitment, sign_of
from isthmus_joint.secure_sum.protocol import PublicRound, is_masked, unmask
from isthmus_joint.secure_sum.terms import LimbAccumulator, LimbArray, Terms, from_bytes, to_bytes

# --- The gate through which everything leaves a site, as the protocol sees it -------------------


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


# --- One round of a secure sum: five exchanges, in this order -----------------------------------

Heads: TypeAlias = Mapping[int, bytes]
"""Heads of ledgers by position: that of the site, and those of others as far as it remembers."""

NO_HEAD = bytes(HEAD)


@final
@dataclass(frozen=True)
class RoundSecrets:
    """The random numbers of a site in one round; all else follows from them.

    Attributes
    ----------
    channel, mask
        The private keys for encrypted shares, and for the masks between two sites.
    seed
        The seed of the site's own mask.
    polynomials
        The key of the coefficients of shares.
    """

    channel: Secret
    mask: Secret
    seed: Secret
    polynomials: Secret

    @classmethod
    def fresh(cls) -> RoundSecrets:
        """Draw them from the operating system."""
        return cls(*(Secret.fresh() for _ in range(4)))


@final
@dataclass(frozen=True)
class Message:
    """The body of a message to a site, and what the site knows of ledgers when it arrives."""

    body: bytes
    heads: Heads = field(default_factory=dict)


@final
@dataclass(frozen=True)
class SiteRound:
    """What a site knows in a round. The attributes from `public` on are filled step by step.

    Attributes
    ----------
    terms, me, verifier
        The sites, the position of this one, and what checks signatures.
    secrets, advert
        Its random numbers, and the public keys that follow from them.
    awaits
        The kind of message that comes next; ``None`` after the last one.
    public
        The public part of the round. The sites that share are known after exchange 3.
    inward
        Keys of the encrypted shares from other sites.
    shares
        The shares of each site's seed and mask key that this site holds.
    masked
        Hash of its masked numbers.
    active, agreed
        The sites that the sum is over, and what they sign.
    """

    terms: Terms
    me: int
    verifier: Verifier
    request: RoundRequest
    values: LimbArray
    secrets: RoundSecrets
    advert: Advert
    awaits: EnvelopeKind | None
    public: PublicRound
    inward: Mapping[int, Secret] = field(default_factory=dict)
    shares: Mapping[int, Secret] = field(default_factory=dict)
    masked: bytes = b""
    active: frozenset[int] = frozenset()
    agreed: bytes = b""


@final
@dataclass(frozen=True)
class CoordinatorRound:
    """What the coordinator knows in a round.

    Attributes
    ----------
    asked
        Positions of the sites that are asked next.
    is_complete
        Whether the sum must be over all sites that are asked first.
    keeps_transcript
        Whether a later request follows from the sum.
    awaits
        The kind of answer that comes next; ``None`` after the last one.
    masked
        Hash of the masked numbers of each active site.
    total
        The sum of the masked numbers, and after the last exchange the sum itself.
    transcript
        The frames from which everybody can compute the sum.
    """

    terms: Terms
    request: RoundRequest
    asked: frozenset[int]
    is_complete: bool
    keeps_transcript: bool
    awaits: EnvelopeKind | None
    public: PublicRound
    masked: Mapping[int, bytes] = field(default_factory=dict)
    total: LimbArray | None = None
    transcript: bytes = b""

    @property
    def active(self) -> frozenset[int]:
        """Positions of the sites whose numbers are in the sum."""
        return frozenset(self.masked)


SiteStep: TypeAlias = tuple[SiteRound, bytes, Leaving]
"""The next state, the body of the answer, and what must be written down before it leaves."""

CoordinatorStep: TypeAlias = tuple[CoordinatorRound, Mapping[int, bytes], frozenset[int] | None]
"""The next state, a body for each site, and the active set that must be written down before."""


# --- exchange 1: the request, and new keys ----------------------------------------------------


def ask(
    terms: Terms,
    request: RoundRequest,
    asked: frozenset[int],
    *,
    is_complete: bool = False,
    keeps_transcript: bool = False,
) -> CoordinatorStep:
    """Send the request to all sites."""
    public = _opened(terms, request)
    awaits = EnvelopeKind.ADVERT
    state = CoordinatorRound(terms, request, asked, is_complete, keeps_transcript, awaits, public)
    return state, dict.fromkeys(asked, request.body()), None


def advertise(
    place: tuple[Terms, int, Verifier],
    request: RoundRequest,
    values: LimbArray,
    secrets: RoundSecrets,
    heads: Heads,
) -> SiteStep:
    """Send new public keys, a commitment to the seed, and the head of the ledger."""
    terms, me, verifier = place
    public = _opened(terms, request)
    advert = Advert(
        public.context,
        Agreement.from_secret(secrets.channel).public,
        Agreement.from_secret(secrets.mask).public,
        commitment(secrets.seed, me, public.context),
        heads.get(me, NO_HEAD),
    )
    awaits = EnvelopeKind.KEYS
    state = SiteRound(terms, me, verifier, request, values, secrets, advert, awaits, public)
    return state, advert.body(), Leaving(EnvelopeKind.ADVERT, request)


def _opened(terms: Terms, request: RoundRequest) -> PublicRound:
    context = request.context(terms)
    return PublicRound(request.number, request.size, request.limbs, context, b"", frozenset())


# --- exchange 2: the keys of all sites, and shares --------------------------------------------


def show_keys(state: CoordinatorRound, answers: Mapping[int, Envelope]) -> CoordinatorStep:
    """Send the keys of all sites to all sites, as they were signed."""
    body = _joined(answers)
    public = replace(state.public, adverts=body)
    state = replace(state, public=public, asked=frozenset(answers), awaits=EnvelopeKind.SHARES)
    return state, dict.fromkeys(answers, body), None


def share(state: SiteRound, message: Message) -> SiteStep:
    """Check the keys of all sites, and send each of them a share of both secrets."""
    peers = _read_adverts(state, message.body)
    public = replace(state.public, adverts=message.body)
    shares = _split(state)
    channel = Agreement.from_secret(state.secrets.channel)
    sealed, inward = [], {}
    for j, advert in peers.items():
        if j == state.me:
            continue
        try:
            outward, inward[j] = public.keys.channels(channel, state.me, advert.channel, j)
        except ValueError:  # a key of small order
            raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, j) from None
        told = shares[j].tobytes() + message.heads.get(j, NO_HEAD)
        sealed.append((j, seal(outward, told, public.keys.envelope(state.me, j))))
    own = {state.me: Secret(shares[state.me].tobytes())}
    answer = public.keys.keys + envelopes.write_entries(sealed)
    awaits = EnvelopeKind.INBOX
    state = replace(state, public=public, inward=inward, shares=own, awaits=awaits)
    return state, answer, Leaving(EnvelopeKind.SHARES, state.request)


def _read_adverts(state: SiteRound, body: bytes) -> dict[int, Advert]:
    terms, peers = state.terms, dict[int, Advert]()
    for raw in envelopes.read_frames(body, Advert.SIZE, len(terms.members)):
        sent = envelopes.opened(raw, terms, state.verifier)
        advert = Advert.read(sent)
        same = advert.context == state.advert.context and sent.round == state.request.number
        if not same or sent.sender in peers:
            raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, sent.sender)
        _require_signed(state, sent.sender, advert.head)
        peers[sent.sender] = advert
    if peers.get(state.me) != state.advert:
        raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, state.me)
    if not terms.enough(frozenset(peers)):
        raise BrokenEnvelopeError(Refusal.TOO_FEW)
    return peers


def _split(state: SiteRound) -> shamir.Shares:
    """Return both shares of each site, one behind the other."""
    threshold, sites = state.terms.threshold, len(state.terms.members)
    parts = []
    for purpose, secret in ((b"seed", state.secrets.seed), (b"mask", state.secrets.mask)):
        key = derive(state.secrets.polynomials, state.public.context, b"isthmus shares " + purpose)
        parts.append(shamir.split(secret.reveal(), threshold, sites, key))
    return np.concatenate(parts, axis=1).astype("<u4")


# --- exchange 3: shares, and masked numbers ---------------------------------------------------


def pass_shares(state: CoordinatorRound, answers: Mapping[int, Envelope]) -> CoordinatorStep:
    """Give each site the shares that the others made for it."""
    boxes: dict[int, list[tuple[int, bytes]]] = {i: [] for i in answers}
    for sender, frame in answers.items():
        sites = len(state.terms.members)
        entries = envelopes.read_entries(frame.body[KEY:], envelopes.SEALED, sites)
        for receiver in boxes.keys() & entries.keys():
            boxes[receiver].append((sender, entries[receiver]))
    sharing = frozenset(answers)
    public = replace(state.public, sharing=sharing)
    state = replace(state, public=public, asked=sharing, awaits=EnvelopeKind.MASKED)
    return state, {i: envelopes.write_entries(box) for i, box in boxes.items()}, None


def mask(state: SiteRound, message: Message) -> SiteStep:
    """Keep the shares of the other sites, and send the masked numbers."""
    inbox = envelopes.read_entries(message.body, envelopes.SEALED, len(state.terms.members))
    if not inbox.keys() <= state.inward.keys():
        raise BrokenEnvelopeError(Refusal.BAD_SHARES)
    public = replace(state.public, sharing=frozenset(inbox) | {state.me})
    if not state.terms.enough(public.sharing):
        raise BrokenEnvelopeError(Refusal.TOO_FEW)
    shares, told = dict(state.shares), {}
    for j, sealed in inbox.items():
        opened = unseal(state.inward[j], sealed, public.keys.envelope(j, state.me))
        if opened is None:
            raise BrokenEnvelopeError(Refusal.BAD_SHARES, j)
        shares[j] = Secret(opened[: 2 * SHARE])
        # What another site remembers counts only with this site's own signature. Otherwise it could
        # make up an entry, and nobody would let this site take part any more.
        if _is_signed(state, state.me, opened[2 * SHARE :]):
            told[j] = opened[2 * SHARE :]
    answer = public.context + to_bytes(_masked(state, public.keys, inbox.keys(), public.peers))
    seen = {j: a.head for j, a in public.peers.items() if j != state.me and a.head != NO_HEAD}
    leaving = Leaving(EnvelopeKind.MASKED, state.request, public, seen=seen, told=told)
    state = replace(
        state,
        public=public,
        values=state.values[:0],
        inward={},
        shares=shares,
        masked=sha256(answer).digest(),
        awaits=EnvelopeKind.ACTIVE,
    )
    return state, answer, leaving


def _masked(
    state: SiteRound, keys: RoundKeys, others: Iterable[int], peers: Mapping[int, Advert]
) -> LimbArray:
    """Add the own mask, and for each pair add or subtract the mask of the pair."""
    total = LimbAccumulator(state.request.size, state.request.limbs)
    total.add(state.values)
    add_mask(total, keys.self_mask(state.secrets.seed, state.me), state.request)
    mine = Agreement.from_secret(state.secrets.mask)
    for j in others:
        try:
            key = keys.pair_mask(mine, state.me, peers[j].mask, j)
        except ValueError:  # a key of small order
            raise BrokenEnvelopeError(Refusal.KEYS_CHANGED, j) from None
        add_mask(total, key, state.request, sign_of(state.me, j))
    return total.total()


# --- exchange 4: the active set, and consent --------------------------------------------------


def name_active(state: CoordinatorRound, answers: Mapping[int, Envelope]) -> CoordinatorStep:
    """Name the sites that sent masked numbers, with the hash of what each of them sent."""
    total = LimbAccumulator(state.request.size, state.request.limbs)
    for frame in answers.values():
        total.add(from_bytes(frame.body[KEY:], state.request.limbs))
    masked = {i: sha256(frame.body).digest() for i, frame in answers.items()}
    state = replace(
        state,
        asked=frozenset(answers),
        masked=masked,
        total=total.total(),
        transcript=_joined(answers) if state.keeps_transcript else b"",
        awaits=EnvelopeKind.CONSENT,
    )
    return state, dict.fromkeys(answers, envelopes.write_entries(masked.items())), None


def consent(state: SiteRound, message: Message) -> SiteStep:
    """Sign the only active set that this site will unmask in this round."""
    masked = envelopes.read_entries(message.body, KEY, len(state.terms.members))
    active = frozenset(masked)
    if masked.get(state.me) != state.masked or not active <= state.public.sharing:
        raise BrokenEnvelopeError(Refusal.BAD_ACTIVE_SET)
    if not state.terms.enough(active):
        raise BrokenEnvelopeError(Refusal.TOO_FEW)
    agreed = state.public.agreed(masked)
    state = replace(state, active=active, agreed=agreed, awaits=EnvelopeKind.UNMASK)
    leaving = Leaving(EnvelopeKind.CONSENT, state.request, active=state.active)
    return state, agreed + message.heads.get(state.me, NO_HEAD), leaving


# --- exchange 5: consents, and the shares that unmask the sum ---------------------------------


def ask_shares(state: CoordinatorRound, answers: Mapping[int, Envelope]) -> CoordinatorStep:
    """Show the consents to all sites. The active set must be written down before.

    A site that has answered never gives shares for another set. So a coordinator that forgets the
    set could not ask the sites for anything any more.
    """
    body = _joined(answers)
    state = replace(
        state,
        asked=frozenset(answers),
        transcript=state.transcript + body if state.keeps_transcript else b"",
        awaits=EnvelopeKind.REVEAL,
    )
    return state, dict.fromkeys(answers, body), state.active


def reveal(state: SiteRound, message: Message) -> SiteStep:
    """Send one share per site: of its own mask if it is active, else of its mask key.

    The signed active set decides which of the two; nobody can request the other.
    """
    terms, known = state.terms, dict[int, bytes]()
    for raw in envelopes.read_frames(message.body, KEY + HEAD, len(terms.members)):
        sent = envelopes.opened(raw, terms, state.verifier)
        right = sent.kind is EnvelopeKind.CONSENT and sent.round == state.request.number
        if not right or sent.body[:KEY] != state.agreed or sent.sender not in state.active:
            raise BrokenEnvelopeError(Refusal.NO_CONSENT, sent.sender)
        _require_signed(state, sent.sender, sent.body[KEY:])
        known[sent.sender] = sent.body[KEY:]
    if len(known) < terms.threshold:
        raise BrokenEnvelopeError(Refusal.NO_CONSENT)
    entries = []
    for j, shares in state.shares.items():
        start = 0 if j in state.active else SHARE
        entries.append((j, shares.reveal()[start : start + SHARE]))
    others = {j: head for j, head in known.items() if j != state.me and head != NO_HEAD}
    leaving = Leaving(EnvelopeKind.REVEAL, state.request, active=state.active, heads=others)
    return replace(state, awaits=None, shares={}), envelopes.write_entries(entries), leaving


def finish(state: CoordinatorRound, answers: Mapping[int, Envelope]) -> CoordinatorStep:
    """Remove the masks of the sum."""
    assert state.total is not None
    chosen = {i: answers[i] for i in sorted(answers)[: state.terms.threshold]}
    reveals = {i: frame.body for i, frame in chosen.items()}
    total = unmask(state.public, state.total, state.active, reveals, state.terms)
    transcript = state.transcript + _joined(chosen) if state.keeps_transcript else b""
    done = replace(state, asked=frozenset(), total=total, transcript=transcript, awaits=None)
    return done, {}, None


# --- which step comes next --------------------------------------------------------------------

SITE_STEPS: dict[EnvelopeKind, Callable[[SiteRound, Message], SiteStep]] = {
    EnvelopeKind.KEYS: share,
    EnvelopeKind.INBOX: mask,
    EnvelopeKind.ACTIVE: consent,
    EnvelopeKind.UNMASK: reveal,
}
"""The step of a site by the message that it answers; `advertise` answers ``OPEN``."""

COORDINATOR_STEPS: dict[
    EnvelopeKind, Callable[[CoordinatorRound, Mapping[int, Envelope]], CoordinatorStep]
] = {
    EnvelopeKind.ADVERT: show_keys,
    EnvelopeKind.SHARES: pass_shares,
    EnvelopeKind.MASKED: name_active,
    EnvelopeKind.CONSENT: ask_shares,
    EnvelopeKind.REVEAL: finish,
}
"""The step of the coordinator by the answers that it continues with; `ask` comes first."""

QUESTIONS = {
    EnvelopeKind.ADVERT: EnvelopeKind.OPEN,
    EnvelopeKind.SHARES: EnvelopeKind.KEYS,
    EnvelopeKind.MASKED: EnvelopeKind.INBOX,
    EnvelopeKind.CONSENT: EnvelopeKind.ACTIVE,
    EnvelopeKind.REVEAL: EnvelopeKind.UNMASK,
}
"""The message that each answer belongs to."""


def is_answer(state: CoordinatorRound, frame: Envelope) -> bool:
    """Return whether a frame answers what the coordinator sent last."""
    body, sites = frame.body, len(state.terms.members)
    if frame.kind is EnvelopeKind.ADVERT:
        return Advert.read(frame).context == state.public.context
    if frame.kind is EnvelopeKind.SHARES:
        entries = envelopes.read_entries(body[KEY:], envelopes.SEALED, sites)
        others = state.asked - {frame.sender}
        return body[:KEY] == state.public.keys.keys and entries.keys() == others
    if frame.kind is EnvelopeKind.MASKED:
        return is_masked(frame, state.request, state.public.context)
    if frame.kind is EnvelopeKind.CONSENT:  # behind it is the last entry of the site's ledger
        return len(body) == KEY + HEAD and body[:KEY] == state.public.agreed(state.masked)
    return envelopes.read_entries(body, SHARE, sites).keys() == state.public.sharing


def _joined(answers: Mapping[int, Envelope]) -> bytes:
    return b"".join(frame.raw for _, frame in sorted(answers.items()))


def _is_signed(state: SiteRound, position: int, head: bytes) -> bool:
    """Return whether the owner of a ledger has signed the entry of a head."""
    key, entry = state.terms.members[position].key, signed_bytes(head[:KEY].hex())
    return head != NO_HEAD and state.verifier.verify(key, head[KEY:], entry)


def _require_signed(state: SiteRound, position: int, head: bytes) -> None:
    if head != NO_HEAD and not _is_signed(state, position, head):
        raise BrokenEnvelopeError(Refusal.BAD_SIGNATURE, position)
