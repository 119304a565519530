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
    while True:  # each iteration doubles the length of the paths
        counts = reach.astype(np.float32)
        extended = reach | (counts @ counts > 0.0)
        if np.array_equal(extended, reach):
            return reach
        reach = extended


def order_of(edges: Bools) -> list[int] | None:
    """Return the topological order with the smallest indices first; None if there is a cycle."""
    order = topological([np.flatnonzero(column).tolist() for column in edges.T])
    return None if order is None else list(order)


def above_threshold(weights: Floats, threshold: float) -> Bools:
    """Return the edges above a threshold, raised as far as needed to break all cycles.

    Edges of equal weight are kept or dropped together.
    """
    sizes = np.abs(weights)
    for cutoff in [threshold, *np.sort(sizes[sizes > threshold]).tolist()]:
        edges: Bools = sizes > cutoff
        if order_of(edges) is not None:
            return edges
    return np.zeros_like(sizes, dtype=np.bool_)


def heaviest_acyclic(weights: Floats, required: Bools, least: float) -> Bools:
    """Add edges by decreasing weight down to ``least``, except those that would close a cycle.

    ``weights`` is square and non-negative. Required edges are added first.
    """
    d = len(weights)
    edges = np.zeros((d, d), dtype=np.bool_)
    reach = np.eye(d, dtype=np.bool_)
    strength = np.where(required, np.inf, weights)
    cells = np.flatnonzero(strength.ravel() > least)
    # Ties are broken by position, so that the same weights always give the same graph.
    for cell in cells[np.lexsort((cells, -strength.ravel()[cells]))]:
        i, j = divmod(int(cell), d)
        if i == j or reach[j, i]:
            continue
        edges[i, j] = True
        if not reach[i, j]:
            reach |= np.outer(reach[:, i], reach[j])
    return edges
