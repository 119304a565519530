"""Learn parents along a known order: greedily (K2) or exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import KnowledgeError, MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_boolean, require_integer
from isthmus.results.details import ExactDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.exact.table_stage import TableStage
from isthmus.searches.optimality_text import best_graph

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

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        places = _places(self.order, objective.nodes)
        bound = _after(knowledge, places, objective.nodes)
        table = PARENT_SETS.of(objective)
        if table is not None:
            return _TableRun(table.restrict(bound, self.max_parents), bound, self.max_parents)
        local = LOCAL_SCORES.require(objective)
        if self.exact:
            return _ExactRun(local, bound, self.max_parents)
        return _GreedyRun(local, bound, self.max_parents, np.argsort(places))


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


@final
class _GreedyRun(Run[SearchResult]):
    """K2: one parent per step."""

    def __init__(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        max_parents: int | None,
        order: NDArray[np.int64],
    ) -> None:
        d = len(objective.nodes)
        self._objective = objective
        self._knowledge = knowledge
        self._max_parents = d if max_parents is None else max_parents
        self._order = order.tolist()
        self._parents = [tuple(np.flatnonzero(knowledge.required[:, v]).tolist()) for v in range(d)]
        self._scores: dict[int, float] = {}
        self._work = self._steps()

    def step(self) -> bool:
        """Add a parent of a variable, or go to the next variable."""
        return next(self._work, True) is not None

    def _steps(self) -> Iterator[None]:
        for v in self._order:
            chosen = list(self._parents[v])
            candidates = np.flatnonzero(
                ~self._knowledge.forbidden[:, v] & ~self._knowledge.required[:, v]
            ).tolist()
            score = self._objective.local(v, chosen)
            while candidates and len(chosen) < self._max_parents:
                values = self._objective.extensions(v, chosen, candidates)[1:]
                best = int(np.argmax(values))
                if not values[best] > score + _NOISE * max(1.0, abs(score)):
                    break
                score = float(values[best])
                chosen.append(candidates.pop(best))
                yield
            self._parents[v] = tuple(sorted(chosen))
            self._scores[v] = score
            yield

    def best(self) -> SearchResult:
        total = 0.0
        for v, parents in enumerate(self._parents):
            score = self._scores.get(v)
            total += self._objective.local(v, parents) if score is None else score
        return SearchResult(tuple(self._parents), total)

    def describe(self) -> tuple[str, float, float | None]:
        d = len(self._order)
        done = len(self._scores)
        return f"{done} of {d} variables", sum(self._scores.values()), done / max(1, d)

    def conclusion(self) -> str:
        return "no single earlier variable improves the score as a parent; several together might."


@final
class _ExactRun(Run[SearchResult]):
    """List the useful parent sets of each variable among those before it; the first is the best."""

    def __init__(
        self, objective: LocalScore, knowledge: BoundKnowledge, max_parents: int | None
    ) -> None:
        self._max_parents = max_parents
        self._knowledge = knowledge
        self._stage = TableStage(objective, knowledge, max_parents)
        self._work = self._stage.steps()

    def step(self) -> bool:
        """Score parent sets for a while."""
        return next(self._work, True) is not None

    def best(self) -> SearchResult:
        return _first_lines(self._stage.so_far())

    def describe(self) -> tuple[str, float, float | None]:
        text, done = self._stage.describe()
        return text, -np.inf, done

    def conclusion(self) -> str:
        return best_graph(self._knowledge, self._max_parents, ordered=True) + "."


@final
class _TableRun(Run[SearchResult]):
    """Read the first parent set of each node from a table restricted to the order."""

    def __init__(
        self, table: ScoreTable, knowledge: BoundKnowledge, max_parents: int | None
    ) -> None:
        self._table = table
        self._knowledge = knowledge
        self._max_parents = max_parents

    def step(self) -> bool:
        """Finish at once: the table is already sorted."""
        return True

    def best(self) -> SearchResult:
        """Return the best listed parents."""
        return _first_lines(self._table)

    def describe(self) -> tuple[str, float, float | None]:
        return "reading the table", -np.inf, None

    def conclusion(self) -> str:
        return best_graph(self._knowledge, self._max_parents, self._table, ordered=True) + "."


def _first_lines(table: ScoreTable) -> SearchResult:
    first = table.starts[:-1]
    parents = tuple(table.members(int(line)) for line in first)
    details = ExactDetails(None, None, len(table))
    return SearchResult(parents, float(table.scores[first].sum()), details)
