"""Plots of dynamic networks: one column per time step, with the present on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar, final

from isthmus.errors import GraphError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Edge: TypeAlias = tuple[str, str, int]
EdgeT = TypeVar("EdgeT", bound=Edge)

_WIDE = 2.6  # inches between columns
_TALL = 0.42  # inches between rows
_LARGEST = 32.0  # inches; larger figures are scaled down
_RADIUS = 0.16  # radius of a node, in rows


def plot_dynamic(
    nodes: Sequence[str],
    weights: Mapping[EdgeT, float],
    *,
    lags: int,
    ax: Axes | None = None,
    font_size: float = 10.0,
    positive_color: str = "#1f5a99",
    negative_color: str = "#b3402e",
) -> Axes:
    """Draw a dynamic network.

    Each variable is a row and each time step a column, with the oldest on the left. Edges from
    earlier steps end at the present; edges within the present are arcs on its right. The width of a
    line shows the absolute weight, its colour the sign.

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
        Font size in points.
    positive_color, negative_color
        Matplotlib colours of positive and negative weights.

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
    ax = _prepared(ax, len(nodes), lags)
    canvas = _Canvas(ax, rows, lags, font_size, (positive_color, negative_color))
    largest = max((abs(w) for w in weights.values()), default=0.0) or 1.0
    # Thin lines are drawn last, so that thick ones do not hide them.
    for edge in sorted(weights, key=lambda e: (-abs(weights[e]), e)):
        canvas.edge(edge, weights[edge], 0.6 + 2.6 * abs(weights[edge]) / largest)
    used = {(source, lag) for source, _, lag in weights} | {(t, 0) for _, t, _ in weights}
    for name in nodes:
        for lag in range(lags + 1):
            canvas.node(name, lag, used=(name, lag) in used)
        canvas.label(name)
    for lag in range(lags + 1):
        canvas.heading(lag)
    return ax


def _prepared(ax: Axes | None, rows: int, lags: int) -> Axes:
    if ax is None:
        import matplotlib.pyplot as plt

        size = _WIDE * (lags + 1.2), _TALL * (rows + 2)
        shrink = min(1.0, _LARGEST / max(size))
        figure = plt.figure(figsize=(size[0] * shrink, size[1] * shrink))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_xlim(-0.55, lags + 0.65)
    ax.set_ylim(-1.0, rows + 0.6)
    ax.set_axis_off()
    return ax


@final
@dataclass(frozen=True)
class _Canvas:
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
        within = -0.45 if start[1] > end[1] else 0.45
        bend = within if lag == 0 else 0.07 * (lag - 1)
        self.ax.add_patch(
            FancyArrowPatch(
                start,
                end,
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>",
                mutation_scale=6.0 + 2.0 * width,
                linewidth=width,
                shrinkA=5.0,
                shrinkB=6.0,
                color=self.colors[0] if weight >= 0 else self.colors[1],
                zorder=1,
            )
        )

    def node(self, name: str, lag: int, *, used: bool) -> None:
        x, y = self.place(name, lag)
        self.ax.plot(
            [x],
            [y],
            marker="o",
            markersize=0.7 * self.font_size,
            color="#3b4a59" if used else "#c9d2da",
            linestyle="none",
            zorder=2,
        )

    def label(self, name: str) -> None:
        self.ax.text(-0.08, self.rows[name], name, ha="right", va="center", fontsize=self.font_size)

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
