"""Learn with an objective that a joint source offers itself, instead of statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus.compose.arguments import AnySearch, check_knowledge, check_search
from isthmus.errors import MismatchError
from isthmus.graphs import DAG, Knowledge
from isthmus.options import described
from isthmus.results import Provenance, Solution, Status
from isthmus.runs import Watch
from isthmus.searches import SearchResult
from isthmus.sources import Source

if TYPE_CHECKING:
    from isthmus.joint.methods.objective import JointObjective


@final
@dataclass(frozen=True, eq=False)
class JointProblem:
    """An objective that organisations compute together, and the search for it.

    Attributes
    ----------
    source
        The joint source.
    objective
        Its objective.
    search, reason
        The search, and why it was chosen.
    knowledge
        Background knowledge, and that time does not run backwards.
    """

    source: Source
    objective: JointObjective
    search: AnySearch
    reason: str
    knowledge: Knowledge

    def check(self) -> None:
        """Raise an error if the options or the knowledge do not fit; nothing is sent."""
        bound = self.knowledge.bind(self.objective.nodes)
        self.objective.require(self.search, bound)

    def learn(self, seed: int, watch: Watch) -> SearchResult:
        """Search for the graph, together with the other organisations."""
        bound = self.knowledge.bind(self.objective.nodes)
        return self.search.search(self.objective, bound, np.random.default_rng(seed), watch)

    def solution(
        self, result: SearchResult, status: Status, knowledge: Knowledge | None, seed: int
    ) -> Solution:
        """Return the solution of a run, with the knowledge and the seed as the user gave them."""
        return Solution(
            dag=DAG.from_parents(self.objective.nodes, result.parents),
            score=result.score,
            status=status,
            disclosure=self.source.disclosure(),
            choice=f"Search {described(self.search)} ({self.reason}); {self.objective.score_text}.",
            equivalent=self.objective.equivalent,
            sense=self.objective.sense,
            knowledge=knowledge if self.knowledge == Knowledge() else self.knowledge,
            notes=(*self.source.notes(), *result.notes),
            reading=self.source.reading(),
            details=result.details,
            provenance=Provenance.of_call("learn", seed, search=self.search, knowledge=knowledge),
        )


def prepare_jointly(
    data: object,
    search: AnySearch | None,
    *,
    knowledge: Knowledge | None = None,
    **others: object,
) -> JointProblem | None:
    """Return the problem if the search needs an objective that the source offers, else None.

    Parameters
    ----------
    data
        What the user gave to `learn`.
    search
        The search, if the user named one. Otherwise a source decides whether it offers statistics.
    knowledge
        Background knowledge.
    **others
        Other arguments of `learn`, which have no effect here and are refused unless they are None.
    """
    if not isinstance(data, Source):
        return None
    objective: Any = data.objective(None if search is None else check_search(search).accepts)
    if objective is None:
        return None
    chosen = objective.default_search() if search is None else search
    for name, value in others.items():
        if value is not None:
            raise MismatchError(
                f"{name}={value!r} has no effect with {type(chosen).__name__}: the study says what "
                f"the organisations compute. Leave out {name}."
            )
    schema = data.schema()
    known = check_knowledge(knowledge).with_time(schema.lag_of)
    reason = "as the study says" if search is None else "as requested"
    return JointProblem(data, objective, chosen, reason, known)


def refuse_joint_search(search: AnySearch, source: Source) -> None:
    """Raise `MismatchError` if a search needs what neither a score nor this source offers."""
    needed = [capability for capability in search.accepts if capability.offered_by]
    if len(needed) == len(search.accepts) > 0:
        raise MismatchError(
            f"{type(search).__name__} needs {needed[0]}, which only {needed[0].offered_by} offers; "
            f"{source!r} does not. Leave out the search to get one that fits."
        )


def refuse_joint_bootstrap(data: object, search: AnySearch | None) -> None:
    """Raise `MismatchError` if the search would run at the sites, whose rows nobody can draw."""
    if not isinstance(data, Source):
        return
    if data.objective(None if search is None else check_search(search).accepts) is None:
        return
    raise MismatchError(
        "The bootstrap draws rows, which stay at the sites."
        + ("" if search is None else f" {type(search).__name__}() is for learn."),
        "Call sample(data): the posterior over graphs needs sums only, if the study allows them.",
    )
