"""Layers for drawings where fast-sugiyama is not installed, which has no wheel for some systems.

The method of Sugiyama, Tagawa and Toda (1981) in its simplest form: longest paths give the layers,
barycentres the order within them. It takes longer and leaves more crossings than the library.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Point: TypeAlias = tuple[float, float]
Edge: TypeAlias = tuple[int, int]

_SWEEPS = 12
"""Passes over the layers, downwards and upwards in turn; more changed little in random graphs."""


def layers(
    edges: Sequence[Edge], bend: float
) -> list[tuple[dict[int, Point], dict[Edge, list[int]]]]:
    """Return rough positions of nodes and bends, and routes of edges, for each component.

    Parameters
    ----------
    edges
        Directed edges without a cycle.
    bend
        Room for an edge that passes a layer, where a node needs 1.
    """
    return [_component(part, bend) for part in _components(edges)]


def _components(edges: Sequence[Edge]) -> list[list[Edge]]:
    root: dict[int, int] = {}

    def find(v: int) -> int:
        while root.setdefault(v, v) != v:
            v = root[v]
        return v

    for a, b in edges:
        root[find(a)] = find(b)
    parts: dict[int, list[Edge]] = defaultdict(list)
    for edge in sorted(edges):
        parts[find(edge[0])].append(edge)
    return list(parts.values())


def _component(
    edges: Sequence[Edge], bend: float
) -> tuple[dict[int, Point], dict[Edge, list[int]]]:
    depth = _depths(edges)
    routes: dict[Edge, list[int]] = {}
    near: dict[int, list[int]] = {v: [] for v in depth}
    number = 0
    for a, b in edges:
        bends = [number - 1 - i for i in range(depth[b] - depth[a] - 1)]
        number -= len(bends)
        routes[a, b] = bends
        depth.update((v, depth[a] + 1 + i) for i, v in enumerate(bends))
        for upper, lower in itertools.pairwise([a, *bends, b]):
            near.setdefault(upper, []).append(lower)
            near.setdefault(lower, []).append(upper)
    rows: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for v in _visited(near):
        rows[depth[v]].append(v)
    rows = _ordered(rows, near, depth)
    across = _across(rows, near, bend)
    return {v: (across[v], float(-depth[v])) for v in depth}, routes


def _depths(edges: Sequence[Edge]) -> dict[int, int]:
    """Return the layer of each node: the longest path to it; roots are just above a child."""
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        above[b].append(a)
        below[a].append(b)
    nodes = sorted({v for edge in edges for v in edge})
    waiting = {v: len(above[v]) for v in nodes}
    ready = [v for v in nodes if not waiting[v]]
    depth: dict[int, int] = {}
    for v in ready:  # which grows
        depth[v] = 1 + max((depth[a] for a in above[v]), default=-1)
        for b in below[v]:
            waiting[b] -= 1
            if not waiting[b]:
                ready.append(b)
    for v in nodes:
        if not above[v]:
            depth[v] = min(depth[b] for b in below[v]) - 1
    return depth


def _visited(near: Mapping[int, list[int]]) -> list[int]:
    """Return nodes and bends depth first, in which order a tree has no crossings."""
    seen: dict[int, None] = {}
    waiting = [min(v for v in near if v >= 0)]
    while waiting:
        v = waiting.pop()
        if v not in seen:
            seen[v] = None
            waiting += [u for u in reversed(near[v]) if u not in seen]
    return list(seen)


def _ordered(
    rows: list[list[int]], near: Mapping[int, list[int]], depth: Mapping[int, int]
) -> list[list[int]]:
    """Order each layer by the barycentres of the layer before, and keep what crosses least."""
    best, fewest = rows, _crossings(rows, near, depth)
    for sweep in range(_SWEEPS):
        rows = [list(row) for row in rows]
        step = 1 if sweep % 2 == 0 else -1
        for row, fixed in itertools.pairwise(rows[::step]):
            place = {v: i for i, v in enumerate(row)}
            own = {v: i for i, v in enumerate(fixed)}
            centre = {
                v: fmean([place[u] for u in near[v] if u in place] or [own[v]]) for v in fixed
            }
            fixed.sort(key=lambda v: (centre[v], own[v]))
        crossings = _crossings(rows, near, depth)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(
    rows: Sequence[Sequence[int]], near: Mapping[int, list[int]], depth: Mapping[int, int]
) -> int:
    """Count the pairs of segments between neighbouring layers that cross."""
    total = 0
    for upper, lower in itertools.pairwise(rows):
        place = {v: i for i, v in enumerate(lower)}
        ends: list[int] = []
        for v in upper:
            below = sorted(place[u] for u in near[v] if depth[u] > depth[v])
            total += sum(end > here for here in below for end in ends)
            ends += below
    return total


def _across(
    rows: Sequence[Sequence[int]], near: Mapping[int, list[int]], bend: float
) -> dict[int, float]:
    """Move nodes towards their neighbours, in the order of their layer."""
    across = {v: float(i) for row in rows for i, v in enumerate(row)}
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [fmean(across[u] for u in near[v]) for v in row]
            half = [0.5 if v >= 0 else bend / 2 for v in row]
            across.update(zip(row, spread(wanted, half), strict=True))
    return across


def spread(wanted: Sequence[float], half: Sequence[float]) -> list[float]:
    """Move points as little as possible, by least squares, so that neighbours do not overlap.

    Parameters
    ----------
    wanted
        Desired positions; their order is kept.
    half
        Half the width of each point. The distance of two neighbours is at least the sum of theirs.
    """
    offsets = [0.0]
    for before, here in itertools.pairwise(half):
        offsets.append(offsets[-1] + before + here)
    # Minus the distances, positions must not decrease: isotonic regression by pooling adjacent
    # violators.
    pools: list[tuple[float, int]] = []
    for position, offset in zip(wanted, offsets, strict=True):
        total, count = position - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, size = pools.pop()
            total, count = total + before, count + size
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    return [x + offset for x, offset in zip(level, offsets, strict=True)]
