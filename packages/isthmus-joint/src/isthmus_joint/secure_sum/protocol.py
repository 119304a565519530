"""Secure sums as the protocol of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np

from isthmus.errors import StudyError
from isthmus.options import require_integer
from isthmus_joint.agreement.identity import KEY, Agreement, Secret, Verifier
from isthmus_joint.agreement.identity import digest as hashed
from isthmus_joint.agreement.protocol import Protocol
from isthmus_joint.agreement.roster import Member, Roster
from isthmus_joint.agreement.toml import Least
from isthmus_joint.noise.accounting import DifferentialPrivacy
from isthmus_joint.records.journal import Event
from isthmus_joint.secure_sum import envelopes, shamir
from isthmus_joint.secure_sum.envelopes import (
    Advert,
    BrokenEnvelopeError,
    Envelope,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus_joint.secure_sum.masks import RoundKeys, add_mask, commitment, sign_of
from isthmus_joint.secure_sum.terms import (
    FEWEST,
    LIMB,
    LimbAccumulator,
    LimbArray,
    Terms,
    default_threshold,
    from_bytes,
    problems,
)
from isthmus_joint.transport.certificates import FINGERPRINT

NAME = "secure sums"
LARGEST_TOTAL = 2**62
"""Rows of all sites together. Beyond this, sums of 128 bits leave too few digits for fractions."""

WITH_NOISE = ("counts", "moments")
"""Names of the requests whose answers can have noise."""

OPENED = Event("opened", opens_round=True)
SENT = Event("sent", sends_statistic=True)
UNMASKED = Event("unmasked", reveals_result=True)
RESULT = Event("result")
"""The coordinator has sent the result of the study."""

CONFIRMED = Event("confirmed")
"""Other sites have signed that they got the same result."""


@final
@dataclass(frozen=True)
class SecureSums(Protocol):
    """Secure sums: only totals over all sites are revealed (Bonawitz et al. 2017).

    Parameters
    ----------
    threshold
        How many sites must answer at every stage. By default more than two thirds, and more if
        one organisation operates many sites; at least three and more than half.
    organisations
        How many organisations must be behind every sum; at least three.
    rows
        The largest number of rows that a site may have.
    certificates
        SHA-256 of the certificate of each site, in the order of the study, for connections over a
        network: ``"sha256:"`` and 64 digits. Empty if the sites are reached in another way.
    coordinator_certificate
        The same for the coordinator.
    """

    threshold: int = 0
    organisations: Annotated[int, Least(FEWEST)] = FEWEST
    rows: Annotated[int, Least(1)] = 2**24
    certificates: tuple[str, ...] = ()
    coordinator_certificate: str = ""

    name: ClassVar[str] = NAME
    minimum_parties: ClassVar[int] = FEWEST
    results_add_up: ClassVar[bool] = True
    optional: ClassVar[tuple[str, ...]] = ("threshold", "certificates", "coordinator_certificate")
    events: ClassVar[tuple[Event, ...]] = (*(OPENED, SENT, UNMASKED, RESULT, CONFIRMED),)
    requests: ClassVar[tuple[str, ...]] = (
        *("consensus", "counts", "expectation", "features", "moments", "networks"),
    )

    def __post_init__(self) -> None:
        require_integer(self, "threshold", least=0)
        require_integer(self, "organisations", least=0)
        require_integer(self, "rows", least=0)

    def fitted(self, members: Sequence[Member]) -> Self:
        return replace(self, threshold=self.threshold or default_threshold(members))

    def problems(self, roster: Roster) -> list[str]:
        threshold = self.threshold or default_threshold(roster.members)
        broken = problems(roster, threshold, self.organisations)
        if self.rows < 1 or self.rows * len(roster) >= LARGEST_TOTAL:
            broken.append(
                f"rows is {self.rows} with {len(roster)} sites, which is too many to be summed; "
                "state the largest number of rows that a site can have"
            )
        return broken + self._broken_pins(len(roster))

    def _broken_pins(self, sites: int) -> list[str]:
        pins = [self.coordinator_certificate, *self.certificates]
        if pins == [""]:
            return []
        broken = []
        if len(self.certificates) != sites or len(set(pins)) != len(pins):
            broken.append(
                f"protocol.certificates must hold one certificate for each of the {sites} sites, "
                "all different, and coordinator_certificate another one"
            )
        if not all(FINGERPRINT.fullmatch(pin) for pin in pins):
            broken.append("every certificate in protocol must be 'sha256:' and 64 digits")
        return broken

    def fitted_privacy(
        self, privacy: DifferentialPrivacy, members: Sequence[Member]
    ) -> DifferentialPrivacy:
        if privacy.honest:
            return privacy
        threshold = self.threshold or default_threshold(members)
        largest = max(Counter(m.organisation for m in members).values(), default=0)
        return replace(privacy, honest=max(threshold - largest, 1))

    def privacy_problems(
        self, privacy: DifferentialPrivacy, requests: Collection[str]
    ) -> list[str]:
        broken = []
        if not 1 <= privacy.honest <= self.threshold:
            broken.append(
                f"privacy.honest is {privacy.honest}; it must be between 1 and the threshold "
                f"{self.threshold}"
            )
        others = sorted(set(requests).difference(WITH_NOISE))
        if others:
            broken.append(
                f"with privacy, the requests {others} are not possible; use {list(WITH_NOISE)}"
            )
        return broken

    def describe(self, roster: Roster) -> str:
        terms = self.terms(roster)
        return (
            f"{self.name} over at least {terms.threshold} of {len(roster)} sites and "
            f"{terms.organisations} organisations; {terms.colluders} organisations must collude "
            "with the coordinator to learn the numbers of a site"
        )

    def terms(self, roster: Roster) -> Terms:
        """Return what the sites and the coordinator need to form sums."""
        return Terms(roster, self.threshold, self.organisations)


def secure_sums(protocol: Protocol) -> SecureSums:
    """Return the protocol of a study, which must be secure sums."""
    if not isinstance(protocol, SecureSums):
        raise StudyError(
            f"The study uses the protocol {protocol.name!r}; a federation needs {NAME!r}."
        )
    return protocol


# --- What all sites of a round know --------------------------------------------------------------
#
# What everybody can check of a round: its public part, and the transcript that opens its sum.
#
# The next step of a method follows from the sum of the step before. The coordinator sends the
# transcript of that round along. Every site computes the sum from it, with the function that the
# coordinator itself uses. So no coordinator can make up a sum.

IN_TRANSCRIPT = (EnvelopeKind.MASKED, EnvelopeKind.CONSENT, EnvelopeKind.REVEAL)


@final
@dataclass(frozen=True)
class PublicRound:
    """What all sites of a round know once it has masked numbers.

    Attributes
    ----------
    number, size, limbs
        Number of the round; how many numbers it sums, and their length.
    context
        The hash of study, roster, round and request.
    adverts
        The keys of all sites, as they signed them: the body of ``KEYS``.
    sharing
        Positions of the sites that shared their secrets.
    """

    number: int
    size: int
    limbs: int
    context: bytes
    adverts: bytes
    sharing: frozenset[int]

    @property
    def shape(self) -> RoundRequest:
        """The numbers of the round, without what they are about."""
        return RoundRequest(self.number, b"", self.size, self.limbs)

    @cached_property
    def keys(self) -> RoundKeys:
        """The keys of the round."""
        return RoundKeys(self.context, hashed(self.adverts))

    @cached_property
    def peers(self) -> dict[int, Advert]:
        """The keys of each site, by position."""
        frames = map(envelopes.parse, envelopes.split_frames(self.adverts))
        return {frame.sender: Advert.read(frame) for frame in frames}

    def agreed(self, masked: Mapping[int, bytes]) -> bytes:
        """Return what the active sites sign, given the hash of the masked numbers of each."""
        sets = envelopes.write_set(self.sharing), envelopes.write_entries(masked.items())
        return hashed(b"isthmus active set 2", self.context, self.keys.keys, *sets)

    def is_about(self, request: RoundRequest, terms: Terms) -> bool:
        """Return whether this is the round of a request; its number is given by the round."""
        asked = RoundRequest(self.number, request.request, request.size, request.limbs)
        return asked.context(terms) == self.context

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "number": self.number,
            "size": self.size,
            "limbs": self.limbs,
            "context": self.context.hex(),
            "adverts": self.adverts.hex(),
            "sharing": sorted(self.sharing),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(
            plain["number"],
            plain["size"],
            plain["limbs"],
            bytes.fromhex(plain["context"]),
            bytes.fromhex(plain["adverts"]),
            frozenset(plain["sharing"]),
        )


def unmask(
    public: PublicRound,
    masked: LimbArray,
    active: frozenset[int],
    reveals: Mapping[int, bytes],
    terms: Terms,
) -> LimbArray:
    """Remove the masks from a sum.

    Parameters
    ----------
    masked
        The sum of the masked numbers of the active sites.
    reveals
        The bodies of ``REVEAL``, by position of the sender; as many as the threshold, or more.

    Raises
    ------
    BrokenEnvelopeError
        There are too few shares, or they are not those of what the sites committed to.
    """
    secrets = _joined(public, reveals, terms)
    total = LimbAccumulator(public.size, public.limbs)
    total.add(masked)
    for j, secret in secrets.items():
        advert = public.peers[j]
        if j in active:
            if commitment(secret, j, public.context) != advert.commitment:
                raise BrokenEnvelopeError(Refusal.BAD_SHARES, j)
            add_mask(total, public.keys.self_mask(secret, j), public.shape, -1)
            continue
        mask = Agreement.from_secret(secret)
        if mask.public != advert.mask:
            raise BrokenEnvelopeError(Refusal.BAD_SHARES, j)
        for i in active:
            key = public.keys.pair_mask(mask, j, public.peers[i].mask, i)
            add_mask(total, key, public.shape, -sign_of(i, j))
    return total.total()


def _joined(public: PublicRound, reveals: Mapping[int, bytes], terms: Terms) -> dict[int, Secret]:
    """Return the revealed secret of each site that shared its secrets."""
    positions, columns = sorted(reveals)[: terms.threshold], sorted(public.sharing)
    if len(positions) < terms.threshold:
        raise BrokenEnvelopeError(Refusal.TOO_FEW)
    shares = np.empty((len(positions), len(columns), shamir.PIECES), dtype=np.uint32)
    for row, i in enumerate(positions):
        entries = envelopes.read_entries(reveals[i], envelopes.SHARE, len(terms.members))
        if entries.keys() != public.sharing:
            raise BrokenEnvelopeError(Refusal.BAD_SHARES, i)
        data = b"".join(entries[j] for j in columns)
        shares[row] = np.frombuffer(data, LIMB).reshape(len(columns), -1)
    if shares.max() >= shamir.PRIME:
        raise BrokenEnvelopeError(Refusal.BAD_SHARES)
    try:
        secrets = [Secret(s) for s in shamir.join_many(positions, shares)]
    except ValueError:
        raise BrokenEnvelopeError(Refusal.BAD_SHARES) from None
    return dict(zip(columns, secrets, strict=True))


def round_of(transcript: bytes) -> int:
    """Return the number of the round of a transcript."""
    frames = envelopes.split_frames(transcript)
    if not frames:
        raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
    return envelopes.parse(frames[0]).round


def sum_of(transcript: bytes, public: PublicRound, terms: Terms, verifier: Verifier) -> LimbArray:
    """Check the transcript of a round, and return its sum.

    A transcript consists of the frames of sites as they were signed: the masked numbers of all
    active sites, their consents, and the shares that they revealed. An honest site consents to one
    active set, and to one hash of the masked numbers of each site, before anything is revealed. So
    there is one sum, whoever checks it.

    Raises
    ------
    BrokenEnvelopeError
        This is not what the sites signed in this round.
    """
    frames: dict[EnvelopeKind, dict[int, Envelope]] = {kind: {} for kind in IN_TRANSCRIPT}
    for raw in envelopes.split_frames(transcript):
        frame = envelopes.opened(raw, terms, verifier)
        of_kind = frames.get(frame.kind)
        if of_kind is None or frame.round != public.number or frame.sender in of_kind:
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST, frame.sender)
        of_kind[frame.sender] = frame
    masked, consents, reveals = (frames[kind] for kind in IN_TRANSCRIPT)
    active = frozenset(masked)
    if not (active <= public.sharing and terms.enough(active)):
        raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
    total = LimbAccumulator(public.size, public.limbs)
    for i, frame in masked.items():
        if not is_masked(frame, public.shape, public.context):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST, i)
        total.add(from_bytes(frame.body[KEY:], public.limbs))
    agreed = public.agreed({i: sha256(frame.body).digest() for i, frame in masked.items()})
    willing = [i for i, f in consents.items() if i in active and f.body[:KEY] == agreed]
    if len(willing) < terms.threshold or len(willing) != len(consents):
        raise BrokenEnvelopeError(Refusal.NO_CONSENT)
    shares = {i: frame.body for i, frame in reveals.items()}
    return unmask(public, total.total(), active, shares, terms)


def is_masked(frame: Envelope, request: RoundRequest, context: bytes) -> bool:
    """Return whether a frame has masked numbers for a request."""
    size = KEY + 4 * request.size * request.limbs
    return len(frame.body) == size and frame.body[:KEY] == context
