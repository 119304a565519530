"""What two parties may compute together."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self, final

from isthmus.errors import ArgumentError
from isthmus.statistics import Kind
from isthmus_joint.agreement.requests import Request
from isthmus_joint.agreement.study import Study
from isthmus_joint.shares.protocol import BOTH, NAME, two_parties
from isthmus_joint.shares.terms import MOST_GAUSSIAN_PARENTS, ComputationTerms

DEVIATING = (
    "a party that changes its program can choose what the bits that are opened tell it, and so "
    "read a few values of the other party's columns, of single people in common"
)


@dataclass(frozen=True)
class TwoPartyRequest(Request):
    """A computation of two parties. Everything about it is in the study."""

    names: tuple[str, ...]

    protocol: ClassVar[str] = NAME
    caution: ClassVar[str] = DEVIATING
    needs_people: ClassVar[bool] = False
    """Whether both parties must know who the people in common are."""

    kinds: ClassVar[tuple[Kind, ...]]
    """Kinds of variables that are allowed; all variables must be of the same kind."""

    @classmethod
    def of(cls, study: Study) -> Self:
        """Return the request as the study allows it."""
        return cls(two_parties(study.protocol).order)

    def violations(self, study: Study) -> list[str]:
        broken = []
        if self.names != two_parties(study.protocol).order:
            broken.append("the variables are not in the order of the study")
        found = {v.kind for v in study.schema.variables}
        if len(found) != 1 or not found.issubset(self.kinds):
            allowed = " or all ".join(kind.value for kind in self.kinds)
            broken.append(f"{self.name} needs variables that are all {allowed}")
        if two_parties(study.protocol).intersection != BOTH and (
            self.needs_people or found != {Kind.DISCRETE}
        ):
            broken.append(
                f"{self.name} of these variables needs intersection = {BOTH!r}: a party must know "
                "over whom its own columns are summed"
            )
        return broken

    def openings(self, study: Study) -> int:
        """Return how many values a run opens at most."""
        del study
        return 0

    @abstractmethod
    def __str__(self) -> str:
        """Describe in one phrase what is computed and what of it is revealed."""


@final
@dataclass(frozen=True)
class PrivateK2Request(TwoPartyRequest):
    """Greedy search for the parents of each variable (Wright and Yang 2004)."""

    name: ClassVar[str] = "private k2"
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.DISCRETE,)

    def openings(self, study: Study) -> int:
        return two_parties(study.protocol).max_parents + _tables_opened(study)

    def __str__(self) -> str:
        return (
            f"network of {len(self.names)} variables by private K2; revealed are the parents of "
            "each variable, in the order in which they were added"
        )


@final
@dataclass(frozen=True)
class StructureOnlyRequest(TwoPartyRequest):
    """The best parents of each variable among all allowed sets.

    Discrete variables are scored as the study says, continuous ones by the Gaussian BIC.
    """

    name: ClassVar[str] = "structure only"
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.DISCRETE, Kind.CONTINUOUS)

    def openings(self, study: Study) -> int:
        return 1 + _tables_opened(study)

    def violations(self, study: Study) -> list[str]:
        from isthmus_joint.shares.private_k2 import require_few_sets

        broken = super().violations(study)
        parents = two_parties(study.protocol).max_parents
        if parents > MOST_GAUSSIAN_PARENTS and study.schema.of_kind(Kind.CONTINUOUS):
            broken.append(
                f"max_parents is {parents}; with continuous variables, structure only allows at "
                f"most {MOST_GAUSSIAN_PARENTS} parents"
            )
        try:
            require_few_sets(len(self.names), parents)
        except ArgumentError as error:
            broken.append(str(error).rstrip("."))
        return broken

    def __str__(self) -> str:
        return (
            f"network of {len(self.names)} variables with the best parents of each; revealed is "
            "the network"
        )


@final
@dataclass(frozen=True)
class OwnTables(TwoPartyRequest):
    """After a network was learned: the tables of each party's own variables and their parents.

    It is computed in the same run as the network.
    """

    name: ClassVar[str] = "own tables"
    needs_people: ClassVar[bool] = True
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.DISCRETE,)
    caution: ClassVar[str] = (
        "own tables tell each party how many of the people with a certain value of its own "
        "variable have which values of the other party's variables"
    )

    def __str__(self) -> str:
        return "tables of the variables and their parents, each to the owner of the variable alone"


@final
@dataclass(frozen=True)
class IntersectionSize(TwoPartyRequest):
    """How many people both parties have; no column is used."""

    name: ClassVar[str] = "intersection size"
    caution: ClassVar[str] = ""
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.DISCRETE, Kind.CONTINUOUS)

    def violations(self, study: Study) -> list[str]:
        return []

    def __str__(self) -> str:
        return "number of people whom both parties have, if it is not small"


@final
@dataclass(frozen=True)
class CrossMoments(TwoPartyRequest):
    """Number of rows, means and covariances over the columns of both parties."""

    name: ClassVar[str] = "cross moments"
    needs_people: ClassVar[bool] = True
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.CONTINUOUS,)
    caution: ClassVar[str] = (
        "cross moments reveal the means and all products of the columns of both parties, "
        f"including those of one party alone; {DEVIATING}"
    )

    def openings(self, study: Study) -> int:
        del study
        return 3

    def __str__(self) -> str:
        return f"means and products of {len(self.names)} variables, revealed to both parties"


def _tables_opened(study: Study) -> int:
    return len(study.schema) if OwnTables.name in study.requests else 0


def terms_of(study: Study) -> ComputationTerms:
    """Return what the engine needs to know of a study."""
    terms = two_parties(study.protocol)
    return ComputationTerms(
        names=tuple(party.name for party in terms.parties),
        held=tuple(party.columns for party in terms.parties),
        order=terms.order,
        levels={v.name: len(v.levels) for v in study.schema.variables},
        knower=terms.knower,
        minimum_cohort=terms.minimum_cohort,
        max_parents=terms.max_parents,
        score=terms.score,
        ess=terms.ess,
        minimum_cell=terms.minimum_cell,
        own_tables=OwnTables.name in study.requests,
    )
