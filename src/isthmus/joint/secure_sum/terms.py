"""What the sites of a secure sum agreed on: who takes part, and how many must stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

from isthmus.errors import StudyError
from isthmus.joint.agreement.identity import digest
from isthmus.joint.agreement.roster import Member, Roster
from isthmus.joint.secure_sum.shamir import MOST
from isthmus.plurals import counted

FEWEST = 3
"""With two sites, each learns the other's statistics from the sum."""


@final
@dataclass(frozen=True)
class Terms:
    """The sites of a secure sum, and how many of them must answer.

    Parameters
    ----------
    roster
        The sites and their keys.
    threshold
        How many sites must answer at every stage; by default more than two thirds.
    organisations
        How many organisations must be behind them, at least three.
    """

    roster: Roster
    threshold: int = 0
    organisations: int = FEWEST

    def __post_init__(self) -> None:
        if self.threshold == 0:
            object.__setattr__(self, "threshold", default_threshold(self.members))
        broken = problems(self.roster, self.threshold, self.organisations)
        if self.roster.coordinator is None:
            broken.append("there is no coordinator")
        if broken:
            raise StudyError("These sites cannot form secure sums: " + "; ".join(broken) + ".")

    @property
    def study(self) -> bytes:
        """SHA-256 of the study file."""
        return self.roster.study

    @property
    def members(self) -> tuple[Member, ...]:
        """The sites, in the order of the study."""
        return self.roster.members

    @property
    def coordinator(self) -> bytes:
        """The public key of the coordinator."""
        assert self.roster.coordinator is not None
        return self.roster.coordinator

    @cached_property
    def digest(self) -> bytes:
        """A hash of all of this."""
        parts = [p for m in self.members for p in (m.name.encode(), m.organisation.encode(), m.key)]
        numbers = b"%d of %d" % (self.threshold, self.organisations)
        return digest(b"isthmus terms 1", self.study, numbers, self.coordinator, *parts)

    def position(self, name: str) -> int:
        """Return the position of a site in the roster."""
        return self.roster.position(name)

    @property
    def tolerated(self) -> int:
        """How many sites may collude with the coordinator: 2 t - K - 1."""
        return 2 * self.threshold - len(self.members) - 1

    @property
    def colluders(self) -> int:
        """How many organisations must collude with the coordinator to learn a site's numbers.

        Either they hold more sites than the protocol tolerates, or they are all others and
        subtract their own numbers.
        """
        sizes = sorted(self.roster.sites_of_organisations().values(), reverse=True)
        held = 0
        for number, size in enumerate(sizes, start=1):
            held += size
            if held > self.tolerated:
                return min(number, len(sizes) - 1)
        return len(sizes) - 1

    def enough(self, sites: frozenset[int]) -> bool:
        """Return whether these sites may form a sum."""
        organisations = self.roster.organisations(sites)
        return len(sites) >= self.threshold and len(organisations) >= self.organisations


def default_threshold(members: Sequence[Member]) -> int:
    """Return more than two thirds of the sites, or more if one organisation operates many.

    All sites of one organisation may collude, because one person may control them.
    """
    sites = len(members)
    largest = max(Counter(m.organisation for m in members).values(), default=0)
    return max(2 * sites // 3 + 1, FEWEST, (sites + largest + 2) // 2)


def problems(roster: Roster, threshold: int, organisations: int) -> list[str]:
    """Return a phrase for each reason why these sites cannot form secure sums."""
    broken = []
    sites = len(roster)
    if not FEWEST <= sites <= MOST:
        broken.append(f"{counted(sites, 'site')} given; {FEWEST} to {MOST} are allowed")
    lowest = max(FEWEST, sites // 2 + 1)
    if not lowest <= threshold <= max(sites, FEWEST):
        broken.append(
            f"the threshold is {threshold}; with {sites} sites it must be between {lowest} and "
            f"{sites}"
        )
    largest = max(roster.sites_of_organisations().values(), default=0)
    if lowest <= threshold and largest > 2 * threshold - sites - 1:
        broken.append(
            f"one organisation operates {largest} of {sites} sites and could learn the numbers of "
            f"others; the threshold must be at least {(sites + largest + 2) // 2}"
        )
    if organisations < FEWEST:
        broken.append(f"organisations is {organisations}; it must be at least {FEWEST}")
    if len(roster.organisations(roster.everyone)) < organisations:
        broken.append(f"fewer than {organisations} organisations are behind the sites")
    return broken
