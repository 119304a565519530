"""Small drawings that notebooks show: an SVG in a frame, with a few lines of script."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.errors import MissingExtraError
from isthmus.graphs import CPDAG, DAG, PAG, PDAG
from isthmus.plots.svg import svg_graph

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_NODES = 200
"""Larger graphs are described in words: their names would be too small to read."""


def notebook_drawing(
    graph: DAG | CPDAG | PDAG | PAG,
    caption: str = "",
    *,
    strengths: Mapping[tuple[str, str], float] | None = None,
) -> str | None:
    """Return a drawing of a graph to explore in a notebook, as HTML that works offline.

    Click a node to see its neighbours, drag to move the drawing. The buttons zoom, and so does
    scrolling after a click into the drawing.

    Parameters
    ----------
    graph
        The graph.
    caption
        Text below the drawing.
    strengths
        Strengths of edges, shown by the width of lines.

    Returns
    -------
    str or None
        None for graphs of more than 200 nodes, and if the library that places the nodes (extra
        ``plots``) is missing: notebooks then show plain text.
    """
    if not graph.nodes or len(graph.nodes) > _MOST_NODES:
        return None
    try:
        picture = svg_graph(graph, strengths=strengths)
    except MissingExtraError:
        return None
    frame = (Path(__file__).parent / "notebook.html").read_text(encoding="utf-8")
    page = frame.replace("<!-- picture -->", picture).replace("<!-- caption -->", escape(caption))
    height = 420 if len(graph.nodes) > 6 else 300
    return (
        f'<iframe sandbox="allow-scripts" title="{escape(caption or "Graph")}" width="100%" '
        f'height="{height}" style="border:1px solid #8886;border-radius:6px" '
        f'srcdoc="{escape(page)}">{escape(caption)}</iframe>'  # the text where frames are removed
    )
