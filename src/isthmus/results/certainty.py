"""How sure edges are, for reports: shares of bootstrap replicates, or posterior probabilities."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.report import Certainty, EdgeRow, Measure

DETERMINED = 0.95
"""Share or probability of a direction, if there is an edge, from which on it is determined."""
_SHOWN = 0.05
"""Pairs of variables that are adjacent more rarely are not listed in a report."""

PROBABILITIES = (
    Measure("probability", "Probability: of an edge between the two, in either direction."),
    Measure(
        "probability this way",
        "Probability this way: that the edge points from the first to the second, if there is one. "
        f"The direction is called determined from {DETERMINED:.2f} on.",
    ),
)
SHARES = (
    Measure(
        "share",
        "Share: of the replicates with an edge between the two, in either direction. It says how "
        "stable the edge is, not how probable.",
    ),
    Measure(
        "share this way",
        "Share this way: of the replicates with the edge, in which it points from the first to the "
        "second; about 0.5 if the data do not determine it. The direction is called determined "
        f"from {DETERMINED:.2f} on.",
    ),
)


class EdgeWeights(Protocol):
    """A bootstrap or a posterior."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the variables."""

    def edge_probabilities(self) -> NDArray[np.float64]:
        """Return the share or probability of each edge."""


def certainty_of(weights: EdgeWeights, dag: DAG, measures: tuple[Measure, ...]) -> Certainty:
    """Return the shares or probabilities of the edges of a graph."""
    if set(weights.nodes) != set(dag.nodes):
        raise MismatchError(
            "The ensemble has other variables than the graph. Compute it from the same columns."
        )
    place = {name: i for i, name in enumerate(weights.nodes)}
    edges = weights.edge_probabilities()
    values = {}
    for a, b in dag.edges:
        along, against = float(edges[place[a], place[b]]), float(edges[place[b], place[a]])
        either = min(along + against, 1.0)
        values[a, b] = (either, along / (along + against) if either else 0.0)
    return Certainty(measures, values)


def edge_rows(
    nodes: tuple[str, ...],
    edges: NDArray[np.float64],
    threshold: float,
    further: tuple[NDArray[np.float64], ...] = (),
) -> tuple[EdgeRow, ...]:
    """Return a row per pair of variables, in its more frequent direction.

    Parameters
    ----------
    nodes
        Names of the variables.
    edges
        Share or probability of each edge ``[from, to]``.
    threshold
        Pairs that are adjacent with a larger share or probability are part of the graph.
    further
        Other numbers of the edges, in matrices ``[from, to]``.
    """
    either = np.minimum(edges + edges.T, 1.0)
    rows = []
    for a, b in np.argwhere(np.triu((either >= _SHOWN) | (either > threshold), 1)).tolist():
        a, b = (a, b) if edges[a, b] >= edges[b, a] else (b, a)
        share = float(edges[a, b] / (edges[a, b] + edges[b, a]))
        determined = share >= DETERMINED
        rows.append(
            EdgeRow(
                nodes[a],
                nodes[b],
                directed=determined,
                values=(float(either[a, b]), share, *(float(m[a, b]) for m in further)),
                in_graph=bool(either[a, b] > threshold),
                direction=f"{'determined' if determined else 'not determined'}: {share:.2f}",
            )
        )
    return tuple(rows)
