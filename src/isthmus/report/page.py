"""HTML pages with a drawing, the edges, the parameters and the data that were released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from importlib.resources import files

from isthmus.models import GPNetwork, Network
from isthmus.report.html_table import table
from isthmus.report.parameters import parameters

_HINT = "Click a variable to see its neighbours{}. Scroll to zoom, drag to move the drawing."


@dataclass(frozen=True)
class EdgeRow:
    """A row of the table of edges.

    Attributes
    ----------
    parent, child
        Names of the two nodes.
    directed
        Whether the data determine the direction.
    strength
        Decrease of the score without the edge; None if unknown.
    """

    parent: str
    child: str
    directed: bool
    strength: float | None = None


@dataclass(frozen=True, eq=False)
class Page:
    """Content of a report.

    Attributes
    ----------
    title
        Title of the page.
    picture
        The graph as an ``svg`` element.
    nodes
        Names of the variables, in the order of the drawing.
    summary
        Sentences about the result and how it was computed.
    notes
        Warnings for the reader.
    edges
        All edges.
    network
        The fitted network, or the reason why there is none.
    columns
        How each column was read: name, kind and reason.
    releases
        Released data: site, description, form and number of values.
    """

    title: str
    picture: str
    nodes: tuple[str, ...]
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    edges: tuple[EdgeRow, ...]
    network: Network | GPNetwork | str
    releases: tuple[tuple[str, str, str, int], ...]
    columns: tuple[tuple[str, str, str], ...] = ()


def render(page: Page) -> str:
    """Return the page as HTML. All names are escaped, and nothing is loaded from other servers."""
    strengths = [e.strength for e in page.edges if e.strength is not None]
    hint = _HINT.format("" if isinstance(page.network, str) else " and parameters")
    body = [
        f"<h1>{escape(page.title)}</h1>",
        *(f'<p class="note">{escape(note)}</p>' for note in page.notes),
        _controls(strengths),
        f'<figure id="picture">{page.picture}</figure>',
        f'<p class="hint">{hint}</p>',
        "<h2>Summary</h2>",
        *(f"<p>{escape(line)}</p>" for line in page.summary),
        "<h2>Edges</h2>",
        _edges(page.edges),
        "<h2>Parameters</h2>",
        *_parameters(page),
        *_columns(page.columns),
        "<h2>Data released</h2>",
        releases_table(page.releases),
    ]
    return document(page.title, body)


def document(title: str, body: Iterable[str]) -> str:
    """Return a whole HTML page with the style and the script of a report."""
    here = files("isthmus.report")
    style = (here / "page.css").read_text(encoding="utf-8")
    script = (here / "page.js").read_text(encoding="utf-8")
    footer = f"<footer>Isthmus {escape(version('isthmus'))}</footer>"
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body>\n"
        + "\n".join((*body, footer))
        + f"\n<script>{script}</script></body></html>\n"
    )


def _controls(strengths: Sequence[float]) -> str:
    if len(strengths) < 2:
        return ""
    return (
        '<label class="controls">Hide weak edges: <input id="least" type="range" min="0" '
        f'max="{len(strengths) - 1}" value="0" data-steps="'
        + " ".join(f"{s:.6g}" for s in sorted(strengths))
        + '"> <output id="shown"></output></label>'
    )


def _edges(edges: Sequence[EdgeRow]) -> str:
    if not edges:
        return "<p>None: the variables appear to be independent.</p>"
    ordered = sorted(edges, key=lambda e: (-(e.strength or 0.0), e.parent, e.child))
    rows = [
        (
            escape(e.parent),
            "→" if e.directed else "—",
            escape(e.child),
            "learned" if e.directed else "not determined",
            "" if e.strength is None else f"{e.strength:.4g}",
        )
        for e in ordered
    ]
    heads = ("from", "", "to", "direction", "strength")
    if all(e.strength is None for e in edges):
        return table(heads[:-1], (row[:-1] for row in rows))
    return table(heads, rows) + (
        '<p class="hint">Strength is the decrease of the score without the edge.</p>'
    )


def _parameters(page: Page) -> Iterable[str]:
    if isinstance(page.network, str):
        return [f"<p>{escape(page.network)}</p>"]
    return [
        f'<details data-panel="{i}"><summary>{escape(name)}</summary>'
        f"{parameters(page.network, name)}</details>"
        for i, name in enumerate(page.nodes)
    ]


def _columns(columns: Sequence[tuple[str, str, str]]) -> Iterable[str]:
    if not columns:
        return []
    rows = ((escape(name), escape(kind), escape(reason)) for name, kind, reason in columns)
    return ["<h2>Columns</h2>", table(("column", "read as", "reason"), rows)]


def releases_table(releases: Sequence[tuple[str, str, str, int]]) -> str:
    """Return the table of the data that were released."""
    if not releases:
        return "<p>None: no data left their site.</p>"
    rows = ((escape(s), escape(w), escape(f), f"{n:,}") for s, w, f, n in releases)
    return table(("site", "data", "form", "values"), rows)
