"""Layered layout of nodes and edges, from top to bottom; lengths are in points."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.plots.layers import layers, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Point: TypeAlias = tuple[float, float]
Edge: TypeAlias = tuple[int, int]

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
