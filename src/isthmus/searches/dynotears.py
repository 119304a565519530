"""DYNOTEARS: edges within a step and from earlier steps (Pamfil et al. 2020, arXiv 2002.00498)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.arrays import Bools, Floats
from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.knowledge import Lag
from isthmus.objectives import LAGGED_MODEL, AdditiveLoss
from isthmus.options import require_instance, require_integer, require_number
from isthmus.results.dynamic import DynamicEdge, DynamicNetwork
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.searches.notears_additive import AdditiveOptions, AdditiveRun
from isthmus.searches.notears_penalties import FamilyEBIC
from isthmus.watch import Watch


@final
@dataclass(frozen=True)
class Dynotears(Search[AdditiveLoss]):
    """Learn a vector autoregression with a graph within each step, by continuous optimisation.

    Pass a `Series` to `learn`. The nodes of the learned graph are the variables now and at earlier
    time steps, which are printed as ``x@1``, ``x@2`` …; ``solution.details.network`` is the same
    graph as a :class:`~isthmus.results.DynamicNetwork`, with its weights and a plot over time.
    Edges from earlier steps cannot close a cycle, so only edges within a step are constrained to be
    acyclic. Multiplying all columns by the same factor does not change the result, but like all
    least squares the search depends on their relative scales.

    Parameters
    ----------
    penalty, lagged_penalty
        Penalty on the sum of the absolute weights within a step, and from earlier steps, in the
        unit of the data. By default the criterion chooses among multiples of the largest gradient
        that noise alone produces.
    threshold, lagged_threshold
        Remove edges within a step, and from earlier steps, with a weight up to this value. By
        default the criterion chooses the parents.
    sweeps
        Maximum number of passes over all nodes that move each node to its best place in the order
        found by the optimisation.
    criterion
        Criterion that chooses penalties and parents, if they are not given.
    """

    penalty: float | None = None
    lagged_penalty: float | None = None
    threshold: float | None = None
    lagged_threshold: float | None = None
    sweeps: int = 10
    criterion: FamilyEBIC = FamilyEBIC()
    accepts: ClassVar[Accepts] = (LAGGED_MODEL,)

    def __post_init__(self) -> None:
        for name in ("penalty", "lagged_penalty", "threshold", "lagged_threshold"):
            require_number(self, name, least=0, optional=True)
        require_integer(self, "sweeps", least=0)
        require_instance(self, "criterion", FamilyEBIC, "FamilyEBIC()")

    def search(
        self,
        objective: AdditiveLoss,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
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
        return AdditiveRun(objective, knowledge, options, network_of).search(watch)


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
