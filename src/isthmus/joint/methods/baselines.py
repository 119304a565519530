"""Baselines without a protocol: each site learns alone, and the graphs are combined.

They are for comparison. Each site releases its graph unprotected, and sites with few rows find few
of the true edges. One secure sum of moments reveals less about a site and learns more (Ng and Zhang
2022, section 6; our own figures are in the documentation).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, GraphError
from isthmus.graphs import DAG
from isthmus.graphs.order import above_threshold


def vote(graphs: Sequence[DAG], share: float = 0.5) -> DAG:
    """Return the edges that more than a share of the sites found (Na and Yang 2010).

    If these form a cycle, the edges with the fewest votes are left out.

    Parameters
    ----------
    graphs
        The graph of each site, over the same nodes.
    share
        An edge must be in more than this share of the graphs.

    Raises
    ------
    GraphError
        The graphs have different nodes, or there are none.
    """
    if not 0.0 <= share < 1.0:
        raise ArgumentError(f"share must be at least 0 and less than 1; {share} was given.")
    if not graphs or any(g.nodes != graphs[0].nodes for g in graphs):
        raise GraphError(
            "Give at least one graph; all graphs must have the same nodes in the same order."
        )
    votes = np.mean([g.adjacency() for g in graphs], axis=0)
    return DAG.from_adjacency(graphs[0].nodes, above_threshold(votes, share))


def average(
    names: Sequence[str], weights: Sequence[NDArray[np.float64]], threshold: float = 0.3
) -> DAG:
    """Return the edges whose mean weight over the sites is above a threshold.

    If these form a cycle, the weakest edges are left out.

    Parameters
    ----------
    names
        The variables.
    weights
        The weights ``[from, to]`` that each site found, such as ``details.weights`` of a
        solution of `Notears`.
    threshold
        Smaller weights are dropped.
    """
    d = len(names)
    if not weights or any(np.shape(w) != (d, d) for w in weights):
        raise ArgumentError(
            f"Give at least one array of weights; all must have the shape {(d, d)}."
        )
    return DAG.from_adjacency(names, above_threshold(np.mean(weights, axis=0), threshold))
