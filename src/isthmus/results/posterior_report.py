"""Content of the report of a posterior."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import IsthmusError
from isthmus.graphs import DAG
from isthmus.report import Measure, Page
from isthmus.report.diagnostics import search_diagnostics
from isthmus.results.certainty import PROBABILITIES
from isthmus.results.chains import ChainAgreement, EdgeDiagnostics, WeightDiagnostics
from isthmus.results.ensemble_report import ReportableEnsemble, graphs_page
from isthmus.results.provenance import Provenance
from isthmus.results.report_files import run_again
from isthmus.results.status import Status

_PATH = Measure(
    "path", "Path: probability of any directed path from the first variable to the second."
)


class ReportablePosterior(ReportableEnsemble, Protocol):
    """Interface of a posterior for a report."""

    @property
    def status(self) -> Status:
        """How the sampler ended."""

    @property
    def details(self) -> Any:
        """Other results of the sampler."""

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

    def path_probabilities(self) -> NDArray[np.float64]:
        """Return the probability of each directed path."""

    def agreement(self) -> ChainAgreement:
        """Compare the chains."""

    def importance(self) -> WeightDiagnostics:
        """Judge the importance weights."""

    def diagnostics(self) -> EdgeDiagnostics:
        """Compute effective sample sizes."""


def posterior_page(
    posterior: ReportablePosterior,
    graph: DAG,
    title: str,
    threshold: float,
    reference: DAG | None,
    table: str | None,
    command: str | None,
) -> Page:
    """Return the content of the report of a posterior."""
    return graphs_page(
        posterior,
        graph,
        measures=(*PROBABILITIES, _PATH),
        matrices=(posterior.path_probabilities(),),
        title=title,
        threshold=threshold,
        reference=reference,
        table=table,
        again=replace(run_again(posterior.provenance, posterior.status, command), verb="sample"),
        notes=posterior.notes,
        diagnostics=(
            *search_diagnostics(None, posterior.status, posterior.details),
            *_chains(posterior),
        ),
    )


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
