"""The PC algorithm: an equivalence class of graphs from tests of independence.

Which variables are adjacent, those that no set of others makes independent, is found in the version
that does not depend on the order of the columns (Colombo and Maathuis, JMLR 2014): all tests of one
size use the neighbours as they were before. Of all sets of this size that separate two variables,
the one with the largest p-value is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, nan
from typing import ClassVar, final

import numpy as np

from isthmus.errors import counted
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.names import bits, mask_of, reach, transpose
from isthmus.graphs.orientation import consistent_extension, nearest_extension
from isthmus.objectives import INDEPENDENCE_TESTS, IndependenceTest
from isthmus.options import require_integer, require_number
from isthmus.results.details import IndependenceDetails
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.watch import Watch

MOST_SETS = 1000
"""Sets of one size that are tried among the possible separators of the second stage. With more of
them, chance removes more true edges than false ones; see ``benchmarks/results/hidden-choices.md``.
Sets of neighbours are always tried."""

Pair = tuple[int, int]
Found = dict[Pair, tuple[float, int]]
"""The largest p-value of each pair that was separated, and the set."""


@final
@dataclass(frozen=True)
class PC(Search[IndependenceTest]):
    """The PC algorithm (Spirtes and Glymour 1991), in a version that does not depend on order.

    Two variables are adjacent unless a test finds them independent given some of their neighbours.
    If the set that separates two variables does not contain a common neighbour of theirs, both are
    causes of it. Of all separating sets of the smallest size, the one with the largest p-value
    counts. It assumes that there are no hidden common causes; `FCI` and `BossFCI` do not.

    If tests contradict each other, orientations from larger p-values have precedence, and a note
    says how many were dropped. A score is not computed; searches such as `Boss` are usually more
    accurate if there are no hidden causes.

    Parameters
    ----------
    alpha
        Significance level: an edge is removed if the p-value of a test is above it.
    max_conditioning
        Maximum number of variables that are conditioned on; None for no limit.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(8, 8, seed=2)
    >>> numbers = simulate.linear(dag, 2000, seed=2).data
    >>> solution = ist.learn(numbers, search=ist.PC(alpha=0.001))
    >>> ist.shd(solution.cpdag, dag.cpdag())
    0
    """

    alpha: float = 0.01
    max_conditioning: int | None = None
    accepts: ClassVar[Accepts] = (INDEPENDENCE_TESTS,)

    def __post_init__(self) -> None:
        require_number(self, "alpha", above=0, below=1)
        require_integer(self, "max_conditioning", least=0, optional=True)

    def search(
        self,
        objective: IndependenceTest,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        """Return a graph of the class that the tests leave; no random numbers are used."""
        possible = ~(knowledge.forbidden & knowledge.forbidden.T)
        skeleton = Skeleton(
            objective,
            self.alpha,
            self.max_conditioning,
            [mask_of(np.flatnonzero(row).tolist()) for row in possible],
            required_neighbours(knowledge),
            watch,
        )
        finished = False
        with watch.until_stopped():
            skeleton.prune()
            finished = True
        parents, dropped = _oriented(skeleton, knowledge)
        notes = []
        if dropped:
            notes.append(
                f"The tests contradict each other: {counted(dropped, 'orientation')} from the "
                "smallest p-values could not be kept. More rows or another alpha may help, or a "
                "search that optimises a score, such as Boss()."
            )
        if not finished:
            notes.append(skeleton.unfinished())
        return SearchResult(
            tuple(tuple(bits(own)) for own in parents),
            nan,
            IndependenceDetails(skeleton.tests),
            converged=finished,
            notes=tuple(notes),
            conclusion=skeleton.conclusion(),
        )


def required_neighbours(knowledge: BoundKnowledge) -> list[int]:
    """Return the neighbours of each node by edges that knowledge requires."""
    either = knowledge.required | knowledge.required.T
    return [mask_of(np.flatnonzero(row).tolist()) for row in either]


def _oriented(skeleton: Skeleton, knowledge: BoundKnowledge) -> tuple[Sequence[int], int]:
    """Return the parents in a DAG with this skeleton, and how many orientations were dropped."""
    adjacent = list(skeleton.adjacent)
    size = len(adjacent)
    parents = [0] * size
    dropped = 0
    for a, b in (*knowledge.required_edges, *np.argwhere(knowledge.forbidden.T).tolist()):
        if not adjacent[a] >> b & 1:
            continue
        if reach(1 << b, transpose(parents, size)) >> a & 1:  # no direction is left
            adjacent[a] &= ~(1 << b)
            adjacent[b] &= ~(1 << a)
            dropped += 1
        else:
            parents[b] |= 1 << a
    for a, b, c in _colliders(skeleton):
        closes_cycle = (1 << a | 1 << c) & reach(1 << b, transpose(parents, size))
        if closes_cycle or knowledge.forbidden[a, b] or knowledge.forbidden[c, b]:
            dropped += 1
        else:
            parents[b] |= 1 << a | 1 << c
    undirected = [
        adjacent[v] & ~parents[v] & ~children for v, children in enumerate(transpose(parents, size))
    ]
    extension = consistent_extension(parents, undirected)
    if extension is not None:
        return extension, dropped
    extension, contradictions = nearest_extension(parents, undirected)
    return extension, dropped + contradictions


def _colliders(skeleton: Skeleton) -> list[tuple[int, int, int]]:
    """Return the colliders (a, b, c) that the tests tell, those of the largest p-values first."""
    adjacent = skeleton.adjacent
    found = [
        (-skeleton.p_values[a, c], a, b, c)
        for (a, c), separator in skeleton.separators.items()
        for b in bits(adjacent[a] & adjacent[c] & ~separator)
    ]
    return [(a, b, c) for _, a, b, c in sorted(found)]


@final
class Skeleton:
    """An undirected graph from which edges are removed by tests.

    Parameters
    ----------
    test
        The test.
    alpha
        Edges with a p-value above this are removed.
    max_conditioning
        Maximum size of the sets that are conditioned on; None for no limit.
    adjacent
        Neighbours of each node at the beginning, as bitsets.
    fixed
        Neighbours of each node whose edges are not tested.
    watch
        Says when to stop.

    Attributes
    ----------
    adjacent
        Neighbours of each node.
    separators
        For pairs that were separated, smaller index first, the set that separates them.
    p_values
        The p-value of each of these pairs given its set.
    size
        Size of the sets that are being tried.
    tests
        Number of tests so far.
    limited
        Size of the sets from which on not all possible separators were tried; None if all were.
    """

    def __init__(
        self,
        test: IndependenceTest,
        alpha: float,
        max_conditioning: int | None,
        adjacent: Sequence[int],
        fixed: Sequence[int],
        watch: Watch,
    ) -> None:
        self._test = test
        self._alpha = alpha
        self._largest = len(adjacent) if max_conditioning is None else max_conditioning
        self._fixed, self._watch = fixed, watch
        self.adjacent = list(adjacent)
        self.separators: dict[Pair, int] = {}
        self.p_values: dict[Pair, float] = {}
        self.size = 0
        self.tests = 0
        self.limited: int | None = None

    def prune(self) -> None:
        """Remove the edges of pairs that are separated by some of the neighbours of one of them."""
        for size in range(self._largest + 1):
            self.size = size
            if all(own.bit_count() <= size for own in self.adjacent):
                return
            self._try_sets(list(self.adjacent), None)

    def prune_within(self, pools: Sequence[int]) -> None:
        """Remove the edges of pairs that are separated by other sets.

        Parameters
        ----------
        pools
            For each node, the nodes that may be in a set that separates it from a neighbour.
        """
        for size in range(1, self._largest + 1):
            self.size = size
            # Subsets of the neighbours have been tried.
            larger = [
                pool if pool & ~own and own and pool.bit_count() >= size else 0
                for pool, own in zip(pools, self.adjacent, strict=True)
            ]
            sets = sum(comb(pool.bit_count(), size) for pool in larger)
            if not sets:
                return
            if sets > MOST_SETS:
                self.limited = size
                return
            self._try_sets(larger, list(self.adjacent))

    def _try_sets(self, pools: Sequence[int], tried: Sequence[int] | None) -> None:
        """Test all edges given all sets of one size, and then remove those that were separated."""
        adjacent = list(self.adjacent)
        found: Found = {}
        determined: dict[Pair, list[int]] = {}
        for x, pool in enumerate(pools):
            for number, given in enumerate(combinations(bits(pool), self.size)):
                mask = mask_of(given)
                others = adjacent[x] & ~mask & ~self._fixed[x]
                if self.size == 0:
                    others &= -1 << x  # each pair once
                if not others or (tried is not None and not mask & ~tried[x]):
                    continue
                self._test_all(x, given, list(bits(others)), found, determined)
                if number % 256 == 255:
                    self._poll()
            self._poll()
        self._remove(found)
        for pair in found:
            determined.pop(pair, None)
        self._remove(self._explained(determined))

    def _poll(self) -> None:
        edges = sum(own.bit_count() for own in self.adjacent) // 2
        self._watch.poll(f"{edges:,} edges, sets of {self.size}, {self.tests:,} tests")

    def unfinished(self) -> str:
        """Return a note about a search that was stopped."""
        return (
            f"Stopped while sets of {counted(self.size, 'variable')} were tried: tests that were "
            "not made may remove more edges, and change directions."
        )

    def conclusion(self) -> str:
        """Explain why the search ended."""
        return f"{self.tests:,} tests of independence left no edge to test."

    def _remove(self, found: Found) -> None:
        for (a, b), (p_value, separator) in found.items():
            self.adjacent[a] &= ~(1 << b)
            self.adjacent[b] &= ~(1 << a)
            self.separators[a, b] = separator
            self.p_values[a, b] = p_value

    def _explained(self, determined: Mapping[Pair, Sequence[int]]) -> Found:
        """Return the pairs that sets which determine one of them separate.

        Such a test tells nothing, whether or not they are neighbours. They count as separated if a
        variable of the set is a neighbour of both, by edges that no such test removes.
        """
        certain = list(self.adjacent)
        for a, b in determined:
            certain[a] &= ~(1 << b)
            certain[b] &= ~(1 << a)
        return {
            (a, b): (1.0, separator)
            for (a, b), sets in determined.items()
            for separator in sets
            if certain[a] & certain[b] & separator
        }

    def _test_all(
        self,
        x: int,
        given: tuple[int, ...],
        others: list[int],
        found: Found,
        determined: dict[Pair, list[int]],
    ) -> None:
        p_values = self._test.p_values(x, given, others)
        self.tests += len(others)
        for k in np.flatnonzero(p_values > self._alpha).tolist():
            y, p_value = others[k], float(p_values[k])
            pair = (x, y) if x < y else (y, x)
            if pair not in found or p_value > found[pair][0]:
                found[pair] = p_value, mask_of(given)
        for k in np.flatnonzero(np.isnan(p_values)).tolist():
            y = others[k]
            determined.setdefault((x, y) if x < y else (y, x), []).append(mask_of(given))
