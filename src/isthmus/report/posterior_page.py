"""HTML pages about a posterior: a drawing, the probabilities of edges, and the data released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from isthmus.report.html_table import table
from isthmus.report.page import document, releases_table

_HINT = (
    "Edges with a probability above {:g}; a wider line is more probable. Click a variable to see "
    "its neighbours. Scroll to zoom, drag to move the drawing."
)


class ProbabilityRow(NamedTuple):
    """A row of the table of edges."""

    parent: str
    child: str
    edge: float
    opposite: float
    path: float


@dataclass(frozen=True, eq=False)
class PosteriorPage:
    """Content of a report about a posterior.

    Attributes
    ----------
    title
        Title of the page.
    picture
        The graph of probable edges as an ``svg`` element.
    threshold
        Probability above which edges are drawn.
    summary
        Sentences about the result and how it was computed.
    notes
        Warnings for the reader.
    rows
        Edges with a probability worth showing.
    releases
        Released data: site, description, form and number of values.
    """

    title: str
    picture: str
    threshold: float
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    rows: tuple[ProbabilityRow, ...]
    releases: tuple[tuple[str, str, str, int], ...]


def render_posterior(page: PosteriorPage) -> str:
    """Return the page as HTML. All names are escaped, and nothing is loaded from other servers."""
    body = [
        f"<h1>{escape(page.title)}</h1>",
        *(f'<p class="note">{escape(note)}</p>' for note in page.notes),
        f'<figure id="picture">{page.picture}</figure>',
        f'<p class="hint">{_HINT.format(page.threshold)}</p>',
        "<h2>Summary</h2>",
        *(f"<p>{escape(line)}</p>" for line in page.summary),
        "<h2>Probabilities</h2>",
        _rows(page.rows),
        "<h2>Data released</h2>",
        releases_table(page.releases),
    ]
    return document(page.title, body)


def _rows(rows: Sequence[ProbabilityRow]) -> str:
    if not rows:
        return "<p>No edge has a probability worth showing.</p>"
    ordered = sorted(rows, key=lambda row: (-row.edge, row.parent, row.child))
    heads = ("from", "", "to", "edge", "opposite edge", "directed path")
    cells = (
        (
            escape(row.parent),
            "→",
            escape(row.child),
            f"{row.edge:.3f}",
            f"{row.opposite:.3f}",
            f"{row.path:.3f}",
        )
        for row in ordered
    )
    return table(heads, cells) + (
        '<p class="hint">Probability of the edge, of the edge the other way round, and of any '
        "directed path from the first variable to the second.</p>"
    )
