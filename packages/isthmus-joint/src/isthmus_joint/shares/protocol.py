"""Two parties with different columns, as the protocol of a study."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, final

from isthmus.errors import StudyError, counted
from isthmus.options import require_choice
from isthmus_joint.agreement.protocol import COLUMNS_PER_ROW, LARGEST_SHARE, Protocol
from isthmus_joint.agreement.roster import Roster
from isthmus_joint.agreement.toml import Least
from isthmus_joint.records.journal import Event
from isthmus_joint.shares.terms import MOST_ESS
from isthmus_joint.transport.certificates import FINGERPRINT

NAME = "two parties"
SCORES = ("K2", "BDeu", "BIC")
FEWEST_PEOPLE = 2

ALIGNING = Event("aligning", opens_round=True, sends_statistic=True)
ALIGNED = Event("aligned", reveals_result=True)
SHARING = Event("sharing")
REVEALING = Event("revealing", reveals_result=True)
ENDED = Event("ended")


class IdentifierKind(StrEnum):
    """How identifiers of people are written, so that both parties write them alike."""

    TEXT = "text"
    INTEGER = "integer"


BOTH = "both"
"""Both parties learn which of their own people the other party has, too."""


@final
@dataclass(frozen=True)
class Holding:
    """Columns and certificate of one party.

    Attributes
    ----------
    certificate
        SHA-256 of the certificate with which it connects, ``"sha256:"`` and 64 digits.
    people
        Maximum number of people whose identifiers it may bring.
    """

    name: str
    certificate: str
    columns: tuple[str, ...]
    people: Annotated[int, Least(FEWEST_PEOPLE)]


@final
@dataclass(frozen=True)
class TwoParties(Protocol):
    """Two parties that hold different variables of the same people.

    Nobody else takes part. The parties find the people whom both have by private set intersection,
    and compute on secret shares.

    Parameters
    ----------
    parties
        Columns and certificates of the two parties.
    identifier
        The column that identifies a person, under the same name at both parties.
    order
        The order of the variables: a variable can have only earlier ones as parents.
    identifier_kind
        How identifiers are written.
    intersection
        Who learns which people both parties have: ``"both"``, or the name of the one party that
        does; the other party then learns only how many they are.
    minimum_cohort
        Smallest number of people of each party, and of those whom both have.
    max_parents
        The largest number of parents of a variable.
    score
        The score of a variable and its parents: ``"K2"``, ``"BDeu"`` or ``"BIC"``.
    ess
        Equivalent sample size of `BDeu`.
    minimum_cell
        Smallest number of people in a cell that is not empty of a table that a party learns, and
        with a value of a column that is used for cross moments.
    largest_share, columns_per_row
        As in a policy. Each party applies the stricter of both: what protects the people of one
        party is checked on the columns of the other.
    """

    parties: tuple[Holding, ...]
    identifier: str
    order: tuple[str, ...]
    identifier_kind: IdentifierKind = IdentifierKind.TEXT
    intersection: str = BOTH
    minimum_cohort: Annotated[int, Least(FEWEST_PEOPLE)] = 50
    max_parents: Annotated[int, Least(0)] = 2
    score: str = "K2"
    ess: float = 1.0
    minimum_cell: Annotated[int, Least(1)] = 5
    largest_share: float = LARGEST_SHARE
    columns_per_row: float = COLUMNS_PER_ROW

    name: ClassVar[str] = NAME
    minimum_parties: ClassVar[int] = 2
    has_coordinator: ClassVar[bool] = False
    optional: ClassVar[tuple[str, ...]] = (
        *("identifier_kind", "intersection", "ess", "minimum_cell"),
        *("largest_share", "columns_per_row"),
    )
    events: ClassVar[tuple[Event, ...]] = (ALIGNING, ALIGNED, SHARING, REVEALING, ENDED)
    requests: ClassVar[tuple[str, ...]] = (
        *("cross moments", "intersection size", "own tables", "private k2", "structure only"),
    )

    def __post_init__(self) -> None:
        require_choice(self, "identifier_kind", IdentifierKind)

    def problems(self, roster: Roster) -> list[str]:
        broken = []
        if len(roster) != 2:
            broken.append(
                f"the study has {counted(len(roster), 'site')}; this protocol is for exactly 2"
            )
        names = [m.name for m in roster.members]
        if [p.name for p in self.parties] != names:
            broken.append(f"protocol.parties must name the sites {names}, in this order")
        if self.intersection not in (BOTH, *names) or BOTH in names:
            broken.append(
                f"protocol.intersection is {self.intersection!r}; it must be {BOTH!r} or one of "
                f"{names}, none of which may be named {BOTH!r}"
            )
        for party in self.parties:
            if not FINGERPRINT.fullmatch(party.certificate):
                broken.append(f"the certificate of {party.name!r} must be 'sha256:' and 64 digits")
            if not party.columns:
                broken.append(f"{party.name!r} has no columns")
            if party.people < self.minimum_cohort:
                broken.append(
                    f"{party.name!r} may bring {party.people} people; it needs at least as many as "
                    f"the minimum_cohort, {self.minimum_cohort}"
                )
        if len({p.certificate for p in self.parties}) != len(self.parties):
            broken.append("both parties have the same certificate")
        if self.score not in SCORES:
            broken.append(f"protocol.score is {self.score!r}; it must be one of {SCORES}")
        if self.ess > MOST_ESS:
            broken.append(f"ess is {self.ess:g}; it must be at most {MOST_ESS:g}")
        positive = ("ess", "largest_share", "columns_per_row")
        given = {name: getattr(self, name) for name in positive}
        return broken + [f"{k} is {v}; it must be positive" for k, v in given.items() if not v > 0]

    def variable_problems(self, names: tuple[str, ...]) -> list[str]:
        broken = []
        held = [c for p in self.parties for c in p.columns]
        for what, given in (("the columns of the parties", held), ("order", list(self.order))):
            if sorted(given) != sorted(names):
                others = sorted(set(given).symmetric_difference(names))
                repeated = sorted({c for c in given if given.count(c) > 1})
                broken.append(
                    f"{what} must contain every variable exactly once; look at "
                    f"{(others + repeated)[:10]}"
                )
        if not self.identifier:
            broken.append("protocol.identifier must name a column")
        if self.identifier in names:
            broken.append(f"the identifier {self.identifier!r} cannot be a variable as well")
        return broken

    def describe(self, roster: Roster) -> str:
        first, second = (
            f"{p.name} ({counted(len(p.columns), 'column')}, at most {p.people} people)"
            for p in self.parties
        )
        return (
            f"secret computation of {first} and {second}, over at least {self.minimum_cohort} "
            f"people; {self.knowing}"
        )

    @property
    def knowing(self) -> str:
        """Who learns which people both parties have, in words."""
        if self.intersection == BOTH:
            return "both parties learn which of their people the other party has"
        other = self.other(self.intersection).name
        return (
            f"{self.intersection} learns which of its people {other} has, and {other} learns only "
            "how many they are"
        )

    @property
    def knower(self) -> int | None:
        """Position of the party that alone learns which people are common; ``None`` if both do."""
        names = [party.name for party in self.parties]
        return None if self.intersection == BOTH else names.index(self.intersection)

    def knows(self, name: str) -> bool:
        """Return whether a party learns which of its people are common."""
        return self.intersection in (BOTH, name)

    def holding(self, name: str) -> Holding:
        """Return the columns and the certificate of a party."""
        return next(p for p in self.parties if p.name == name)

    def other(self, name: str) -> Holding:
        """Return the columns and the certificate of the other party."""
        return next(p for p in self.parties if p.name != name)


def two_parties(protocol: Protocol) -> TwoParties:
    """Return the protocol of a study, which must be of two parties."""
    if not isinstance(protocol, TwoParties):
        raise StudyError(
            f"The study uses the protocol {protocol.name!r}; two parties with different columns "
            f"need {NAME!r}."
        )
    return protocol
