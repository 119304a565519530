"""Colours, line styles and sizes of plots: for the screen, and for print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.errors import ArgumentError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Line: TypeAlias = tuple[str, Any, float]
"""Colour, matplotlib line style, and factor of the line width."""

_DASH_DOT = (0, (6, 2, 1.2, 2))
_TALLEST = 9.2
"""Inches of a journal's page that are left for a figure above its caption."""


@dataclass(frozen=True)
class Style:
    """How plots look. Lines that differ in colour also differ in their dashes or width.

    Attributes
    ----------
    font_size
        Font size in points.
    node, edge
        Colours of nodes and edges.
    accent
        Colour of curves.
    negative
        Colour and line style of negative weights.
    colors
        Name of the matplotlib colour map of matrices.
    states
        How the edges of a comparison are drawn.
    widest, tallest
        Largest size of a figure in inches.
    """

    font_size: float = 10.0
    node: str = "#e8f0f7"
    edge: str = "#3b4a59"
    accent: str = "#1f5a99"
    negative: str = "#b3402e"
    colors: str = "Blues"
    states: Mapping[str, Line] = field(
        default_factory=lambda: MappingProxyType(
            {
                "same": ("#3b4a59", "-", 1.0),
                "added": ("#0072b2", "-", 2.6),
                "missing": ("#c44e00", "--", 1.4),
                "reversed": ("#a02c78", ":", 2.2),
                "undecided": ("#5a7d1c", _DASH_DOT, 1.4),
            }
        )
    )
    widest: float = 32.0
    tallest: float = 32.0


_STATES_IN_PRINT: Mapping[str, Line] = MappingProxyType(
    {
        "same": ("0.45", "-", 1.0),
        "added": ("0.0", "-", 2.6),
        "missing": ("0.0", "--", 1.2),
        "reversed": ("0.0", ":", 2.2),
        "undecided": ("0.0", _DASH_DOT, 1.2),
    }
)
_SCREEN = Style()
_current: ContextVar[Style] = ContextVar("style", default=_SCREEN)


def current_style() -> Style:
    """Return the style in which plots are drawn now."""
    return _current.get()


@contextmanager
def publication(width: float = 7.2) -> Iterator[None]:
    """Draw and save plots for print while the block runs: ``with publication(): ...``.

    Plots are in black and grey, in a sans-serif font of 8 points, and no wider than ``width``.
    Files are PDF by default, with their fonts embedded as TrueType, which journals accept. Save the
    plot inside the block.

    Parameters
    ----------
    width
        Width of the column in inches. Many journals have 7.2 for the page and 3.5 for one of two
        columns.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus.plots import plot_graph, publication
    >>> with publication(width=3.5):
    ...     ax = plot_graph(ist.DAG(["dose", "response"], [("dose", "response")]))
    ...     ax.figure.savefig("network.pdf")
    """
    if not 0.5 <= width <= 32.0:
        raise ArgumentError(f"The width of a column must be from 0.5 to 32 inches; got {width}.")
    try:
        import matplotlib as mpl
        from cycler import cycler
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", "publication()") from None
    style = Style(
        font_size=8.0,
        node="white",
        edge="black",
        accent="black",
        negative="0.45",
        colors="Greys",
        states=_STATES_IN_PRINT,
        widest=width,
        tallest=_TALLEST,
    )
    lines = cycler(color=["0.0", "0.45", "0.65"]) * cycler(linestyle=["-", "--", ":"])
    settings: Any = {
        "font.family": "sans-serif",
        "font.sans-serif": ["Arial", "Helvetica", "Liberation Sans", "DejaVu Sans"],
        "font.size": 8.0,
        "axes.labelsize": 8.0,
        "legend.fontsize": 7.0,
        "xtick.labelsize": 7.0,
        "ytick.labelsize": 7.0,
        "axes.linewidth": 0.6,
        "axes.prop_cycle": lines,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "savefig.format": "pdf",
        "savefig.dpi": 600,
    }
    token = _current.set(style)
    try:
        with mpl.rc_context(settings):
            yield
    finally:
        _current.reset(token)


def new_axes(width: float, height: float, what: str, *, bare: bool = False) -> Axes:
    """Return the axes of a new figure, which is made smaller if the style does not allow its size.

    Parameters
    ----------
    width, height
        Size in inches.
    what
        The function that draws, for the error if matplotlib is missing.
    bare
        Whether the axes fill the figure and have no frame.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "plots", what) from None
    style = current_style()
    shrink = min(1.0, style.widest / width, style.tallest / height)
    size = width * shrink, height * shrink
    if bare:
        return plt.figure(figsize=size).add_axes((0.0, 0.0, 1.0, 1.0))
    return plt.figure(figsize=size, layout="constrained").add_subplot()
