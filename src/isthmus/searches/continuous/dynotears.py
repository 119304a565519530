"""DYNOTEARS: edges within a step and from earlier steps (Pamfil et al. 2020, arXiv 2002.00498)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.lags import split_lag
from isthmus.objectives import LAGGED_MODEL, AdditiveLoss
from isthmus.results.dynamic import DynamicEdge, DynamicNetwork
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.continuous.additive_run import AdditiveRun

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


@final
@dataclass(frozen=True)
class Dynotears(Search[AdditiveLoss]):
    """A vector autoregression with a graph within each step, by continuous optimisation.

    Give `learn` a `Series`. The graph of the solution is over ``x`` and ``x@1``, ``x@2`` …; the
    detail ``network`` is the same as a :class:`~isthmus.results.DynamicNetwork`, with its weights
    and a plot of time. Edges from earlier steps cannot close a cycle, so only those within a step
    are kept from it. Like all least squares it reads the units of the columns.

    Parameters
    ----------
    penalty
        Weight of the sum of the absolute weights within a step.
    lagged_penalty
        The same for weights from earlier steps.
    threshold
        Edges within a step of a weight up to this are cut off.
    lagged_threshold
        The same for edges from earlier steps.
    sweeps
        How often, at most, every node is moved to its best place in the order that the optimisation
        ended in.
    """

    penalty: float = 0.05
    lagged_penalty: float = 0.05
    threshold: float = 0.2
    lagged_threshold: float = 0.1
    sweeps: int = 10
    accepts: ClassVar[Accepts] = (LAGGED_MODEL,)

    def begin(
        self, objective: AdditiveLoss, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run; nothing in it is random."""
        if objective.targets == len(objective.nodes):
            raise MismatchError(
                "Dynotears needs earlier steps, and the objective has none. "
                "Give Series(table, lags=2) as data and LaggedLeastSquares() as score."
            )
        nodes, d = objective.nodes, objective.targets
        past = np.arange(len(nodes)) >= d
        if knowledge.required[:, past].any():
            raise MismatchError(
                "Knowledge requires an edge into an earlier step; edges end in the present."
            )

        def network_of(graph: Truths, coefficients: Floats) -> DynamicNetwork:
            return _network(nodes, d, graph, coefficients)

        return AdditiveRun(
            objective,
            knowledge,
            np.where(past, self.lagged_penalty, self.penalty),
            np.where(past, self.lagged_threshold, self.threshold),
            self.sweeps,
            network_of,
        )


def _network(
    nodes: tuple[str, ...], targets: int, graph: Truths, coefficients: Floats
) -> DynamicNetwork:
    weights = {}
    for i, j in np.argwhere(graph).tolist():
        source, lag = split_lag(nodes[i])
        weights[DynamicEdge(source, nodes[j], lag)] = float(coefficients[i, j])
    lags = max(split_lag(name)[1] for name in nodes)
    return DynamicNetwork(nodes[:targets], lags, weights)
