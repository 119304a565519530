"""Plots of graphs, posteriors and curves. Matplotlib is imported only when a plot is drawn."""

from isthmus.plots.dynamic import plot_dynamic, plot_growth
from isthmus.plots.graph import plot_graph, publication
from isthmus.plots.posterior import plot_curves, plot_edge_probabilities, plot_trace
from isthmus.plots.svg import notebook_drawing, svg_graph

__all__ = [
    "notebook_drawing",
    "plot_curves",
    "plot_dynamic",
    "plot_edge_probabilities",
    "plot_graph",
    "plot_growth",
    "plot_trace",
    "publication",
    "svg_graph",
]
