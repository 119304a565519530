"""Exact search by integer linear programming, on SCIP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MissingExtraError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LocalScore, ScoreTable
from isthmus.searches.base import Found, Run, Search
from isthmus.searches.exact import Component, TablePhase, decompose, first_graph, parents_of

_SLICE = 0.3
"""Seconds that SCIP runs before it is asked where it stands."""


@final
@dataclass(frozen=True)
class ILP(Search[LocalScore]):
    """The best graph with a proof, by an integer program with cluster cuts.

    One variable for each parent set of each node, one parent set for each node, and for every set
    of nodes one of them without parents in it: these constraints are added when they are violated
    (Bartlett and Cussens 2017). Components of the graph of possible parents are solved one by
    one. Needs the extra ``[ilp]``.

    Parameters
    ----------
    max_parents
        Upper bound on the number of parents of a node; None for no bound.
    """

    max_parents: int | None = None
    takes: ClassVar[type[object]] = LocalScore

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run:
        """Start a run."""
        try:
            import pyscipopt  # noqa: F401
        except ImportError:
            raise MissingExtraError(
                "pyscipopt", "ilp", "Exact search by integer programming"
            ) from None
        return _ILPRun(self, objective, knowledge, rng)


@final
class _ILPRun(Run):
    def __init__(
        self,
        options: ILP,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        self._options = options
        self._phase = TablePhase(objective, knowledge, options.max_parents)
        self._rng = rng
        self._waiting: list[Component] | None = None
        self._program: Any = None
        self._proven: list[float] = []
        self._cuts = 0
        self._nodes = 0
        self._lines: NDArray[np.int64] = np.empty(0, np.int64)

    @property
    def _table(self) -> ScoreTable:
        assert self._phase.table is not None
        return self._phase.table

    def step(self) -> bool:
        """List parent sets, or let SCIP work for a while."""
        from isthmus.searches.cluster_cuts import Program

        if not self._phase.step():
            return False
        if self._waiting is None:
            self._lines, _ = first_graph(self._table, self._rng)
            parts = decompose(self._table)
            self._waiting = sorted(parts, key=lambda part: -len(part.nodes))
            return False
        if self._program is None:
            if not self._waiting:
                return True
            part = self._waiting.pop()
            self._program = Program(part, [int(self._lines[v]) for v in part.nodes])
        finished = self._program.run(_SLICE)
        self._keep()
        if finished:
            self._proven.append(self._program.gap)
            self._cuts += self._program.cuts
            self._nodes += self._program.nodes
            self._program = None
        return False

    def _keep(self) -> None:
        for v, line in self._program.chosen():
            self._lines[v] = line

    def _gap(self) -> float | None:
        if self._waiting is None or not self._table.complete:
            return None
        gap = sum(self._proven)
        if self._program is not None:
            gap += self._program.gap
        for part in self._waiting:
            known = self._table.scores[self._lines[list(part.nodes)]].sum()
            gap += float(sum(lines[0][1] for lines in part.lists) - known)
        return max(0.0, gap)

    def best(self) -> Found:
        """Return the best graph so far with what is proven."""
        if self._waiting is None:
            return Found(*self._phase.fallback(self._rng))
        score = float(self._table.scores[self._lines].sum())
        gap = self._gap()
        active = self._program
        details: dict[str, object] = {
            "bound": None if gap is None else score + gap,
            "gap": gap,
            "cuts": self._cuts + (0 if active is None else active.cuts),
            "branches": self._nodes + (0 if active is None else active.nodes),
            "parent_sets": len(self._table),
        }
        return Found(parents_of(self._table, self._lines), score, details, gap)

    def describe(self) -> tuple[str, float, float | None]:
        """Say how many cuts and branches there are, and how large the gap is."""
        if self._waiting is None:
            text, done = self._phase.describe()
            return text, -np.inf, done
        score = float(self._table.scores[self._lines].sum())
        gap = self._gap()
        proven = "" if gap is None else f", gap {gap:.4g}"
        if self._program is None:
            return f"next component{proven}", score, None
        return f"{self._program.describe()}{proven}", score, None

    def conclusion(self) -> str:
        """Say what the end means."""
        limit = self._options.max_parents
        return "no graph scores more" + (
            "." if limit is None else f" with at most {limit} parents a node."
        )
