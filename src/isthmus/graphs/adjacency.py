"""Graphs as Boolean matrices ``[from, to]``: order, and graphs from edge weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus.graphs.order import topological

if TYPE_CHECKING:
    from isthmus.types import Bools, Floats


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
