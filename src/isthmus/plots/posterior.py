"""Plots of posterior distributions over graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, GraphError, MissingExtraError
from isthmus.plots.graph import current_style, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isthmus.networks import GPNetwork

_CELL = 0.42  # inches per variable
_LARGEST = 20.0  # inches
_READABLE = 5.0  # points; smaller names are left out


def plot_edge_probabilities(
    nodes: Sequence[str],
    probabilities: NDArray[np.float64],
    *,
    ax: Axes | None = None,
    label: str = "probability of the edge",
) -> Axes:
    """Draw the probabilities of all edges as a coloured matrix.

    Parameters
    ----------
    nodes
        Names of the variables.
    probabilities
        Entry ``[i, j]`` is the probability of the edge from node ``i`` to node ``j``.
    ax
        Axes to draw on; by default those of a new figure that is large enough for the names of up
        to about 250 variables.
    label
        Label of the colours.
    """
    d = len(nodes)
    if probabilities.shape != (d, d):
        raise ArgumentError(
            f"{d} nodes need a matrix of shape ({d}, {d}); {probabilities.shape} was given."
        )
    style = current_style()
    if ax is None:
        names = 0.085 * min(max(map(len, nodes), default=0), 40)  # inches
        side = min(1.0 + names + _CELL * d, _LARGEST)
        ax = new_axes(side + 0.8, side, "plot_edge_probabilities()")
        room = ax.figure.bbox.height / ax.figure.dpi - names - 0.6
    else:
        box = ax.get_window_extent()
        room = min(box.width, box.height) / ax.figure.dpi
    font_size = min(style.font_size, 0.85 * 72 * room / max(d, 1))
    image = ax.imshow(probabilities, vmin=0.0, vmax=1.0, cmap=style.colors, interpolation="nearest")
    ax.set_xlabel("to")
    ax.set_ylabel("from")
    ax.set_xticks([])
    ax.set_yticks([])
    if font_size >= _READABLE:
        own: Any = {"fontsize": font_size, "parse_math": False}
        ax.set_xticks(range(d), nodes, rotation=90, **own)
        ax.set_yticks(range(d), nodes, **own)
        ax.tick_params(length=2.0 if d <= 30 else 0.0)
    ax.figure.colorbar(image, ax=ax, label=label, shrink=min(0.8, 4.0 / room))
    return ax


def plot_trace(trace: NDArray[np.float64], *, label: str, ax: Axes | None = None) -> Axes:
    """Draw the value of a feature along each chain.

    Chains that have converged look alike. A chain that stays at another level than the others has
    not.

    Parameters
    ----------
    trace
        Values, of shape (chains, draws).
    label
        Axis label for the values.
    ax
        Axes to draw on; by default those of a new figure.
    """
    ax = new_axes(7.0, 3.0, "plot_trace()") if ax is None else ax
    for number, chain in enumerate(trace):
        ax.plot(chain, linewidth=0.8, label=f"chain {number + 1}")
    ax.set_xlabel("draw")
    ax.set_ylabel(label)
    if 1 < len(trace) <= 10:
        ncols = min(len(trace), 5)
        ax.legend(
            frameon=False, ncols=ncols, loc="lower left", bbox_to_anchor=(0, 1), fontsize="small"
        )
    return ax


# --- Plots of the effects in a Gaussian-process network -----------------------------------------


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
