"""Secure sums as the protocol of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self, final

from isthmus.errors import StudyError
from isthmus.joint.agreement.protocol import Protocol
from isthmus.joint.agreement.roster import Member, Roster
from isthmus.joint.agreement.toml import Least
from isthmus.joint.noise.section import DifferentialPrivacy
from isthmus.joint.records.events import Event
from isthmus.joint.secure_sum.terms import (
    FEWEST,
    Terms,
    default_threshold,
    problems,
)
from isthmus.joint.transport.certificates import FINGERPRINT
from isthmus.options import require_integer

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
