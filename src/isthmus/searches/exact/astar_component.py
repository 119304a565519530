"""A* search on one component: pattern databases, then states, then near-optimal graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.searches.exact.components import Choice, Component, Line, PartSearch
from isthmus.searches.exact.near_best import enumerate_near_best

_QUOTA = 5_000
_CHUNK = 2**11
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
    networks
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
        networks: int,
        slack: float | None,
        pattern: int,
        max_states: int,
    ) -> None:
        from isthmus.numerics import order_graph

        self._kernels = order_graph
        groups = _groups(part, pattern)
        self._part = _renumbered(part, [i for group in groups for i in group])
        self._known = known
        self._networks = networks
        self._slack = slack
        self._max_states = max_states
        self._size = len(part.nodes)
        sizes = np.array([len(group) for group in groups], np.int64)
        lengths = 2**sizes
        lists = self._part.lists
        self._problem = order_graph.Problem(
            np.concatenate([[0], np.cumsum([len(lines) for lines in lists])]).astype(np.int64),
            np.array([line[0] for lines in lists for line in lines], np.uint64),
            np.array([line[1] for lines in lists for line in lines], np.float64),
            np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
            sizes,
            np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
            np.empty(int(lengths.sum())),
        )
        self._group = 0
        self._filled = 0
        self._frontier: order_graph.Frontier | None = None
        self._finished = False
        self._gave_up = False

    @property
    def _floor(self) -> float:
        low = 0.0 if self._slack is None else self._slack
        sign = 1.0 if self._slack is None else -1.0
        return self._known - low + sign * 1e-10 * max(1.0, abs(self._known))

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of expanded states."""
        return {"expanded": 0 if self._frontier is None else int(self._frontier.counters[2])}

    @property
    def gap(self) -> float:
        """Upper bound on how much more than the current best graph the optimal one can score."""
        if self._finished and not self._gave_up:
            return 0.0
        if self._frontier is None:
            best = sum(lines[0][1] for lines in self._part.lists)
        elif self._frontier.counters[1] == 0:
            return 0.0
        else:
            best = float(self._frontier.heap_keys[0])
        return max(0.0, best - self._known)

    def step(self) -> bool:
        """Fill part of the pattern databases, or expand some states; return whether it is done."""
        if self._group < len(self._problem.sizes):
            self._fill()
            return False
        closing = self._slack is None
        if self._frontier is None:
            self._frontier = self._kernels.new_frontier(2**14)
            self._kernels.begin(self._problem, self._frontier, self._floor, closing)
        code = self._kernels.advance(
            self._problem, self._frontier, self._floor, closing, not closing, _QUOTA
        )
        self._take_goal()
        if code == self._kernels.NEEDS_ROOM:
            if 2 * len(self._frontier.states) > self._max_states:
                self._gave_up = self._finished = True
                return True
            self._frontier = self._kernels.grow_frontier(self._frontier)
        self._finished = code == self._kernels.FINISHED
        return self._finished

    def _fill(self) -> None:
        size = 2 ** int(self._problem.sizes[self._group])
        end = min(self._filled + _CHUNK, size)
        self._kernels.fill_pattern(self._problem, self._group, self._filled, end)
        self._filled = end
        if end == size:
            self._group += 1
            self._filled = 0

    def _take_goal(self) -> None:
        assert self._frontier is not None
        goal = int(self._frontier.counters[3])
        if goal >= 0:
            self._known = max(self._known, float(self._frontier.values[goal]))

    def better_lines(self) -> Iterator[tuple[int, int]]:
        """Yield the nodes and lines of the best graph, if it improves on the known one."""
        frontier = self._frontier
        if frontier is None or frontier.counters[3] < 0:
            return
        choices: list[int] = []
        at = int(frontier.counters[3])
        while at >= 0:
            choices.append(int(frontier.last[at]))
            at = int(frontier.via[at])
        # The first state is the empty set, not a choice.
        taken = np.array(choices[::-1][1:], np.int64)
        lines: NDArray[np.int64] = np.full(self._size, -1, np.int64)
        self._kernels.replay(self._problem, taken, self._slack is None, lines)
        for i, v in enumerate(self._part.nodes):
            offset = int(lines[i] - self._problem.starts[i])
            yield v, self._part.lists[i][offset][2]

    def near_best(self) -> tuple[list[Choice], float]:
        """Return the best graphs, best first; none before all relevant states are expanded."""
        if not self._finished or self._gave_up or self._slack is None:
            return [], self._known + self.gap
        assert self._frontier is not None
        n = int(self._frontier.counters[0])
        closed = np.flatnonzero(self._frontier.closed[:n])
        states, values = self._frontier.states[closed], self._frontier.values[closed]
        best = dict(zip(states.tolist(), values.tolist(), strict=True))
        floor = self._known - self._slack
        graphs = enumerate_near_best(self._part, best, floor, self._networks)
        return graphs, graphs[-1][0] if len(graphs) == self._networks else floor

    def describe(self) -> str:
        """Report progress."""
        if self._frontier is None:
            return f"patterns of a component of {self._size} nodes"
        return f"{self.counts['expanded']} states of a component of {self._size} nodes"


def _groups(part: Component, max_size: int) -> list[list[int]]:
    """Group nodes that compete with each other into the same pattern, as far as they fit."""
    m = len(part.nodes)
    if m <= min(max_size, _SINGLE):
        return [list(range(m))]
    alone = np.zeros((m, m))
    for v, lines in enumerate(part.lists):
        for p in range(m):
            without = next((s for mask, s, _ in lines if not mask >> p & 1), None)
            alone[p, v] = lines[0][1] - without if without is not None else 1e6
    # If two nodes are good parents of each other, only one of the edges can be used.
    rival = np.minimum(alone, alone.T)
    weight = rival + 1e-3 * (alone + alone.T)
    count = max(2, -(-m // max_size))
    room = -(-m // count)
    groups = [[v] for v in range(m)]
    while True:
        best, pair = -1.0, None
        for i, a in enumerate(groups):
            for j in range(i):
                b = groups[j]
                if len(a) + len(b) <= room:
                    tie = float(weight[np.ix_(a, b)].sum()) / min(len(a), len(b))
                    if tie > best:
                        best, pair = tie, (i, j)
        if pair is None:
            return groups
        i, j = pair
        groups[j] = sorted(groups[j] + groups[i])
        del groups[i]


def _renumbered(part: Component, order: list[int]) -> Component:
    place = {old: new for new, old in enumerate(order)}

    def moved(line: Line) -> Line:
        mask = sum(1 << place[p] for p in range(len(order)) if line[0] >> p & 1)
        return mask, line[1], line[2]

    return Component(
        tuple(part.nodes[i] for i in order),
        tuple(tuple(moved(line) for line in part.lists[i]) for i in order),
    )
