"""What a solution keeps of the data it was learned from: statistics, never rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.fitting import fit_gaussian, fit_tables
from isthmus.graphs import DAG
from isthmus.models import DiscreteNetwork, GaussianNetwork
from isthmus.objectives import LOCAL_SCORES, Objective
from isthmus.results import Solution
from isthmus.statistics import Counts, Kind, Moments


@final
@dataclass(frozen=True, eq=False)
class LearnedFrom:
    """The statistics and the objective behind a solution.

    Attributes
    ----------
    statistics
        What the score was bound to.
    objective
        The bound score.
    learn_again
        Learns from other moments with the same score, search, knowledge and seed.
    """

    statistics: Moments | Counts
    objective: Objective
    learn_again: Callable[[Moments], Solution]

    def standardised(self) -> Solution:
        """Learn again in the same way, from columns of variance one."""
        moments = self.statistics
        if not isinstance(moments, Moments):
            raise MismatchError("Only continuous columns can be standardised; these are counts.")
        if len(moments.schema.of_kind(Kind.CONTINUOUS)) != len(self.objective.nodes):
            raise MismatchError("Only tables of plain continuous columns can be standardised.")
        scatter = moments.scatter()
        deviation = np.sqrt(np.diagonal(scatter) / moments.n)
        scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        zeros = np.zeros(len(deviation))
        gram = scatter * scale[:, None] * scale[None, :]
        return self.learn_again(Moments(moments.schema, moments.n, zeros, zeros, gram))

    def fit(self, dag: DAG) -> DiscreteNetwork | GaussianNetwork:
        """Estimate the parameters of a network with this graph."""
        if isinstance(self.statistics, Counts):
            return fit_tables(self.statistics, dag)
        return fit_gaussian(self.statistics, dag)

    def strengths(self, dag: DAG) -> dict[tuple[str, str], float]:
        """Return for each edge how much the score falls without it."""
        local = LOCAL_SCORES.of(self.objective)
        if local is None:
            raise MismatchError(
                "Edge strengths are differences of a local score, and this graph was learned with "
                "a loss. See solution.details for the weights of its edges."
            )
        position = {name: i for i, name in enumerate(local.nodes)}
        strengths = {}
        for child in dag.nodes:
            parents = [position[p] for p in dag.parents(child)]
            full = local.local(position[child], parents)
            for parent in dag.parents(child):
                others = [p for p in parents if p != position[parent]]
                strengths[parent, child] = full - local.local(position[child], others)
        return strengths
