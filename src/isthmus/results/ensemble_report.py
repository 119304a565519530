"""Content of the reports of a bootstrap and of other weighted graphs."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import DAG
from isthmus.plots.svg import svg_graph
from isthmus.report import Measure, Page, RunAgain, compare
from isthmus.results.certainty import SHARES, edge_rows
from isthmus.results.disclosure import Disclosure
from isthmus.results.report_files import header_facts, write_exports

_NO_PARAMETERS = (
    "There are many graphs here, each with parameters of its own. To get the parameters of one of "
    "them, fit it to the data."
)


class ReportableEnsemble(Protocol):
    """Interface of weighted graphs for a report. Its ``str`` has a sentence per line."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the variables."""

    @property
    def notes(self) -> tuple[str, ...]:
        """How the graphs were made, and warnings; the last lines of its ``str``."""

    @property
    def disclosure(self) -> Disclosure:
        """The data that were released."""

    @property
    def rows(self) -> int | None:
        """Number of rows of the data, if it is known."""

    def edge_probabilities(self) -> NDArray[np.float64]:
        """Return the share or probability of each edge."""


def ensemble_page(
    ensemble: ReportableEnsemble,
    graph: DAG,
    title: str,
    threshold: float,
    reference: DAG | None,
    table: str | None,
    command: str | None,
) -> Page:
    """Return the content of the report of a bootstrap, or of other weighted graphs."""
    first = len(ensemble.notes) and ensemble.notes[0].startswith("Score ")
    return graphs_page(
        ensemble,
        graph,
        measures=SHARES,
        matrices=(),
        title=title,
        threshold=threshold,
        reference=reference,
        table=table,
        again=RunAgain(command=command, verb="bootstrap"),
        notes=ensemble.notes[1:] if first else ensemble.notes,
    )


def graphs_page(
    ensemble: ReportableEnsemble,
    graph: DAG,
    *,
    measures: tuple[Measure, ...],
    matrices: tuple[NDArray[np.float64], ...],
    title: str,
    threshold: float,
    reference: DAG | None,
    table: str | None,
    again: RunAgain,
    notes: tuple[str, ...],
    diagnostics: tuple[tuple[str, str], ...] = (),
) -> Page:
    """Return the content of a report of many graphs, with the share or probability of each edge."""
    edges = ensemble.edge_probabilities()
    either = np.minimum(edges + edges.T, 1.0)
    strengths = {(a, b): float(either[graph.index(a), graph.index(b)]) for a, b in graph.edges}
    summary = str(ensemble).splitlines()
    return Page(
        title=title,
        nodes=ensemble.nodes,
        facts=header_facts(table, ensemble.rows),
        summary=tuple(summary[: len(summary) - len(notes)]),
        notes=notes,
        measures=measures,
        edges=edge_rows(ensemble.nodes, edges, threshold, matrices),
        network=_NO_PARAMETERS,
        releases=tuple((r.site, r.what, r.form, r.size) for r in ensemble.disclosure.entries),
        diagnostics=diagnostics,
        threshold=threshold,
        comparison=None if reference is None else compare(graph, reference),
        run_again=again,
        exports=write_exports(graph),
        draw=lambda: svg_graph(graph, strengths=strengths or None),
    )
