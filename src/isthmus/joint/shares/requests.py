"""What two parties may compute together."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

from isthmus.errors import ArgumentError
from isthmus.joint.agreement.requests import Request
from isthmus.joint.agreement.study import Study
from isthmus.joint.shares.protocol import BOTH, MOST_GAUSSIAN_PARENTS, NAME, two_parties
from isthmus.statistics import Kind

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.joint.shares.columns import Columns
    from isthmus.joint.shares.engine import SecretSharingRuntime

OWN = "tables"
"""The part of a run's result that only this party has."""

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

    def compute(
        self, engine: SecretSharingRuntime, columns: Columns, study: Study
    ) -> dict[str, Any]:
        """Compute the result in plain data, the same at both parties except for `OWN`."""
        raise NotImplementedError(f"{self.name} has no computation of its own.")

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

    def compute(
        self, engine: SecretSharingRuntime, columns: Columns, study: Study
    ) -> dict[str, Any]:
        from isthmus.joint.methods.private_k2 import private_k2
        from isthmus.joint.shares.secret_scores import CountScore

        terms = two_parties(study.protocol)
        score = CountScore(terms.score.lower(), terms.ess)
        dag, steps = private_k2(engine, columns, terms.order, terms.max_parents, score)
        return _network(engine, columns, study, dag) | {"steps": [list(step) for step in steps]}

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

    def compute(
        self, engine: SecretSharingRuntime, columns: Columns, study: Study
    ) -> dict[str, Any]:
        from isthmus.joint.methods.private_k2 import structure_only
        from isthmus.joint.shares.secret_moments import secret_gaussian_structure
        from isthmus.joint.shares.secret_scores import CountScore

        terms = two_parties(study.protocol)
        if study.schema.of_kind(Kind.CONTINUOUS):
            dag = secret_gaussian_structure(engine, columns, terms.order, terms.max_parents)
        else:
            score = CountScore(terms.score.lower(), terms.ess)
            dag = structure_only(engine, columns, terms.order, terms.max_parents, score)
        return _network(engine, columns, study, dag)

    def violations(self, study: Study) -> list[str]:
        from isthmus.joint.methods.private_k2 import require_few_sets

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

    def compute(
        self, engine: SecretSharingRuntime, columns: Columns, study: Study
    ) -> dict[str, Any]:
        from isthmus.joint.shares.secret_moments import opened_moments

        found = opened_moments(engine, columns)
        arrays = {"shift": found.shift, "sums": found.sums, "gram": found.gram}
        return {"n": found.n, **{name: array.tolist() for name, array in arrays.items()}}

    def __str__(self) -> str:
        return f"means and products of {len(self.names)} variables, revealed to both parties"


def _tables_opened(study: Study) -> int:
    return len(study.schema) if OwnTables.name in study.requests else 0


def _network(
    engine: SecretSharingRuntime, columns: Columns, study: Study, dag: DAG
) -> dict[str, Any]:
    """Return a network and, if the study says so, the tables of this party's own variables."""
    from isthmus.joint.shares.private_tables import private_tables

    network = {"parents": {name: sorted(dag.parents(name)) for name in dag.nodes}}
    if OwnTables.name not in study.requests:
        return network
    terms = two_parties(study.protocol)
    names = [party.name for party in terms.parties]
    found = private_tables(engine, columns, dag, terms.minimum_cell, names)
    return network | {OWN: [table.to_dict() for table in found.values()]}
