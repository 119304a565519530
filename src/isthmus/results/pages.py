"""From a solution to the page that reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError
from isthmus.models import DiscreteNetwork, GaussianNetwork
from isthmus.plots.svg import svg_graph
from isthmus.report import EdgeRow, Page

if TYPE_CHECKING:
    from isthmus.results.solution import Solution


def page_of(solution: Solution, title: str) -> Page:
    """Gather what the report shows."""
    try:
        strengths = solution.strengths()
    except IsthmusError:
        strengths = {}
    network: DiscreteNetwork | GaussianNetwork | str
    try:
        network = solution.fit()
    except IsthmusError as error:
        network = str(error)
    graph = solution.cpdag if solution.equivalent else solution.dag
    loose = {frozenset(pair) for pair in solution.cpdag.undirected} if solution.equivalent else ()
    summary = str(solution).splitlines()
    return Page(
        title=title,
        picture=svg_graph(graph, strengths=strengths or None),
        nodes=graph.nodes,
        summary=tuple(summary[: len(summary) - len(solution.notes)]),
        notes=solution.notes,
        edges=tuple(
            EdgeRow(a, b, frozenset((a, b)) not in loose, strengths.get((a, b)))
            for a, b in solution.dag.edges
        ),
        network=network,
        releases=tuple((r.site, r.what, r.form, r.size) for r in solution.disclosure.entries),
    )
