"""Tables of the scores of all parent sets, for posterior distributions over graphs.

A `ScoreTable` lists only the parent sets that can be part of an optimal graph. A posterior gives
weight to every parent set, so a `FamilyTable` keeps all of them, among a limited number of
candidate parents for each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.graphs import DAG, BoundKnowledge
from isthmus.objectives.base import Capabilities, Capability, Objective, Sense
from isthmus.objectives.local import LocalScore
from isthmus.objectives.table import ScoreTable

MAX_CANDIDATES = 20
"""Maximum number of candidates of a node; its table then has a million entries."""
_ROUNDING = 2e-10
"""Smaller gains are rounding errors, as in a `ScoreTable`."""


FAMILIES: Capability[FamilyTable] = Capability("a table of all families")
"""The score of every parent set among the candidates of each node; see `FamilyTable`."""


@final
@dataclass(frozen=True, eq=False)
class FamilyTable(Objective):
    """The score of every parent set of each node among its candidates.

    Attributes
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    candidates
        Possible parents of each node, by index, in ascending order.
    scores
        For each node one score per subset of its candidates. Bit ``i`` of the position in the
        array says whether ``candidates[node][i]`` is a parent. Parent sets that are not allowed
        have the score minus infinity.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    """

    sense: ClassVar[Sense] = Sense.MAXIMISE
    capabilities: ClassVar[Capabilities] = frozenset({FAMILIES})  # type: ignore[misc]
    nodes: tuple[str, ...]
    candidates: tuple[tuple[int, ...], ...]
    scores: tuple[NDArray[np.float64], ...]
    equivalent: bool = True

    def __post_init__(self) -> None:
        d = len(self.nodes)
        if len(self.candidates) != d or len(self.scores) != d:
            raise SchemaError(f"A family table of {d} nodes needs candidates and scores for each.")
        for v, (candidates, scores) in enumerate(zip(self.candidates, self.scores, strict=True)):
            others = set(range(d)) - {v}
            if list(candidates) != sorted(set(candidates)) or not set(candidates) <= others:
                raise SchemaError(
                    f"The candidate parents of {self.nodes[v]!r} must be other nodes, each once "
                    f"and in ascending order; {list(candidates)} were given."
                )
            if scores.shape != (2 ** len(candidates),):
                raise SchemaError(
                    f"{self.nodes[v]!r} has {len(candidates)} candidates and needs "
                    f"{2 ** len(candidates)} scores; {scores.shape} were given."
                )

    @classmethod
    def from_score(
        cls,
        score: LocalScore,
        *,
        candidates: Sequence[Sequence[int]] | None = None,
        max_parents: int | None = None,
        knowledge: BoundKnowledge | None = None,
    ) -> FamilyTable:
        """Score every parent set of each node among its candidates.

        Parameters
        ----------
        score
            The local score.
        candidates
            Possible parents of each node, by index; all other nodes by default.
        max_parents
            Upper bound on the number of parents; None for no bound.
        knowledge
            Required and forbidden edges.
        """
        d = len(score.nodes)
        given = [[u for u in range(d) if u != v] for v in range(d)]
        allowed_parents: list[tuple[int, ...]] = []
        for v, own in enumerate(given if candidates is None else candidates):
            allowed = set(own) - {v}
            if knowledge is not None:
                allowed |= set(np.flatnonzero(knowledge.required[:, v]).tolist())
                allowed -= set(np.flatnonzero(knowledge.forbidden[:, v]).tolist())
                allowed -= set(np.flatnonzero(knowledge.required[v]).tolist())
            allowed_parents.append(tuple(sorted(allowed)))
        widest = max(map(len, allowed_parents), default=0)
        if widest > MAX_CANDIDATES:
            raise DataError(
                f"A family table holds every subset of the candidates of a node; {widest} "
                f"candidates were given and {MAX_CANDIDATES} are allowed. Give fewer candidates."
            )
        required = None if knowledge is None else knowledge.required
        scores = tuple(
            _scored(score, v, own, max_parents, None if required is None else required[:, v])
            for v, own in enumerate(allowed_parents)
        )
        return cls(score.nodes, tuple(allowed_parents), scores, score.equivalent)

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the score of a parent set; minus infinity if it is not in the table."""
        position = {u: i for i, u in enumerate(self.candidates[child])}
        if any(p not in position for p in parents):
            return -np.inf
        return float(self.scores[child][sum(1 << position[p] for p in set(parents))])

    def total(self, dag: DAG) -> float:
        """Return the score of a graph over the same nodes."""
        index = {name: i for i, name in enumerate(self.nodes)}
        return sum(self.local(index[v], [index[p] for p in dag.parents(v)]) for v in dag.nodes)

    def undominated(self) -> ScoreTable:
        """Return the parent sets that can be part of an optimal graph."""
        lists = []
        for own, scores in zip(self.candidates, self.scores, strict=True):
            best = scores.copy()  # of all proper subsets and the set itself
            useful = np.isfinite(scores)
            for i in range(len(own)):
                with_i = (np.arange(len(scores)) >> i & 1).astype(bool)
                without = best[np.flatnonzero(with_i) ^ (1 << i)]
                useful[with_i] &= scores[with_i] > without + _ROUNDING
                best[with_i] = np.maximum(best[with_i], without)
            lists.append(
                [
                    ([u for i, u in enumerate(own) if mask >> i & 1], float(scores[mask]))
                    for mask in np.flatnonzero(useful).tolist()
                ]
            )
        return ScoreTable.from_lists(self.nodes, lists, equivalent=self.equivalent)

    def __len__(self) -> int:
        return sum(len(scores) for scores in self.scores)

    def __repr__(self) -> str:
        return f"FamilyTable(nodes={len(self.nodes)}, families={len(self)})"


def _scored(
    score: LocalScore,
    child: int,
    candidates: tuple[int, ...],
    max_parents: int | None,
    required: NDArray[np.bool_] | None,
) -> NDArray[np.float64]:
    """Return the scores of all subsets of the candidates."""
    k = len(candidates)
    max_size = k if max_parents is None else min(k, max_parents)
    scores = np.full(2**k, -np.inf)
    scores[0] = score.local(child, ())
    # A subset is extended only by candidates after its last member, so each is visited once.
    waiting = [(0, 0, 0)]
    while waiting:
        mask, size, first = waiting.pop()
        if size >= max_size or first == k:
            continue
        parents = [candidates[i] for i in range(first) if mask >> i & 1]
        values = score.extensions(child, parents, candidates[first:])[1:]
        for i, value in zip(range(first, k), values, strict=True):
            extended = mask | 1 << i
            scores[extended] = value
            waiting.append((extended, size + 1, i + 1))
    if required is not None:
        required_mask = sum(1 << i for i, u in enumerate(candidates) if required[u])
        scores[(np.arange(2**k) & required_mask) != required_mask] = -np.inf
    return scores
