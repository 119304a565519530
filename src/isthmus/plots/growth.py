"""Plots of how a network changes as the data grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.errors import ArgumentError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.comparison import compare
from isthmus.plots.style import current_style, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
