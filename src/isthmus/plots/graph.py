"""Plots of graphs with matplotlib."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from warnings import warn

from isthmus.errors import GraphError, IsthmusWarning, MissingExtraError
from isthmus.graphs import CPDAG, DAG, PAG, PDAG
from isthmus.graphs.comparison import Comparison, compare
from isthmus.plots.drawing import (
    broken,
    kinds_of,
    legend_of,
    line_widths,
    routes_of,
    without_marks,
)
from isthmus.plots.layout import Point, lay_out
from isthmus.plots.style import Line, Style, current_style, new_axes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from isthmus.plots.layout import Layout

_MARGIN = 8.0  # points
_SMALLEST = 5.0
"""Minimum font size in figures, in points, that journals accept."""


def plot_graph(
    graph: DAG | CPDAG | PDAG | PAG,
    *,
    ax: Axes | None = None,
    strengths: Mapping[tuple[str, str], float] | None = None,
    reference: DAG | CPDAG | PDAG | None = None,
    font_size: float | None = None,
    node_color: str | None = None,
    edge_color: str | None = None,
) -> Axes:
    """Draw a graph in layers, with causes above effects.

    Parameters
    ----------
    graph
        The graph. Directed edges have arrowheads, undirected edges have none. Edges of a PAG have
        its marks, those of hidden common causes are dashed, and a legend says what they mean.
    ax
        Axes to draw on; by default those of a new figure that is large enough.
    strengths
        Strengths of some or all edges, for example their confidence. The width of a line shows the
        absolute strength; edges without a strength are drawn thin.
    reference
        A graph to compare with. Edges that are added are drawn blue and wide, missing ones orange
        and dashed, reversed ones purple and dotted, and those directed in one graph only green and
        dash-dotted; strengths are not shown then. A legend counts them.
    font_size
        Font size in points, by default 10; it is reduced if there is not enough room.
    node_color, edge_color
        Matplotlib colours of nodes and edges; by default those of the style (see `publication`).

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Save the plot with ``ax.figure.savefig("network.png")``.
    """
    if not isinstance(graph, DAG | CPDAG | PDAG | PAG):
        raise GraphError(
            f"plot_graph draws DAGs, CPDAGs, PDAGs and PAGs, got {type(graph).__name__}."
        )
    if isinstance(graph, PAG) and (strengths or reference is not None):
        raise GraphError("A PAG is drawn without strengths and without a reference.")
    kinds, meanings = kinds_of(graph), legend_of(graph)
    graph = without_marks(graph)
    widths = line_widths(graph, strengths)
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "plot_graph()") from None
    del mpl
    style = current_style()
    font_size = style.font_size if font_size is None else font_size
    node_color, edge_color = node_color or style.node, edge_color or style.edge
    states: dict[tuple[int, int], str] = {}
    entries: dict[str, str] = {}
    if reference is not None:
        comparison = compare(graph, reference)
        place = graph.index
        states = {(place(a), place(b)): state for (a, b), state in comparison.states.items()}
        kinds |= {
            (place(a), place(b)): "-->" if head else "---"
            for (a, b), head in comparison.missing.items()
        }
        graph = _with_missing(graph, comparison)
        entries = {s: f"{s} ({n})" for s in style.states if (n := comparison.count(s))}
    labels = [broken(name) for name in graph.nodes]
    sizes = [_size(label, font_size) for label in labels]
    layout = lay_out(graph, sizes, gap=1.2 * font_size, layer_gap=2.8 * font_size)
    key = [_size(text, font_size)[0] + 3 * font_size for text in entries.values()]
    room = (sum(key), 2.6 * font_size) if key else (0.0, 0.0)
    if meanings:
        widest = max(_size(text, 0.9 * font_size)[0] for text in meanings)
        room = (widest, (1.3 * len(meanings) + 1.0) * font_size)
    ax, scale = _prepared(ax, layout, room)
    if style.widest < Style.widest and font_size * scale < _SMALLEST:
        warn(
            f"The text in this figure is {font_size * scale:.1f} points high; journals ask for 5 "
            "or more. Allow a larger width, or draw a part of the graph.",
            IsthmusWarning,
            stacklevel=2,
        )
    canvas = _Canvas(ax, scale, edge_color, font_size)
    routes = routes_of(layout, sizes, font_size)
    for (a, b), kind in kinds.items():
        route = routes[a, b] if (a, b) in routes else routes[b, a][::-1]
        dashes = "--" if kind == "<->" else "-"
        line: Line = (edge_color, dashes, widths.get((a, b), 1.0))
        canvas.edge(route, style.states[states[a, b]] if states else line, kind)
    for node, label in enumerate(labels):
        canvas.node(layout.nodes[node], sizes[node], label, node_color)
    if entries:
        canvas.legend({text: style.states[state] for state, text in entries.items()})
    canvas.meanings(meanings, layout.width / 2)
    return ax


def _with_missing(graph: DAG | CPDAG | PDAG, comparison: Comparison) -> PDAG:
    """Return the graph with the missing edges, undirected so that there is no cycle."""
    directed = graph.edges if isinstance(graph, DAG) else graph.directed
    undirected = () if isinstance(graph, DAG) else graph.undirected
    return PDAG(graph.nodes, directed, [*undirected, *comparison.missing])


def _size(label: str, font_size: float) -> Point:
    """Return the width and height of the box around a label, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=font_size)
    lines = label.split("\n")
    widths = [text_to_path.get_text_width_height_descent(t, font, ismath=False)[0] for t in lines]
    width = max(float(max(widths)) + 1.2 * font_size, 2.4 * font_size)
    return width, 1.25 * font_size * len(lines) + 0.7 * font_size


