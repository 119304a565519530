"""Edges, line widths, labels and routes, shared by all backends that draw graphs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PAG, PDAG
from isthmus.plots.layout import Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isthmus.plots.layout import Layout

_LINE = 18  # characters in a line of a label before it is broken after a separator
_WORD = 24  # characters of a word before it is broken without a separator


def edges_of(graph: DAG | CPDAG | PDAG) -> dict[tuple[int, int], bool]:
    """Return the edges as pairs of positions, with True for a directed edge."""
    directed = graph.edges if isinstance(graph, DAG) else graph.directed
    undirected = () if isinstance(graph, DAG) else graph.undirected
    edges = {(graph.index(a), graph.index(b)): True for a, b in directed}
    return edges | {(graph.index(a), graph.index(b)): False for a, b in undirected}


def kinds_of(graph: DAG | CPDAG | PDAG | PAG) -> dict[tuple[int, int], str]:
    """Return the edges as pairs of positions, with their kinds, such as ``-->`` and ``o->``."""
    if isinstance(graph, PAG):
        return {(graph.index(a), graph.index(b)): kind for a, kind, b in graph.edges}
    return {pair: "-->" if head else "---" for pair, head in edges_of(graph).items()}


def without_marks(graph: DAG | CPDAG | PDAG | PAG) -> DAG | CPDAG | PDAG:
    """Return a graph to place the nodes by: arrows point down, if possible."""
    if not isinstance(graph, PAG):
        return graph
    directed = [(a, b) for a, kind, b in graph.edges if kind in ("-->", "o->")]
    others = [(a, b) for a, kind, b in graph.edges if kind in ("<->", "o-o")]
    try:
        return PDAG(graph.nodes, directed, others)
    except GraphError:  # tests of independence can give a cycle
        return PDAG(graph.nodes, [], [*directed, *others])


def legend_of(graph: DAG | CPDAG | PDAG | PAG) -> list[str]:
    """Return what the kinds of edges of a PAG mean, one line for each; nothing for others."""
    if not isinstance(graph, PAG):
        return []
    kinds = {kind for _, kind, _ in graph.edges}
    return [text for kind, text in PAG_LEGEND.items() if kind in kinds]


PAG_LEGEND = {
    "-->": "a → b   a is a cause of b",
    "o->": "a ○→ b   a is a cause of b, or they may have a hidden common cause",
    "<->": "a ↔ b   they have a hidden common cause; neither is a cause of the other",
    "o-o": "a ○–○ b   one is a cause of the other, or they may have a hidden common cause",
}
"""The meaning of edges, for a reader who has not seen a PAG before."""


def line_widths(
    graph: DAG | CPDAG | PDAG, strengths: Mapping[tuple[str, str], float] | None
) -> dict[tuple[int, int], float]:
    """Return the line width of each edge in points, proportional to its absolute strength."""
    if not strengths:
        return {}
    edges = edges_of(graph)
    sizes: dict[tuple[int, int], float] = dict.fromkeys(edges, 0.0)
    for (a, b), value in strengths.items():
        pair = graph.index(a), graph.index(b)
        opposite = pair[::-1]
        if pair in edges:
            sizes[pair] = abs(float(value))
        elif edges.get(opposite) is False:
            sizes[opposite] = abs(float(value))
        else:
            raise GraphError(f"A strength was given for {a!r} → {b!r}, which is not an edge.")
    largest = max(sizes.values(), default=0.0)
    if not largest < float("inf"):
        raise GraphError("Strengths must be finite numbers.")
    return {edge: 0.5 + 3.0 * value / (largest or 1.0) for edge, value in sizes.items()}


def broken(name: str) -> str:
    """Break a long name into lines, preferably after separators."""
    lines: list[str] = []
    for piece in re.findall(r"[^\s_.\-/:]*[\s_.\-/:]*", name.replace("\n", " ")):
        while len(piece) > _WORD:
            lines.append(piece[:_LINE])
            piece = piece[_LINE:]
        if lines and len(lines[-1]) + len(piece) <= _LINE:
            lines[-1] += piece
        elif piece:
            lines.append(piece)
    return "\n".join(line.strip() for line in lines) or " "


def routes_of(
    layout: Layout, sizes: Sequence[Point], font_size: float
) -> dict[tuple[int, int], list[Point]]:
    """Return the points of each edge, from the lower side of one box to the upper of the other.

    The ends of edges are spread over the side of a box, in the order of their other ends.
    """
    below: dict[int, list[tuple[Point, int]]] = {}
    above: dict[int, list[tuple[Point, int]]] = {}
    for (a, b), bends in layout.bends.items():
        below.setdefault(a, []).append(((bends or [layout.nodes[b]])[0], b))
        above.setdefault(b, []).append(((bends or [layout.nodes[a]])[-1], a))
    starts = {(v, b): x for v, own in below.items() for b, x in _ports(v, own, sizes, font_size)}
    ends = {(a, v): x for v, own in above.items() for a, x in _ports(v, own, sizes, font_size)}
    routes = {}
    for (a, b), bends in layout.bends.items():
        (ax, ay), (bx, by) = layout.nodes[a], layout.nodes[b]
        first = ax + starts[a, b], ay - sizes[a][1] / 2
        last = bx + ends[a, b], by + sizes[b][1] / 2
        routes[a, b] = [first, *bends, last]
    return routes


def _ports(
    node: int, own: list[tuple[Point, int]], sizes: Sequence[Point], font_size: float
) -> list[tuple[int, float]]:
    step = min(0.75 * sizes[node][0] / len(own), font_size)
    ordered = [other for _, other in sorted(own)]
    return [(other, (i - (len(own) - 1) / 2) * step) for i, other in enumerate(ordered)]
