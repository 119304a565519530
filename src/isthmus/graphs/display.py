"""How graphs show themselves in notebooks: a drawing, where a higher layer knows how to draw."""

from __future__ import annotations

from typing import Any

from isthmus.lazy import provided


def notebook_html(graph: Any, caption: str) -> str | None:
    """Return a drawing of a graph as HTML; None, for plain text, if there is no way to draw it."""
    for module in provided("drawings for notebooks"):
        drawing: str | None = module.notebook_drawing(graph, caption)
        return drawing
    return None
