"""Plots of posterior distributions over graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL = 0.42  # inches per variable
_LARGEST = 20.0  # inches
_LABELLED = 60
"""Up to this many variables, cells are large enough for names."""


def plot_edge_probabilities(
    nodes: Sequence[str], probabilities: NDArray[np.float64], *, ax: Axes | None = None
) -> Axes:
    """Draw the probabilities of all edges as a coloured matrix.

    Parameters
    ----------
    nodes
        Names of the variables.
    probabilities
        Entry ``[i, j]`` is the probability of the edge from node ``i`` to node ``j``.
    ax
        Axes to draw on; by default those of a new figure that is large enough.
    """
    d = len(nodes)
    if probabilities.shape != (d, d):
        raise ArgumentError(
            f"{d} nodes need a matrix of shape ({d}, {d}); {probabilities.shape} was given."
        )
    if ax is None:
        side = min(2.0 + _CELL * d, _LARGEST)
        ax = _new_axes(side + 0.8, side)
    image = ax.imshow(probabilities, vmin=0.0, vmax=1.0, cmap="Blues")
    ax.set_xlabel("to")
    ax.set_ylabel("from")
    if d <= _LABELLED:
        ax.set_xticks(range(d), nodes, rotation=90)
        ax.set_yticks(range(d), nodes)
    ax.figure.colorbar(image, ax=ax, label="probability of the edge", shrink=0.8)
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
        What the values are.
    ax
        Axes to draw on; by default those of a new figure.
    """
    ax = _new_axes(7.0, 3.0) if ax is None else ax
    for number, chain in enumerate(trace):
        ax.plot(chain, linewidth=0.8, label=f"chain {number + 1}")
    ax.set_xlabel("draw")
    ax.set_ylabel(label)
    if 1 < len(trace) <= 10:
        ax.legend(frameon=False, ncols=len(trace), loc="lower right", fontsize="small")
    return ax


def _new_axes(width: float, height: float) -> Axes:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "Plots of a posterior") from None
    return Figure(figsize=(width, height), layout="constrained").add_subplot()
