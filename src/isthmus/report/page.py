"""Collect the content of a report from a result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from isthmus.errors import IsthmusError, ModelWarning
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.identification import Comparison, compare
from isthmus.graphs.names import listed
from isthmus.networks import GPNetwork, Network
from isthmus.networks.column_maps import scored_nodes
from isthmus.watch import Status

if TYPE_CHECKING:
    from isthmus.results.solution import Solution

# --- Content of a report: one record per page, whatever kind of result it shows -----------------


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


@dataclass(frozen=True)
class Check:
    """Whether data agree with a graph.

    Attributes
    ----------
    sentences
        The answer in words.
    objections
        Independences that the data reject, and their p-values.
    """

    sentences: tuple[str, ...]
    objections: tuple[tuple[str, str], ...]


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
    check
        Whether the data agree with the graph, if it was tested.
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
    check: Check | None = None
    run_again: RunAgain = RunAgain()
    exports: Mapping[str, str] = field(default_factory=dict)
    draw: Callable[[], str] | None = None


# --- What a search reports about itself, as names and values for a table ------------------------

_NAMES = {
    "kkt_residual": "KKT residual (largest violation of the optimality conditions)",
    "gap": "gap (proven bound minus score)",
    "bound": "proven bound on the score",
    "left_out": "posterior weight left out by the limit on candidates",
    "complete": "score table has every parent set that can be optimal",
}
"""Display names of fields whose own names are not clear enough."""


def search_diagnostics(
    score: float | None, status: Status, details: object
) -> tuple[tuple[str, str], ...]:
    """Return names and values of the score, the ending and the record of a search."""
    rows: list[tuple[str, str]] = []
    if score is not None:
        rows.append(("score", "unknown" if isnan(score) else f"{score:.10g}"))
    rows += [
        ("ending", f"{status.ending}: {status.message}"),
        ("steps", f"{status.steps:,}"),
        ("seconds", f"{status.seconds:.3g}"),
    ]
    return (*rows, *_record(details))


def _record(details: object) -> list[tuple[str, str]]:
    """Return the fields of a record that are numbers, texts or counts of work."""
    if not is_dataclass(details):
        return []
    rows: list[tuple[str, str]] = []
    for each in fields(details):
        value: Any = getattr(details, each.name)
        name = _NAMES.get(each.name, each.name.replace("_", " "))
        if isinstance(value, Mapping):
            rows += [(str(k).replace("_", " "), _text(v)) for k, v in value.items() if _plain(v)]
        elif _plain(value):
            rows.append((name, _text(value)))
    return rows


def _plain(value: object) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# --- Collect the content of a report from a result ----------------------------------------------

Graph: TypeAlias = DAG | CPDAG | PDAG
Strengths: TypeAlias = Mapping[tuple[str, str], float]

Draw: TypeAlias = Callable[[Graph, Strengths], str]
"""A function that draws a graph as an ``svg`` element, with line widths by strength."""

Export: TypeAlias = Callable[[Graph | Network], Mapping[str, str]]
"""A function that writes a graph or a network as texts, by file name extension."""

STRENGTH = Measure("strength", "Strength is the decrease of the score without the edge.")

WEIGHT = Measure("weight", "Weight is what the search reports for the edge.")

_NO_PARAMETERS = "What the result keeps of the data is not enough to estimate parameters."

_CURVES = 200
"""Maximum number of edges for which curves are fitted."""


@dataclass(frozen=True)
class Certainty:
    """How sure the edges of a result are, by a bootstrap or a posterior.

    Attributes
    ----------
    measures
        The numbers of each edge.
    values
        Their values for all edges of the result.
    """

    measures: tuple[Measure, ...]
    values: Mapping[tuple[str, str], tuple[float, ...]]


def build_page(
    result: Solution,
    *,
    title: str,
    draw: Draw,
    export: Export,
    reference: Graph | None = None,
    certainty: Certainty | None = None,
    check: Check | None = None,
    facts: tuple[str, ...] = (),
    run_again: RunAgain = RunAgain(),
) -> Page:
    """Return the content of the report of a result.

    Parameters
    ----------
    result
        The result.
    title
        Title of the page.
    draw
        Draws the graph where the libraries for an interactive drawing are missing.
    export
        Writes the network, or the graph if there are no parameters, as texts to download.
    reference
        A graph to compare with.
    certainty
        How sure the edges are, if it was computed.
    check
        Whether data agree with the graph, if it was tested.
    facts
        What stands beside the title.
    run_again
        How to compute the result again.
    """
    strengths = _strengths(result)
    weights = {} if strengths else _weights(result)
    own: Mapping[tuple[str, str], float] = strengths or weights
    measures = (STRENGTH,) if strengths else (WEIGHT,) if weights else ()
    sure = Certainty((), {}) if certainty is None else certainty
    network, caveats = _network(result)
    if isinstance(network, str) and run_again.command is not None:
        network = _NO_PARAMETERS  # the reason is in words for programmers
    graph: Graph = result.cpdag if result.equivalent else result.dag
    summary = str(result).splitlines()
    written = result.drawn if isinstance(network, str | GPNetwork) else network
    return Page(
        title=title,
        nodes=graph.nodes,
        summary=tuple(summary[: len(summary) - len(result.notes)]),
        notes=(*result.notes, *caveats),
        facts=facts,
        measures=(*sure.measures, *measures),
        edges=tuple(
            EdgeRow(
                a,
                b,
                result.directions.decided_by((a, b)) != "nobody",
                (*sure.values.get((a, b), ()), *((own.get((a, b)),) if own else ())),
                direction=result.directions.describe((a, b)),
            )
            for a, b in result.dag.edges
        ),
        network=network,
        columns=tuple((c.name, str(c.read_as), c.reason) for c in result.reading),
        releases=tuple((r.site, r.what, r.form, r.size) for r in result.disclosure.entries),
        diagnostics=search_diagnostics(result.score, result.status, result.details),
        comparison=None if reference is None else compare(graph, reference),
        check=check,
        run_again=run_again,
        exports=export(written),
        draw=lambda: draw(result.drawn, strengths),
    )


def _weights(result: Solution) -> Mapping[tuple[str, str], float]:
    """Return the weights of edges that the search reports, if it does."""
    weights: Any = getattr(result.details, "weights", None)
    dag = result.dag
    if np.ndim(weights) != 2 or len(weights) != len(dag.nodes):
        return {}
    return {(a, b): float(weights[dag.index(a), dag.index(b)]) for a, b in dag.edges}


def _strengths(result: Solution) -> dict[tuple[str, str], float]:
    try:
        return result.strengths()
    except IsthmusError:
        return {}


def _network(
    result: Solution,
) -> tuple[Network | GPNetwork | str, tuple[str, ...]]:
    """Return the fitted network, or the reason why there is none, and warnings of the fit."""
    if len(result.dag.edges) <= _CURVES:
        with suppress(IsthmusError):
            return result.fit_gp(), ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            network = result.fit()
            scored = scored_nodes(network.maps)
            note = (
                f"{listed(scored)} were learned as normal scores: equations and questions of this "
                "page are in scores. solution.fit() takes and gives values of the columns."
            )
            warned = tuple(str(w.message) for w in caught)
            return network, (*warned, note) if scored else warned
        except IsthmusError as error:
            return str(error), ()
