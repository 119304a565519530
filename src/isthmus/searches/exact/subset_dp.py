"""Exact search by dynamic programming over all subsets of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer
from isthmus.results.details import ExactDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.exact.table_stage import TableLines, TableStage, first_graph, parents_of
from isthmus.searches.optimality_text import best_graph

_MAX_NODES = 28


@final
@dataclass(frozen=True)
class SubsetDP(Search[LocalScore]):
    """Exact search by dynamic programming over all subsets (Silander and Myllymäki 2006).

    Finds a provably optimal graph. Time and memory double with each node, so it is suitable for up
    to about 25 nodes. It is the simplest exact search and the reference for the others;
    :class:`AStar` gives the same result faster.

    Parameters
    ----------
    max_parents
        Maximum number of parents of a node; None for no limit.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> print(ist.learn(numbers, search=ist.SubsetDP()).status)
    optimal: no graph scores higher: every subset was solved.
    """

    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "max_parents", least=0, optional=True)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        d = len(objective.nodes)
        if d > _MAX_NODES:
            raise MismatchError(
                f"SubsetDP visits every subset of the nodes, so it accepts at most {_MAX_NODES} "
                f"nodes; {d} were given. Use AStar() or ILP()."
            )
        return _Run(self, objective, knowledge, rng)


@final
class _Run(Run[SearchResult]):
    def __init__(
        self,
        options: SubsetDP,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        self._stage = TableStage(objective, knowledge, options.max_parents)
        self._knowledge = knowledge
        self._max_parents = options.max_parents
        self._rng = rng
        self._d = len(objective.nodes)
        self._first: tuple[tuple[tuple[int, ...], ...], float] | None = None
        self._subsets: _native.SubsetDP | None = None
        self._work = self._steps()

    def step(self) -> bool:
        """List parent sets, then solve some subsets."""
        return next(self._work, True) is not None

    def _steps(self) -> Iterator[None]:
        table = yield from self._stage.steps()
        lines = TableLines(table)
        yield from lines.prepare()
        chosen, total = yield from first_graph(lines, self._rng)
        self._first = parents_of(table, chosen), total
        masks = np.ascontiguousarray(table.sets[:, 0])
        self._subsets = _native.SubsetDP(table.starts, masks, table.scores)
        while not self._subsets.step():
            yield

    def best(self) -> SearchResult:
        """Return the optimal graph, or an initial graph until all subsets are solved."""
        if self._first is None:
            return self._stage.fallback(self._rng)
        table = self._stage.table
        assert table is not None
        if self._subsets is None or not self._subsets.done:
            return SearchResult(*self._first, ExactDetails(None, None, len(table)))
        lines = self._subsets.lines()
        score = float(table.scores[lines].sum())
        gap = 0.0 if table.complete else None
        bound = None if gap is None else score
        details = ExactDetails(bound, gap, len(table), self._d, {"subsets": 2**self._d})
        return SearchResult(parents_of(table, lines), score, details, gap)

    def describe(self) -> tuple[str, float, float | None]:
        if self._first is None or self._subsets is None:
            text, done = self._stage.describe()
            return text, -np.inf, done
        solved, size = self._subsets.solved, 2**self._d
        return f"{solved} of {size} subsets", self._first[1], solved / size

    def conclusion(self) -> str:
        claim = best_graph(self._knowledge, self._max_parents, self._stage.table)
        return f"{claim}: every subset was solved."
