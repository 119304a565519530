"""Graphs as Boolean matrices ``[from, to]``: closure, order, and graphs from edge weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus.graphs.order import topological

if TYPE_CHECKING:
    from isthmus.types import Bools, Floats


def transitive_closure(edges: Bools) -> Bools:
    """Return for each pair of nodes whether a directed path leads from one to the other."""
    reach = edges.copy()
    while True:  # each turn doubles the length of the paths
        counts = reach.astype(np.float32)
        further = reach | (counts @ counts > 0.0)
        if np.array_equal(further, reach):
            return reach
        reach = further


def order_of(edges: Bools) -> list[int] | None:
    """Return a topological order, the smallest index first where several fit; None for a cycle."""
    order = topological([np.flatnonzero(column).tolist() for column in edges.T])
    return None if order is None else list(order)


def above_threshold(weights: Floats, threshold: float) -> Bools:
    """Return the edges above a threshold, which is raised until there is no cycle.

    Edges of equal weight are kept or dropped together.
    """
    size = np.abs(weights)
    for least in [threshold, *np.sort(size[size > threshold]).tolist()]:
        edges: Bools = size > least
        if order_of(edges) is not None:
            return edges
    return np.zeros_like(size, dtype=np.bool_)


def heaviest_acyclic(weights: Floats, required: Bools, least: float) -> Bools:
    """Take edges from the heaviest down to ``least``, except those that would close a cycle.

    ``weights`` is square and not negative; required edges come first.
    """
    d = len(weights)
    edges = np.zeros((d, d), dtype=np.bool_)
    reach = np.eye(d, dtype=np.bool_)
    strength = np.where(required, np.inf, weights)
    at = np.flatnonzero(strength.ravel() > least)
    # Ties go by position, so that the same weights always give the same graph.
    for cell in at[np.lexsort((at, -strength.ravel()[at]))]:
        i, j = divmod(int(cell), d)
        if i == j or reach[j, i]:
            continue
        edges[i, j] = True
        if not reach[i, j]:
            reach |= np.outer(reach[:, i], reach[j])
    return edges
