"""Grow-shrink trees: the parents of one child for any set of predecessors, computed once.

For a child, the greedy choice of parents among a set of predecessors adds the best candidate
while that helps, then removes while that helps. A tree remembers the answers: a node is a set of
parents in the order of adding, its branches are the candidates that help, best first. Tracing a
set of predecessors walks down by the first branch that is in the set (Andrews et al., "Fast
scalable and accurate discovery of DAGs using the best order score search and grow-shrink trees",
NeurIPS 2023).

All trees of a search live in one :class:`Forest` of flat arrays. When an array is full a kernel
says so by its return code and is called again with more room: whatever was computed stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics import abi
from isthmus.numerics.jit import inner

DONE = 0
NEEDS_ROOM = 1
SCORE_FAILED = 2


class Forest(NamedTuple):
    """Trees of all children; node ``i < d`` is the root of child ``i``."""

    first_branch: NDArray[np.int64]
    branches: NDArray[np.int32]  # number of branches, -1 while the node is not grown
    grown_score: NDArray[np.float64]
    shrunk_score: NDArray[np.float64]
    first_removed: NDArray[np.int64]
    removed: NDArray[np.int32]  # number of removed parents, -1 while the node is not shrunk
    branch_variable: NDArray[np.int32]
    branch_node: NDArray[np.int32]  # -1 until somebody walks there
    branch_score: NDArray[np.float64]
    removed_variable: NDArray[np.int32]
    used: NDArray[np.int64]  # nodes, branches, removed variables in use


class Scratch(NamedTuple):
    """Room to work in, one for all traces."""

    parents: NDArray[np.int64]  # the grown set, required parents first
    trial: NDArray[np.int64]
    candidates: NDArray[np.int64]
    values: NDArray[np.float64]
    skipped: NDArray[np.int64]  # variables that would change the trace if they came in
    barred: NDArray[np.int64]  # a variable is out of the running if it carries the current stamp
    sizes: NDArray[np.int64]  # [0] number of parents, [1] number skipped, [2] the stamp


class Rules(NamedTuple):
    """What the user demands, laid out for the kernels."""

    forbidden: NDArray[np.uint8]  # [child, parent]
    required_start: NDArray[np.int64]
    required: NDArray[
        np.int64
    ]  # parents of child c: required[required_start[c]:required_start[c + 1]]
    max_parents: int


def new_forest(d: int, nodes: int, branches: int) -> Forest:
    """Make an empty forest for ``d`` children."""
    forest = Forest(
        first_branch=np.zeros(nodes, np.int64),
        branches=np.full(nodes, -1, np.int32),
        grown_score=np.zeros(nodes),
        shrunk_score=np.zeros(nodes),
        first_removed=np.zeros(nodes, np.int64),
        removed=np.full(nodes, -1, np.int32),
        branch_variable=np.zeros(branches, np.int32),
        branch_node=np.full(branches, -1, np.int32),
        branch_score=np.zeros(branches),
        removed_variable=np.zeros(branches, np.int32),
        used=np.zeros(3, np.int64),
    )
    forest.used[0] = d
    return forest


def enlarge(forest: Forest) -> Forest:
    """Return the same trees with twice the room."""
    wider = new_forest(0, 2 * len(forest.branches), 2 * len(forest.branch_node))
    for name in Forest._fields:
        old = getattr(forest, name)
        getattr(wider, name)[: len(old)] = old
    return wider


def new_scratch(d: int) -> Scratch:
    """Make room to work in for ``d`` variables."""
    return Scratch(
        parents=np.zeros(d, np.int64),
        trial=np.zeros(d, np.int64),
        candidates=np.zeros(d, np.int64),
        values=np.zeros(d + 1),
        skipped=np.zeros(d, np.int64),
        barred=np.zeros(d, np.int64),
        sizes=np.zeros(3, np.int64),
    )


def new_rules(
    required: NDArray[np.bool_], forbidden: NDArray[np.bool_], max_parents: int | None
) -> Rules:
    """Lay out demands given as matrices indexed [from, to]."""
    child, parent = np.nonzero(required.T)
    start = np.searchsorted(child, np.arange(len(required) + 1))
    return Rules(
        forbidden=np.ascontiguousarray(forbidden.T, dtype=np.uint8),
        required_start=start.astype(np.int64),
        required=parent.astype(np.int64),
        max_parents=len(required) if max_parents is None else max_parents,
    )


@inner
def _worse(values, a, b):  # type: ignore[no-untyped-def]
    """Whether extension ``a`` comes after ``b``: by score, then by index, so ties have an order."""
    if values[1 + a] != values[1 + b]:
        return values[1 + a] < values[1 + b]
    return a > b


@inner
def _sort_best_first(items, values, count):  # type: ignore[no-untyped-def]
    """Heap sort; the library sorts of the compiler take seconds to compile."""
    end = count
    start = count // 2
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            items[0], items[end] = items[end], items[0]
        root = start
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and _worse(values, items[child + 1], items[child]):
                child += 1
            if not _worse(values, items[child], items[root]):
                break
            items[root], items[child] = items[child], items[root]
            root = child


@inner
def _grow(score, forest, scratch, node, child, k, rules):  # type: ignore[no-untyped-def]
    """Score every extension of a node and keep those that help, best first."""
    d = len(scratch.barred)
    used = forest.used
    if used[1] + d > len(forest.branch_node):
        return NEEDS_ROOM
    m = 0
    if k < rules.max_parents:
        stamp = scratch.sizes[2]
        for x in range(d):
            if scratch.barred[x] != stamp and rules.forbidden[child, x] == 0:
                scratch.candidates[m] = x
                m += 1
    values = scratch.values
    if abi.evaluate(score, child, scratch.parents, k, scratch.candidates, m, values) != 0:
        return SCORE_FAILED
    base = values[0]
    helpful = 0
    for j in range(m):
        if values[1 + j] > base:
            scratch.trial[helpful] = j
            helpful += 1
    _sort_best_first(scratch.trial, values, helpful)
    start = used[1]
    for h in range(helpful):
        j = scratch.trial[h]
        forest.branch_variable[start + h] = scratch.candidates[j]
        forest.branch_score[start + h] = values[1 + j]
        forest.branch_node[start + h] = -1
    used[1] += helpful
    forest.first_branch[node] = start
    forest.grown_score[node] = base
    forest.branches[node] = helpful
    return DONE


@inner
def _shrink(score, forest, scratch, node, child, k, required):  # type: ignore[no-untyped-def]
    """Remove parents while that helps; the first ``required`` ones stay."""
    used = forest.used
    if used[2] + k > len(forest.removed_variable):
        return NEEDS_ROOM
    kept = k
    left = scratch.trial.copy()
    for i in range(k):
        left[i] = scratch.parents[i]
    best = forest.grown_score[node]
    start = used[2]
    count = 0
    while kept > required:
        worst = -1
        for i in range(required, kept):
            t = 0
            for j in range(kept):
                if j != i:
                    scratch.trial[t] = left[j]
                    t += 1
            status = abi.evaluate(
                score, child, scratch.trial, t, scratch.candidates, 0, scratch.values
            )
            if status != 0:
                return SCORE_FAILED
            if scratch.values[0] > best:
                best = scratch.values[0]
                worst = i
        if worst < 0:
            break
        forest.removed_variable[start + count] = left[worst]
        count += 1
        for j in range(worst, kept - 1):
            left[j] = left[j + 1]
        kept -= 1
    used[2] += count
    forest.first_removed[node] = start
    forest.shrunk_score[node] = best
    forest.removed[node] = count
    return DONE


@inner
def trace(score, forest, scratch, child, inside, rules):  # type: ignore[no-untyped-def]
    """Find the node of ``child`` for the predecessors marked in ``inside``.

    Returns a code and the node; ``scratch`` then holds the grown parents and the skipped ones.
    """
    barred = scratch.barred
    scratch.sizes[2] += 1
    stamp = scratch.sizes[2]
    barred[child] = stamp
    k = 0
    for i in range(rules.required_start[child], rules.required_start[child + 1]):
        x = rules.required[i]
        scratch.parents[k] = x
        barred[x] = stamp
        k += 1
    fixed = k
    skipped = 0
    node = child
    code = DONE
    while True:
        if forest.branches[node] < 0:
            code = _grow(score, forest, scratch, node, child, k, rules)
            if code != DONE:
                return code, node
        taken = -1
        first = forest.first_branch[node]
        for b in range(first, first + forest.branches[node]):
            x = forest.branch_variable[b]
            barred[x] = stamp
            if inside[x]:
                taken = b
                scratch.parents[k] = x
                k += 1
                break
            scratch.skipped[skipped] = x
            skipped += 1
        if taken < 0:
            break
        if forest.branch_node[taken] < 0:
            new = forest.used[0]
            if new >= len(forest.branches):
                return NEEDS_ROOM, node
            forest.used[0] += 1
            forest.branch_node[taken] = new
        node = forest.branch_node[taken]
    scratch.sizes[0] = k
    scratch.sizes[1] = skipped
    if forest.removed[node] < 0:
        code = _shrink(score, forest, scratch, node, child, k, fixed)
    return code, node


@inner
def parents_at(forest, scratch, node, k):  # type: ignore[no-untyped-def]
    """Return the parents left at ``node`` after a trace that grew ``k`` of them."""
    first = forest.first_removed[node]
    count = forest.removed[node]
    result = np.empty(k - count, np.int64)
    t = 0
    for i in range(k):
        gone = False
        for j in range(first, first + count):
            if forest.removed_variable[j] == scratch.parents[i]:
                gone = True
        if not gone:
            result[t] = scratch.parents[i]
            t += 1
    return result
