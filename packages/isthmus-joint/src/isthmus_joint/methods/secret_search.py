"""Searches of two parties on secret shares: both learn the graph, and neither a score."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from isthmus.errors import AbortedError, ArgumentError, MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import Capability, Sense
from isthmus.options import require_integer
from isthmus.results.details import SearchDetails
from isthmus.searches.base import Accepts, JointObjective, Search, SearchResult
from isthmus.statistics import Kind
from isthmus.watch import Watch
from isthmus_joint.agreement.study import Study
from isthmus_joint.shares.private_k2 import OwnTable
from isthmus_joint.shares.protocol import two_parties
from isthmus_joint.shares.requests import PrivateK2Request, StructureOnlyRequest, TwoPartyRequest
from isthmus_joint.shares.terms import OWN

Computation: TypeAlias = Generator[str, None, dict[str, Any]]
"""A computation with the other party: yields what is going on, and returns the result."""

SECRET = "Nobody knows the scores, which were computed on secret shares, if both kept the protocol."


@final
class SecretObjective(JointObjective):
    """The score that a study states, which two parties compute and nobody learns."""

    sense = Sense.MAXIMISE
    score_text = "the score stays secret"

    def __init__(self, study: Study, compute: Callable[[TwoPartyRequest], Computation]) -> None:
        self.nodes = study.schema.names
        self.capabilities = frozenset({SECRET_SCORES})
        self.study = study
        self.terms = two_parties(study.protocol)
        self.equivalent = self.terms.score != "K2" or not study.schema.of_kind(Kind.DISCRETE)
        self.compute = compute

    def default_search(self) -> Search[SecretObjective]:
        allowed = [kind for kind in (PrivateK2, StructureOnly) if self._allows(kind)]
        if len(allowed) > 1:
            raise MismatchError(
                "The study allows two searches. Say which one: search=PrivateK2(), or "
                "search=StructureOnly(), which reveals less."
            )
        return allowed[0]()

    def require(self, search: SecretSearch, knowledge: BoundKnowledge) -> None:
        """Raise `MismatchError` unless the study is for this search with these options."""
        terms, study = self.terms, self.study
        if not self._allows(type(search)):
            raise MismatchError(
                f"{search!r} needs the request {search.request.name!r}; the study allows "
                f"{sorted(study.requests)}. Use search={self.default_search()!r}."
            )
        for name in ("order", "max_parents"):
            given, signed = getattr(search, name), getattr(terms, name)
            if given not in (None, signed):
                raise MismatchError(
                    f"{name} is {signed!r} in the study that both parties signed; {given!r} was "
                    f"given. Leave out {name}, or draft another study."
                )
        loops = np.eye(len(self.nodes), dtype=bool)
        if knowledge.required.any() or not np.array_equal(knowledge.forbidden, loops):
            raise MismatchError(
                "Two parties search with the order of the study, and without other knowledge. "
                "Leave out knowledge, or draft a study with another order."
            )

    def _allows(self, kind: type[SecretSearch]) -> bool:
        return kind.request.name in self.study.requests


SECRET_SCORES: Capability[SecretObjective] = Capability(
    "secret scores",
    offered_by="a TwoParty whose study allows 'private k2' or 'structure only'",
)


@final
@dataclass(frozen=True, eq=False)
class SecretDetails(SearchDetails):
    """What a search on secret shares reports to one of the parties.

    Attributes
    ----------
    tables
        Tables of this party's own variables and their parents, if the study has the request
        ``"own tables"``.
    """

    tables: Mapping[str, OwnTable] = field(default_factory=dict)


@dataclass(frozen=True)
class SecretSearch(Search[SecretObjective]):
    """A search on secret shares; the other party calls `learn` at the same time.

    The study states everything about the search; options that are given here are compared with it.

    Parameters
    ----------
    order
        Names of all variables; parents come before children. By default as in the study.
    max_parents
        Maximum number of parents of a variable. By default as in the study.
    """

    order: Sequence[str] | None = None
    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (SECRET_SCORES,)
    request: ClassVar[type[TwoPartyRequest]]

    def __post_init__(self) -> None:
        if isinstance(self.order, str):
            raise ArgumentError(
                f"order must be a list of names; the string {self.order!r} was given."
            )
        if self.order is not None:
            object.__setattr__(self, "order", tuple(self.order))
        require_integer(self, "max_parents", least=0, optional=True)

    def search(
        self,
        objective: SecretObjective,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        """Compute with the other party; there is no graph before the end."""
        objective.require(self, knowledge)
        computation = objective.compute(self.request.of(objective.study))
        outcome: dict[str, Any] | None = None
        with watch.until_stopped():
            watch.poll("connecting")
            while outcome is None:
                try:
                    text = next(computation)
                except StopIteration as end:
                    outcome = end.value
                else:
                    watch.poll(text)
        if outcome is None:
            computation.close()
            raise AbortedError(
                "The run ended before there was a graph. Call learn again at both parties to "
                "resume it; without a time limit, or with a longer one.",
                reason="time limit",
            )
        index = {name: i for i, name in enumerate(objective.nodes)}
        parents = outcome["parents"]
        tables = [OwnTable.from_dict(plain) for plain in outcome.get(OWN, [])]
        withheld = [table.variable for table in tables if table.counts is None]
        note = f"Withheld, for small cells or people with equal values: {', '.join(withheld)}."
        exact = self.request is StructureOnlyRequest
        terms = objective.terms
        score = terms.score if objective.study.schema.of_kind(Kind.DISCRETE) else "the Gaussian BIC"
        return SearchResult(
            tuple(tuple(sorted(index[p] for p in parents[n])) for n in objective.nodes),
            nan,
            SecretDetails({table.variable: table for table in tables}),
            gap=0.0 if exact else None,
            notes=(SECRET, *([note] if withheld else [])),
            conclusion=(
                f"both parties computed the {'best parents' if exact else 'parents'} of "
                f"{len(terms.order)} variables by {score}, at most {terms.max_parents} each, in "
                "the order of the study."
            ),
        )


@final
@dataclass(frozen=True)
class PrivateK2(SecretSearch):
    """Learn the parents of each variable greedily, on secret shares (Wright and Yang 2004).

    For `TwoParty`. Both parties learn which parent was added to which variable at which step and,
    if both follow the protocol, nothing else. The method as it was published, in a simulation, is
    :func:`isthmus.published.private_k2`. For the parameters see `SecretSearch`.
    """

    request: ClassVar[type[TwoPartyRequest]] = PrivateK2Request


@final
@dataclass(frozen=True)
class StructureOnly(SecretSearch):
    """Find the best parents of each variable among all allowed sets, on secret shares.

    For `TwoParty`. Both parties learn the graph and, if both follow the protocol, nothing else. For
    the parameters see `SecretSearch`.
    """

    request: ClassVar[type[TwoPartyRequest]] = StructureOnlyRequest
