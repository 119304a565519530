"""From a local score to a score table: list the useful parent sets of each node."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge, Knowledge
from isthmus.objectives.ceiling import Ceiling
from isthmus.objectives.local import LocalScore
from isthmus.objectives.table import ScoreTable, Words, sort_block, words_for

if TYPE_CHECKING:
    from isthmus.numerics.parent_sets import Bound

_QUOTA = 4_000
_WIDEST = 16
_FEW = 50
_LARGEST_POOL = 2**21
Block = tuple[Words, NDArray[np.float64]]


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
    ) -> None:
        d = len(local.nodes)
        self._local = local
        self._known = Knowledge().bind(local.nodes) if knowledge is None else knowledge
        self._max_parents = max_parents
        self._slack = slack
        found = local.ceiling if bounded else None
        self._ceiling = Ceiling.none(d) if found is None else found
        self._waiting = list(range(d) if children is None else children)
        self._at = 0
        self._lister: _Lister | None = None
        self._blocks: list[Block] = []
        self.scored = 0

    def step(self) -> bool:
        """Score some thousand families; return whether all nodes are done."""
        if self._at == len(self._waiting):
            return True
        if self._lister is None:
            child = self._waiting[self._at]
            self._lister = _Lister(
                self._local, child, self._known, self._ceiling, self._max_parents, self._slack
            )
        before = self._lister.scored
        finished = self._lister.step()
        self.scored += self._lister.scored - before
        if finished:
            self._blocks.append(self._lister.block())
            self._lister = None
            self._at += 1
        return self._at == len(self._waiting)

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
            picked = pick_sets(
                self._local, child, self._known, self._ceiling, self._max_parents, share
            )
            lister = self._lister or _Lister(
                self._local, child, self._known, self._ceiling, self._max_parents, self._slack
            )
            self._lister = None
            # Nothing looks good any more: what time is left goes to listing by size.
            finished = False
            while not finished and time.monotonic() < share:
                finished = lister.step()
            self._blocks.append(lister.block() if finished else merge(picked, lister.block()))
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
        complete = self._at == len(self._waiting)
        if self._lister is not None:
            blocks.append(self._lister.block())
        for child in self._waiting[len(blocks) :]:
            # One parent at most: a graph can be made of it, and it takes no time.
            most = 1 if self._max_parents is None else min(1, self._max_parents)
            lister = _Lister(self._local, child, self._known, self._ceiling, most, 0.0)
            while not lister.step():
                pass
            blocks.append(lister.block())
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
class _Lister:
    """The useful parent sets of one child."""

    def __init__(
        self,
        local: LocalScore,
        child: int,
        known: BoundKnowledge,
        ceiling: Ceiling,
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


def bound_of(ceiling: Ceiling, child: int) -> Bound:
    """What is known of supersets for one child, as the kernels want it."""
    from isthmus.numerics.parent_sets import Bound

    weight = ceiling.weight[child if len(ceiling.weight) > 1 else 0]
    return Bound(
        np.ascontiguousarray(ceiling.top[child]),
        np.ascontiguousarray(weight),
        float(ceiling.scale[child]),
        ceiling.levels,
        float(ceiling.factor[child]),
        (0, 0) if ceiling.support is None else ceiling.support.handle,
        ceiling.gain,
    )


def pack_lines(
    members: NDArray[np.int32], names: NDArray[np.int64], base: NDArray[np.int64], d: int
) -> Words:
    """Turn lines of positions (-1: none) into bit-sets."""
    sets = np.zeros((len(members), words_for(d)), np.uint64)
    for p in base.tolist():
        sets[:, p // 64] |= np.uint64(1 << (p % 64))
    for column in members.T:
        used = np.flatnonzero(column >= 0)
        p = names[column[used]]
        np.bitwise_or.at(
            sets, (used, p // 64), np.left_shift(np.uint64(1), (p % 64).astype(np.uint64))
        )
    return sets


def pick_sets(
    local: LocalScore,
    child: int,
    known: BoundKnowledge,
    ceiling: Ceiling,
    max_parents: int | None,
    end: float,
) -> Block:
    """List parent sets that look good until a time of the monotonic clock."""
    from isthmus.numerics import parent_sets_anytime as anytime

    base = np.flatnonzero(known.required[:, child])
    open_ = ~(known.required[:, child] | known.forbidden[:, child])
    open_[child] = False
    names = np.flatnonzero(open_)
    bound = bound_of(ceiling, child)
    start = float(np.prod(bound.levels[base]))
    scale = bound.scale * start
    levels = bound.levels[names]
    values = local.extensions(child, base.tolist(), names.tolist())
    # The gain in likelihood: what is paid for parameters or edges is added again.
    gains = values[1:] - values[0] + scale * (levels - 1.0)
    order = np.argsort(-gains, kind="stable")
    names, levels, gains = names[order], levels[order], gains[order]
    limit = _WIDEST if max_parents is None else max_parents - len(base)
    width = max(1, min(limit, _WIDEST, len(names)))
    room = min(_LARGEST_POOL, max(2**12, 64 * len(names)))
    pool = anytime.new_pool(room, width)
    marks = np.random.default_rng(0).integers(1, 2**63, len(names), dtype=np.uint64)
    code = anytime.MORE
    while code == anytime.MORE:
        code = anytime.improve(
            local.handle, child, base, names, marks, gains, levels, scale, 1000, pool
        )
        if limit < 1 or time.monotonic() >= end:
            break
    if code == anytime.FAILED:
        local.raise_failure()
        raise RuntimeError("a compiled score failed without saying why")
    count = int(pool.counters[0]) if limit >= 1 else 1
    useful = np.flatnonzero(pool.useful[:count])
    sets = pack_lines(pool.members[useful], names, base, len(local.nodes))
    return merge((sets, pool.scores[useful]))


def merge(*blocks: Block) -> Block:
    """Put lists of the same child together and leave out what a subset beats."""
    from isthmus.numerics.parent_sets_anytime import without_better_subset

    sets = np.concatenate([sets for sets, _ in blocks])
    scores = np.concatenate([scores for _, scores in blocks])
    sets, scores = sort_block(sets, scores)
    kept = without_better_subset(sets)
    return sets[kept], scores[kept]
