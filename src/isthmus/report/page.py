"""One HTML file: the picture, the edges, the parameters, and the data that were released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import TypeAlias

from isthmus.models import DiscreteNetwork, GaussianNetwork
from isthmus.report.html_table import table
from isthmus.report.parameters import parameters

Network: TypeAlias = DiscreteNetwork | GaussianNetwork

_HINT = "Click a variable to see its neighbours{}; scroll to zoom, drag to move the picture."


@dataclass(frozen=True)
class EdgeRow:
    """One edge, as the table of edges shows it.

    Attributes
    ----------
    parent, child
        Its ends.
    directed
        Whether the data determine the direction.
    strength
        How much the score falls without the edge; ``None`` if that is not known.
    """

    parent: str
    child: str
    directed: bool
    strength: float | None = None


@dataclass(frozen=True, eq=False)
class Page:
    """What a report says.

    Attributes
    ----------
    title
        The heading.
    picture
        The graph as an ``svg`` element.
    nodes
        Names of the variables, in the order of the picture.
    summary
        Sentences on what was learned and how.
    notes
        Warnings for the reader.
    edges
        All edges.
    network
        The fitted network, or a sentence that says why there is none.
    releases
        The data that were released: site, what, form, how many numbers.
    """

    title: str
    picture: str
    nodes: tuple[str, ...]
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    edges: tuple[EdgeRow, ...]
    network: Network | str
    releases: tuple[tuple[str, str, str, int], ...]


def render(page: Page) -> str:
    """Write the page. Every name from the data is escaped, nothing is loaded from elsewhere."""
    here = files("isthmus.report")
    style = (here / "page.css").read_text(encoding="utf-8")
    script = (here / "page.js").read_text(encoding="utf-8")
    strong = [e.strength for e in page.edges if e.strength is not None]
    hint = _HINT.format("" if isinstance(page.network, str) else " and parameters")
    body = [
        f"<h1>{escape(page.title)}</h1>",
        *(f'<p class="note">{escape(note)}</p>' for note in page.notes),
        _controls(strong),
        f'<figure id="picture">{page.picture}</figure>',
        f'<p class="hint">{hint}</p>',
        "<h2>Summary</h2>",
        *(f"<p>{escape(line)}</p>" for line in page.summary),
        "<h2>Edges</h2>",
        _edges(page.edges),
        "<h2>Parameters</h2>",
        *_parameters(page),
        "<h2>Data released</h2>",
        _releases(page.releases),
        f"<footer>Isthmus {escape(version('isthmus'))}</footer>",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(page.title)}</title><style>{style}</style></head>\n<body>\n"
        + "\n".join(body)
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
        return "<p>There are none: the variables look independent.</p>"
    ordered = sorted(edges, key=lambda e: (-(e.strength or 0.0), e.parent, e.child))
    rows = [
        (
            escape(e.parent),
            "→" if e.directed else "—",
            escape(e.child),
            "learned" if e.directed else "either way",
            "" if e.strength is None else f"{e.strength:.4g}",
        )
        for e in ordered
    ]
    heads = ("from", "", "to", "direction", "strength")
    if all(e.strength is None for e in edges):
        return table(heads[:-1], (row[:-1] for row in rows))
    return table(heads, rows) + (
        '<p class="hint">Strength is how much the score falls without the edge.</p>'
    )


def _parameters(page: Page) -> Iterable[str]:
    if isinstance(page.network, str):
        return [f"<p>{escape(page.network)}</p>"]
    return [
        f'<details data-panel="{i}"><summary>{escape(name)}</summary>'
        f"{parameters(page.network, name)}</details>"
        for i, name in enumerate(page.nodes)
    ]


def _releases(releases: Sequence[tuple[str, str, str, int]]) -> str:
    if not releases:
        return "<p>None: the data stayed where they are.</p>"
    rows = ((escape(s), escape(w), escape(f), f"{n:,}") for s, w, f, n in releases)
    return table(("site", "what", "form", "numbers"), rows)
