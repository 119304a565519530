"""A* search on one component: pattern databases, then states, then near-optimal graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

import numpy as np

from isthmus.graphs.bits import bits
from isthmus.kernels import _native
from isthmus.objectives.table import Words
from isthmus.searches.exact.components import Choice, Component, PartSearch
from isthmus.searches.exact.near_best import enumerate_near_best
from isthmus.types import Floats, Work

_SINGLE = 12
"""Components up to this size use one pattern, which is dynamic programming."""


@final
class ComponentSearch(PartSearch):
    """A running A* search on one component.

    Parameters
    ----------
    part
        The nodes and their parent sets.
    known
        Score of a known graph.
    n_best
        Number of best graphs to list.
    slack
        None to find one optimal graph; otherwise list graphs that score at most this much less.
    pattern
        Maximum number of nodes per pattern database.
    max_states
        Maximum number of states in memory.
    """

    def __init__(
        self,
        part: Component,
        known: float,
        *,
        n_best: int,
        slack: float | None,
        pattern: int,
        max_states: int,
    ) -> None:
        self._part = part
        self._known = known
        self._networks = n_best
        self._slack = slack
        self._graph: _native.OrderGraph | None = None
        self._graphs: list[Choice] = []
        self._work = self._steps(pattern, max_states)

    def step(self) -> bool:
        """Work on patterns, states or graphs for a while; return whether the search is done."""
        return next(self._work, True) is not None

    def _steps(self, pattern: int, max_states: int) -> Iterator[None]:
        groups = yield from group_nodes(self._part, pattern)
        self._part = yield from renumber(self._part, [i for group in groups for i in group])
        self._graph = graph = _native.OrderGraph(
            self._part.starts,
            np.ascontiguousarray(self._part.sets[:, 0]),
            self._part.scores,
            groups=np.array([len(group) for group in groups], np.int64),
            known=self._known,
            slack=self._slack,
            max_states=max_states,
        )
        while not graph.step():
            yield
        if self._slack is not None and not graph.gave_up:
            self._graphs = yield from enumerate_near_best(
                self._part, graph.value, graph.known - self._slack, self._networks
            )

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of expanded states."""
        return {"expanded": 0 if self._graph is None else self._graph.expanded}

    @property
    def gap(self) -> float:
        if self._graph is None:
            return max(0.0, float(self._part.tops.sum()) - self._known)
        return self._graph.bound - self._graph.known

    def better_lines(self) -> Iterator[tuple[int, int]]:
        if self._graph is not None:
            chosen = self._graph.lines()
            yield from zip(self._part.nodes, self._part.lines[chosen].tolist(), strict=False)

    def near_best(self) -> tuple[list[Choice], float]:
        """Return the best graphs, best first; none before all relevant states are expanded."""
        if not self._graphs or self._graph is None or self._slack is None:
            known = self._known if self._graph is None else self._graph.known
            return [], known + self.gap
        full = len(self._graphs) == self._networks
        return self._graphs, self._graphs[-1][0] if full else self._graph.known - self._slack

    def describe(self) -> str:
        size = len(self._part)
        if self._graph is None or not self._graph.searching:
            return f"patterns of a component of {size} nodes"
        return f"{self._graph.expanded} states of a component of {size} nodes"


def group_nodes(part: Component, max_size: int) -> Work[list[list[int]]]:
    """Group nodes that compete with each other into the same pattern, as far as they fit."""
    m = len(part)
    if m <= min(max_size, _SINGLE):
        return [list(range(m))]
    alone = np.empty((m, m))
    for v in range(m):
        span = part.span(v)
        alone[:, v] = _loss_without(part.sets[span, 0], part.scores[span], m)
        yield
    # If two nodes are good parents of each other, only one of the edges can be used.
    rival = np.minimum(alone, alone.T)
    weight = rival + 1e-3 * (alone + alone.T)
    count = max(2, -(-m // max_size))
    return (yield from _merge_groups(weight, -(-m // count)))


def _loss_without(masks: Words, scores: Floats, m: int) -> Floats:
    """Return how much a node loses if it may not have each of the others as a parent."""
    loss = np.full(m, 1e6)
    common = (1 << m) - 1  # in all sets so far
    shared = np.bitwise_and.accumulate(masks)
    changes = np.flatnonzero(np.diff(shared, prepend=~np.uint64(0)))
    for line in changes.tolist():
        now = int(shared[line])
        for p in bits(common & ~now):
            loss[p] = scores[0] - scores[line]
        common &= now
    return loss


def _merge_groups(weight: Floats, room: int) -> Work[list[list[int]]]:
    """Merge the two groups with the largest mean weight, as long as any two fit together."""
    m = len(weight)
    groups: list[list[int]] = [[v] for v in range(m)]
    ties = np.where(np.tri(m, k=-1, dtype=np.bool_), weight, -np.inf)
    if room < 2:
        return groups
    while True:
        i, j = divmod(int(np.argmax(ties)), m)
        if ties[i, j] == -np.inf:
            return [group for group in groups if group]
        groups[j] = sorted(groups[j] + groups[i])
        groups[i] = []
        for k, other in enumerate(groups):
            ties[max(i, k), min(i, k)] = -np.inf
            if k != j:
                fits = bool(other) and len(other) + len(groups[j]) <= room
                a, b = max(j, k), min(j, k)
                ties[a, b] = _tie(weight, groups[a], groups[b]) if fits else -np.inf
        yield


def _tie(weight: Floats, a: list[int], b: list[int]) -> float:
    return float(weight[np.ix_(a, b)].sum()) / min(len(a), len(b))


def renumber(part: Component, order: list[int]) -> Work[Component]:
    """Put the nodes of a component of at most 64 nodes in another order."""
    starts, sets, index = [0], [], []
    one = np.uint64(1)
    for i in order:
        span = part.span(i)
        masks = part.sets[span, 0]
        moved = np.zeros_like(masks)
        for new, old in enumerate(order):
            moved |= (masks >> np.uint64(old) & one) << np.uint64(new)
        sets.append(moved)
        index.append(np.arange(span.start, span.stop))
        starts.append(starts[-1] + len(masks))
        yield
    lines = np.concatenate(index)
    return Component(
        tuple(part.nodes[i] for i in order),
        np.array(starts, np.int64),
        np.concatenate(sets)[:, None],
        part.scores[lines],
        part.lines[lines],
    )
