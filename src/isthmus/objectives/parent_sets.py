"""Build score tables from local scores."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import final

import numpy as np

from isthmus.graphs import BoundKnowledge, Knowledge
from isthmus.objectives.local import LocalScore
from isthmus.objectives.parent_set_blocks import Block, PromisingSets, bound_of, merge, pack_lines
from isthmus.objectives.score_bound import ScoreBound
from isthmus.objectives.table import ScoreTable

_QUOTA = 4_000
"""Number of sets that are scored in one step."""
_FEW = 50
"""Up to this many nodes, part of the budget is spent on listing sets by size."""


def list_parent_sets(
    local: LocalScore,
    *,
    max_parents: int | None = None,
    knowledge: BoundKnowledge | None = None,
    slack: float = 0.0,
    bounded: bool = True,
) -> ScoreTable:
    """Build the table of all parent sets that can be part of an optimal graph.

    Parameters
    ----------
    local
        The score. Its bound on supersets (``local.ceiling``) reduces the number of sets that are
        scored; the table is the same without it.
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
    """
    builder = TableBuilder(
        local, max_parents=max_parents, knowledge=knowledge, slack=slack, bounded=bounded
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

    Attributes
    ----------
    scored
        Number of families scored so far.
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
    ) -> None:
        d = len(local.nodes)
        self._local = local
        self._knowledge = Knowledge().bind(local.nodes) if knowledge is None else knowledge
        self._max_parents = max_parents
        self._slack = slack
        bound = local.ceiling if bounded else None
        self._ceiling = ScoreBound.none(d) if bound is None else bound
        self._waiting = list(range(d) if children is None else children)
        self._at = 0
        self._exhaustive: ExhaustiveSets | None = None
        self._promising: PromisingSets | None = None
        self._quota = quota
        self._all_listed = True
        self._blocks: list[Block] = []
        self.scored = 0

    def step(self) -> bool:
        """Score some thousand families; return whether all nodes are finished."""
        if self._at == len(self._waiting):
            return True
        if self._exhaustive is None:
            self._exhaustive = self._new_exhaustive(self._waiting[self._at])
        if self._quota is not None and self._exhaustive.scored >= self._first_share:
            return self._step_by_quota(self._exhaustive)
        if self._list(self._exhaustive):
            self._next(self._exhaustive.block())
        return self._at == len(self._waiting)

    @property
    def _first_share(self) -> int:
        """Number of sets that are listed by size before promising sets."""
        assert self._quota is not None
        return self._quota // 2 if len(self._local.nodes) <= _FEW else 1

    def _step_by_quota(self, exhaustive: ExhaustiveSets) -> bool:
        """Score promising sets; use the rest of the quota to list sets by size."""
        assert self._quota is not None
        if self._promising is None:
            self._promising = self._new_promising(self._waiting[self._at])
        room = self._quota - exhaustive.scored - self._promising.scored
        before = self._promising.scored
        if room > 0 and not self._promising.step():
            self.scored += self._promising.scored - before
            return False
        self.scored += self._promising.scored - before
        if room > 0 and self._promising.scored == before:
            if self._list(exhaustive):
                self._next(exhaustive.block())
            return self._at == len(self._waiting)
        if room <= 0:
            self._all_listed = False
            self._next(merge(self._promising.block(), exhaustive.block()))
        return self._at == len(self._waiting)

    def _list(self, exhaustive: ExhaustiveSets) -> bool:
        before = exhaustive.scored
        finished = exhaustive.step()
        self.scored += exhaustive.scored - before
        return finished

    def _next(self, block: Block) -> None:
        self._blocks.append(block)
        self._exhaustive = self._promising = None
        self._at += 1

    def _new_exhaustive(self, child: int) -> ExhaustiveSets:
        return ExhaustiveSets(
            self._local, child, self._knowledge, self._ceiling, self._max_parents, self._slack
        )

    def _new_promising(self, child: int) -> PromisingSets:
        return PromisingSets(self._local, child, self._knowledge, self._ceiling, self._max_parents)

    def run_until(self, end: float | None) -> bool:
        """Run to the end, or until a monotonic time; return whether the list is complete.

        With few nodes, half of the time is spent on listing sets by size, which may finish. The
        rest is spent on promising sets of any size.
        """
        if end is None:
            while not self.step():
                pass
            return True
        begun = time.monotonic()
        few = len(self._local.nodes) <= _FEW
        half = begun + 0.5 * (end - begun) if few else begun
        while time.monotonic() < half:
            if self.step():
                return True
        return self._share_time(end)

    def _share_time(self, end: float) -> bool:
        """Divide the rest of the time among the children that are not finished."""
        left = self._waiting[self._at :]
        complete = True
        for number, child in enumerate(left):
            now = time.monotonic()
            share = now + (end - now) / (len(left) - number)
            promising = self._new_promising(child)
            while not promising.step() and time.monotonic() < share:
                pass
            promising_block = promising.block()
            exhaustive = self._exhaustive or self._new_exhaustive(child)
            self._exhaustive = None
            # No promising sets are left: use the rest of the time to list sets by size.
            finished = False
            while not finished and time.monotonic() < share:
                finished = exhaustive.step()
            self._blocks.append(
                exhaustive.block() if finished else merge(promising_block, exhaustive.block())
            )
            complete = complete and finished
        self._at = len(self._waiting)
        return complete

    @property
    def done(self) -> float:
        """Fraction of the nodes that are finished."""
        return self._at / max(1, len(self._waiting))

    def blocks(self) -> list[Block]:
        """Return the sets and scores of the children that are finished."""
        return self._blocks

    def table(self) -> ScoreTable:
        """Return the table; sets that have not been scored yet are missing."""
        blocks = list(self._blocks)
        complete = self._at == len(self._waiting) and self._all_listed
        if self._exhaustive is not None:
            block = self._exhaustive.block()
            blocks.append(
                block if self._promising is None else merge(self._promising.block(), block)
            )
        for child in self._waiting[len(blocks) :]:
            # At most one parent: this is fast, and enough to build a graph.
            max_parents = 1 if self._max_parents is None else min(1, self._max_parents)
            exhaustive = ExhaustiveSets(
                self._local, child, self._knowledge, self._ceiling, max_parents, 0.0
            )
            while not exhaustive.step():
                pass
            blocks.append(exhaustive.block())
        return ScoreTable.from_blocks(
            self._local.nodes,
            blocks,
            equivalent=self._local.equivalent,
            complete=complete,
            max_parents=self._max_parents,
            required=self._knowledge.required,
            slack=self._slack,
        )


@final
class ExhaustiveSets:
    """An enumeration of the parent sets of one child by size, pruned by the bound of the score."""

    def __init__(
        self,
        local: LocalScore,
        child: int,
        knowledge: BoundKnowledge,
        ceiling: ScoreBound,
        max_parents: int | None,
        slack: float,
    ) -> None:
        from isthmus.numerics import parent_sets

        d = len(local.nodes)
        self._kernels = parent_sets
        self._local = local
        self._child = child
        self._base = np.flatnonzero(knowledge.required[:, child])
        allowed = ~(knowledge.required[:, child] | knowledge.forbidden[:, child])
        allowed[child] = False
        self._names = np.flatnonzero(allowed)
        self._marks = np.random.default_rng(0).integers(1, 2**63, len(self._names), dtype=np.uint64)
        limit = d if max_parents is None else max_parents - len(self._base)
        self._max_size = max(0, min(limit, len(self._names)))
        self._bound = bound_of(ceiling, child)
        self._slack = slack
        self._listed = parent_sets.new_listed(max(1, min(4, self._max_size)), 1024 + d)
        self._old = parent_sets.new_level(0, 1)
        self._new = parent_sets.new_level(1, 1024 + d)
        self._size = -1
        self.scored = 0

    def step(self) -> bool:
        """Score some thousand sets; return whether the enumeration is finished."""
        if self._size < 0:
            code = self._kernels.start_level(
                self._local.handle, self._child, self._base, self._bound, self._old, self._listed
            )
            self._check(code)
            self._size = 0
            self.scored = 1
            return self._max_size == 0
        last = self._size + 1 == self._max_size
        before = int(self._new.counters[1])
        code = self._kernels.expand(
            self._local.handle,
            self._child,
            self._base,
            self._names,
            self._marks,
            self._bound,
            self._slack,
            _QUOTA,
            last,
            self._old,
            self._new,
            self._listed,
        )
        self._check(code)
        self.scored += int(self._new.counters[1]) - before
        if code == self._kernels.NEEDS_ROOM:
            self._enlarge()
            return False
        if self._old.counters[2] < self._old.counters[0]:
            return False
        if last or self._new.counters[0] == 0:
            return True
        self._size += 1
        self._old = self._kernels.index_level(self._new)
        self._new = self._kernels.new_level(self._size + 1, 1024 + 2 * len(self._names))
        self._listed = self._kernels.grow_listed(
            self._listed, len(self._listed.scores), self._size + 1
        )
        return False

    def _enlarge(self) -> None:
        extra = len(self._names)
        if self._listed.counters[0] + extra > len(self._listed.scores):
            room = 2 * len(self._listed.scores)
            self._listed = self._kernels.grow_listed(self._listed, room, self._size + 1)
        if self._new.counters[0] + extra > len(self._new.keys):
            self._new = self._kernels.grow_level(self._new, 2 * len(self._new.keys))

    def _check(self, code: int) -> None:
        if code == self._kernels.FAILED:
            self._local.raise_failure()
            raise RuntimeError("a compiled score failed without an error message")

    def block(self) -> Block:
        """Return the sets and scores so far."""
        n = int(self._listed.counters[0])
        members = self._listed.members[:n]
        return pack_lines(
            members, self._names, self._base, len(self._local.nodes)
        ), self._listed.scores[:n].copy()
