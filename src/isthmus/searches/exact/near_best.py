"""All graphs that score nearly as much as the best one, each once."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import final

from isthmus.graphs.bits import bits
from isthmus.graphs.order import reach
from isthmus.searches.exact.components import Choice, Component

MARGIN = 1e-6
"""What SCIP takes for equal: so far below the slack it looks too."""


def enumerate_near_best(
    part: Component, values: dict[int, float], floor: float, most: int
) -> list[Choice]:
    """List the best graphs of one component.

    A graph is taken apart sink by sink, always the sink with the highest number, so that each
    graph comes once. ``values`` are the best scores of sets of nodes, at least of those that a
    graph above the floor is made of.

    Parameters
    ----------
    part
        The component.
    values
        Best score of each set of nodes, as a mask.
    floor
        Graphs that score less are left out.
    most
        How many to give.
    """
    kept: list[tuple[float, int, tuple[int, ...]]] = []
    m = len(part.nodes)
    chosen = [0] * m
    tick = 0
    floor -= 1e-9 * max(1.0, abs(floor))

    def visit(left: int, barred: int, sure: float) -> None:
        nonlocal tick, floor
        if not left:
            tick += 1
            heapq.heappush(kept, (sure, -tick, tuple(chosen)))
            if len(kept) > most:
                heapq.heappop(kept)
            if len(kept) == most:
                # As good as the last one is not better: there can be millions of them.
                floor = max(floor, kept[0][0] + 1e-12 * max(1.0, abs(kept[0][0])))
            return
        steps = []
        for x in range(m):
            if not left >> x & 1 or barred >> x & 1:
                continue
            rest = left ^ (1 << x)
            value = values.get(rest) if rest else 0.0
            if value is not None:
                steps += [
                    (sure + s + value, x, mask, s, line)
                    for mask, s, line in part.lists[x]
                    if not mask & ~rest and sure + s + value >= floor
                ]
        steps.sort(key=lambda step: -step[0])
        for hope, x, mask, s, line in steps:
            if hope < floor:
                break
            rest = left ^ (1 << x)
            chosen[x] = line
            # A node above x that is left must have been no sink: a later one must be its child.
            above = rest >> (x + 1) << (x + 1)
            visit(rest, (barred | above) & ~mask & rest, sure + s)

    visit((1 << m) - 1, 0, 0.0)
    kept.sort(key=lambda one: (-one[0], -one[1]))
    return [(score, dict(zip(part.nodes, lines, strict=True))) for score, _, lines in kept]


def combine(first: list[Choice], second: list[Choice], most: int, slack: float) -> list[Choice]:
    """Put the graphs of two parts together, best first.

    Parameters
    ----------
    first, second
        The best graphs of either part, best first.
    most
        How many to give.
    slack
        Graphs that score so much less than the best one are left out: where either list ends so
        far below its best graph, the next ones may be missing.
    """
    pairs = [
        (score + more, i, j)
        for i, (score, _) in enumerate(first)
        # The pairs before this one are as good: more than ``most`` of them are not needed.
        for j, (more, _) in enumerate(second[: most // (i + 1)])
    ]
    pairs.sort(key=lambda pair: -pair[0])
    return [
        (score, {**first[i][1], **second[j][1]})
        for score, i, j in pairs[:most]
        if score >= pairs[0][0] - slack
    ]


def graphs_around(part: Component, start: tuple[int, ...], most: int) -> list[tuple[int, ...]]:
    """Find good graphs near a given one: so many score at least what the last of them does.

    The parents of one node are changed, or an edge is turned; then again from the best graph so
    found, and so on.

    Parameters
    ----------
    part
        The component.
    start
        Place in its list of the parent set of each node.
    most
        How many to give.
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
    return [graph for _, graph in kept]


def _changed(part: Component, at: tuple[int, ...]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Graphs with one other parent set or one turned edge, and what they gain."""
    lists = part.lists
    parents = [lines[i][0] for lines, i in zip(lists, at, strict=True)]
    below = _descendants(parents)
    for v, lines in enumerate(lists):
        own = lines[at[v]][1]
        for i, (mask, score, _) in enumerate(lines):
            if i != at[v] and not mask & below[v]:
                yield score - own, (*at[:v], i, *at[v + 1 :])
        for p in bits(parents[v]):
            # Another way from p to v would close a cycle.
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
    """Nodes that can be reached from each node, itself included, as masks."""
    children = [0] * len(parents)
    for v, mask in enumerate(parents):
        for p in bits(mask):
            children[p] |= 1 << v
    return [reach(1 << v, children) for v in range(len(parents))]


@final
class Ranking:
    """The best graphs seen, each as the place in its list of the parent set of each node."""

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
        """Graphs that score less are not wanted, but for a margin at the end of the slack."""
        low = self.best - self._slack - margin
        return max(low, self._kept[0][0]) if len(self._kept) == self._most else low

    def add(self, graph: tuple[int, ...]) -> None:
        """Take a graph if it is new and good enough."""
        if graph in self._seen:
            return
        self._seen.add(graph)
        score = sum(lines[i][1] for lines, i in zip(self._part.lists, graph, strict=True))
        self.best = max(self.best, score)
        heapq.heappush(self._kept, (score, -len(self._seen), graph))
        if len(self._kept) > self._most:
            heapq.heappop(self._kept)

    def choices(self) -> list[Choice]:
        """The graphs above the floor, best first."""
        nodes, lists = self._part.nodes, self._part.lists
        return [
            (score, {v: lists[p][graph[p]][2] for p, v in enumerate(nodes)})
            for score, _, graph in sorted(self._kept, reverse=True)
            if score >= self.best - self._slack - MARGIN
        ]
