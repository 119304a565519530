"""Learn parents along a known order: greedily (K2) or exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import KnowledgeError, MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_boolean, require_integer
from isthmus.results.details import ExactDetails
from isthmus.searches.base import Accepts, Search, SearchResult, Watch
from isthmus.searches.tables import TableStage, best_graph

_NOISE = 1e-12
"""Gains up to this fraction of the score are rounding errors, as for constant columns."""


@final
@dataclass(frozen=True)
class KnownOrder(Search[LocalScore]):
    """Learn the parents of each variable among those before it in a known order.

    By default this is K2 (Cooper and Herskovits 1992): it adds the parent that improves the score
    most, until none does or ``max_parents`` is reached. It can miss parents that help only
    together. With ``exact``, no graph that agrees with the order scores more. On a score table, the
    best listed parent sets are always found.

    Parameters
    ----------
    order
        Names of all variables, causes before effects.
    max_parents
        Maximum number of parents of a node; None for no limit.
    exact
        Whether to find the best parent sets instead of adding parents one by one.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> order = ist.KnownOrder(data.dag.nodes, max_parents=2, exact=True)
    >>> ist.learn(data, score=ist.BIC(), search=order).dag.parents("either")
    ('tub', 'lung')
    """

    order: Sequence[str]
    max_parents: int | None = None
    exact: bool = False
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        if isinstance(self.order, str):
            raise MismatchError(
                f"The order must be a list of names; the string {self.order!r} was given."
            )
        object.__setattr__(self, "order", tuple(self.order))
        require_integer(self, "max_parents", least=0, optional=True)
        require_boolean(self, "exact")

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        places = _places(self.order, objective.nodes)
        bound = _after(knowledge, places, objective.nodes)
        table = PARENT_SETS.of(objective)
        if table is not None:
            table = table.restrict(bound, self.max_parents)
            return _first_lines(table, best_graph(bound, self.max_parents, table, ordered=True))
        local = LOCAL_SCORES.require(objective)
        if self.exact:
            stage = TableStage(local, bound, self.max_parents)
            with watch.until_stopped():
                stage.listed(watch)
            claim = best_graph(bound, self.max_parents, ordered=True)
            return _first_lines(stage.so_far(), claim)
        return self._greedy(local, bound, np.argsort(places).tolist(), watch)

    def _greedy(
        self, local: LocalScore, knowledge: BoundKnowledge, order: list[int], watch: Watch
    ) -> SearchResult:
        """Add parents one by one (K2)."""
        d = len(order)
        most = d if self.max_parents is None else self.max_parents
        parents = [tuple(np.flatnonzero(knowledge.required[:, v]).tolist()) for v in range(d)]
        free = ~knowledge.forbidden & ~knowledge.required
        scores: dict[int, float] = {}
        with watch.until_stopped():
            for v in order:
                chosen, candidates = list(parents[v]), np.flatnonzero(free[:, v]).tolist()
                score = local.local(v, chosen)
                while candidates and len(chosen) < most:
                    values = local.extensions(v, chosen, candidates)[1:]
                    best = int(np.argmax(values))
                    if not values[best] > score + _NOISE * max(1.0, abs(score)):
                        break
                    score = float(values[best])
                    chosen.append(candidates.pop(best))
                    watch.poll()
                parents[v], scores[v] = tuple(sorted(chosen)), score
                text = f"{len(scores)} of {d} variables"
                watch.poll(text, sum(scores.values()), len(scores) / d)
        total = 0.0
        for v, own in enumerate(parents):
            total += scores[v] if v in scores else local.local(v, own)
        return SearchResult(
            tuple(parents),
            total,
            conclusion=(
                "no single earlier variable improves the score as a parent; several together might."
            ),
        )


def _places(order: Sequence[str], nodes: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the position of each node in the order."""
    missing = [name for name in nodes if name not in set(order)]
    unknown = [name for name in order if name not in set(nodes)]
    if missing or unknown or len(order) != len(nodes):
        twice = sorted({name for name in order if list(order).count(name) > 1})
        raise MismatchError(
            "The order must contain every variable exactly once. "
            + (f"Missing: {missing[:5]}. " if missing else "")
            + (f"Not in the data: {unknown[:5]}. " if unknown else "")
            + (f"Repeated: {twice[:5]}. " if twice else "")
            + f"The variables are {list(nodes[:10])}{' …' if len(nodes) > 10 else ''}."
        )
    position = {name: i for i, name in enumerate(order)}
    return np.array([position[name] for name in nodes], np.int64)


def _after(
    knowledge: BoundKnowledge, places: NDArray[np.int64], nodes: tuple[str, ...]
) -> BoundKnowledge:
    """Forbid edges from later to earlier variables."""
    backwards = places[:, None] > places[None, :]
    wrong = knowledge.required & backwards
    if wrong.any():
        p, v = np.argwhere(wrong)[0]
        raise KnowledgeError(
            f"The edge {nodes[p]} → {nodes[v]} is required, but {nodes[v]!r} comes first in the "
            "order. Change the order, or remove the required edge."
        )
    return BoundKnowledge(knowledge.required, knowledge.forbidden | backwards)


def _first_lines(table: ScoreTable, claim: str) -> SearchResult:
    """Return the first parent sets of a table that is restricted to the order: the best ones."""
    first = table.starts[:-1]
    parents = tuple(table.members(int(line)) for line in first)
    details = ExactDetails(None, None, len(table))
    score = float(table.scores[first].sum())
    return SearchResult(parents, score, details, conclusion=f"{claim}.")
