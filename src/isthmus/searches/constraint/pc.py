"""The PC algorithm: an equivalence class of graphs from tests of independence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.graphs.bits import bits, mask_of, transpose
from isthmus.graphs.order import reach
from isthmus.graphs.orientation import consistent_extension, nearest_extension
from isthmus.objectives import INDEPENDENCE_TESTS, IndependenceTest
from isthmus.options import require_integer, require_number
from isthmus.plurals import counted
from isthmus.results.details import IndependenceDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.constraint.skeleton import Skeleton


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

    def begin(
        self, objective: IndependenceTest, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run; it uses no random numbers."""
        return _PCRun(self, objective, knowledge)


@final
class _PCRun(Run[SearchResult]):
    def __init__(self, options: PC, test: IndependenceTest, knowledge: BoundKnowledge) -> None:
        self._knowledge = knowledge
        possible = ~(knowledge.forbidden & knowledge.forbidden.T)
        self._skeleton = Skeleton(
            test,
            options.alpha,
            options.max_conditioning,
            [mask_of(np.flatnonzero(row).tolist()) for row in possible],
            required_neighbours(knowledge),
        )
        self._work = self._skeleton.prune()
        self._finished = False

    def step(self) -> bool:
        self._finished = next(self._work, self) is self
        return self._finished

    def best(self) -> SearchResult:
        """Return a graph of the class that the tests so far leave."""
        parents, dropped = _oriented(self._skeleton, self._knowledge)
        notes = []
        if dropped:
            notes.append(
                f"The tests contradict each other: {counted(dropped, 'orientation')} from the "
                "smallest p-values could not be kept. More rows or another alpha may help, or a "
                "search that optimises a score, such as Boss()."
            )
        if not self._finished:
            notes.append(unfinished(self._skeleton))
        details = IndependenceDetails(self._skeleton.tests)
        return SearchResult(
            tuple(tuple(bits(own)) for own in parents),
            nan,
            details,
            converged=self._finished,
            notes=tuple(notes),
        )

    def describe(self) -> tuple[str, float, float | None]:
        return progress_text(self._skeleton), nan, None

    def conclusion(self) -> str:
        return f"{self._skeleton.tests:,} tests of independence left no edge to test."


def required_neighbours(knowledge: BoundKnowledge) -> list[int]:
    """Return the neighbours of each node by edges that knowledge requires."""
    either = knowledge.required | knowledge.required.T
    return [mask_of(np.flatnonzero(row).tolist()) for row in either]


def unfinished(skeleton: Skeleton) -> str:
    """Return a note about a search that was stopped."""
    return (
        f"Stopped while sets of {counted(skeleton.size, 'variable')} were tried: tests that were "
        "not made may remove more edges, and change directions."
    )


def progress_text(skeleton: Skeleton) -> str:
    """Return what a run is doing."""
    edges = sum(own.bit_count() for own in skeleton.adjacent) // 2
    return f"{edges:,} edges, sets of {skeleton.size}, {skeleton.tests:,} tests"


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
