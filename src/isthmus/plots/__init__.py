"""Pictures; matplotlib is loaded only when one is drawn."""

from isthmus.plots.graph import plot_graph

__all__ = ["plot_graph"]
