"""Plots of graphs as SVG text, without matplotlib."""

from __future__ import annotations

import itertools
import unicodedata
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.errors import MissingExtraError
from isthmus.graphs import CPDAG, DAG, PAG, PDAG
from isthmus.plots.graph import broken, kinds_of, legend_of, line_widths, routes_of, without_marks
from isthmus.plots.layout import Point, lay_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FONT = 12.0
_MARGIN = 12.0
_BOX, _LINE, _TEXT = "#eaf1f8", "#465667", "#1c2733"
_NARROW, _WIDE = 0.68, 1.05  # upper bounds on the width of a character over the font size


_CIRCLE = (
    '<marker id="circle" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8"'
    ' markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
    f'<circle cx="5" cy="5" r="4" fill="white" stroke="{_LINE}" stroke-width="1.5"/></marker>'
)
_MARKS = {
    "-->": ' marker-end="url(#arrow)"',
    "---": "",
    "o->": ' marker-start="url(#circle)" marker-end="url(#arrow)"',
    "<->": ' stroke-dasharray="5 3" marker-start="url(#arrow)" marker-end="url(#arrow)"',
    "o-o": ' marker-start="url(#circle)" marker-end="url(#circle)"',
}


def svg_graph(
    graph: DAG | CPDAG | PDAG | PAG, *, strengths: Mapping[tuple[str, str], float] | None = None
) -> str:
    """Return a drawing of a graph as an ``svg`` element, with causes above effects.

    Nodes have the attribute ``data-node``, edges have ``data-from`` and ``data-to``, all of them
    positions in ``graph.nodes``. Edges with a strength have ``data-strength``. The drawing has
    colours of its own; the style sheet of a page can change those of the classes ``node``, ``edge``
    and ``head``.

    Parameters
    ----------
    graph
        The graph. Directed edges have arrowheads, undirected edges have none. Edges of a PAG have
        its marks, and lines below the graph say what they mean.
    strengths
        Strengths of some or all edges, shown by the width of the lines.
    """
    kinds, meanings = kinds_of(graph), legend_of(graph)
    graph = without_marks(graph)
    labels = [broken(name) for name in graph.nodes]
    sizes = [_size(label) for label in labels]
    layout = lay_out(graph, sizes, gap=1.2 * _FONT, layer_gap=2.8 * _FONT)
    widths = line_widths(graph, strengths)
    weights = _by_position(graph, strengths)
    routes = routes_of(layout, sizes, _FONT)
    flip = layout.height + _MARGIN

    def at(point: Point) -> Point:
        return point[0] + _MARGIN, flip - point[1]

    elements = [f'<g fill="none" stroke="{_LINE}">']
    for (a, b), kind in kinds.items():
        head = kind[2] == ">"
        route = routes[a, b] if (a, b) in routes else routes[b, a][::-1]
        strength = weights.get((a, b))
        elements.append(
            f'<path class="edge{" head" if head else ""}" data-from="{a}" data-to="{b}"'
            + ("" if strength is None else f' data-strength="{strength:.6g}"')
            + f' stroke-width="{widths.get((a, b), 1.2):.2f}" d="{_curve([at(p) for p in route])}"'
            + _MARKS[kind]
            + "/>"
        )
    elements.append(f'</g><g fill="{_BOX}" stroke="{_LINE}">')
    for node, label in enumerate(labels):
        elements.append(_box(node, graph.nodes[node], label, at(layout.nodes[node]), sizes[node]))
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    if meanings:
        elements.append(f'</g><g class="legend" fill="{_TEXT}" stroke="none">')
        width = max(width, 0.55 * _FONT * max(map(len, meanings)))
    for text in meanings:
        height += 1.4 * _FONT
        elements.append(f'<text x="{_MARGIN}" y="{height - _MARGIN:.1f}">{escape(text)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.1f} {height:.1f}"'
        f' width="{width:.1f}" height="{height:.1f}" font-size="{_FONT}"'
        ' font-family="system-ui, sans-serif"'
        f' aria-label="Network; variables: {len(graph.nodes)}, edges: {len(kinds)}">'
        '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8"'
        ' markerHeight="8" markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
        f'<path d="M0 0 10 5 0 10z" fill="{_LINE}"/></marker>{_CIRCLE if meanings else ""}</defs>'
        + "".join(elements)
        + "</g></svg>"
    )


