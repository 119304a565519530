"""Which variables are adjacent: those that no set of others makes independent.

The search is that of PC, in the version that does not depend on the order of the columns (Colombo
and Maathuis, JMLR 2014): all tests of one size use the neighbours as they were before. Of all sets
of this size that separate two variables, the one with the largest p-value is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import final

import numpy as np

from isthmus.graphs.bits import bits, mask_of
from isthmus.objectives import IndependenceTest
from isthmus.types import Work

MOST_SETS = 1000
"""Sets of one size that are tried among the possible separators of the second stage. With more of
them, chance removes more true edges than false ones; see ``benchmarks/results/hidden-choices.md``.
Sets of neighbours are always tried."""

Pair = tuple[int, int]
Found = dict[Pair, tuple[float, int]]
"""The largest p-value of each pair that was separated, and the set."""


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
    ) -> None:
        self._test = test
        self._alpha = alpha
        self._largest = len(adjacent) if max_conditioning is None else max_conditioning
        self._fixed = fixed
        self.adjacent = list(adjacent)
        self.separators: dict[Pair, int] = {}
        self.p_values: dict[Pair, float] = {}
        self.size = 0
        self.tests = 0
        self.limited: int | None = None

    def prune(self) -> Work[None]:
        """Remove the edges of pairs that are separated by some of the neighbours of one of them."""
        for size in range(self._largest + 1):
            self.size = size
            if all(own.bit_count() <= size for own in self.adjacent):
                return
            yield from self._try_sets(list(self.adjacent), None)

    def prune_within(self, pools: Sequence[int]) -> Work[None]:
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
            yield from self._try_sets(larger, list(self.adjacent))

    def _try_sets(self, pools: Sequence[int], tried: Sequence[int] | None) -> Work[None]:
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
                    yield
            yield
        self._remove(found)
        for pair in found:
            determined.pop(pair, None)
        self._remove(self._explained(determined))

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
