"""Plots of posterior distributions over graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError
from isthmus.plots.style import current_style, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