def _by_position(
    graph: DAG | CPDAG | PDAG, strengths: Mapping[tuple[str, str], float] | None
) -> dict[tuple[int, int], float]:
    values = {(graph.index(a), graph.index(b)): v for (a, b), v in (strengths or {}).items()}
    return values | {(b, a): v for (a, b), v in values.items()}


def _size(label: str) -> Point:
    lines = label.split("\n")
    width = max(sum(_WIDE if _is_wide(c) else _NARROW for c in line) for line in lines)
    return max(width + 1.2, 2.4) * _FONT, (1.25 * len(lines) + 0.7) * _FONT


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def _box(node: int, name: str, label: str, centre: Point, size: Point) -> str:
    (x, y), (w, h) = centre, size
    lines = label.split("\n")
    first = y - 1.25 * _FONT * (len(lines) - 1) / 2
    text = "".join(
        f'<text x="{x:.1f}" y="{first + 1.25 * _FONT * i:.1f}" text-anchor="middle"'
        f' dominant-baseline="central" fill="{_TEXT}" stroke="none">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<g class="node" data-node="{node}" tabindex="0"><title>{escape(name)}</title>'
        f'<rect x="{x - w / 2:.1f}" y="{y - h / 2:.1f}" width="{w:.1f}" height="{h:.1f}"'
        f' rx="{0.5 * _FONT}"/>{text}</g>'
    )


def _curve(points: Sequence[Point]) -> str:
    """Return an SVG path through all points that is vertical at the inner ones."""
    (x, y), last = points[0], len(points) - 2
    steps = [f"M{x:.1f} {y:.1f}"]
    if last == 0:
        return f"{steps[0]}L{points[1][0]:.1f} {points[1][1]:.1f}"
    for i, ((ax, ay), (bx, by)) in enumerate(itertools.pairwise(points)):
        dx, dy = (bx - ax) / 3, (by - ay) / 3
        start = ax + dx if i == 0 else ax
        end = bx - dx if i == last else bx
        steps.append(f"C{start:.1f} {ay + dy:.1f} {end:.1f} {by - dy:.1f} {bx:.1f} {by:.1f}")
    return "".join(steps)


# --- Small drawings that notebooks show: an SVG in a frame, with a few lines of script ----------

_MOST_NODES = 200
"""Larger graphs are described in words: their names would be too small to read."""


def notebook_drawing(
    graph: DAG | CPDAG | PDAG | PAG,
    caption: str = "",
    *,
    strengths: Mapping[tuple[str, str], float] | None = None,
) -> str | None:
    """Return a drawing of a graph to explore in a notebook, as HTML that works offline.

    Click a node to see its neighbours, drag to move the drawing. The buttons zoom, and so does
    scrolling after a click into the drawing.

    Parameters
    ----------
    graph
        The graph.
    caption
        Text below the drawing.
    strengths
        Strengths of edges, shown by the width of lines.

    Returns
    -------
    str or None
        None for graphs of more than 200 nodes, and if the library that places the nodes (extra
        ``plots``) is missing: notebooks then show plain text.
    """
    if not graph.nodes or len(graph.nodes) > _MOST_NODES:
        return None
    try:
        picture = svg_graph(graph, strengths=strengths)
    except MissingExtraError:
        return None
    frame = (Path(__file__).parent / "notebook.html").read_text(encoding="utf-8")
    page = frame.replace("<!-- picture -->", picture).replace("<!-- caption -->", escape(caption))
    height = 420 if len(graph.nodes) > 6 else 300
    return (
        f'<iframe sandbox="allow-scripts" title="{escape(caption or "Graph")}" width="100%" '
        f'height="{height}" style="border:1px solid #8886;border-radius:6px" '
        f'srcdoc="{escape(page)}">{escape(caption)}</iframe>'  # the text where frames are removed
    )
