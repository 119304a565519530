"""Where to put nodes and edges: layers from top to bottom, one point a unit of length."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.errors import GraphError, MissingExtraError
from isthmus.graphs import CPDAG, DAG, PDAG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Point: TypeAlias = tuple[float, float]
Edge: TypeAlias = tuple[int, int]

_BEND = 0.18  # room for a passing edge, in widths of an average node
_PATIENT = 300  # up to so many nodes, spend time on fewer crossings
_LANDSCAPE = 1.6
_FLATTEST = 2.8  # width over height beyond which layers are moved apart, up to a limit
_FARTHEST = 4.0  # times the least distance between layers


@dataclass(frozen=True)
class Layout:
    """Centres of nodes, and the bends of edges between them.

    Attributes
    ----------
    nodes
        The centre of each node.
    bends
        For each edge, in the direction in which it was laid out (downwards), the points between
        its ends.
    width, height
        The extent, nodes included.
    """

    nodes: dict[int, Point]
    bends: dict[Edge, list[Point]]
    width: float
    height: float


def lay_out(
    graph: DAG | CPDAG | PDAG, sizes: Sequence[Point], *, gap: float, layer_gap: float
) -> Layout:
    """Place the nodes of a graph.

    Parameters
    ----------
    graph
        Undirected edges are laid out in some direction.
    sizes
        Width and height of each node.
    gap, layer_gap
        The least distance between neighbours in a layer, and between layers.
    """
    edges = [(graph.index(a), graph.index(b)) for a, b in _acyclic(graph)]
    joined = sorted({node for edge in edges for node in edge})
    parts = [_part(*raw, sizes, gap, layer_gap) for raw in _sugiyama(edges, joined)]
    parts.sort(key=lambda part: (-len(part.nodes), min(part.nodes)))
    alone = sorted(set(range(len(graph.nodes))).difference(joined))
    area = sum((p.width + gap) * (p.height + layer_gap) for p in parts)
    area += sum((sizes[v][0] + gap) * (sizes[v][1] + layer_gap) for v in alone)
    wide = max([sqrt(area * _LANDSCAPE), *(p.width for p in parts)])
    rows = _shelves(parts, wide, 2 * gap, layer_gap)
    if not alone:
        return rows
    # nodes without edges stand in rows of their own below
    return _shelves([rows, _block(alone, sizes, gap, wide)], 0.0, 0.0, layer_gap)


def _acyclic(graph: DAG | CPDAG | PDAG) -> Sequence[tuple[str, str]]:
    if isinstance(graph, DAG):
        return graph.edges
    try:
        return graph.to_dag().edges
    except GraphError:
        # no consistent extension: any order that keeps the arrows will do for a picture
        order = DAG(graph.nodes, graph.directed).topological_order()
        place = {name: i for i, name in enumerate(order)}
        loose = [(a, b) if place[a] < place[b] else (b, a) for a, b in graph.undirected]
        return [*graph.directed, *loose]


def _sugiyama(
    edges: list[Edge], joined: list[int]
) -> list[tuple[dict[int, Point], dict[Edge, list[int]]]]:
    """Return, for each connected part, rough positions (bends included) and the routes of edges."""
    if not edges:
        return []
    try:
        from fast_sugiyama import from_edges
    except ImportError:
        raise MissingExtraError("fast-sugiyama", "plots", "plot_graph()") from None
    # the library numbers bends from the number of nodes upwards: give it 0, 1, ... as nodes
    local = {node: i for i, node in enumerate(joined)}
    found: Any = from_edges(
        [(local[a], local[b]) for a, b in edges],
        vertex_spacing=1,
        minimum_length=1,
        dummy_vertices=True,
        dummy_size=_BEND,
        ranking_type="minimize",
        crossing_minimization="barycenter",
        transpose=len(joined) <= _PATIENT,
    )
    parts = []
    for positions, _, _, segments in found:
        names = {i: joined[i] if i < len(joined) else -1 - i for i, _ in positions}
        places = {names[i]: (float(x), float(y)) for i, (x, y) in positions}
        parts.append((places, _routes([(names[a], names[b]) for a, b in segments])))
    return parts


def _routes(segments: list[Edge]) -> dict[Edge, list[int]]:
    """Join the segments of each edge; bends are negative and have one successor."""
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
    """Give rough positions the room that the labels need, layer by layer."""
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
    # long flat edges are hard to tell apart, so the layers of a wide graph stand further apart
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


def spread(wanted: Sequence[float], half: Sequence[float]) -> list[float]:
    """Move points as little as possible (least squares) so that neighbours keep their distance.

    Parameters
    ----------
    wanted
        Positions in the order that must stay.
    half
        Half the width of each; neighbours must be at least the sum of theirs apart.
    """
    offsets = [0.0]
    for before, here in itertools.pairwise(half):
        offsets.append(offsets[-1] + before + here)
    # with the distances taken off the positions must not fall: pool adjacent violators
    pools: list[tuple[float, int]] = []
    for position, offset in zip(wanted, offsets, strict=True):
        total, count = position - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, size = pools.pop()
            total, count = total + before, count + size
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    return [x + offset for x, offset in zip(level, offsets, strict=True)]


def _block(alone: Sequence[int], sizes: Sequence[Point], gap: float, wide: float) -> Layout:
    """Put nodes without edges into a grid."""
    cell = max(sizes[v][0] for v in alone) + gap
    row = max(sizes[v][1] for v in alone) + gap
    columns = min(max(int(wide // cell), 1), len(alone))
    rows = ceil(len(alone) / columns)
    nodes = {
        v: ((i % columns + 0.5) * cell, (rows - i // columns - 0.5) * row)
        for i, v in enumerate(alone)
    }
    return Layout(nodes, {}, columns * cell, rows * row)


def _shelves(parts: Sequence[Layout], wide: float, gap: float, layer_gap: float) -> Layout:
    """Put the parts side by side, in rows from top to bottom."""
    nodes: dict[int, Point] = {}
    bends: dict[Edge, list[Point]] = {}
    x = top = deep = right = 0.0
    for part in parts:
        if x and x + part.width > wide * 1.001:
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
