"""Plots of graphs, posteriors and curves. Matplotlib is imported only when a plot is drawn."""

from isthmus.plots.curves import plot_curves
from isthmus.plots.dynamic import plot_dynamic
from isthmus.plots.graph import plot_graph
from isthmus.plots.growth import plot_growth
from isthmus.plots.notebook import notebook_drawing
from isthmus.plots.posterior import plot_edge_probabilities, plot_trace
from isthmus.plots.style import publication
from isthmus.plots.svg import svg_graph

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
