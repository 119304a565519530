"""Enumeration of near-optimal graphs."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.graphs.names import bits, reach
from isthmus.kernels import _native
from isthmus.objectives import ScoreTable
from isthmus.objectives.table import Words
from isthmus.watch import Say, Watch

# --- Components of a score table that can be solved separately, and what solves one of them -----

Line = tuple[int, float, int]
"""A parent set as a bit mask, its score, and its line in the table."""

Choice = tuple[float, dict[int, int]]
"""The score of a graph, and for each node the line of its parent set in the table."""


@final
@dataclass(frozen=True, eq=False)
class Component:
    """Nodes that can be solved independently, with their parent sets among themselves.

    Attributes
    ----------
    nodes
        The nodes, as indices of the table.
    starts
        The parent sets of ``nodes[i]`` are ``starts[i]`` to ``starts[i + 1]``, best first.
    sets
        The parent sets as bitsets of positions in ``nodes``.
    scores
        Their scores.
    lines
        Their lines in the table.
    """

    nodes: tuple[int, ...]
    starts: Integers
    sets: Words
    scores: Floats
    lines: Integers

    def __len__(self) -> int:
        return len(self.nodes)

    def span(self, i: int) -> slice:
        """Return the range of the parent sets of the node at a position."""
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    @property
    def tops(self) -> Floats:
        """The best score of each node."""
        return self.scores[self.starts[:-1]]

    @cached_property
    def lists(self) -> tuple[tuple[Line, ...], ...]:
        """The parent sets of each node as tuples, for enumerations in Python."""
        masks = masks_of(self.sets)
        scores, lines = self.scores.tolist(), self.lines.tolist()
        return tuple(
            tuple(zip(masks[a:b], scores[a:b], lines[a:b], strict=True))
            for a, b in pairwise(self.starts.tolist())
        )


def masks_of(sets: Words) -> list[int]:
    """Return bitsets as Python integers."""
    masks: list[int] = sets[:, 0].tolist()
    for w in range(1, sets.shape[1]):
        masks = [
            mask | word << 64 * w for mask, word in zip(masks, sets[:, w].tolist(), strict=True)
        ]
    return masks


class PartSearch(ABC):
    """A running search for the best graphs of one component."""

    @abstractmethod
    def run(self, watch: Watch, say: Say) -> None:
        """Search until the graphs are proven."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """Upper bound on how much more than the current best graph the optimal one can score."""

    @property
    @abstractmethod
    def counts(self) -> Mapping[str, int]:
        """Counts of the work so far, which can be added over components."""

    @abstractmethod
    def better_lines(self) -> Iterator[tuple[int, int]]:
        """Yield the nodes and lines of the best graph, if it improves on the known one."""

    @abstractmethod
    def near_best(self) -> tuple[list[Choice], float]:
        """Return the best graphs so far, best first, and an upper bound on all others."""

    @abstractmethod
    def describe(self) -> str:
        """Report progress."""


def decompose(table: ScoreTable, watch: Watch, slack: float = 0.0) -> list[Component]:
    """Split the nodes into strongly connected components of the graph of possible parents.

    Fan, Malone and Yuan 2014. Parents outside a component can precede it in every relevant order,
    so they are always available. Sets that differ only in such parents are merged, which can split
    the component further.
    """
    split = _native.Decomposition(
        np.ascontiguousarray(table.starts, np.int64),
        np.ascontiguousarray(table.sets, np.uint64),
        np.ascontiguousarray(table.scores, np.float64),
        slack=slack,
    )
    watch.run(split.step)
    return [Component(tuple(nodes.tolist()), *arrays) for nodes, *arrays in split.components()]


# --- Enumeration of near-optimal graphs ---------------------------------------------------------

MARGIN = 1e-6
"""SCIP treats scores within this margin as equal, so the search extends below the slack by it."""


def enumerate_near_best(
    part: Component,
    value_of: Callable[[int], float | None],
    floor: float,
    most: int,
    watch: Watch,
) -> list[Choice]:
    """List the best graphs of one component.

    Each graph is decomposed sink by sink, always removing the sink with the highest number, so that
    it occurs once.

    Parameters
    ----------
    part
        The component.
    value_of
        Returns the best score of a set of nodes (as a bit mask), at least for the sets that occur
        in graphs above the floor.
    floor
        Graphs that score less are omitted.
    most
        Maximum number of graphs.
    watch
        Says when to stop.
    """
    enumeration = _Enumeration(part, value_of, floor, most, watch)
    watch.poll()
    enumeration.visit((1 << len(part)) - 1, 0, 0.0)
    return enumeration.choices()


@final
class _Enumeration:
    def __init__(
        self,
        part: Component,
        value_of: Callable[[int], float | None],
        floor: float,
        most: int,
        watch: Watch,
    ) -> None:
        self._part, self._watch = part, watch
        self._lists = part.lists
        self._value_of = value_of
        self._floor = floor - 1e-9 * max(1.0, abs(floor))
        self._most = most
        self._chosen = [0] * len(part)
        self._kept: list[tuple[float, int, tuple[int, ...]]] = []
        self._count = 0

    def visit(self, left: int, barred: int, sure: float) -> None:
        """Choose a sink among the nodes that are left, and its parents, in all ways."""
        if not left:
            self._keep(sure)
            return
        self._watch.poll()
        for hope, x, mask, score, line in self._options(left, barred, sure):
            if hope < self._floor:
                break
            rest = left ^ (1 << x)
            self._chosen[x] = line
            # A remaining node above x was not a sink, so it must have a child removed later.
            above = rest >> (x + 1) << (x + 1)
            self.visit(rest, (barred | above) & ~mask & rest, sure + score)

    def _options(
        self, left: int, barred: int, sure: float
    ) -> list[tuple[float, int, int, float, int]]:
        options = []
        for x in bits(left & ~barred):
            rest = left ^ (1 << x)
            value = self._value_of(rest) if rest else 0.0
            if value is None:
                continue
            for mask, score, line in self._lists[x]:
                hope = sure + score + value
                if hope < self._floor:
                    break
                if not mask & ~rest:
                    options.append((hope, x, mask, score, line))
        options.sort(key=lambda option: -option[0])
        return options

    def _keep(self, score: float) -> None:
        kept = self._kept
        self._count += 1
        heapq.heappush(kept, (score, -self._count, tuple(self._chosen)))
        if len(kept) > self._most:
            heapq.heappop(kept)
        if len(kept) == self._most:
            # Ignore ties with the last one: there can be millions of them.
            self._floor = max(self._floor, kept[0][0] + 1e-12 * max(1.0, abs(kept[0][0])))

    def choices(self) -> list[Choice]:
        """Return the graphs that were found, best first."""
        ordered = sorted(self._kept, key=lambda one: (-one[0], -one[1]))
        return [
            (score, dict(zip(self._part.nodes, lines, strict=True))) for score, _, lines in ordered
        ]


def combine(first: list[Choice], second: list[Choice], most: int, slack: float) -> list[Choice]:
    """Combine the graphs of two components, best first.

    Parameters
    ----------
    first, second
        The best graphs of each component, best first.
    most
        Maximum number of graphs.
    slack
        Graphs that score more than this below the best one are omitted, because either list may
        end there.
    """
    pairs = [
        (score + more, i, j)
        for i, (score, _) in enumerate(first)
        # All earlier pairs score at least as much, so at most ``most`` pairs are needed.
        for j, (more, _) in enumerate(second[: most // (i + 1)])
    ]
    pairs.sort(key=lambda pair: -pair[0])
    return [
        (score, {**first[i][1], **second[j][1]})
        for score, i, j in pairs[:most]
        if score >= pairs[0][0] - slack
    ]


def graphs_around(
    part: Component, start: tuple[int, ...], most: int, watch: Watch
) -> list[tuple[int, ...]]:
    """Find good graphs near a given one, as a lower bound for the ranking.

    Each step changes the parents of one node or reverses an edge, starting from the best graph that
    was not expanded yet.

    Parameters
    ----------
    part
        The component.
    start
        Position of each node's parent set in its list.
    most
        Maximum number of graphs.
    watch
        Says when to stop.
    """
    score = sum(lines[i][1] for lines, i in zip(part.lists, start, strict=True))
    kept = [(score, start)]
    waiting = [(-score, start)]
    seen = {start}
    for _ in range(most):
        if not waiting:
            break
        loss, at = heapq.heappop(waiting)
        for gain, after in _changed(part, at):
            score = gain - loss
            full = len(kept) == most
            if after in seen or (full and score <= kept[0][0]):
                continue
            seen.add(after)
            heapq.heappush(waiting, (-score, after))
            (heapq.heappushpop if full else heapq.heappush)(kept, (score, after))
        watch.poll()
    return [graph for _, graph in kept]


def _changed(part: Component, at: tuple[int, ...]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield graphs with one changed parent set or one reversed edge, and their gain."""
    lists = part.lists
    parents = [lines[i][0] for lines, i in zip(lists, at, strict=True)]
    below = _descendants(parents)
    for v, lines in enumerate(lists):
        own = lines[at[v]][1]
        for i, (mask, score, _) in enumerate(lines):
            if i != at[v] and not mask & below[v]:
                yield score - own, (*at[:v], i, *at[v + 1 :])
        for p in bits(parents[v]):
            # Another path from p to v would close a cycle.
            if any(below[p] >> q & 1 for q in bits(parents[v] ^ (1 << p))):
                continue
            without, turned = parents[v] ^ (1 << p), parents[p] | 1 << v
            i = next((i for i, line in enumerate(lines) if line[0] == without), -1)
            j = next((j for j, line in enumerate(lists[p]) if line[0] == turned), -1)
            if i >= 0 and j >= 0:
                after = list(at)
                after[v], after[p] = i, j
                gain = lines[i][1] - own + lists[p][j][1] - lists[p][at[p]][1]
                yield gain, tuple(after)


