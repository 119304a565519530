"""Slow searches, written from their descriptions and sharing no code with the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import networkx as nx

LocalFunction = Callable[[int, tuple[int, ...]], float]


def grow_shrink(
    local: LocalFunction,
    child: int,
    before: Sequence[int],
    required: frozenset[int] = frozenset(),
    forbidden: frozenset[int] = frozenset(),
) -> tuple[float, frozenset[int]]:
    """Greedy parents of a child among its predecessors."""
    parents = set(required)
    score = local(child, tuple(sorted(parents)))
    while True:
        open_ = [x for x in before if x not in parents and x not in forbidden]
        gains = {x: local(child, tuple(sorted(parents | {x}))) for x in open_}
        if not gains or max(gains.values()) <= score:
            break
        best = max(gains, key=lambda x: gains[x])
        parents.add(best)
        score = gains[best]
    while True:
        gains = {x: local(child, tuple(sorted(parents - {x}))) for x in parents - required}
        if not gains or max(gains.values()) <= score:
            return score, frozenset(parents)
        worst = max(gains, key=lambda x: gains[x])
        parents.remove(worst)
        score = gains[worst]


def order_score(
    local: LocalFunction,
    order: Sequence[int],
    required: Sequence[frozenset[int]],
    forbidden: Sequence[frozenset[int]],
) -> float:
    return sum(
        grow_shrink(local, child, order[:i], required[child], forbidden[child])[0]
        for i, child in enumerate(order)
    )


def single_edge_changes(parents: Sequence[Sequence[int]]) -> Iterator[list[set[int]]]:
    """All acyclic graphs that differ by one edge added, deleted or reversed."""
    d = len(parents)
    for a in range(d):
        for b in range(d):
            if a == b:
                continue
            if a in parents[b]:
                yield [set(p) - {a} if i == b else set(p) for i, p in enumerate(parents)]
                turned = [set(p) - {a} if i == b else set(p) for i, p in enumerate(parents)]
                turned[a].add(b)
                if is_acyclic(turned):
                    yield turned
            elif b not in parents[a]:
                more = [set(p) | ({a} if i == b else set()) for i, p in enumerate(parents)]
                if is_acyclic(more):
                    yield more


def is_acyclic(parents: Sequence[set[int]]) -> bool:
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(parents)))
    graph.add_edges_from((p, child) for child, ps in enumerate(parents) for p in ps)
    return nx.is_directed_acyclic_graph(graph)


def linear_data(
    seed: int, n: int, d: int, edges: int
) -> tuple[
    np.ndarray[tuple[int, int], np.dtype[np.float64]],
    np.ndarray[tuple[int, int], np.dtype[np.float64]],
]:
    """Rows of a random linear Gaussian network, and its weights [from, to]."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(d)
    weights = np.zeros((d, d))
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    for k in rng.choice(len(pairs), edges, replace=False):
        i, j = pairs[k]
        weights[order[i], order[j]] = rng.choice([-1, 1]) * rng.uniform(0.5, 2)
    x = np.zeros((n, d))
    for v in order:
        x[:, v] = x @ weights[:, v] + rng.normal(size=n)
    return x, weights
