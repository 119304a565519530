"""Greedy searches of the compiled core, which work one time slice per step."""

from __future__ import annotations

from isthmus.arrays import Bools
from isthmus.kernels import _native
from isthmus.kernels.scoring import LocalScore, edge_flags


def begin_xges(
    score: LocalScore,
    *,
    required: Bools | None = None,
    forbidden: Bools | None = None,
    max_parents: int | None = None,
    extended: bool = True,
) -> _native.XgesRun:
    """Begin an extremely greedy equivalence search.

    Parameters
    ----------
    score
        Score-equivalent objective. With one that is not, the search still ends: from the moment
        when gains do not add up, a change must raise the score of a graph.
    required, forbidden
        Demands on the graph, indexed [from, to]; by default none.
    max_parents
        Upper bound on the number of parents of a node; None for no bound.
    extended
        At an optimum, force the deletion of one edge after the other, search on without it, and
        stay where that ends better.
    """
    return _native.XgesRun(
        score,
        required=edge_flags(required, score.size),
        forbidden=edge_flags(forbidden, score.size),
        max_parents=max_parents,
        extended=extended,
    )


def begin_hill_climb(
    score: LocalScore,
    *,
    tabu: int = 10,
    patience: int | None = None,
    restarts: int = 20,
    seed: int | None = None,
    required: Bools | None = None,
    forbidden: Bools | None = None,
    max_parents: int | None = None,
) -> _native.HillClimb:
    """Begin hill climbing over single edges, with a tabu list, random ties and restarts.

    Parameters
    ----------
    score
        Score to maximise.
    tabu
        How many of the graphs visited last may not be visited again.
    patience
        How many changes without a new best graph end a climb; by default ``tabu``.
    restarts
        How many climbs in a row without a better graph end the search. Each one but the first
        starts from the best graph with some edges removed. Used with a seed only.
    seed
        Random seed. Without one, the first of several equally good changes is made, and there
        is a single climb.
    required, forbidden
        Edges that must or must not be there, as matrices [from, to].
    max_parents
        Upper bound on the number of parents; None for no bound.
    """
    return _native.HillClimb(
        score,
        required=edge_flags(required, score.size),
        forbidden=edge_flags(forbidden, score.size),
        max_parents=max_parents,
        tabu=tabu,
        patience=tabu if patience is None else patience,
        restarts=restarts,
        seed=seed,
    )
