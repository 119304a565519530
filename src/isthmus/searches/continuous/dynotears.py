"""DYNOTEARS: edges within a step and from earlier steps (Pamfil et al. 2020, arXiv 2002.00498)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.lags import Lag
from isthmus.objectives import LAGGED_MODEL, AdditiveLoss
from isthmus.results.dynamic import DynamicEdge, DynamicNetwork
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.continuous.additive_run import AdditiveOptions, AdditiveRun
from isthmus.searches.continuous.family_criterion import FamilyEBIC
from isthmus.types import Bools, Floats


@final
@dataclass(frozen=True)
class Dynotears(Search[AdditiveLoss]):
    """Learn a vector autoregression with a graph within each step, by continuous optimisation.

    Give `learn` a `Series`. The graph of the solution is over the variables now and at earlier
    time steps, which are printed as ``x@1``, ``x@2`` …; the
    detail ``network`` is the same as a :class:`~isthmus.results.DynamicNetwork`, with its weights
    and a plot of time. Edges from earlier steps cannot close a cycle, so only those within a step
    are kept from it. A common unit of all columns does not matter; like all least squares
    the search depends on their relative scales.

    Parameters
    ----------
    penalty, lagged_penalty
        Weight of the sum of the absolute weights within a step, and from earlier steps, in the unit
        of the data. By default the criterion chooses, in units of what noise alone reaches.
    threshold, lagged_threshold
        Remove edges within a step, and from earlier steps, of a weight up to this. By default the
        criterion chooses the parents.
    sweeps
        How often, at most, every node is moved to its best place in the order that the optimisation
        ended in.
    criterion
        Chooses penalties and parents where they are not given.
    """

    penalty: float | None = None
    lagged_penalty: float | None = None
    threshold: float | None = None
    lagged_threshold: float | None = None
    sweeps: int = 10
    criterion: FamilyEBIC = FamilyEBIC()
    accepts: ClassVar[Accepts] = (LAGGED_MODEL,)

    def begin(
        self, objective: AdditiveLoss, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run; nothing in it is random."""
        if objective.targets == len(objective.nodes) or not objective.lags:
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

        def network_of(graph: Bools, coefficients: Floats) -> DynamicNetwork:
            return _network(objective.lags, d, graph, coefficients)

        options = AdditiveOptions(
            _each(past, self.penalty, self.lagged_penalty),
            _each(past, self.threshold, self.lagged_threshold),
            self.sweeps,
            self.criterion,
        )
        return AdditiveRun(objective, knowledge, options, network_of)


def _each(past: Bools, now: float | None, lagged: float | None) -> Floats | None:
    """Return one number for each node; one of the two stands for both if only one is given."""
    if now is None and lagged is None:
        return None
    given = [x for x in (now, lagged) if x is not None]
    return np.where(past, given[-1], given[0])


def _network(
    lags: tuple[Lag, ...], targets: int, graph: Bools, coefficients: Floats
) -> DynamicNetwork:
    variables = tuple(lag.variable for lag in lags[:targets])
    weights = {
        DynamicEdge(lags[i].variable, variables[j], lags[i].steps): float(coefficients[i, j])
        for i, j in np.argwhere(graph).tolist()
    }
    return DynamicNetwork(variables, max(lag.steps for lag in lags), weights)
