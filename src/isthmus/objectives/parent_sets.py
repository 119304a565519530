"""From a local score to a score table: list the useful parent sets of each node."""

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
_FEW = 50


def list_parent_sets(
    local: LocalScore,
    *,
    max_parents: int | None = None,
    knowledge: BoundKnowledge | None = None,
    slack: float = 0.0,
    bounded: bool = True,
) -> ScoreTable:
    """List for each node the parent sets that can be part of a best graph.

    Parameters
    ----------
    local
        The score. What it knows of supersets (``local.ceiling``) is used to look at fewer sets;
        the table is the same without.
    max_parents
        Upper bound on the number of parents; None for no bound. Without bounds of the score, and
        with many nodes, set one: all subsets of the others would be scored.
    knowledge
        Edges that are required or forbidden.
    slack
        Also list sets that score up to this much less than one of their subsets: needed to find
        all graphs that are nearly best.
    bounded
        Whether to use what the score knows of supersets.
    """
    builder = TableBuilder(
        local, max_parents=max_parents, knowledge=knowledge, slack=slack, bounded=bounded
    )
    while not builder.step():
        pass
    return builder.table()


@final
class TableBuilder:
    """The same in short steps; see :func:`list_parent_sets`.

    Parameters
    ----------
    children
        The nodes whose parent sets are listed; all by default.
    quota
        How many sets of a node to score at most; None for no bound. With few nodes half of them
        are the smallest sets, the others those that look good by what is known of their parts.
        Unlike a time limit it gives the same table on every machine.

    Attributes
    ----------
    scored
        How many families have been scored.
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
        self._known = Knowledge().bind(local.nodes) if knowledge is None else knowledge
        self._max_parents = max_parents
        self._slack = slack
        found = local.ceiling if bounded else None
        self._ceiling = ScoreBound.none(d) if found is None else found
        self._waiting = list(range(d) if children is None else children)
        self._at = 0
        self._exhaustive: ExhaustiveSets | None = None
        self._promising: PromisingSets | None = None
        self._quota = quota
        self._all_listed = True
        self._blocks: list[Block] = []
        self.scored = 0

    def step(self) -> bool:
        """Score some thousand families; return whether all nodes are done."""
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
        """How many sets are listed by size before those that look good are tried."""
        assert self._quota is not None
        return self._quota // 2 if len(self._local.nodes) <= _FEW else 1

    def _step_by_quota(self, exhaustive: ExhaustiveSets) -> bool:
        """Score sets that look good; what they leave of the quota goes to listing by size."""
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
            self._local, child, self._known, self._ceiling, self._max_parents, self._slack
        )

    def _new_promising(self, child: int) -> PromisingSets:
        return PromisingSets(self._local, child, self._known, self._ceiling, self._max_parents)

    def run_until(self, end: float | None) -> bool:
        """Go on to the end, or to a time of the monotonic clock; return whether all was listed.

        With few nodes half of the time is spent on listing by size, which may come to an end. The
        rest is spent on sets of any size that look good by what is known of their parts.
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
        return self._hurry(end)

    def _hurry(self, end: float) -> bool:
        """Share the rest of the time among the children that are not done."""
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
            # Nothing looks good any more: what time is left goes to listing by size.
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
        """Part of the nodes that are done."""
        return self._at / max(1, len(self._waiting))

    def blocks(self) -> list[Block]:
        """Sets and scores of the children that are done."""
        return self._blocks

    def table(self) -> ScoreTable:
        """Give the table; what has not been looked at by now is missing from it."""
        blocks = list(self._blocks)
        complete = self._at == len(self._waiting) and self._all_listed
        if self._exhaustive is not None:
            block = self._exhaustive.block()
            blocks.append(
                block if self._promising is None else merge(self._promising.block(), block)
            )
        for child in self._waiting[len(blocks) :]:
            # One parent at most: a graph can be made of it, and it takes no time.
            most = 1 if self._max_parents is None else min(1, self._max_parents)
            exhaustive = ExhaustiveSets(self._local, child, self._known, self._ceiling, most, 0.0)
            while not exhaustive.step():
                pass
            blocks.append(exhaustive.block())
        return ScoreTable.from_blocks(
            self._local.nodes,
            blocks,
            equivalent=self._local.equivalent,
            complete=complete,
            max_parents=self._max_parents,
            required=self._known.required,
            slack=self._slack,
        )


@final
class ExhaustiveSets:
    """The useful parent sets of one child."""

    def __init__(
        self,
        local: LocalScore,
        child: int,
        known: BoundKnowledge,
        ceiling: ScoreBound,
        max_parents: int | None,
        slack: float,
    ) -> None:
        from isthmus.numerics import parent_sets

        d = len(local.nodes)
        self._kernels = parent_sets
        self._local = local
        self._child = child
        self._base = np.flatnonzero(known.required[:, child])
        open_ = ~(known.required[:, child] | known.forbidden[:, child])
        open_[child] = False
        self._names = np.flatnonzero(open_)
        self._marks = np.random.default_rng(0).integers(1, 2**63, len(self._names), dtype=np.uint64)
        limit = d if max_parents is None else max_parents - len(self._base)
        self._most = max(0, min(limit, len(self._names)))
        self._bound = bound_of(ceiling, child)
        self._slack = slack
        self._listed = parent_sets.new_listed(max(1, min(4, self._most)), 1024 + d)
        self._old = parent_sets.new_level(0, 1)
        self._new = parent_sets.new_level(1, 1024 + d)
        self._size = -1
        self.scored = 0

    def step(self) -> bool:
        """Score some thousand sets; return whether there are no more."""
        if self._size < 0:
            code = self._kernels.start_level(
                self._local.handle, self._child, self._base, self._bound, self._old, self._listed
            )
            self._check(code)
            self._size = 0
            self.scored = 1
            return self._most == 0
        last = self._size + 1 == self._most
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
            raise RuntimeError("a compiled score failed without saying why")

    def block(self) -> Block:
        """Sets and scores found so far."""
        n = int(self._listed.counters[0])
        members = self._listed.members[:n]
        return pack_lines(
            members, self._names, self._base, len(self._local.nodes)
        ), self._listed.scores[:n].copy()
