"""Plots of the effects in a Gaussian-process network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isthmus.errors import GraphError, MissingExtraError
from isthmus.plots.style import current_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isthmus.models import GPNetwork


def plot_curves(
    network: GPNetwork,
    *,
    edges: Sequence[tuple[str, str]] | None = None,
    axes: Sequence[Axes] | None = None,
    columns: int = 3,
    color: str | None = None,
) -> list[Axes]:
    """Draw the effect of each edge, with a band that contains it with a probability of 95%.

    Parameters
    ----------
    network
        The fitted network.
    edges
        The edges to draw; by default all.
    axes
        Axes to draw on, one per edge; by default those of a new figure.
    columns
        Number of panels next to each other in a new figure.
    color
        Matplotlib colour of curves and bands; by default that of the style (see `publication`).

    Returns
    -------
    list of matplotlib.axes.Axes
        One per edge. Save the plot with ``axes[0].figure.savefig("curves.png")``.
    """
    chosen = list(network.dag.edges if edges is None else edges)
    curves = [network.curve(*edge) for edge in chosen]
    if not curves:
        raise GraphError("The network has no edges, so there are no curves to draw.")
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "plot_curves()") from None
    style = current_style()
    color = color or style.accent
    if axes is None:
        columns = min(columns, int(style.widest / 1.6))
        wide = min(max(columns, 1), len(curves))
        high = -(-len(curves) // wide)
        size = min(3.2 * wide, style.widest), min(2.6 * high, style.tallest)
        figure, grid = plt.subplots(high, wide, figsize=size, squeeze=False, layout="constrained")
        panels = list(grid.flat)
        for unused in panels[len(curves) :]:
            figure.delaxes(unused)
        axes = panels[: len(curves)]
    if len(axes) != len(curves):
        raise GraphError(f"{len(axes)} axes were given for {len(curves)} edges.")
    for (parent, child), curve, ax in zip(chosen, curves, axes, strict=True):
        ax.fill_between(curve.at, curve.lower, curve.upper, color=color, alpha=0.25, linewidth=0)
        ax.plot(curve.at, curve.mean, color=color)
        ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
        ax.set_xlabel(parent)
        ax.set_ylabel(f"effect on {child}")
    return list(axes)
