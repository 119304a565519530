"""The marks of a graph with hidden causes, and the rules by which one mark determines another.

The rules are those of Zhang (Artificial Intelligence 2008), which are complete: what they leave
open, the independences of the observed variables leave open. R5, R6 and R7 are not here. They
concern undirected edges, which stand for selection (rows are in the table *because* of some
variable); R5 makes the first of them from a cycle of circles without chords, which without
selection does not exist, and R6 and R7 continue from those.
"""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import TYPE_CHECKING, final

from isthmus.graphs.bits import bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Separators = Mapping[tuple[int, int], int]
    """For pairs that are not adjacent, smaller index first: a set that separates them."""


@final
class Marks:
    """A graph whose marks are determined one after the other; each edge begins as ``o-o``.

    Attributes
    ----------
    adjacent
        Nodes that share an edge with each node, as bitsets.
    arrows, tails, circles
        Neighbours of each node at whose edge *this* node has the mark.
    arrows_beyond, tails_beyond
        Neighbours of each node that have the mark at *their* end of the edge.
    """

    def __init__(self, adjacent: Sequence[int]) -> None:
        size = len(adjacent)
        self.adjacent = list(adjacent)
        self.circles = list(adjacent)
        self.arrows, self.tails = [0] * size, [0] * size
        self.arrows_beyond, self.tails_beyond = [0] * size, [0] * size

    def parents(self, node: int) -> int:
        """Return the nodes with an edge ``-->`` to a node."""
        return self.arrows[node] & self.tails_beyond[node]

    def children(self, node: int) -> int:
        """Return the nodes with an edge ``-->`` from a node."""
        return self.tails[node] & self.arrows_beyond[node]

    def put_arrow(self, a: int, b: int) -> bool:
        """Turn the circle at b of the edge between a and b into an arrowhead, if it is one."""
        if not self.circles[b] >> a & 1:
            return False
        self.circles[b] ^= 1 << a
        self.arrows[b] |= 1 << a
        self.arrows_beyond[a] |= 1 << b
        return True

    def put_tail(self, a: int, b: int) -> bool:
        """Turn the circle at b of the edge between a and b into a tail, if it is one."""
        if not self.circles[b] >> a & 1:
            return False
        self.circles[b] ^= 1 << a
        self.tails[b] |= 1 << a
        self.tails_beyond[a] |= 1 << b
        return True

    def put_colliders(self, separators: Separators) -> None:
        """R0: orient ``a *-> b <-* c`` if a and c are separated by a set without b."""
        for (a, c), separator in separators.items():
            for b in bits(self.adjacent[a] & self.adjacent[c] & ~separator):
                self.put_arrow(a, b)
                self.put_arrow(c, b)

    def close(self, separators: Separators) -> None:
        """Apply the rules R1 to R4 and R8 to R10 until none of them determines another mark."""
        while self._arrowheads() or self._discriminating(separators) or self._tails():
            pass

    def _circles(self) -> Iterator[tuple[int, int]]:
        """Yield pairs (a, b) with a circle at b, as they are now."""
        for b, mask in enumerate(list(self.circles)):
            for a in bits(mask):
                yield a, b

    def _arrowheads(self) -> bool:
        """Apply R1, R2 and R3 once to every circle and return whether one of them changed."""
        changed = False
        for a, b in self._circles():
            if not self.circles[b] >> a & 1:
                continue
            if self.arrows[b] & ~self.adjacent[a] & ~(1 << a):  # R1: c *-> b o-* a
                self.put_tail(a, b)
                self.put_arrow(b, a)
                changed = True
            elif (  # R2: a --> c *-> b, or a *-> c --> b
                self.children(a) & self.arrows[b]
                or self.arrows_beyond[a] & self.parents(b)
                or self._has_gap(self.arrows[b] & self.circles[a])  # R3: c *-o a o-* d
            ):
                self.put_arrow(a, b)
                changed = True
        return changed

    def _has_gap(self, nodes: int) -> bool:
        """Return whether two of these nodes are not adjacent."""
        return any(nodes & ~(self.adjacent[c] | 1 << c) for c in bits(nodes))

    def _discriminating(self, separators: Separators) -> bool:
        """R4: orient the last edge of discriminating paths; return whether a mark changed."""
        changed = False
        for c, b in self._circles():
            if not self.circles[b] >> c & 1:
                continue
            for a in bits(self.arrows_beyond[b] & self.parents(c)):
                start = self._start_of_path(a, b, c)
                if start is None:
                    continue
                pair = (start, c) if start < c else (c, start)
                if separators[pair] >> b & 1:
                    self.put_tail(c, b)
                    self.put_arrow(b, c)
                else:
                    self.put_arrow(a, b)
                    self.put_arrow(c, b)
                    self.put_arrow(b, c)
                changed = True
                break
        return changed

    def _start_of_path(self, a: int, b: int, c: int) -> int | None:
        """Return the first node of a discriminating path ``(start, …, a, b, c)`` for b, or None.

        All nodes between the first one and b are colliders on the path, and parents of c.
        """
        seen = 1 << a | 1 << b | 1 << c
        waiting = deque([a])
        parents = self.parents(c)
        while waiting:
            node = waiting.popleft()
            before = self.arrows[node] & ~seen
            start = before & ~self.adjacent[c]
            if start:
                return next(bits(start))
            both = before & parents & self.arrows_beyond[node]
            seen |= both
            waiting.extend(bits(both))
        return None

    def _tails(self) -> bool:
        """Apply R8, R9 and R10 once to every ``o->`` and return whether one of them changed."""
        changed = False
        for c, a in self._circles():
            if self.arrows[c] >> a & 1 and (
                self.children(a) & self.parents(c)  # R8: a --> b --> c
                or self._first_steps(a, c) & ~self.adjacent[c] & ~(1 << c)  # R9
                or self._two_ways(a, c)  # R10
            ):
                changed |= self.put_tail(c, a)
        return changed

    def _two_ways(self, a: int, c: int) -> bool:
        """R10: two parents of c are reached from a by paths whose second nodes are not adjacent."""
        parents = list(bits(self.parents(c) & ~(1 << a)))
        if len(parents) < 2:
            return False
        steps = [self._first_steps(a, b) for b in parents]
        return any(
            second & ~(self.adjacent[node] | 1 << node)
            for first, second in combinations(steps, 2)
            for node in bits(first)
        )

    def _possible(self, node: int) -> int:
        """Return where an edge that may be directed leads from a node."""
        return self.adjacent[node] & ~self.arrows[node] & ~self.tails_beyond[node]

    def _first_steps(self, a: int, target: int) -> int:
        """Return the second nodes of the uncovered potentially directed paths to a target.

        A path is uncovered if no two nodes on it that are two steps apart are adjacent. Then each
        step depends on the last one alone, so pairs of nodes are visited, each once.
        """
        found = 0
        for first in bits(self._possible(a)):
            seen = {(a, first)}
            waiting = deque(seen)
            while waiting:
                before, node = waiting.popleft()
                if node == target:
                    found |= 1 << first
                    break
                for after in bits(self._possible(node) & ~(self.adjacent[before] | 1 << before)):
                    if (node, after) not in seen:
                        seen.add((node, after))
                        waiting.append((node, after))
        return found
