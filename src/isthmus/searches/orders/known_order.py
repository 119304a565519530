"""Parents along an order that is known: K2, and the best parents of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import KnowledgeError, MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable, TableBuilder
from isthmus.options import require_integer
from isthmus.results.details import ExactDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.claims import best_graph

_NOISE = 1e-12
"""Relative to the score: a constant column gains nothing, but for rounding."""


@final
@dataclass(frozen=True)
class KnownOrder(Search[LocalScore]):
    """Parents for each variable among those before it in an order that is given.

    By default this is K2 (Cooper and Herskovits 1992): the parent that gains most is added, until
    none gains or the bound on their number is reached. It can miss parents that gain only
    together. With ``exact`` no set of parents that agrees with the order scores more. A score table
    always gives the best sets it lists.

    Parameters
    ----------
    order
        Names of all variables, causes before effects.
    max_parents
        Upper bound on the number of parents of a node; None for no bound.
    exact
        Whether to look for the best parents instead of adding them one by one.
    """

    order: Sequence[str]
    max_parents: int | None = None
    exact: bool = False
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        if isinstance(self.order, str):
            raise MismatchError(f"The order must be a list of names, not the text {self.order!r}.")
        object.__setattr__(self, "order", tuple(self.order))
        require_integer(self, "max_parents", least=0, optional=True)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        """Start a run."""
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
    """Where each node stands in the order."""
    missing = [name for name in nodes if name not in set(order)]
    unknown = [name for name in order if name not in set(nodes)]
    if missing or unknown or len(order) != len(nodes):
        twice = sorted({name for name in order if list(order).count(name) > 1})
        raise MismatchError(
            "KnownOrder needs every variable once. "
            + (f"Missing: {missing[:5]}. " if missing else "")
            + (f"Not in the data: {unknown[:5]}. " if unknown else "")
            + (f"Given twice: {twice[:5]}. " if twice else "")
            + f"The variables are {list(nodes[:10])}{' …' if len(nodes) > 10 else ''}."
        )
    position = {name: i for i, name in enumerate(order)}
    return np.array([position[name] for name in nodes], np.int64)


def _after(
    knowledge: BoundKnowledge, places: NDArray[np.int64], nodes: tuple[str, ...]
) -> BoundKnowledge:
    """Forbid what comes later in the order as a parent."""
    backwards = places[:, None] > places[None, :]
    wrong = knowledge.required & backwards
    if wrong.any():
        p, v = np.argwhere(wrong)[0]
        raise KnowledgeError(
            f"The edge {nodes[p]} → {nodes[v]} is required, but {nodes[v]!r} comes first in the "
            "order. Change one of them."
        )
    return BoundKnowledge(knowledge.required, knowledge.forbidden | backwards)


@final
class _GreedyRun(Run[SearchResult]):
    """K2: one variable a step."""

    def __init__(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        max_parents: int | None,
        order: NDArray[np.int64],
    ) -> None:
        d = len(objective.nodes)
        self._objective = objective
        self._known = knowledge
        self._most = d if max_parents is None else max_parents
        self._order = order.tolist()
        self._at = 0
        self._parents = [tuple(np.flatnonzero(knowledge.required[:, v]).tolist()) for v in range(d)]
        self._scores: dict[int, float] = {}

    def step(self) -> bool:
        """Add parents of the next variable until none gains."""
        if self._at == len(self._order):
            return True
        v = self._order[self._at]
        chosen = list(self._parents[v])
        open_ = np.flatnonzero(~self._known.forbidden[:, v] & ~self._known.required[:, v]).tolist()
        score = self._objective.local(v, chosen)
        while open_ and len(chosen) < self._most:
            values = self._objective.extensions(v, chosen, open_)[1:]
            best = int(np.argmax(values))
            if not values[best] > score + _NOISE * max(1.0, abs(score)):
                break
            score = float(values[best])
            chosen.append(open_.pop(best))
        self._parents[v] = tuple(sorted(chosen))
        self._scores[v] = score
        self._at += 1
        return self._at == len(self._order)

    def best(self) -> SearchResult:
        """Return the parents found so far."""
        total = 0.0
        for v, parents in enumerate(self._parents):
            known = self._scores.get(v)
            total += self._objective.local(v, parents) if known is None else known
        return SearchResult(tuple(self._parents), total)

    def describe(self) -> tuple[str, float, float | None]:
        """Say how many variables are done."""
        d = len(self._order)
        return f"{self._at} of {d} variables", sum(self._scores.values()), self._at / max(1, d)

    def conclusion(self) -> str:
        """Say what the end means."""
        return "no single parent that comes before a variable gains; two together may."


@final
class _ExactRun(Run[SearchResult]):
    """The useful parent sets of each variable among those before it; the first one is the best."""

    def __init__(
        self, objective: LocalScore, knowledge: BoundKnowledge, max_parents: int | None
    ) -> None:
        self._most = max_parents
        self._knowledge = knowledge
        self._builder = TableBuilder(objective, max_parents=max_parents, knowledge=knowledge)

    def step(self) -> bool:
        """Score some thousand sets."""
        return self._builder.step()

    def best(self) -> SearchResult:
        """Return the best parents seen so far."""
        return _first_lines(self._builder.table())

    def describe(self) -> tuple[str, float, float | None]:
        """Say how many sets were scored."""
        return f"{self._builder.scored} sets scored", -np.inf, self._builder.done

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        return best_graph(self._knowledge, self._most, ordered=True) + "."


@final
class _TableRun(Run[SearchResult]):
    """A table without the sets that the order forbids: the first line of each node is left."""

    def __init__(
        self, table: ScoreTable, knowledge: BoundKnowledge, max_parents: int | None
    ) -> None:
        self._table = table
        self._knowledge = knowledge
        self._most = max_parents

    def step(self) -> bool:
        """Nothing is left to do."""
        return True

    def best(self) -> SearchResult:
        """Return the best listed parents."""
        return _first_lines(self._table)

    def describe(self) -> tuple[str, float, float | None]:
        """Say that it is done."""
        return "reading the table", -np.inf, None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        return best_graph(self._knowledge, self._most, self._table, ordered=True) + "."


def _first_lines(table: ScoreTable) -> SearchResult:
    first = table.starts[:-1]
    parents = tuple(table.members(int(line)) for line in first)
    details = ExactDetails(None, None, len(table))
    return SearchResult(parents, float(table.scores[first].sum()), details)
