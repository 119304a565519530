"""Functions of higher layers that lower layers call, by name and type.

A graph draws itself in a notebook, but drawing is above graphs; a saved solution contains
statistics, but statistics are above results. `isthmus/__init__.py`, which Python runs before any
other module of the package, sets each of these functions. They import what they need when they are
called, and import-linter sees what they import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

notebook_drawing: Callable[[Any, str], str | None]
"""Draws a graph with a caption as HTML; None where it cannot be drawn, so that text is shown."""

statistics_from_bytes: Callable[[bytes, Any], Any]
"""Reads the statistics of a saved solution, which ``to_bytes`` of the same class has written, given
the maps of its columns."""

fit_as_read: Callable[..., Any]
"""Fits a network to data, given the graph, the reading of the columns, the pseudo-count, and
whether effects may be curved."""
