"""Markov chains over graphs that add, delete and reverse single edges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_integer
from isthmus.samplers.chains import Accepts, Draws, Sampler
from isthmus.watch import Watch

_MOVES = 64
"""Moves whose random numbers are drawn at a time."""


@final
@dataclass(frozen=True)
class StructureMCMC(Sampler[LocalScore]):
    """Metropolis-Hastings over graphs by single edges: a simple check of other samplers.

    The method is that of Madigan and York (1995). Each move picks an ordered pair of variables and
    proposes to add, delete or reverse their edge. The chains mix slowly: prefer `ExactPosterior`
    for few variables.

    Parameters
    ----------
    thin
        Number of moves between two draws; by default ten times the number of variables.
    warm_up
        Number of moves before the first draw; by default a fifth of the whole chain.
    max_parents
        Maximum number of parents; None for no limit.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, sampler=ist.StructureMCMC(), draws=100, chains=2, seed=1)
    >>> posterior.edge_probabilities().shape
    (5, 5)
    """

    thin: int | None = None
    warm_up: int | None = None
    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)

    def __post_init__(self) -> None:
        require_integer(self, "thin", least=1, optional=True)
        require_integer(self, "warm_up", least=0, optional=True)
        require_integer(self, "max_parents", least=0, optional=True)

    def sample(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
        *,
        draws: int,
        chains: int,
    ) -> Draws:
        structures = _StructureChains(self, objective, knowledge, rng, draws, chains)
        with watch.until_stopped():
            structures.move_all(watch)
        return structures.draws()


class Walk:
    """A graph that changes one edge at a time; parents are sets of bits.

    Parameters
    ----------
    objective, knowledge, max_parents
        As for the sampler.
    scores
        Scores of families, by child and bits of its parents, which walks may share.
    """

    def __init__(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        max_parents: int | None,
        scores: dict[tuple[int, int], float],
    ) -> None:
        self.objective = objective
        self.d = len(objective.nodes)
        self.required, self.forbidden = knowledge.required, knowledge.forbidden
        self.max_parents = self.d if max_parents is None else max_parents
        self.parents = [
            sum(1 << int(p) for p in np.flatnonzero(self.required[:, v])) for v in range(self.d)
        ]
        self.score = -math.inf
        self._scores = scores

    def local(self, child: int, mask: int) -> float:
        """Return the score of a family, which is computed once."""
        key = (child, mask)
        if key not in self._scores:
            members = [p for p in range(self.d) if mask >> p & 1]
            self._scores[key] = self.objective.local(child, members)
        return self._scores[key]

    def evaluate(self, watch: Watch) -> None:
        """Compute the score of the graph."""
        total = 0.0
        for v, mask in enumerate(self.parents):
            total += self.local(v, mask)
            watch.poll()
        self.score = total

    def proposal(self, a: int, b: int, coin: bool) -> dict[int, int] | None:  # noqa: FBT001
        """Return the changed parent sets of a move on the pair a -> b; None to stay.

        Every move is proposed with the same probability as its opposite.
        """
        edge, opposite = self.parents[b] >> a & 1, self.parents[a] >> b & 1
        if opposite:
            return None
        if not edge:
            allowed = coin and not self.forbidden[a, b] and self._room(b)
            if not allowed or self._reaches(b, a):
                return None
            return {b: self.parents[b] | 1 << a}
        if self.required[a, b]:
            return None
        without = self.parents[b] & ~(1 << a)
        if coin:
            return {b: without}
        if self.forbidden[b, a] or not self._room(a) or self._reaches(a, b, skip=(a, b)):
            return None
        return {b: without, a: self.parents[a] | 1 << b}

    def move(self, a: int, b: int, coin: bool, limit: float) -> bool:  # noqa: FBT001
        """Propose a move on the pair a -> b; accept it if it gains more than ``limit``."""
        change = self.proposal(a, b, coin) if a != b else None
        if change is None:
            return False
        gain = self.gain(change)
        if limit < gain:
            self.apply(change, gain)
        return limit < gain

    def gain(self, change: dict[int, int]) -> float:
        """Return how much a change raises the score."""
        return sum(
            self.local(v, mask) - self.local(v, self.parents[v]) for v, mask in change.items()
        )

    def apply(self, change: dict[int, int], gain: float) -> None:
        """Change the graph."""
        for v, mask in change.items():
            self.parents[v] = mask
        self.score += gain

    def _room(self, child: int) -> bool:
        return self.parents[child].bit_count() < self.max_parents

    def _reaches(self, start: int, end: int, skip: tuple[int, int] | None = None) -> bool:
        """Return whether there is a directed path, other than the edge ``skip``."""
        seen = waiting = 1 << end
        while waiting:
            v = waiting.bit_length() - 1
            parents = self.parents[v]
            if skip is not None and v == skip[1]:
                parents &= ~(1 << skip[0])
            waiting = (waiting & ~(1 << v)) | (parents & ~seen)
            seen |= parents
            if seen >> start & 1:
                return True
        return False


def _random_moves(
    rng: np.random.Generator, d: int, count: int
) -> Iterator[tuple[int, int, bool, float]]:
    """Draw pairs of different nodes, coins, and the logarithms of uniform numbers."""
    firsts = rng.integers(d, size=count)
    seconds = (firsts + 1 + rng.integers(max(1, d - 1), size=count)) % d
    coins = rng.random(count) < 0.5
    limits = np.log(rng.random(count))
    return zip(firsts.tolist(), seconds.tolist(), coins.tolist(), limits.tolist(), strict=True)


@final
class _StructureChains:
    """Chains over graphs, which move together."""

    def __init__(
        self,
        options: StructureMCMC,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        draws: int,
        chains: int,
    ) -> None:
        d = len(objective.nodes)
        self._rngs = rng.spawn(chains)
        scores: dict[tuple[int, int], float] = {}
        self._walks = [
            Walk(objective, knowledge, options.max_parents, scores) for _ in range(chains)
        ]
        self._thin = 10 * d if options.thin is None else options.thin
        total = draws * self._thin
        self._warm_up = total // 4 if options.warm_up is None else options.warm_up
        self._end = self._warm_up + total
        self._moves = 0
        self._accepted = 0
        self._d, self._words = d, -(-d // 64)
        self._kept: list[list[tuple[int, ...]]] = [[] for _ in range(chains)]
        self._scores: list[list[float]] = [[] for _ in range(chains)]

    def move_all(self, watch: Watch) -> None:
        """Move all chains together, so that an interrupted run has the same draws of each."""
        for walk in self._walks:
            walk.evaluate(watch)
        while self._moves < self._end:
            count = min(_MOVES, self._end - self._moves)
            moves = [_random_moves(rng, self._d, count) for rng in self._rngs]
            for together in zip(*moves, strict=True):
                for walk, (a, b, coin, limit) in zip(self._walks, together, strict=True):
                    self._accepted += walk.move(a, b, coin, limit)
                    watch.poll()
                self._moves += 1
                done = self._moves - self._warm_up
                if done > 0 and done % self._thin == 0:
                    self._keep()
            best = max((walk.score for walk in self._walks), default=-math.inf)
            watch.poll(f"move {self._moves}", best, self._moves / self._end)

    def _keep(self) -> None:
        for walk, kept, scores in zip(self._walks, self._kept, self._scores, strict=True):
            kept.append(tuple(walk.parents))
            scores.append(walk.score)

    def draws(self) -> Draws:
        """Return the draws so far, the same number of each chain."""
        words = self._words
        # Ctrl-C may come when only some of the chains have kept a draw.
        draws = min(map(len, self._scores))
        graphs = [
            [[[m >> 64 * w & (1 << 64) - 1 for w in range(words)] for m in g] for g in kept[:draws]]
            for kept in self._kept
        ]
        scores = [one[:draws] for one in self._scores]
        shape = (len(self._walks), draws, self._d, words)
        share = self._accepted / max(1, self._moves * len(self._walks))
        return Draws.from_sequence(
            np.array(graphs, np.uint64).reshape(shape),
            np.array(scores, np.float64),
            conclusion=f"all draws were made; {share:.0%} of the moves were accepted.",
        )
