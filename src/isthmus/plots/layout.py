"""Layered layout of nodes and edges, from top to bottom; lengths are in points."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# --- Layers: an order of the nodes from top to bottom --------------------------------------------
#
# Layers for drawings where fast-sugiyama is not installed, which has no wheel for some systems.
#
# The method of Sugiyama, Tagawa and Toda (1981) in its simplest form: longest paths give the
# layers, barycentres the order within them. It takes longer and leaves more crossings than the
# library.

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


# --- Layered layout of nodes and edges, from top to bottom; lengths are in points ---------------

_BEND = 0.18  # room for an edge that passes a layer, in average node widths
_TRANSPOSE_NODES = 300  # up to this many nodes, spend more time to reduce crossings
_LANDSCAPE = 1.6  # width over height of the whole picture
_FLATTEST = 2.8  # width over height above which layers are moved apart, up to a limit
_FARTHEST = 4.0  # limit, in units of the minimum distance between layers


@dataclass(frozen=True)
class Layout:
    """Positions of the nodes and bends of the edges.

    Attributes
    ----------
    nodes
        Centre of each node.
    bends
        For each edge, in the downward direction in which it was laid out, the points between its
        ends.
    width, height
        Size of the layout, including nodes.
    """

    nodes: dict[int, Point]
    bends: dict[Edge, list[Point]]
    width: float
    height: float


def lay_out(
    graph: DAG | CPDAG | PDAG, sizes: Sequence[Point], *, gap: float, layer_gap: float
) -> Layout:
    """Compute a layered layout of a graph.

    Parameters
    ----------
    graph
        The graph. Undirected edges are laid out in either direction.
    sizes
        Width and height of each node.
    gap, layer_gap
        Minimum distance between nodes in a layer, and between layers.
    """
    edges = [(graph.index(a), graph.index(b)) for a, b in _acyclic(graph)]
    connected = sorted({node for edge in edges for node in edge})
    parts = [_part(*raw, sizes, gap, layer_gap) for raw in _sugiyama(edges, connected)]
    parts.sort(key=lambda part: (-len(part.nodes), min(part.nodes)))
    isolated = sorted(set(range(len(graph.nodes))).difference(connected))
    area = sum((p.width + gap) * (p.height + layer_gap) for p in parts)
    area += sum((sizes[v][0] + gap) * (sizes[v][1] + layer_gap) for v in isolated)
    max_width = max([sqrt(area * _LANDSCAPE), *(p.width for p in parts)])
    rows = _shelves(parts, max_width, 2 * gap, layer_gap)
    if not isolated:
        return rows
    # Nodes without edges are placed in separate rows below.
    return _shelves([rows, _grid(isolated, sizes, gap, max_width)], 0.0, 0.0, layer_gap)


def _acyclic(graph: DAG | CPDAG | PDAG) -> Sequence[tuple[str, str]]:
    if isinstance(graph, DAG):
        return graph.edges
    try:
        return graph.to_dag().edges
    except GraphError:
        # Without a consistent extension, use any order that agrees with the directed edges.
        order = DAG(graph.nodes, graph.directed).topological_order()
        rank = {name: i for i, name in enumerate(order)}
        undirected = [(a, b) if rank[a] < rank[b] else (b, a) for a, b in graph.undirected]
        return [*graph.directed, *undirected]


def _sugiyama(
    edges: list[Edge], connected: list[int]
) -> list[tuple[dict[int, Point], dict[Edge, list[int]]]]:
    """Return rough positions of nodes and bends, and routes of edges, for each component."""
    if not edges:
        return []
    try:
        from fast_sugiyama import from_edges
    except ImportError:  # there is no wheel for musl and old glibc
        return layers(edges, _BEND)
    # The library numbers bends after the nodes, so the nodes must be 0, 1, ...
    local = {node: i for i, node in enumerate(connected)}
    layouts: Any = from_edges(
        [(local[a], local[b]) for a, b in edges],
        vertex_spacing=1,
        minimum_length=1,
        dummy_vertices=True,
        dummy_size=_BEND,
        ranking_type="minimize",
        crossing_minimization="barycenter",
        transpose=len(connected) <= _TRANSPOSE_NODES,
    )
    parts = []
    for positions, _, _, segments in layouts:
        names = {i: connected[i] if i < len(connected) else -1 - i for i, _ in positions}
        places = {names[i]: (float(x), float(y)) for i, (x, y) in positions}
        parts.append((places, _routes([(names[a], names[b]) for a, b in segments])))
    return parts


def _routes(segments: list[Edge]) -> dict[Edge, list[int]]:
    """Join the segments of each edge. Bends have negative numbers and one successor."""
    after = dict(segment for segment in segments if segment[0] < 0)
    routes = {}
    for start, step in segments:
        if start < 0:
            continue
        bends = []
        while step < 0:
            bends.append(step)
            step = after[step]
        routes[start, step] = bends
    return routes


def _part(
    rough: dict[int, Point],
    routes: dict[Edge, list[int]],
    sizes: Sequence[Point],
    gap: float,
    layer_gap: float,
) -> Layout:
    """Adjust rough positions to the sizes of the labels, layer by layer."""
    real = [v for v in rough if v >= 0]
    unit = sum(sizes[v][0] for v in real) / len(real) + gap
    layers: dict[float, list[int]] = defaultdict(list)
    for v, (_, y) in rough.items():
        layers[round(y, 3)].append(v)
    across: dict[int, float] = {}
    for level, members in layers.items():
        layers[level] = members = sorted(members, key=lambda v: (rough[v][0], v))
        half = [(sizes[v][0] + gap) / 2 if v >= 0 else _BEND * unit / 2 for v in members]
        xs = spread([rough[v][0] * unit for v in members], half)
        across.update(zip(members, xs, strict=True))
    edges = [(x, sizes[v][0] / 2 if v >= 0 else 0.0) for v, x in across.items()]
    left = min(x - room for x, room in edges)
    width = max(x + room for x, room in edges) - left

    tall = {k: max((sizes[v][1] for v in layers[k] if v >= 0), default=0.0) for k in layers}
    # Long flat edges are hard to distinguish, so a wide graph has a larger distance between layers.
    apart = (width / _FLATTEST - sum(tall.values())) / max(len(layers) - 1, 1)
    apart = min(max(apart, layer_gap), _FARTHEST * layer_gap)
    height = sum(tall.values()) + apart * (len(layers) - 1)
    places: dict[int, Point] = {}
    top = height
    for level in sorted(layers, reverse=True):
        places.update((v, (across[v] - left, top - tall[level] / 2)) for v in layers[level])
        top -= tall[level] + apart
    return Layout(
        {v: places[v] for v in real},
        {edge: [places[b] for b in bends] for edge, bends in routes.items()},
        width,
        height,
    )


def _grid(isolated: Sequence[int], sizes: Sequence[Point], gap: float, width: float) -> Layout:
    """Place nodes without edges in a grid."""
    cell = max(sizes[v][0] for v in isolated) + gap
    row = max(sizes[v][1] for v in isolated) + gap
    columns = min(max(int(width // cell), 1), len(isolated))
    rows = ceil(len(isolated) / columns)
    nodes = {
        v: ((i % columns + 0.5) * cell, (rows - i // columns - 0.5) * row)
        for i, v in enumerate(isolated)
    }
    return Layout(nodes, {}, columns * cell, rows * row)


def _shelves(parts: Sequence[Layout], max_width: float, gap: float, layer_gap: float) -> Layout:
    """Place layouts side by side, in rows from top to bottom."""
    nodes: dict[int, Point] = {}
    bends: dict[Edge, list[Point]] = {}
    x = top = deep = right = 0.0
    for part in parts:
        if x and x + part.width > max_width * 1.001:
            x, top, deep = 0.0, top - deep - layer_gap, 0.0
        dx, dy = x, top - part.height
        nodes.update(_moved(part.nodes, dx, dy))
        bends.update({edge: [(a + dx, b + dy) for a, b in own] for edge, own in part.bends.items()})
        right = max(right, x + part.width)
        x += part.width + gap
        deep = max(deep, part.height)
    height = deep - top
    return Layout(
        _moved(nodes, 0, height),
        {edge: [(a, b + height) for a, b in own] for edge, own in bends.items()},
        right,
        height,
    )


def _moved(points: Mapping[int, Point], dx: float, dy: float) -> dict[int, Point]:
    return {v: (x + dx, y + dy) for v, (x, y) in points.items()}
