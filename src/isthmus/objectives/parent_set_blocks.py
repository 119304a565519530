"""Parent sets of one child: bitsets, bounds, and a heuristic for promising sets."""

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

_MAX_PARENTS = 16
"""Default maximum number of parents."""
_LARGEST_POOL = 2**18
"""Maximum number of sets that are stored."""
_QUOTA = 500
"""Number of sets that each of the two heuristics scores in one step."""
_GREEDY_SETS = 20
"""Maximum number of greedy sets in one step."""
_GREEDY_CANDIDATES = 150
"""Number of candidates of a greedy set: those with the largest gain as single parents."""


def bound_of(ceiling: ScoreBound, child: int) -> Bound:
    """Return the bound on supersets for one child, in the form that the kernels need."""
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
    """Return lines of positions (-1 for none) as bitsets."""
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
    """A heuristic search for parent sets of one child with high scores.

    Two heuristics take turns. The first scores sets in the order of estimates from the scores of
    their subsets. The second grows sets greedily: first among all candidates, then without one of
    the members of that set, and so on, best first. In an order of the nodes some candidates are not
    available, and a search then needs the best set without them.
    """

    def __init__(
        self,
        local: LocalScore,
        child: int,
        knowledge: BoundKnowledge,
        ceiling: ScoreBound,
        max_parents: int | None,
    ) -> None:
        from isthmus.numerics import parent_sets_anytime as anytime

        self._kernels = anytime
        self._local = local
        self._child = child
        self._base = np.flatnonzero(knowledge.required[:, child])
        allowed = ~(knowledge.required[:, child] | knowledge.forbidden[:, child])
        allowed[child] = False
        names = np.flatnonzero(allowed)
        bound = bound_of(ceiling, child)
        self._scale = bound.scale * float(np.prod(bound.levels[self._base]))
        levels = bound.levels[names]
        values = local.extensions(child, self._base.tolist(), names.tolist())
        # The gain in likelihood, without the penalty on parameters or edges.
        gains = values[1:] - values[0] + self._scale * (levels - 1.0)
        order = np.argsort(-gains, kind="stable")
        self._names, self._levels, self._gains = names[order], levels[order], gains[order]
        self._limit = _MAX_PARENTS if max_parents is None else max_parents - len(self._base)
        width = max(1, min(self._limit, _MAX_PARENTS, len(names)))
        self._pool = anytime.new_pool(max(2**12, 4 * len(names)), width)
        self._marks = np.random.default_rng(0).integers(1, 2**63, len(names), dtype=np.uint64)
        self._open = np.ones(min(len(names), _GREEDY_CANDIDATES), np.bool_)
        self._exclusions: list[tuple[float, int, frozenset[int]]] = [(-np.inf, 0, frozenset())]
        self._seen: set[frozenset[int]] = {frozenset()}

    @property
    def scored(self) -> int:
        """Number of sets scored so far."""
        return int(self._pool.counters[2])

    def step(self) -> bool:
        """Score some sets; return whether no promising sets are left."""
        code, _ = self._call(self._kernels.improve, _QUOTA)
        if self._limit < 1 or code == self._kernels.FULL:
            return True
        enough = self.scored + _QUOTA
        for _ in range(_GREEDY_SETS):
            if not self._exclusions or self.scored >= enough:
                break
            if not self._grow():
                return True
        return code == self._kernels.EMPTY and not self._exclusions

    def _grow(self) -> bool:
        """Grow one set greedily and queue exclusions; return whether there was enough memory."""
        _, _, excluded = heapq.heappop(self._exclusions)
        self._open[:] = True
        self._open[list(excluded)] = False
        code, at = self._call(self._kernels.grow, self._open)
        if code == self._kernels.FULL:
            return False
        members = self._pool.members[at][: self._pool.sizes[at]].tolist()
        for c in members:
            exclusion = excluded | {c}
            if c < len(self._open) and exclusion not in self._seen:
                self._seen.add(exclusion)
                item = (-float(self._pool.scores[at]), len(self._seen), exclusion)
                heapq.heappush(self._exclusions, item)
        return True

    def _call(self, kernel: Callable[..., Any], last: object) -> tuple[int, int]:
        """Call a kernel, and again with more memory if it runs out."""
        while True:
            result = kernel(
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
            code, at = result if isinstance(result, tuple) else (result, 0)
            if code == self._kernels.FAILED:
                self._local.raise_failure()
                raise RuntimeError("a compiled score failed without an error message")
            if code != self._kernels.FULL or 2 * len(self._pool.keys) > _LARGEST_POOL:
                return int(code), int(at)
            self._pool = self._kernels.grow_pool(self._pool)

    def block(self) -> Block:
        """Return the sets and scores so far, without sets that a subset equals or exceeds."""
        count = int(self._pool.counters[0]) if self._limit >= 1 else 1
        useful = np.flatnonzero(self._pool.useful[:count])
        sets = pack_lines(
            self._pool.members[useful], self._names, self._base, len(self._local.nodes)
        )
        return merge((sets, self._pool.scores[useful]))


def merge(*blocks: Block) -> Block:
    """Merge lists of the same child, without sets that a subset equals or exceeds."""
    from isthmus.numerics.parent_sets_anytime import without_better_subset

    sets = np.concatenate([sets for sets, _ in blocks])
    scores = np.concatenate([scores for _, scores in blocks])
    sets, scores = sort_block(sets, scores)
    kept = without_better_subset(sets)
    return sets[kept], scores[kept]
