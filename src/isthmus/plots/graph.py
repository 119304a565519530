"""Plots of graphs with matplotlib."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias
from warnings import warn

from isthmus.errors import ArgumentError, GraphError, IsthmusWarning, MissingExtraError
from isthmus.graphs import CPDAG, DAG, PAG, PDAG
from isthmus.graphs.identification import Comparison, compare
from isthmus.plots.layout import Point, lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from isthmus.plots.layout import Layout

# --- Edges, line widths, labels and routes, shared by all backends that draw graphs -------------

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


# --- Colours, line styles and sizes of plots: for the screen, and for print ---------------------

Line: TypeAlias = tuple[str, Any, float]
"""Colour, matplotlib line style, and factor of the line width."""

_DASH_DOT = (0, (6, 2, 1.2, 2))
_TALLEST = 9.2
"""Inches of a journal's page that are left for a figure above its caption."""


@dataclass(frozen=True)
class Style:
    """How plots look. Lines that differ in colour also differ in their dashes or width.

    Attributes
    ----------
    font_size
        Font size in points.
    node, edge
        Colours of nodes and edges.
    accent
        Colour of curves.
    negative
        Colour and line style of negative weights.
    colors
        Name of the matplotlib colour map of matrices.
    states
        How the edges of a comparison are drawn.
    widest, tallest
        Largest size of a figure in inches.
    """

    font_size: float = 10.0
    node: str = "#e8f0f7"
    edge: str = "#3b4a59"
    accent: str = "#1f5a99"
    negative: str = "#b3402e"
    colors: str = "Blues"
    states: Mapping[str, Line] = field(
        default_factory=lambda: MappingProxyType(
            {
                "same": ("#3b4a59", "-", 1.0),
                "added": ("#0072b2", "-", 2.6),
                "missing": ("#c44e00", "--", 1.4),
                "reversed": ("#a02c78", ":", 2.2),
                "undecided": ("#5a7d1c", _DASH_DOT, 1.4),
            }
        )
    )
    widest: float = 32.0
    tallest: float = 32.0


_STATES_IN_PRINT: Mapping[str, Line] = MappingProxyType(
    {
        "same": ("0.45", "-", 1.0),
        "added": ("0.0", "-", 2.6),
        "missing": ("0.0", "--", 1.2),
        "reversed": ("0.0", ":", 2.2),
        "undecided": ("0.0", _DASH_DOT, 1.2),
    }
)
_SCREEN = Style()
_current: ContextVar[Style] = ContextVar("style", default=_SCREEN)


def current_style() -> Style:
    """Return the style in which plots are drawn now."""
    return _current.get()


@contextmanager
def publication(width: float = 7.2) -> Iterator[None]:
    """Draw and save plots for print while the block runs: ``with publication(): ...``.

    Plots are in black and grey, in a sans-serif font of 8 points, and no wider than ``width``.
    Files are PDF by default, with their fonts embedded as TrueType, which journals accept. Save the
    plot inside the block.

    Parameters
    ----------
    width
        Width of the column in inches. Many journals have 7.2 for the page and 3.5 for one of two
        columns.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus.plots import plot_graph, publication
    >>> with publication(width=3.5):
    ...     ax = plot_graph(ist.DAG(["dose", "response"], [("dose", "response")]))
    ...     ax.figure.savefig("network.pdf")
    """
    if not 0.5 <= width <= 32.0:
        raise ArgumentError(f"The width of a column must be from 0.5 to 32 inches; got {width}.")
    try:
        import matplotlib as mpl
        from cycler import cycler
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "publication()") from None
    style = Style(
        font_size=8.0,
        node="white",
        edge="black",
        accent="black",
        negative="0.45",
        colors="Greys",
        states=_STATES_IN_PRINT,
        widest=width,
        tallest=_TALLEST,
    )
    lines = cycler(color=["0.0", "0.45", "0.65"]) * cycler(linestyle=["-", "--", ":"])
    settings: Any = {
        "font.family": "sans-serif",
        "font.sans-serif": ["Arial", "Helvetica", "Liberation Sans", "DejaVu Sans"],
        "font.size": 8.0,
        "axes.labelsize": 8.0,
        "legend.fontsize": 7.0,
        "xtick.labelsize": 7.0,
        "ytick.labelsize": 7.0,
        "axes.linewidth": 0.6,
        "axes.prop_cycle": lines,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "savefig.format": "pdf",
        "savefig.dpi": 600,
    }
    token = _current.set(style)
    try:
        with mpl.rc_context(settings):
            yield
    finally:
        _current.reset(token)


def new_axes(width: float, height: float, what: str, *, bare: bool = False) -> Axes:
    """Return the axes of a new figure, which is made smaller if the style does not allow its size.

    Parameters
    ----------
    width, height
        Size in inches.
    what
        The function that draws, for the error if matplotlib is missing.
    bare
        Whether the axes fill the figure and have no frame.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", what) from None
    style = current_style()
    shrink = min(1.0, style.widest / width, style.tallest / height)
    size = width * shrink, height * shrink
    if bare:
        return plt.figure(figsize=size).add_axes((0.0, 0.0, 1.0, 1.0))
    return plt.figure(figsize=size, layout="constrained").add_subplot()


# --- Plots of graphs with matplotlib ------------------------------------------------------------

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
