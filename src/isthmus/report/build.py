"""Collect the content of a report from a result.

The protocols in this module state what a result must offer. Results import reports, not vice versa.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from isthmus.errors import IsthmusError, ModelWarning
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.comparison import compare
from isthmus.graphs.names import listed
from isthmus.models import GPNetwork, Network
from isthmus.models.column_maps import scored_nodes
from isthmus.report.diagnostics import RunStatus, search_diagnostics
from isthmus.report.page import EdgeRow, Measure, Page, RunAgain

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


class Released(Protocol):
    """One item of data that a site released."""

    @property
    def site(self) -> str:
        """Name of the site."""

    @property
    def what(self) -> str:
        """Description of the data."""

    @property
    def form(self) -> str:
        """Form in which it was sent, such as a secure sum."""

    @property
    def size(self) -> int:
        """Number of values."""


class Disclosed(Protocol):
    """All data that were released for a result."""

    @property
    def entries(self) -> Sequence[Released]:
        """Released items, in order of release."""


class ColumnRead(Protocol):
    """How one column was read."""

    @property
    def name(self) -> str:
        """Name of the column."""

    @property
    def read_as(self) -> str:
        """How the column was read."""

    @property
    def reason(self) -> str:
        """Why."""


class DirectionsKnown(Protocol):
    """What determines the directions of edges."""

    def decided_by(self, edge: tuple[str, str]) -> str:
        """Return it for one edge; "nobody" if the edge is drawn without an arrowhead."""

    def describe(self, edge: tuple[str, str]) -> str:
        """Return it for one edge, in a few words."""


class Reportable(Protocol):
    """A result that can be reported. Its ``str`` is the summary, one sentence per line."""

    @property
    def dag(self) -> DAG:
        """The learned graph."""

    @property
    def cpdag(self) -> CPDAG | PDAG:
        """Its equivalence class."""

    @property
    def drawn(self) -> DAG | CPDAG | PDAG:
        """The graph as it is drawn."""

    @property
    def equivalent(self) -> bool:
        """Whether all members of the equivalence class have the same score."""

    @property
    def directions(self) -> DirectionsKnown:
        """What determines the direction of each edge."""

    @property
    def score(self) -> float:
        """Value of the objective."""

    @property
    def status(self) -> RunStatus:
        """How the search ended."""

    @property
    def details(self) -> Any:
        """A record of what else the search reports."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the reader; the last lines of ``str(result)``."""

    @property
    def reading(self) -> Iterable[ColumnRead]:
        """How the columns of the table were read."""

    @property
    def disclosure(self) -> Disclosed:
        """The data that were released."""

    def strengths(self) -> dict[tuple[str, str], float]:
        """Return how much the score decreases without each edge."""

    def fit(self) -> Network:
        """Return the network with estimated parameters."""

    def fit_gp(self) -> GPNetwork:
        """Return the network with smooth curves, or raise if the statistics do not give them."""


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
    result: Reportable,
    *,
    title: str,
    draw: Draw,
    export: Export,
    reference: Graph | None = None,
    certainty: Certainty | None = None,
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
        run_again=run_again,
        exports=export(written),
        draw=lambda: draw(result.drawn, strengths),
    )


def _weights(result: Reportable) -> Mapping[tuple[str, str], float]:
    """Return the weights of edges that the search reports, if it does."""
    weights: Any = getattr(result.details, "weights", None)
    dag = result.dag
    if np.ndim(weights) != 2 or len(weights) != len(dag.nodes):
        return {}
    return {(a, b): float(weights[dag.index(a), dag.index(b)]) for a, b in dag.edges}


def _strengths(result: Reportable) -> dict[tuple[str, str], float]:
    try:
        return result.strengths()
    except IsthmusError:
        return {}


def _network(
    result: Reportable,
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
