"""Markov chains over orders and ordered partitions of the variables.

`FamilyTables` holds the weights of the parent sets of every node and their sums; `SamplingRun`
runs several chains on them. Random numbers are generated in the compiled core, one generator per
chain, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import _native
from isthmus.kernels.scoring import LocalScore, edge_flags

Space = _native.Space

Flags: TypeAlias = NDArray[np.bool_]
Parents: TypeAlias = Sequence[Sequence[int]]
Labels: TypeAlias = NDArray[np.uint32]


@final
class FamilyTables:
    """Sums of the weights of parent sets, for all subsets of the candidate parents of each node.

    Parameters
    ----------
    score
        Logarithm of the weight of a family.
    candidates
        Candidate parents, as a matrix [from, to]; at most 20 per node. Required parents are always
        candidates, forbidden ones never.
    outside
        Whether a parent set may have one member that is not a candidate.
    required, forbidden
        Edges that must or must not be there, as matrices [from, to].
    max_parents
        Upper bound on the number of parents; None for no bound.
    previous
        Complete tables of the same score, whose nodes with the same parent sets are not scored
        again.
    """

    def __init__(
        self,
        score: LocalScore,
        candidates: Flags,
        *,
        outside: bool = True,
        required: Flags | None = None,
        forbidden: Flags | None = None,
        max_parents: int | None = None,
        previous: FamilyTables | None = None,
    ) -> None:
        self.native: _native.FamilyTables = _native.FamilyTables(
            score,
            required=edge_flags(required, score.size),
            forbidden=edge_flags(forbidden, score.size),
            candidates=edge_flags(candidates, score.size),
            outside=outside,
            max_parents=max_parents,
            previous=None if previous is None else previous.native,
        )

    def step(self, seconds: float = 0.01, jobs: int = 1) -> bool:
        """Compute scores for at most this many seconds; return whether all are known."""
        return self.native.step(seconds, jobs)

    def log_sum(
        self, node: int, allowed: Sequence[int], wanted: Sequence[int] | None = None
    ) -> float:
        """Return the logarithm of the weight of all parent sets within ``allowed``.

        With ``wanted``, only parent sets with at least one member in it count.
        """
        one_of = None if wanted is None else self._set(wanted)
        return self.native.log_sum(node, self._set(allowed), one_of)

    def _set(self, members: Sequence[int]) -> NDArray[np.uint64]:
        bits = np.zeros(64 * -(-self.native.size // 64), np.bool_)
        bits[list(members)] = True
        return np.packbits(bits, bitorder="little").view(np.uint64)

    @property
    def families(self) -> int:
        """Number of parent sets of all nodes."""
        return self.native.families

    @property
    def built(self) -> int:
        """Number of nodes whose parent sets are all scored."""
        return self.native.built


@final
class SamplingRun:
    """Several chains, one time slice per step.

    Parameters
    ----------
    tables
        Weights of the parent sets, all of them computed.
    space
        State space of the chains: orders or partitions.
    starts
        A graph to start from for each chain, as the parents of each node.
    rng
        Generator of the seeds of the chains.
    levels
        Number of chains at different temperatures per chain (parallel tempering); 1 for none.
    warm_up
        Number of rounds of moves before the first draw.
    thin
        Number of rounds of moves per draw.
    draws
        Number of draws per chain.
    """

    def __init__(
        self,
        tables: FamilyTables,
        space: _native.Space,
        starts: Sequence[Parents],
        rng: np.random.Generator,
        *,
        levels: int = 1,
        warm_up: int,
        thin: int,
        draws: int,
    ) -> None:
        labels = [partition_of(graph) for graph in starts]
        if space is Space.ORDERS:
            labels = [order_of(own) for own in labels]
        self._run = _native.SamplingRun(
            tables.native,
            space=space,
            starts=np.array(labels, np.uint32).reshape(len(labels), tables.native.size),
            seeds=rng.integers(0, 2**64, len(labels), np.uint64, endpoint=False),
            levels=levels,
            warmup=warm_up,
            thin=thin,
            draws=draws,
        )

    def step(self, seconds: float = 0.01, jobs: int = 1) -> bool:
        """Sample for at most this many seconds; return whether all draws are made."""
        return self._run.step(seconds, jobs)

    @property
    def progress(self) -> float:
        """Fraction of the rounds that are done."""
        return self._run.rounds / max(1, self._run.total_rounds)

    def draws(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return the parents of each node in each draw, and the scores of the draws.

        Their shapes are (chains, draws, nodes, words) and (chains, draws), with as many draws as
        all chains have.
        """
        pairs = [self._run.draws(c) for c in range(self._run.chains)]
        least = min(len(scores) for _, scores in pairs)
        return (
            np.stack([graphs[:least] for graphs, _ in pairs]),
            np.stack([scores[:least] for _, scores in pairs]),
        )

    def edges(self) -> NDArray[np.float64]:
        """Return edge probabilities [chain, from, to]: averages over all states after the warm-up.

        Given a state, the probability of each edge is computed exactly, without drawing a graph.
        Not a number for chains that are still warming up.
        """
        rows = [self._run.edges(c) for c in range(self._run.chains)]
        return np.ascontiguousarray(np.stack(rows).transpose(0, 2, 1))

    def levels(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the heats of each chain's levels, and the exchange rates between neighbours."""
        pairs = [self._run.levels(c) for c in range(self._run.chains)]
        return np.stack([heats for heats, _ in pairs]), np.stack([rates for _, rates in pairs])


def partition_of(parents: Parents) -> Labels:
    """Return the element of each node in the ordered partition of a graph.

    Element 0 holds the nodes without parents; every other node is one element behind the last of
    its parents.
    """
    labels = np.zeros(len(parents), np.uint32)
    for _ in range(len(parents)):
        before = labels.copy()
        for v, own in enumerate(parents):
            if len(own) > 0:
                labels[v] = labels[list(own)].max() + 1
        if np.array_equal(before, labels):
            return labels
    if len(parents) == 0:
        return labels
    raise ValueError("the graph has a cycle")


def order_of(labels: Labels) -> Labels:
    """Return the position of each node in an order that agrees with a partition."""
    places = np.empty(len(labels), np.uint32)
    places[np.argsort(labels, kind="stable")] = np.arange(len(labels), dtype=np.uint32)
    return places


__all__ = ["FamilyTables", "SamplingRun", "Space", "order_of", "partition_of"]
