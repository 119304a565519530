"""Exact search by dynamic programming over all subsets of the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer
from isthmus.results.details import ExactDetails
from isthmus.searches.base import Accepts, Search, SearchResult, Watch
from isthmus.searches.tables import TableLines, TableStage, best_graph, first_graph, parents_of

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

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        d = len(objective.nodes)
        if d > _MAX_NODES:
            raise MismatchError(
                f"SubsetDP visits every subset of the nodes, so it accepts at most {_MAX_NODES} "
                f"nodes; {d} were given. Use AStar() or ILP()."
            )
        stage = TableStage(objective, knowledge, self.max_parents)
        first: SearchResult | None = None
        subsets: _native.SubsetDP | None = None
        with watch.until_stopped():
            table = stage.listed(watch)
            chosen, total = first_graph(TableLines(table, watch), rng, watch)
            details = ExactDetails(None, None, len(table))
            first = SearchResult(parents_of(table, chosen), total, details)
            masks = np.ascontiguousarray(table.sets[:, 0])
            subsets = _native.SubsetDP(table.starts, masks, table.scores)
            text = f"of {2**d} subsets"
            watch.run(
                subsets.step, lambda: (f"{subsets.solved} {text}", total, subsets.solved / 2**d)
            )
        if first is None:
            return stage.fallback(rng)
        if subsets is None or not subsets.done:
            return first
        lines = subsets.lines()
        score = float(table.scores[lines].sum())
        gap = 0.0 if table.complete else None
        bound = None if gap is None else score
        claim = best_graph(knowledge, self.max_parents, table)
        return SearchResult(
            parents_of(table, lines),
            score,
            ExactDetails(bound, gap, len(table), d, {"subsets": 2**d}),
            gap,
            conclusion=f"{claim}: every subset was solved.",
        )
