"""Lists of parent sets of one child: bounds, bit-sets, and the sets that look good."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge
from isthmus.objectives.local import LocalScore
from isthmus.objectives.score_bound import ScoreBound
from isthmus.objectives.table import Words, sort_block, words_for

if TYPE_CHECKING:
    from isthmus.numerics.parent_sets import Bound

Block = tuple[Words, NDArray[np.float64]]

_WIDEST = 16
_LARGEST_POOL = 2**18
_QUOTA = 500
"""Sets scored in one step, each way."""
_GROWN = 20
"""Greedy sets in one step at most."""
_NEAR = 150
"""Candidates of a greedy set: those that gain most alone."""


def bound_of(ceiling: ScoreBound, child: int) -> Bound:
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


@final
class PromisingSets:
    """The parent sets of one child that look good.

    Two ways in turn. Sets are scored in the order in which they look good by what is known of
    their parts. And sets are grown greedily: one among all candidates, then without each of its
    members, then without one of the members of those, the best first. In an order some
    candidates are not to be had, and the best set without them is what a search will want.
    """

    def __init__(
        self,
        local: LocalScore,
        child: int,
        known: BoundKnowledge,
        ceiling: ScoreBound,
        max_parents: int | None,
    ) -> None:
        from isthmus.numerics import parent_sets_anytime as anytime

        self._kernels = anytime
        self._local = local
        self._child = child
        self._base = np.flatnonzero(known.required[:, child])
        open_ = ~(known.required[:, child] | known.forbidden[:, child])
        open_[child] = False
        names = np.flatnonzero(open_)
        bound = bound_of(ceiling, child)
        self._scale = bound.scale * float(np.prod(bound.levels[self._base]))
        levels = bound.levels[names]
        values = local.extensions(child, self._base.tolist(), names.tolist())
        # The gain in likelihood: what is paid for parameters or edges is added again.
        gains = values[1:] - values[0] + self._scale * (levels - 1.0)
        order = np.argsort(-gains, kind="stable")
        self._names, self._levels, self._gains = names[order], levels[order], gains[order]
        self._limit = _WIDEST if max_parents is None else max_parents - len(self._base)
        width = max(1, min(self._limit, _WIDEST, len(names)))
        self._pool = anytime.new_pool(max(2**12, 4 * len(names)), width)
        self._marks = np.random.default_rng(0).integers(1, 2**63, len(names), dtype=np.uint64)
        self._open = np.ones(min(len(names), _NEAR), np.bool_)
        self._left_out: list[tuple[float, int, frozenset[int]]] = [(-np.inf, 0, frozenset())]
        self._seen: set[frozenset[int]] = {frozenset()}

    @property
    def scored(self) -> int:
        """How many sets were scored."""
        return int(self._pool.counters[2])

    def step(self) -> bool:
        """Score some sets; return whether nothing looks good any more."""
        code, _ = self._call(self._kernels.improve, _QUOTA)
        if self._limit < 1 or code == self._kernels.FULL:
            return True
        enough = self.scored + _QUOTA
        for _ in range(_GROWN):
            if not self._left_out or self.scored >= enough:
                break
            if not self._grow():
                return True
        return code == self._kernels.EMPTY and not self._left_out

    def _grow(self) -> bool:
        """Grow one set, and note what to leave out next; return whether there was room."""
        _, _, out = heapq.heappop(self._left_out)
        self._open[:] = True
        self._open[list(out)] = False
        code, at = self._call(self._kernels.grow, self._open)
        if code == self._kernels.FULL:
            return False
        members = self._pool.members[at][: self._pool.sizes[at]].tolist()
        for c in members:
            fewer = out | {c}
            if c < len(self._open) and fewer not in self._seen:
                self._seen.add(fewer)
                item = (-float(self._pool.scores[at]), len(self._seen), fewer)
                heapq.heappush(self._left_out, item)
        return True

    def _call(self, kernel: Callable[..., Any], last: object) -> tuple[int, int]:
        """Call a kernel, making room as often as it asks for it."""
        while True:
            found = kernel(
                self._local.handle,
                self._child,
                self._base,
                self._names,
                self._marks,
                self._gains,
                self._levels,
                self._scale,
                last,
                self._pool,
            )
            code, at = found if isinstance(found, tuple) else (found, 0)
            if code == self._kernels.FAILED:
                self._local.raise_failure()
                raise RuntimeError("a compiled score failed without saying why")
            if code != self._kernels.FULL or 2 * len(self._pool.keys) > _LARGEST_POOL:
                return int(code), int(at)
            self._pool = self._kernels.grow_pool(self._pool)

    def block(self) -> Block:
        """Sets and scores found so far that no subset beats."""
        count = int(self._pool.counters[0]) if self._limit >= 1 else 1
        useful = np.flatnonzero(self._pool.useful[:count])
        sets = pack_lines(
            self._pool.members[useful], self._names, self._base, len(self._local.nodes)
        )
        return merge((sets, self._pool.scores[useful]))


def merge(*blocks: Block) -> Block:
    """Put lists of the same child together and leave out what a subset beats."""
    from isthmus.numerics.parent_sets_anytime import without_better_subset

    sets = np.concatenate([sets for sets, _ in blocks])
    scores = np.concatenate([scores for _, scores in blocks])
    sets, scores = sort_block(sets, scores)
    kept = without_better_subset(sets)
    return sets[kept], scores[kept]
