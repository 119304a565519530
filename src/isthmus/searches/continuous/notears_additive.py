"""NOTEARS for additive models: generalised linear, and sums of curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import ADDITIVE_MODEL, AdditiveLoss
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.continuous.additive_run import AdditiveRun


@final
@dataclass(frozen=True)
class NotearsAdditive(Search[AdditiveLoss]):
    """Continuous optimisation over the coefficients of an additive model.

    The score says which model: `Logistic` and `Poisson` for truth values and counts (from rows),
    `AdditiveLeastSquares` for curves (from moments of a basis). The weight of an edge is the norm
    of its coefficients. Lower values of the objective are better.

    Parameters
    ----------
    penalty
        Weight of the sum of all edges' weights.
    threshold
        Edges of a weight up to this are cut off.
    sweeps
        How often, at most, every node is moved to its best place in the order that the optimisation
        ended in.
    """

    penalty: float = 0.05
    threshold: float = 0.2
    sweeps: int = 10
    accepts: ClassVar[Accepts] = (ADDITIVE_MODEL,)

    def begin(
        self, objective: AdditiveLoss, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run; nothing in it is random."""
        each = np.ones(len(objective.nodes))
        return AdditiveRun(
            objective, knowledge, self.penalty * each, self.threshold * each, self.sweeps
        )
