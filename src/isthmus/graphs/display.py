"""How graphs show themselves in notebooks: a drawing, where a higher layer knows how to draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Drawing: TypeAlias = Callable[[Any, str], str | None]

_drawings: list[Drawing] = []


def draw_in_notebooks_with(drawing: Drawing) -> None:
    """Say how graphs are drawn: `isthmus` does, because graphs do not know plots.

    Parameters
    ----------
    drawing
        Takes a graph and a caption, and returns HTML, or None if it cannot draw.
    """
    _drawings[:] = [drawing]


def notebook_html(graph: Any, caption: str) -> str | None:
    """Return a drawing of a graph as HTML; None, for plain text, if there is no way to draw it."""
    return _drawings[0](graph, caption) if _drawings else None
