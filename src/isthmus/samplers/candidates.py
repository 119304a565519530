"""Candidate parents: which parent sets a sampler sums over exactly.

Tables hold every subset of the candidates of a node, and every such subset with one more parent
from outside. So a parent that was overlooked is still drawn, if only one at a time, and
`Candidates.exchange` makes it a candidate. `Candidates.grow` adds candidates to the nodes that lack
most: tables are small where few parent sets have any weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.scoring import LocalScore

MAX_CANDIDATES = 20
MAX_FAMILIES = 6_000_000
"""Bound on the number of parent sets in all tables: about 250 MB, and seconds for fast scores."""
FIRST_FAMILIES = MAX_FAMILIES // 8
"""The same before the tables grow."""
MAX_COMPLETE = 12_000_000
"""The same if the tables hold all parent sets, so that nothing is approximated: about 500 MB."""
ENOUGH = 0.01
"""Tables grow until about this weight is outside of them, relative to that of all they hold."""
_GREEDY = 6

Flags = NDArray[np.bool_]
Parents = Sequence[Sequence[int]]
Pairs: TypeAlias = tuple[int, NDArray[np.int64], NDArray[np.float64]]
"""A parent from outside, others, and the weights of parent sets with it and each of them."""


def candidate_count(allowed: NDArray[np.int64], most: int) -> int:
    """Return how many candidates per node keep the number of parent sets within its bounds.

    Parameters
    ----------
    allowed
        Number of possible parents of each node.
    most
        Bound on the number of parent sets, unless all of them fit `MAX_COMPLETE`.
    """
    if allowed.max(initial=0) <= MAX_CANDIDATES and (2.0**allowed).sum() <= MAX_COMPLETE:
        return MAX_CANDIDATES
    for count in range(MAX_CANDIDATES, 1, -1):
        if family_counts(allowed, np.minimum(allowed, count)).sum() <= most:
            return count
    return 1


def family_counts(allowed: NDArray[np.int64], inside: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of parent sets in the table of each node.

    Parameters
    ----------
    allowed
        Number of possible parents of each node.
    inside
        How many of them are candidates.
    """
    counts: NDArray[np.float64] = 2.0**inside * (allowed - inside + 1)
    return counts


