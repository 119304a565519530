"""Plots of graphs with matplotlib."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isthmus.errors import GraphError, MissingExtraError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.comparison import Comparison, compare
from isthmus.plots.drawing import broken, edges_of, line_widths, routes_of
from isthmus.plots.layout import Point, lay_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from isthmus.plots.layout import Layout

_LARGEST = 32.0  # inches; larger figures are scaled down
_MARGIN = 8.0  # points
_STYLES = {
    "added": ("#0072b2", "-"),
    "missing": ("#c44e00", "--"),
    "reversed": ("#a02c78", ":"),
    "undecided": ("#5a7d1c", "-"),
}
"""Colours that colour-blind readers can tell apart, and line styles, of a comparison."""


def plot_graph(
    graph: DAG | CPDAG | PDAG,
    *,
    ax: Axes | None = None,
    strengths: Mapping[tuple[str, str], float] | None = None,
    reference: DAG | CPDAG | PDAG | None = None,
    font_size: float = 10.0,
    node_color: str = "#e8f0f7",
    edge_color: str = "#3b4a59",
) -> Axes:
    """Draw a graph in layers, with causes above effects.

    Parameters
    ----------
    graph
        The graph. Directed edges have arrowheads, undirected edges have none.
    ax
        Axes to draw on; by default those of a new figure that is large enough.
    strengths
        Strengths of some or all edges, for example their confidence. The width of a line shows the
        absolute strength; edges without a strength are drawn thin.
    reference
        A graph to compare with. Edges that are added are drawn blue and wide, missing ones orange
        and dashed, reversed ones purple and dotted, and those directed in one graph only green.
    font_size
        Font size in points; it is reduced if there is not enough room.
    node_color, edge_color
        Matplotlib colours of nodes and edges.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Save the plot with ``ax.figure.savefig("network.png")``.
    """
    if not isinstance(graph, DAG | CPDAG | PDAG):
        raise GraphError(f"plot_graph draws DAGs, CPDAGs and PDAGs, got {type(graph).__name__}.")
    widths = line_widths(graph, strengths)
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "plot_graph()") from None
    del mpl
    heads = edges_of(graph)
    states: dict[tuple[int, int], str] = {}
    if reference is not None:
        comparison = compare(graph, reference)
        place = graph.index
        states = {(place(a), place(b)): state for (a, b), state in comparison.states.items()}
        heads |= {(place(a), place(b)): head for (a, b), head in comparison.missing.items()}
        graph = _with_missing(graph, comparison)
    labels = [broken(name) for name in graph.nodes]
    sizes = [_size(label, font_size) for label in labels]
    layout = lay_out(graph, sizes, gap=1.2 * font_size, layer_gap=2.8 * font_size)
    ax, scale = _prepared(ax, layout)
    canvas = _Canvas(ax, scale, edge_color, font_size)
    routes = routes_of(layout, sizes, font_size)
    for (a, b), head in heads.items():
        route = routes[a, b] if (a, b) in routes else routes[b, a][::-1]
        color, line = _STYLES.get(states.get((a, b), "same"), (edge_color, "-"))
        canvas.edge(route, widths.get((a, b), 1.0), head=head, color=color, line_style=line)
    for node, label in enumerate(labels):
        canvas.node(layout.nodes[node], sizes[node], label, node_color)
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


def _prepared(ax: Axes | None, layout: Layout) -> tuple[Axes, float]:
    """Return axes with the units of the layout, and the number of points per unit."""
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    if ax is None:
        import matplotlib.pyplot as plt

        shrink = min(1.0, 72 * _LARGEST / max(width, height))
        figure = plt.figure(figsize=(width * shrink / 72, height * shrink / 72))
        ax = figure.add_axes((0, 0, 1, 1))
    box = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    room = box.width * points, box.height * points
    # Never enlarge: a small graph is centred in large axes.
    scale = min(room[0] / width, room[1] / height, 1.0)
    spare = room[0] / scale - layout.width, room[1] / scale - layout.height
    ax.set_xlim(-spare[0] / 2, layout.width + spare[0] / 2)
    ax.set_ylim(-spare[1] / 2, layout.height + spare[1] / 2)
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

    def edge(
        self, route: Sequence[Point], width: float, *, head: bool, color: str, line_style: str
    ) -> None:
        from matplotlib.patches import FancyArrowPatch

        line = FancyArrowPatch(
            path=_smooth(route),
            arrowstyle="-|>" if head else "-",
            mutation_scale=max((0.9 + 0.12 * width) * self.font_size * self.scale, 4.0),
            linewidth=max(width * self.scale, 0.3),
            color=color,
            linestyle=line_style,
            fill=head,
            joinstyle="miter",
            zorder=1,
        )
        self.ax.add_patch(line)


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
