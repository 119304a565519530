"""Content of a report: one record per page, whatever kind of result it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from isthmus.graphs.comparison import Comparison
from isthmus.models import GPNetwork, Network


@dataclass(frozen=True)
class Measure:
    """A number that edges have, such as a strength or a probability.

    Attributes
    ----------
    name
        Heading of the column.
    meaning
        A sentence that explains it.
    """

    name: str
    meaning: str


class Mark(StrEnum):
    """How an edge is drawn. Scripts and style sheets have one entry for each."""

    DETERMINED = "determined"
    FIXED = "fixed"
    OPEN = "open"
    POSSIBLE = "possible"
    HIDDEN = "hidden"
    UNKNOWN = "unknown"

    @property
    def sign(self) -> str:
        """The mark in a line of text."""
        return {"open": "—", "possible": "○→", "hidden": "↔", "unknown": "○–○"}.get(self, "→")


PAG_MARKS = {
    "-->": Mark.DETERMINED,
    "o->": Mark.POSSIBLE,
    "<->": Mark.HIDDEN,
    "o-o": Mark.UNKNOWN,
}
"""How the kinds of edges of a PAG are drawn."""


@dataclass(frozen=True)
class EdgeRow:
    """An edge of the report.

    Attributes
    ----------
    parent, child
        Names of the two nodes.
    directed
        Whether the edge is drawn as an arrow.
    direction
        What determines the direction, in a few words. Up to a colon it is shown in the legend.
    values
        One number per measure of the page; None if unknown.
    in_graph
        Whether the edge is part of the graph, and not only listed with its probability.
    kind
        The kind of an edge of a PAG, such as ``o->``; its direction is then what it means.
    """

    parent: str
    child: str
    directed: bool
    values: tuple[float | None, ...] = ()
    in_graph: bool = True
    direction: str = ""
    kind: str = ""

    @property
    def mark(self) -> Mark:
        """How the edge is drawn."""
        if self.kind:
            return PAG_MARKS[self.kind]
        if not self.directed:
            return Mark.OPEN
        return Mark.FIXED if self.direction.startswith("fixed") else Mark.DETERMINED


@dataclass(frozen=True)
class RunAgain:
    """Code, command and versions that reproduce the result.

    Attributes
    ----------
    code
        Python code.
    command
        Command line; None if it was not used.
    seed
        Random seed; None if there is none.
    verb
        The command that computes such a result from a table.
    seconds
        Seconds that the computation took.
    versions
        Versions of the libraries.
    """

    code: str | None = None
    command: str | None = None
    seed: int | None = None
    seconds: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    verb: str = "learn"

    def with_knowledge(self, *, local: bool) -> str | None:
        """Return the command to which required and forbidden edges can be added, if there is one.

        Parameters
        ----------
        local
            Whether the data are in one place: others agree on knowledge before they begin.
        """
        if self.command is None:
            return f"isthmus {self.verb} TABLE -o report.html" if local else None
        words = self.command.split(" ", 2)
        return self.command if words[1:2] == [self.verb] else None


@dataclass(frozen=True, eq=False)
class Page:
    """Content of a report.

    Attributes
    ----------
    title
        Title of the page.
    nodes
        Names of the variables.
    facts
        What stands beside the title, such as the file, the number of rows and the date.
    summary
        Sentences about the result and how it was computed.
    notes
        Warnings for the reader.
    legend
        What the marks of a PAG mean; empty for other graphs.
    measures
        The numbers that edges have. Line widths and the slider show the first.
    edges
        All edges.
    network
        The fitted network, or the reason why there is none.
    releases
        Released data: site, description, form and number of values.
    columns
        How each column was read: name, kind and reason.
    diagnostics
        Names and values of what the search or the sampler reports about itself.
    threshold
        Value of the first measure below which edges are hidden at first; None to show all.
    comparison
        Comparison with a reference graph.
    run_again
        How to compute the result again.
    exports
        Texts to download by file name extension, such as ``bif``.
    draw
        Function that returns the graph as an ``svg`` element, for pages without the libraries that
        draw an interactive one.
    """

    title: str
    nodes: tuple[str, ...]
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    edges: tuple[EdgeRow, ...]
    network: Network | GPNetwork | str
    releases: Sequence[tuple[str, str, str, int]]
    facts: tuple[str, ...] = ()
    legend: Mapping[Mark, str] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    columns: Sequence[tuple[str, str, str]] = ()
    diagnostics: Sequence[tuple[str, str]] = ()
    threshold: float | None = None
    comparison: Comparison | None = None
    run_again: RunAgain = RunAgain()
    exports: Mapping[str, str] = field(default_factory=dict)
    draw: Callable[[], str] | None = None