def _descendants(parents: list[int]) -> list[int]:
    """Return the nodes reachable from each node, including itself, as bit masks."""
    children = [0] * len(parents)
    for v, mask in enumerate(parents):
        for p in bits(mask):
            children[p] |= 1 << v
    return [reach(1 << v, children) for v in range(len(parents))]


@final
class Ranking:
    """The best graphs so far, each as positions of the parent sets in their lists."""

    def __init__(self, part: Component, most: int, slack: float) -> None:
        self._part = part
        self._most = most
        self._slack = slack
        self._kept: list[tuple[float, int, tuple[int, ...]]] = []
        self._seen: set[tuple[int, ...]] = set()
        self.best = -math.inf

    def __len__(self) -> int:
        return len(self._kept)

    def floor(self, margin: float = 0.0) -> float:
        """Return the lowest score of interest, less a margin at the end of the slack."""
        low = self.best - self._slack - margin
        return max(low, self._kept[0][0]) if len(self._kept) == self._most else low

    def add(self, graph: tuple[int, ...]) -> None:
        """Add a graph if it is new and good enough."""
        if graph in self._seen:
            return
        self._seen.add(graph)
        score = sum(lines[i][1] for lines, i in zip(self._part.lists, graph, strict=True))
        self.best = max(self.best, score)
        heapq.heappush(self._kept, (score, -len(self._seen), graph))
        if len(self._kept) > self._most:
            heapq.heappop(self._kept)

    def choices(self) -> list[Choice]:
        """Return the graphs above the floor, best first."""
        nodes, lists = self._part.nodes, self._part.lists
        return [
            (score, {v: lists[p][graph[p]][2] for p, v in enumerate(nodes)})
            for score, _, graph in sorted(self._kept, reverse=True)
            if score >= self.best - self._slack - MARGIN
        ]