def _prepared(ax: Axes | None, layout: Layout, key: Point) -> tuple[Axes, float]:
    """Return axes with the units of the layout, and the number of points per unit.

    The key of a comparison gets room below the layout.
    """
    inner = max(layout.width, key[0])
    width, height = inner + 2 * _MARGIN, layout.height + key[1] + 2 * _MARGIN
    if ax is None:
        ax = new_axes(width / 72, height / 72, "plot_graph()", bare=True)
    box = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    room = box.width * points, box.height * points
    # Never enlarge: a small graph is centred in large axes.
    scale = min(room[0] / width, room[1] / height, 1.0)
    spare = room[0] / scale - layout.width, room[1] / scale - layout.height - key[1]
    ax.set_xlim(-spare[0] / 2, layout.width + spare[0] / 2)
    ax.set_ylim(-spare[1] / 2 - key[1], layout.height + spare[1] / 2)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax, scale


@dataclass(frozen=True)
class _Canvas:
    """Draws nodes and edges on axes; sizes are in units of the layout."""

    ax: Axes
    scale: float
    color: str
    font_size: float

    def node(self, centre: Point, size: Point, label: str, color: str) -> None:
        from matplotlib.patches import FancyBboxPatch

        style = f"round,pad=0,rounding_size={0.5 * self.font_size}"
        corner = centre[0] - size[0] / 2, centre[1] - size[1] / 2
        line = 0.8 * self.scale
        box = FancyBboxPatch(
            corner, *size, boxstyle=style, facecolor=color, edgecolor=self.color, linewidth=line
        )
        box.set_zorder(2)
        self.ax.add_patch(box)
        self.ax.text(
            *centre,
            label,
            fontsize=self.font_size * self.scale,
            ha="center",
            va="center",
            linespacing=1.1,
            parse_math=False,
            zorder=3,
        )

    def edge(self, route: Sequence[Point], line: Line, kind: str) -> None:
        from matplotlib.patches import Circle, FancyArrowPatch

        color, dashes, width = line
        arrow = FancyArrowPatch(
            path=_smooth(route),
            arrowstyle="<|-|>" if kind == "<->" else "-|>" if kind[2] == ">" else "-",
            mutation_scale=max((0.9 + 0.12 * width) * self.font_size * self.scale, 4.0),
            linewidth=max(width * self.scale, 0.3),
            color=color,
            linestyle=dashes,
            fill=kind[2] == ">",
            joinstyle="miter",
            zorder=1,
        )
        self.ax.add_patch(arrow)
        radius = 0.22 * self.font_size
        for mark, (end, inner) in (
            (kind[0], (route[0], route[1])),
            (kind[2], (route[-1], route[-2])),
        ):
            if mark == "o":
                length = math.dist(end, inner) or 1.0
                centre = [e + (i - e) * radius / length for e, i in zip(end, inner, strict=True)]
                circle = Circle(
                    (centre[0], centre[1]), radius, facecolor="white", edgecolor=color, zorder=2.5
                )
                circle.set_linewidth(max(self.scale, 0.3))
                self.ax.add_patch(circle)

    def meanings(self, lines: Sequence[str], centre: float) -> None:
        """Write what edges mean, below the graph."""
        for number, text in enumerate(lines):
            self.ax.text(
                centre,
                -(1.3 * number + 1.4) * self.font_size,
                text,
                fontsize=0.9 * self.font_size * self.scale,
                ha="center",
                va="center",
                zorder=3,
            )

    def legend(self, entries: Mapping[str, Line]) -> None:
        from matplotlib.lines import Line2D

        samples = [
            Line2D([], [], color=color, linestyle=dashes, linewidth=width * self.scale, label=text)
            for text, (color, dashes, width) in entries.items()
        ]
        self.ax.legend(
            handles=samples,
            loc="lower center",
            ncols=len(samples),
            frameon=False,
            fontsize=self.font_size * self.scale,
            handlelength=2.0,
            columnspacing=1.0,
            borderaxespad=0.2,
        )


def _smooth(points: Sequence[Point]) -> Any:
    """Return a curve through all points that is vertical at the inner ones.

    It stays within the strip between neighbouring points.
    """
    from matplotlib.path import Path

    if len(points) == 2:
        return Path([*points], [Path.MOVETO, Path.LINETO])
    vertices = [points[0]]
    last = len(points) - 2
    for i, ((ax, ay), (bx, by)) in enumerate(itertools.pairwise(points)):
        dx, dy = (bx - ax) / 3, (by - ay) / 3
        vertices += [
            (ax + dx, ay + dy) if i == 0 else (ax, ay + dy),
            (bx - dx, by - dy) if i == last else (bx, by - dy),
            (bx, by),
        ]
    return Path(vertices, [Path.MOVETO, *[Path.CURVE4] * (len(vertices) - 1)])