@final
class Candidates:
    """Ranks the possible parents of each node, and keeps the best as candidates.

    Neighbours in good graphs come first, then the parents that greedy growth from the empty set
    adds, then those with the largest gains, alone or added to the parents in a good graph.

    Parameters
    ----------
    score
        The local score.
    knowledge
        Required and forbidden edges.
    count
        Number of candidates per node; None for tables that grow, within `MAX_FAMILIES`.
    """

    def __init__(self, score: LocalScore, knowledge: BoundKnowledge, count: int | None) -> None:
        d = score.size
        self._score = score
        self._required = knowledge.required
        self._possible = ~knowledge.forbidden | knowledge.required
        np.fill_diagonal(self._possible, val=False)
        self._allowed = self._possible.sum(axis=0)
        self._grows = count is None
        first = (
            candidate_count(self._allowed, FIRST_FAMILIES)
            if count is None
            else min(count, MAX_CANDIDATES)
        )
        first = max(first, int(self._required.sum(axis=0).max(initial=0)))
        self._counts = np.minimum(self._allowed, first)
        self._rank = np.full((d, d), -np.inf)

    @property
    def count(self) -> int:
        """Largest number of candidates of a node."""
        return int(self._counts.max(initial=0))

    @property
    def complete(self) -> bool:
        """Whether all possible parents are candidates."""
        return bool((self._counts == self._allowed).all())

    def rank(self, child: int, graphs: Sequence[Parents]) -> None:
        """Rank the possible parents of a node by its scores and by some good graphs."""
        others = np.flatnonzero(self._possible[:, child])
        if len(others) == self._counts[child]:
            self._rank[others, child] = 0.0
            return
        rank = np.zeros(len(self._rank))
        rank[others] += _ranks(self._gains(child, [], others))
        for step, parent in enumerate(self._add_greedily(child, others)):
            rank[parent] += 1e4 * (1 + _GREEDY - step)
        for graph in graphs:
            own = [u for u in graph[child] if self._possible[u, child]]
            rest = np.setdiff1d(others, own)
            rank[rest] += 2 * _ranks(self._gains(child, own, rest))
            rank[own] += 1e7
            rank[[v for v, parents in enumerate(graph) if child in parents]] += 1e6
        if self._grows:  # so that the tables hold the good graphs
            known = len({u for graph in graphs for u in graph[child]})
            known = min(known, candidate_count(self._allowed, MAX_FAMILIES))
            self._counts[child] = max(self._counts[child], known)
        rank[self._required[:, child]] = np.inf
        self._rank[others, child] = rank[others]

    def matrix(self) -> Flags:
        """Return the candidates as a matrix [from, to]."""
        order = np.argsort(-self._rank, axis=0, kind="stable")
        chosen = np.zeros(self._rank.shape, np.bool_)
        best = np.arange(len(order))[:, None] < self._counts
        np.put_along_axis(chosen, order, values=best, axis=0)
        return chosen & self._possible

    def outside(self, child: int) -> Flags:
        """Return the possible parents of a node that are no candidates."""
        best = np.argsort(-self._rank[:, child], kind="stable")[: self._counts[child]]
        others: Flags = self._possible[:, child].copy()
        others[best] = False
        return others

    def gains(self, child: int, parents: Flags, others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how much the score of a family rises by each of some further parents."""
        return self._gains(child, np.flatnonzero(parents).tolist(), others)

    def exchange(self, frequencies: NDArray[np.float64], least: float) -> int:
        """Exchange rare candidates for more frequent parents from outside.

        Parameters
        ----------
        frequencies
            How often each edge was drawn, as a matrix [from, to].
        least
            How much more frequent a parent must be than the candidate that it replaces.

        Returns
        -------
        int
            Number of candidates that were exchanged.
        """
        chosen = self.matrix()
        changes = 0
        for child in range(len(chosen)):
            inside = np.flatnonzero(chosen[:, child] & ~self._required[:, child])
            outside = np.flatnonzero(self._possible[:, child] & ~chosen[:, child])
            inside = inside[np.argsort(frequencies[inside, child], kind="stable")]
            outside = outside[np.argsort(-frequencies[outside, child], kind="stable")]
            for old, new in zip(inside.tolist(), outside.tolist(), strict=False):
                if frequencies[new, child] <= frequencies[old, child] + least:
                    break
                ranks = self._rank[:, child]
                ranks[old], ranks[new] = ranks[new], ranks[old]
                changes += 1
        return changes

    def grow(self, missing: Mapping[int, Sequence[Pairs]]) -> int:
        """Add candidates until parent sets with two members from outside have little weight.

        Next is always the parent that saves most weight for the number of parent sets it adds.

        Parameters
        ----------
        missing
            For each node, the weights of parent sets with two members from outside.

        Returns
        -------
        int
            Number of candidates that were added.
        """
        if not self._grows:
            return 0
        left = sum(float(weights.sum()) for own in missing.values() for _, _, weights in own)
        savings = {child: self._savings(child, own) for child, own in missing.items()}
        families = family_counts(self._allowed, self._counts)
        added = 0
        while left > ENOUGH:
            cost = family_counts(self._allowed, self._counts + 1) - families
            fits = families.sum() + cost <= MAX_FAMILIES
            worth = {c: s[0][0] / max(cost[c], 1.0) for c, s in savings.items() if s and fits[c]}
            if not worth:
                break
            child = max(worth, key=worth.__getitem__)
            saved, parent = savings[child].pop(0)
            self._add(parent, child)
            families[child] += cost[child]
            left -= saved
            added += 1
        return added

    def _savings(self, child: int, pairs: Sequence[Pairs]) -> list[tuple[float, int]]:
        """Return the parents that save most weight, one after the other, and how much."""
        size = len(self._rank)
        weights = np.zeros((size, size))
        for first, others, own in pairs:
            weights[first, others] += own
        weights += weights.T
        savings: list[tuple[float, int]] = []
        while self._counts[child] + len(savings) < MAX_CANDIDATES:
            saved = weights.sum(axis=0)
            parent = int(np.argmax(saved))
            if saved[parent] <= 0.0:
                break
            savings.append((float(saved[parent]), parent))
            weights[parent] = weights[:, parent] = 0.0
        return savings

    def _add(self, parent: int, child: int) -> None:
        """Make one more parent of a node a candidate."""
        ranks = self._rank[:, child]
        first = np.argsort(-ranks, kind="stable")[self._counts[child]]
        ranks[first], ranks[parent] = ranks[parent], ranks[first]
        self._counts[child] += 1

    def _add_greedily(self, child: int, others: NDArray[np.int64]) -> list[int]:
        parents: list[int] = []
        while len(parents) < min(_GREEDY, len(others)):
            rest = np.setdiff1d(others, parents)
            gains = self._gains(child, parents, rest)
            parents.append(int(rest[int(np.argmax(gains))]))
        return parents

    def _gains(
        self, child: int, parents: Sequence[int], others: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        scores = self._score.extensions(child, np.array(parents, np.int64), others)
        gains: NDArray[np.float64] = scores[1:] - scores[0]
        return gains


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)
