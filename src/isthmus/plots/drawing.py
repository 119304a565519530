"""What every picture of a graph needs, whatever it is drawn with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.plots.layout import Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isthmus.plots.layout import Layout

_LINE = 18  # letters in a line of a label before it is broken after a separator
_WORD = 24  # letters in a row before they are broken anyway


def edges_of(graph: DAG | CPDAG | PDAG) -> dict[tuple[int, int], bool]:
    """Return the edges as pairs of positions; True for an arrow head."""
    directed = graph.edges if isinstance(graph, DAG) else graph.directed
    loose = () if isinstance(graph, DAG) else graph.undirected
    found = {(graph.index(a), graph.index(b)): True for a, b in directed}
    return found | {(graph.index(a), graph.index(b)): False for a, b in loose}


def line_widths(
    graph: DAG | CPDAG | PDAG, strengths: Mapping[tuple[str, str], float] | None
) -> dict[tuple[int, int], float]:
    """Return the width of each line in points, by the absolute strength of its edge."""
    if not strengths:
        return {}
    edges = edges_of(graph)
    found: dict[tuple[int, int], float] = dict.fromkeys(edges, 0.0)
    for (a, b), value in strengths.items():
        pair = graph.index(a), graph.index(b)
        turned = pair[::-1]
        if pair in edges:
            found[pair] = abs(float(value))
        elif edges.get(turned) is False:
            found[turned] = abs(float(value))
        else:
            raise GraphError(f"There is a strength for {a!r} → {b!r}, which is no edge.")
    largest = max(found.values(), default=0.0)
    if not largest < float("inf"):
        raise GraphError("Strengths must be finite numbers.")
    return {edge: 0.5 + 3.0 * value / (largest or 1.0) for edge, value in found.items()}


def broken(name: str) -> str:
    """Break a long name into lines, after a separator where there is one."""
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

    The edges at one side of a box are spread over it, in the order of where they go.
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
