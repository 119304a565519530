"""Build score tables from local scores."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import final

import numpy as np

from isthmus.graphs import BoundKnowledge, Knowledge
from isthmus.kernels import _native
from isthmus.objectives.local import LocalScore
from isthmus.objectives.table import ScoreTable, Words
from isthmus.types import Floats, Integers

Block = tuple[Words, Floats]
"""The parent sets of one node and their scores."""

FEW = 50
"""Up to this many nodes, part of the time is spent on listing sets by size."""
_SLICE = 0.01
"""Seconds of one step."""


def list_parent_sets(
    local: LocalScore,
    *,
    max_parents: int | None = None,
    knowledge: BoundKnowledge | None = None,
    slack: float = 0.0,
    bounded: bool = True,
    jobs: int = -1,
) -> ScoreTable:
    """Build the table of all parent sets that can be part of an optimal graph.

    Parameters
    ----------
    local
        The score. Its bound on supersets (``local.score_bound``) reduces the number of sets that
        are scored; the table is the same without it.
    max_parents
        Maximum number of parents; None for no maximum. Set it if there are many nodes and the score
        has no bound on supersets: otherwise all subsets are scored.
    knowledge
        Required and forbidden edges.
    slack
        Also list sets that score up to this much less than one of their subsets, which is needed to
        find all graphs that are nearly optimal.
    bounded
        Whether to use the bound of the score on supersets.
    jobs
        Number of threads; -1 for one per core. The table does not depend on it.
    """
    builder = TableBuilder(
        local, max_parents=max_parents, knowledge=knowledge, slack=slack, bounded=bounded, jobs=jobs
    )
    while not builder.step():
        pass
    return builder.table()


@final
class TableBuilder:
    """Builds a score table in short steps; see :func:`list_parent_sets`.

    Parameters
    ----------
    children
        The nodes whose parent sets are listed; all by default.
    quota
        Maximum number of sets to score per node; None for no maximum. With few nodes, half of them
        are the smallest sets and the others promising sets of any size. Unlike a time limit, it
        gives the same table on every machine.
    """

    def __init__(
        self,
        local: LocalScore,
        *,
        max_parents: int | None = None,
        knowledge: BoundKnowledge | None = None,
        slack: float = 0.0,
        bounded: bool = True,
        children: Iterable[int] | None = None,
        quota: int | None = None,
        jobs: int = -1,
    ) -> None:
        self._local = local
        self._knowledge = Knowledge().bind(local.nodes) if knowledge is None else knowledge
        self._max_parents = max_parents
        self._slack = slack
        self._jobs = (os.cpu_count() or 1) if jobs == -1 else jobs
        self._bound = local.score_bound if bounded else None
        self._children = list(range(len(local.nodes)) if children is None else children)
        self._native = self._builder(self._children, slack=slack, quota=quota, jobs=self._jobs)

    def _builder(
        self,
        children: list[int],
        *,
        most: int | None = None,
        slack: float = 0.0,
        quota: int | None = None,
        jobs: int = 1,
    ) -> _native.TableBuilder:
        limits = [limit for limit in (self._max_parents, most) if limit is not None]
        return _native.TableBuilder(
            self._local.kernel,
            None if self._bound is None else self._bound.kernel,
            required=self._knowledge.required,
            forbidden=self._knowledge.forbidden,
            max_parents=min(limits, default=None),
            slack=slack,
            children=np.array(children, np.int64),
            quota=quota,
            jobs=jobs,
        )

    def step(self) -> bool:
        """Score families for a few milliseconds; return whether all nodes are finished."""
        return self._native.step(_SLICE)

    def run_until(self, end: float | None) -> bool:
        """Run to the end, or until a monotonic time; return whether the list is complete.

        With few nodes, half of the time is spent on listing sets by size, which may finish. The
        rest is spent on promising sets of any size.
        """
        if end is None:
            while not self.step():
                pass
            return self._native.complete
        if len(self._local.nodes) <= FEW:
            half = 0.5 * (time.monotonic() + end)
            while time.monotonic() < half and not self._step_until(half):
                pass
        self._native.hurry()
        while not self._native.done:
            self._use_share(end)
        return self._native.complete

    def _use_share(self, end: float) -> None:
        """List the parent sets of the next children within their share of the time."""
        finished = self._native.finished
        now = time.monotonic()
        share = now + (end - now) * self._jobs / (self._native.children - finished)
        while not self._step_until(share) and self._native.finished == finished:
            if time.monotonic() >= share:
                self._native.skip()
                return

    def _step_until(self, end: float) -> bool:
        return self._native.step(min(_SLICE, max(0.0, end - time.monotonic())))

    def so_far(self, seconds: float) -> ScoreTable:
        """Return the table of the sets so far.

        Nodes that were not reached have their smallest parent set, and in the given time those of
        one parent.
        """
        if self._native.done:
            return self.table()
        starts, sets, scores = self._native.so_far()
        rest = self._builder(self._children[len(starts) - 1 :], most=1)
        rest.close()
        end = time.monotonic() + seconds
        while not rest.ready or (not rest.done and time.monotonic() < end):
            rest.step(_SLICE)
        more_starts, more_sets, more_scores = rest.table()
        return self._table(
            np.concatenate([starts, starts[-1] + more_starts[1:]]),
            np.concatenate([sets, more_sets]),
            np.concatenate([scores, more_scores]),
        )

    @property
    def scored(self) -> int:
        """Number of families scored so far."""
        return self._native.scored

    @property
    def done(self) -> float:
        """Fraction of the nodes that are finished."""
        return self._native.finished / max(1, self._native.children)

    def blocks(self) -> list[Block]:
        """Return the sets and scores of each child, once all are finished."""
        starts, sets, scores = self._native.table()
        return [(sets[first:last], scores[first:last]) for first, last in pairwise(starts.tolist())]

    def table(self) -> ScoreTable:
        """Return the table, once all nodes are finished."""
        return self._table(*self._native.table())

    def _table(self, starts: Integers, sets: Words, scores: Floats) -> ScoreTable:
        required = self._knowledge.required
        return ScoreTable(
            self._local.nodes,
            starts,
            sets,
            scores,
            equivalent=self._local.equivalent,
            complete=self._native.complete,
            max_parents=self._max_parents,
            required=required if required.any() else None,
            slack=self._slack,
        )
