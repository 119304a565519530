"""Random directed acyclic graphs, with node indices independent of the topological order."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from isthmus.errors import GraphError
from isthmus.graphs import DAG
from isthmus.options import as_choice
from isthmus.simulate.result import Purpose, stream
from isthmus.types import Integers


class Hubs(StrEnum):
    """Whether the hubs of a scale-free graph are causes or effects."""

    CAUSES = "causes"
    """Edges point from older to newer nodes: a few nodes have many children."""
    EFFECTS = "effects"
    """Edges point from newer to older nodes, as in the official NOTEARS code: a few nodes have many
    parents."""
    EITHER = "either"
    """Edges point along a random order of the nodes."""


def node_names(nodes: int | Sequence[str]) -> tuple[str, ...]:
    """Return the given names, or ``x0, x1, …`` for a number of nodes."""
    if isinstance(nodes, str):
        raise GraphError(
            f"nodes must be a number or a sequence of names, not the string {nodes!r}."
        )
    if isinstance(nodes, (int, np.integer)):
        if nodes < 0:
            raise GraphError(f"The number of nodes must be 0 or more; {nodes} was given.")
        return tuple(f"x{i}" for i in range(int(nodes)))
    return tuple(nodes)


def erdos_renyi(
    nodes: int | Sequence[str],
    edges: int | None = None,
    *,
    degree: float | None = None,
    seed: int = 0,
) -> DAG:
    """Draw an Erdős–Rényi graph and orient it along a random order.

    Give either ``edges`` or ``degree``. With ``edges`` the graph has exactly this number of edges,
    and each set of pairs is equally likely, as in the official NOTEARS code. With ``degree`` each
    pair is adjacent with probability ``degree / (d - 1)``, so that a node has this number of
    neighbours on average.

    Parameters
    ----------
    nodes
        Number of nodes, or their names.
    edges
        Exact number of edges, at most d(d-1)/2.
    degree
        Expected number of neighbours of a node, between 0 and d-1.
    seed
        Random seed. The same seed gives the same graph.

    Examples
    --------
    >>> from isthmus import simulate
    >>> len(simulate.erdos_renyi(10, 20, seed=1).edges)
    20
    """
    names = node_names(nodes)
    d = len(names)
    pairs = d * (d - 1) // 2
    if (edges is None) == (degree is None):
        raise GraphError("Give either edges (the exact number) or degree (the expected one).")
    rng = stream(seed, Purpose.GRAPH)
    if edges is not None:
        if not 0 <= edges <= pairs:
            raise GraphError(f"{d} nodes can have 0 to {pairs} edges; {edges} were requested.")
        ranks = rng.choice(pairs, size=edges, replace=False, shuffle=False)
    else:
        assert degree is not None
        if not 0 <= degree <= max(d - 1, 0):
            raise GraphError(f"degree must be between 0 and {max(d - 1, 0)}; {degree} was given.")
        probability = degree / (d - 1) if d > 1 else 0.0
        count = int(rng.binomial(pairs, probability))
        ranks = rng.choice(pairs, size=count, replace=False, shuffle=False)
    early, late = _unrank_pairs(np.asarray(ranks, dtype=np.int64))
    return _relabel(names, early, late, seed)


def scale_free(
    nodes: int | Sequence[str],
    attachments: int = 1,
    *,
    hubs: Hubs = Hubs.CAUSES,
    seed: int = 0,
) -> DAG:
    """Draw a Barabási–Albert graph, which grows by preferential attachment.

    The k-th node (from 0) is connected to ``min(k, attachments)`` distinct older nodes, drawn with
    probability proportional to their degree. The graph has exactly
    ``attachments * d - attachments * (attachments + 1) / 2`` edges when ``attachments < d``.

    Parameters
    ----------
    nodes
        Number of nodes, or their names.
    attachments
        Number of older nodes to which a new node is connected, at least 1.
    hubs
        Whether the nodes of high degree are causes, effects, or either.
    seed
        Random seed. The same seed gives the same graph.
    """
    hubs = as_choice(hubs, Hubs, "hubs", "scale_free")
    names = node_names(nodes)
    d = len(names)
    if attachments < 1:
        raise GraphError(f"attachments must be at least 1; {attachments} was given.")
    rng = stream(seed, Purpose.GRAPH)
    # Every end of an edge is listed once in `ends`, so a uniform draw from it is a draw by degree.
    ends: list[int] = []
    old: list[int] = []
    new: list[int] = []
    for node in range(1, d):
        neighbours: set[int] = set(range(node)) if node <= attachments else set()
        while len(neighbours) < min(node, attachments):
            neighbours.add(ends[int(rng.integers(len(ends)))])
        for other in sorted(neighbours):
            ends.extend((other, node))
            old.append(other)
            new.append(node)
    early, late = np.array(old, dtype=np.int64), np.array(new, dtype=np.int64)
    if hubs is Hubs.EFFECTS:
        early, late = late, early
    elif hubs is Hubs.EITHER:
        rank = rng.permutation(d)
        swap = rank[early] > rank[late]
        early, late = np.where(swap, late, early), np.where(swap, early, late)
    return _relabel(names, early, late, seed)


def _unrank_pairs(ranks: Integers) -> tuple[Integers, Integers]:
    """Map 0, 1, 2, 3 and so on to the pairs (0, 1), (0, 2), (1, 2), (0, 3) and so on."""
    late = ((1.0 + np.sqrt(1.0 + 8.0 * ranks)) / 2.0).astype(np.int64)
    # The square root may be off by one for large ranks; correct it in integer arithmetic.
    late -= late * (late - 1) // 2 > ranks
    late += late * (late + 1) // 2 <= ranks
    return ranks - late * (late - 1) // 2, late


def _relabel(names: tuple[str, ...], tails: Integers, heads: Integers, seed: int) -> DAG:
    label = stream(seed, Purpose.LABELS).permutation(len(names))
    parents: list[list[int]] = [[] for _ in names]
    for tail, head in zip(label[tails].tolist(), label[heads].tolist(), strict=True):
        parents[head].append(tail)
    return DAG.from_parents(names, parents)
