"""Communities: groups of nodes with more edges among each other than to the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

_PASSES = 20
"""Passes over all nodes per level; in practice nothing moves after a few."""


def communities(nodes: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the community of each node, by the Louvain method with a fixed order of the nodes.

    Communities are numbered from the largest to the smallest. Nodes without edges share one.

    Parameters
    ----------
    nodes
        Number of nodes.
    edges
        Pairs of positions of nodes; directions do not matter.
    """
    weights: list[dict[int, float]] = [defaultdict(float) for _ in range(nodes)]
    for a, b in edges:
        weights[a][b] += 1.0
        weights[b][a] += 1.0
    alone = [v for v in range(nodes) if not weights[v]]
    member = list(range(nodes))
    while True:
        label = _moved(weights)
        if len(set(label)) == len(weights):
            break
        member = [label[m] for m in member]
        weights = _joined(weights, label)
    for v in alone:
        member[v] = member[alone[0]]
    size: dict[int, int] = defaultdict(int)
    for m in member:
        size[m] += 1
    rank = {m: i for i, m in enumerate(sorted(size, key=lambda m: (-size[m], member.index(m))))}
    return [rank[m] for m in member]


def _moved(weights: list[dict[int, float]]) -> list[int]:
    """Move nodes to the neighbouring community that gains most modularity; number the results."""
    n = len(weights)
    degree = [sum(own.values()) for own in weights]
    total = sum(degree) or 1.0
    label, volume = list(range(n)), list(degree)
    for _ in range(_PASSES):
        changed = False
        for v in range(n):
            links: dict[int, float] = defaultdict(float)
            for other, weight in weights[v].items():
                if other != v:
                    links[label[other]] += weight
            before = label[v]
            volume[before] -= degree[v]
            gains = {c: w - degree[v] * volume[c] / total for c, w in links.items()}
            best = max(sorted(gains), key=gains.__getitem__, default=before)
            if gains.get(best, 0.0) <= gains.get(before, -degree[v] * volume[before] / total):
                best = before
            label[v] = best
            volume[best] += degree[v]
            changed |= best != before
        if not changed:
            break
    number: dict[int, int] = {}
    return [number.setdefault(c, len(number)) for c in label]


def _joined(weights: list[dict[int, float]], label: list[int]) -> list[dict[int, float]]:
    joined: list[dict[int, float]] = [defaultdict(float) for _ in range(max(label) + 1)]
    for v, own in enumerate(weights):
        for other, weight in own.items():
            joined[label[v]][label[other]] += weight
    return joined
