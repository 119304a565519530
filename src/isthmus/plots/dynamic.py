"""Plots of dynamic networks: one column per time step, with the present on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar, final

from isthmus.errors import ArgumentError, GraphError, MissingExtraError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.identification import compare
from isthmus.plots.graph import current_style, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Edge: TypeAlias = tuple[str, str, int]
EdgeT = TypeVar("EdgeT", bound=Edge)

_WIDE = 2.6  # inches between columns
_TALL = 0.42  # inches between rows
_ARCS = 0.65  # room for the arcs on the right, in columns
_LETTER = 0.62  # width of a letter over the font size
_NEGATIVE = (0, (4.0, 1.5))  # dashes of negative weights


def plot_dynamic(
    nodes: Sequence[str],
    weights: Mapping[EdgeT, float],
    *,
    lags: int,
    ax: Axes | None = None,
    font_size: float | None = None,
    positive_color: str | None = None,
    negative_color: str | None = None,
) -> Axes:
    """Draw a dynamic network.

    Each variable is a row and each time step a column, with the oldest on the left. Edges from
    earlier steps end at the present; edges within the present are arcs on its right. The width of a
    line shows the absolute weight; negative weights are dashed and of another colour.

    Parameters
    ----------
    nodes
        The variables, from top to bottom.
    weights
        Weight of each edge ``(source, target, lag)``.
    lags
        Number of time steps before the present.
    ax
        Axes to draw on; by default those of a new figure that is large enough.
    font_size
        Font size in points, by default 10; it is reduced if there is not enough room.
    positive_color, negative_color
        Matplotlib colours of positive and negative weights; by default those of the style (see
        `publication`).

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Save the plot with ``ax.figure.savefig("network.png")``.
    """
    rows = {name: len(nodes) - 1 - i for i, name in enumerate(nodes)}
    for source, target, lag in weights:
        if source not in rows or target not in rows or not 0 <= lag <= lags:
            raise GraphError(
                f"The edge {source!r} → {target!r} at lag {lag} cannot be drawn: its ends must be "
                f"among the nodes and its lag between 0 and {lags}."
            )
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "plot_dynamic()") from None
    del mpl
    style = current_style()
    colors = positive_color or style.accent, negative_color or style.negative
    ax, font_size = _prepared(ax, nodes, lags, font_size or style.font_size)
    canvas = _DynamicCanvas(ax, rows, lags, font_size, colors)
    largest = max((abs(w) for w in weights.values()), default=0.0) or 1.0
    # Thin lines are drawn last, so that thick ones do not hide them.
    for edge in sorted(weights, key=lambda e: (-abs(weights[e]), e)):
        width = 0.6 + 2.6 * abs(weights[edge]) / largest
        canvas.edge(edge, weights[edge], width * font_size / 10)
    used = {(source, lag) for source, _, lag in weights} | {(t, 0) for _, t, _ in weights}
    for name in nodes:
        for lag in range(lags + 1):
            canvas.node(name, lag, used=(name, lag) in used)
        canvas.label(name)
    for lag in range(lags + 1):
        canvas.heading(lag)
    if min(weights.values(), default=0.0) < 0:
        canvas.legend()
    return ax


def _prepared(
    ax: Axes | None, nodes: Sequence[str], lags: int, font_size: float
) -> tuple[Axes, float]:
    """Return axes with a unit per column and row, and the font size that fits."""
    style = current_style()
    names = 0.15 + _LETTER * max((len(name) for name in nodes), default=0) * font_size / 72
    tall = _TALL * (len(nodes) + 1.6) * font_size / 10
    if ax is None:
        wide = names + _WIDE * (lags + _ARCS)
        ax = new_axes(
            min(wide, style.widest), min(tall, style.tallest), "plot_dynamic()", bare=True
        )
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    width, height = box.width / dpi, box.height / dpi
    scale = min(1.0, height / tall, 0.45 * width / names)
    unit = (width - names * scale) / (lags + _ARCS)
    ax.set_xlim(-names * scale / unit, lags + _ARCS)
    ax.set_ylim(-1.0, len(nodes) + 0.6)
    ax.set_axis_off()
    return ax, font_size * scale


@final
@dataclass(frozen=True)
class _DynamicCanvas:
    """Draws nodes, edges and labels on axes."""

    ax: Axes
    rows: Mapping[str, int]
    lags: int
    font_size: float
    colors: tuple[str, str]

    def place(self, name: str, lag: int) -> tuple[float, float]:
        return float(self.lags - lag), float(self.rows[name])

    def edge(self, edge: Edge, weight: float, width: float) -> None:
        from matplotlib.patches import FancyArrowPatch

        source, target, lag = edge
        start, end = self.place(source, lag), self.place(target, 0)
        # A straight line would cross the nodes between its ends: edges within a step are arcs to
        # the right, edges over several steps are slightly curved.
        bend = 0.07 * (lag - 1) if lag else self._arc(start, end)
        self.ax.add_patch(
            FancyArrowPatch(
                start,
                end,
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>",
                mutation_scale=6.0 + 2.0 * width,
                linewidth=width,
                linestyle="-" if weight >= 0 else _NEGATIVE,
                shrinkA=0.5 * self.font_size,
                shrinkB=0.6 * self.font_size,
                color=self.colors[0] if weight >= 0 else self.colors[1],
                zorder=1,
            )
        )

    def _arc(self, start: tuple[float, float], end: tuple[float, float]) -> float:
        """Return the curvature of an arc that stays within the axes."""
        (x, above), (_, below) = self.ax.transData.transform([start, end])
        room = self.ax.get_window_extent().x1 - x
        size = min(0.45, 1.8 * room / max(abs(above - below), 1.0))
        return float(-size if above > below else size)

    def node(self, name: str, lag: int, *, used: bool) -> None:
        x, y = self.place(name, lag)
        self.ax.plot(
            [x],
            [y],
            marker="o",
            markersize=0.7 * self.font_size,
            color=current_style().edge if used else "#c9d2da",
            linestyle="none",
            zorder=2,
        )

    def label(self, name: str) -> None:
        self.ax.text(
            -0.08,
            self.rows[name],
            name,
            ha="right",
            va="center",
            fontsize=self.font_size,
            parse_math=False,
        )

    def legend(self) -> None:
        from matplotlib.lines import Line2D

        samples = [
            Line2D([], [], color=self.colors[0], label="positive"),
            Line2D([], [], color=self.colors[1], linestyle=_NEGATIVE, label="negative"),
        ]
        self.ax.legend(
            handles=samples,
            loc="lower right",
            ncols=2,
            frameon=False,
            fontsize=0.9 * self.font_size,
            borderaxespad=0.1,
        )

    def heading(self, lag: int) -> None:
        text = "t" if lag == 0 else f"t − {lag}"
        self.ax.text(
            self.lags - lag,
            len(self.rows) - 0.2,
            text,
            ha="center",
            va="bottom",
            fontsize=self.font_size,
            fontweight="bold",
        )


# --- Plots of how a network changes as the data grow --------------------------------------------

_MARKERS = {"same": "o", "added": "^", "missing": "v", "reversed": "s", "undecided": "D"}


def plot_growth(
    graphs: Mapping[int, DAG | CPDAG | PDAG],
    *,
    reference: DAG | CPDAG | PDAG | None = None,
    label: str = "rows",
    ax: Axes | None = None,
) -> Axes:
    """Draw how a network grows with the data: how many edges are as in a reference, or differ.

    If the lines are still rising or falling at the right, more rows would change the network.

    Parameters
    ----------
    graphs
        The graphs, by the number of rows that each was learned from.
    reference
        The graph to compare with, such as a published one; by default the graph of most rows.
    label
        Axis label for the numbers in ``graphs``.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus.plots import plot_growth
    >>> tables = {rows: ist.datasets.sprinkler(rows) for rows in (50, 200, 1_000)}
    >>> graphs = {rows: ist.learn(table).cpdag for rows, table in tables.items()}
    >>> ax = plot_growth(graphs, reference=tables[50].dag.cpdag())
    """
    if len(graphs) < 2:
        raise ArgumentError(
            f"A plot of growth needs the graphs of at least two numbers of {label}; "
            f"{len(graphs)} were given."
        )
    sizes = sorted(graphs)
    if sizes[0] <= 0:
        raise ArgumentError(f"The numbers of {label} must be positive; got {sizes[0]}.")
    target = graphs[sizes[-1]] if reference is None else reference
    comparisons = [compare(graphs[size], target) for size in sizes]
    ax = new_axes(6.0, 3.4, "plot_growth()") if ax is None else ax
    for state, (color, dashes, wide) in current_style().states.items():
        counts = [comparison.count(state) for comparison in comparisons]
        if state != "same" and not any(counts):
            continue
        ax.plot(
            sizes,
            counts,
            color=color,
            linestyle=dashes,
            linewidth=0.8 * wide,
            marker=_MARKERS[state],
            markersize=4.5,
            label=state,
        )
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set_xticks([], minor=True)
    ax.set_xlabel(label)
    which = f"the graph of {sizes[-1]:,} {label}" if reference is None else "the reference"
    ax.set_ylabel(f"edges, compared with\n{which}")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=5)
    return ax
