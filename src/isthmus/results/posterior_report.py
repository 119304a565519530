"""Content of the report of a posterior."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import IsthmusError
from isthmus.graphs import DAG
from isthmus.plots.svg import svg_graph
from isthmus.report import EdgeRow, Measure, Page, compare
from isthmus.report.diagnostics import search_diagnostics
from isthmus.results.chains import ChainAgreement, EdgeDiagnostics, WeightDiagnostics
from isthmus.results.disclosure import Disclosure
from isthmus.results.provenance import Provenance
from isthmus.results.report_files import run_again, write_exports
from isthmus.results.status import Status

_SHOWN = 0.05
"""Edges with a lower probability are not listed in a report."""
_DETERMINED = 0.95
"""Probability of a direction, if there is an edge, from which on it is called determined."""
_NO_PARAMETERS = (
    "A posterior has many graphs, each with parameters of its own. To get the parameters of one of "
    "them, fit it to the data."
)
_MEASURES = (
    Measure(
        "probability",
        "Probability: of the edge with this direction. The column direction has the probability of "
        "the direction if there is an edge, and calls it determined from "
        f"{_DETERMINED:.2f} on.",
    ),
    Measure("opposite", "Opposite: probability of the edge the other way round."),
    Measure(
        "path", "Path: probability of any directed path from the first variable to the second."
    ),
)


class ReportablePosterior(Protocol):
    """Interface of a posterior for a report. Its ``str`` is the summary, one sentence per line."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the variables."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings; the last lines of ``str(posterior)``."""

    @property
    def status(self) -> Status:
        """How the sampler ended."""

    @property
    def details(self) -> Any:
        """Other results of the sampler."""

    @property
    def disclosure(self) -> Disclosure:
        """The data that were released."""

    @property
    def provenance(self) -> Provenance:
        """The call that computed the posterior."""

    @property
    def chains(self) -> NDArray[np.int64]:
        """Graph of each draw, of shape (chains, draws)."""

    @property
    def log_weights(self) -> NDArray[np.float64] | None:
        """Importance weights, if there are any."""

    @property
    def independent(self) -> bool:
        """Whether the draws are independent."""

    def edge_probabilities(self) -> NDArray[np.float64]:
        """Return the probability of each edge."""

    def path_probabilities(self) -> NDArray[np.float64]:
        """Return the probability of each directed path."""

    def median_graph(self, threshold: float = 0.5) -> DAG:
        """Return the graph of the probable edges."""

    def agreement(self) -> ChainAgreement:
        """Compare the chains."""

    def importance(self) -> WeightDiagnostics:
        """Judge the importance weights."""

    def diagnostics(self) -> EdgeDiagnostics:
        """Compute effective sample sizes."""


def posterior_page(
    posterior: ReportablePosterior,
    title: str,
    threshold: float,
    reference: DAG | None,
    command: str | None,
) -> Page:
    """Return the content of the report of a posterior."""
    edges, paths = posterior.edge_probabilities(), posterior.path_probabilities()
    names, graph = posterior.nodes, posterior.median_graph(threshold)
    strengths = {(a, b): float(edges[graph.index(a), graph.index(b)]) for a, b in graph.edges}
    summary = str(posterior).splitlines()
    return Page(
        title=title,
        nodes=names,
        summary=tuple(summary[: len(summary) - len(posterior.notes)]),
        notes=posterior.notes,
        measures=_MEASURES,
        edges=tuple(
            EdgeRow(
                names[a],
                names[b],
                directed=True,
                values=(float(edges[a, b]), float(edges[b, a]), float(paths[a, b])),
                in_graph=(names[a], names[b]) in strengths,
                direction=_direction(float(edges[a, b]), float(edges[b, a])),
            )
            for a, b in np.argwhere((edges >= _SHOWN) | (edges > threshold)).tolist()
        ),
        network=_NO_PARAMETERS,
        releases=tuple((r.site, r.what, r.form, r.size) for r in posterior.disclosure.entries),
        diagnostics=(
            *search_diagnostics(None, posterior.status, posterior.details),
            *_chains(posterior),
        ),
        threshold=threshold,
        comparison=None if reference is None else compare(graph, reference),
        run_again=run_again(posterior.provenance, posterior.status, command),
        exports=write_exports(graph),
        draw=lambda: svg_graph(graph, strengths=strengths or None),
    )


def _direction(probability: float, opposite: float) -> str:
    """Return whether a direction is determined, and its probability if there is an edge."""
    share = probability / (probability + opposite)
    word = "determined" if share >= _DETERMINED else "not determined"
    return f"{word}: {share:.2f}"


def _chains(posterior: ReportablePosterior) -> list[tuple[str, str]]:
    """Return how far the draws can be trusted."""
    rows: list[tuple[str, str]] = []
    if posterior.log_weights is not None:
        rows.append(("importance weights", str(posterior.importance())))
    if posterior.independent:
        return [*rows, ("draws", "independent: there are no chains to compare")]
    if len(posterior.chains) > 1:
        rows.append(("agreement of the chains", str(posterior.agreement())))
    try:
        figures = posterior.diagnostics()
    except IsthmusError as error:
        return [*rows, ("effective sample sizes", f"not computed: {error}")]
    if not figures.edges:
        return [*rows, ("effective sample sizes", "all edges are certain or impossible")]
    worst = int(np.argmin(figures.ess))
    edge = " → ".join(figures.edges[worst])
    return [
        *rows,
        ("effective sample size", f"median {np.median(figures.ess):.0f} over uncertain edges"),
        ("smallest effective sample size", f"{figures.ess[worst]:.0f}, of {edge}"),
        ("largest R-hat", f"{np.max(figures.rhat):.3f} (close to 1 if the chains agree)"),
    ]
