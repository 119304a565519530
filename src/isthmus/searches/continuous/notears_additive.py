"""NOTEARS for additive models: generalised linear models and sums of curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import ADDITIVE_MODEL, AdditiveLoss
from isthmus.options import require_instance, require_integer, require_number
from isthmus.searches.base import Accepts, Search, SearchResult, Watch
from isthmus.searches.continuous.additive_run import AdditiveOptions, AdditiveRun
from isthmus.searches.continuous.family_criterion import FamilyEBIC


@final
@dataclass(frozen=True)
class NotearsAdditive(Search[AdditiveLoss]):
    """Learn an additive model by continuous optimisation of its coefficients.

    The score determines the model: `Logistic` and `Poisson` for Booleans and counts (from rows),
    `AdditiveLeastSquares` for curves (from moments of a basis). The weight of an edge is the norm
    of its coefficients. Lower values of the objective are better.

    Parameters
    ----------
    penalty
        Penalty on the sum of all edge weights, in the unit of the data. By default the criterion
        chooses among three multiples of the largest gradient that noise alone produces.
    threshold
        Remove edges with a weight up to this value, in the unit of the data. By default the
        criterion chooses the parents.
    sweeps
        Maximum number of passes over all nodes that move each node to its best place in the order
        found by the optimisation.
    criterion
        Criterion that chooses the penalty and the parents, if they are not given.
    """

    penalty: float | None = None
    threshold: float | None = None
    sweeps: int = 10
    criterion: FamilyEBIC = FamilyEBIC()
    accepts: ClassVar[Accepts] = (ADDITIVE_MODEL,)

    def __post_init__(self) -> None:
        require_number(self, "penalty", least=0, optional=True)
        require_number(self, "threshold", least=0, optional=True)
        require_integer(self, "sweeps", least=0)
        require_instance(self, "criterion", FamilyEBIC, "FamilyEBIC()")

    def search(
        self,
        objective: AdditiveLoss,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        each = np.ones(len(objective.nodes))
        options = AdditiveOptions(
            None if self.penalty is None else self.penalty * each,
            None if self.threshold is None else self.threshold * each,
            self.sweeps,
            self.criterion,
        )
        return AdditiveRun(objective, knowledge, options).search(watch)
