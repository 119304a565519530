"""From a result to the page that reports it.

The report defines what a result must offer, so that results may use reports and not vice versa.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from isthmus.errors import IsthmusError, ModelWarning
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.models import DiscreteNetwork, GaussianNetwork
from isthmus.report.page import EdgeRow, Page

Graph: TypeAlias = DAG | CPDAG | PDAG
Strengths: TypeAlias = Mapping[tuple[str, str], float]

Draw: TypeAlias = Callable[[Graph, Strengths], str]
"""Draws a graph as an ``svg`` element, with wider edges where they are stronger."""


class Released(Protocol):
    """One item of data that a site released."""

    @property
    def site(self) -> str:
        """Who released it."""

    @property
    def what(self) -> str:
        """What it was."""

    @property
    def form(self) -> str:
        """How it travelled."""

    @property
    def size(self) -> int:
        """How many numbers were in it."""


class Disclosed(Protocol):
    """Everything that was released for a result."""

    @property
    def entries(self) -> Sequence[Released]:
        """The items, in the order of their release."""


class Reportable(Protocol):
    """A result that can be reported; its text is the summary, one sentence per line."""

    @property
    def dag(self) -> DAG:
        """The learned graph."""

    @property
    def cpdag(self) -> CPDAG | PDAG:
        """Its equivalence class."""

    @property
    def equivalent(self) -> bool:
        """Whether the score cannot tell the members of the class apart."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the reader; the last lines of the text."""

    @property
    def disclosure(self) -> Disclosed:
        """The data that were released."""

    def strengths(self) -> dict[tuple[str, str], float]:
        """How much the score falls without each edge."""

    def fit(self) -> DiscreteNetwork | GaussianNetwork:
        """The network with estimated parameters."""


def build_page(result: Reportable, draw: Draw, title: str) -> Page:
    """Collect what the report of a result shows."""
    strengths = _strengths(result)
    network, caveats = _network(result)
    graph: Graph = result.cpdag if result.equivalent else result.dag
    undirected = {frozenset(e) for e in result.cpdag.undirected} if result.equivalent else set()
    summary = str(result).splitlines()
    return Page(
        title=title,
        picture=draw(graph, strengths),
        nodes=graph.nodes,
        summary=tuple(summary[: len(summary) - len(result.notes)]),
        notes=(*result.notes, *caveats),
        edges=tuple(
            EdgeRow(a, b, frozenset((a, b)) not in undirected, strengths.get((a, b)))
            for a, b in result.dag.edges
        ),
        network=network,
        releases=tuple((r.site, r.what, r.form, r.size) for r in result.disclosure.entries),
    )


def _strengths(result: Reportable) -> dict[tuple[str, str], float]:
    try:
        return result.strengths()
    except IsthmusError:
        return {}


def _network(
    result: Reportable,
) -> tuple[DiscreteNetwork | GaussianNetwork | str, tuple[str, ...]]:
    """The fitted network, or why there is none; and what the fit warns about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            return result.fit(), tuple(str(w.message) for w in caught)
        except IsthmusError as error:
            return str(error), ()
