"""Plots of graphs. Matplotlib is imported only when a plot is drawn."""

from isthmus.plots.dynamic import plot_dynamic
from isthmus.plots.graph import plot_graph
from isthmus.plots.svg import svg_graph

__all__ = ["plot_dynamic", "plot_graph", "svg_graph"]
