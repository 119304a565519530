"""Solutions of NOTEARS for one penalty each, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.searches.continuous.cuts import Cut
from isthmus.searches.continuous.notears_penalties import Penalty
from isthmus.types import Floats

TIE = 1e-9
"""In nats per row: smaller differences may be rounding error between equivalent graphs."""


@final
@dataclass(frozen=True, eq=False)
class Candidate:
    """A solution for one penalty, and the graph cut out of it."""

    penalty: Penalty
    weights: Floats
    cut: Cut
    objective: float
    residual: float

    def rank(self) -> tuple[float, float]:
        """Return the sort key: the criterion, then the objective."""
        return (np.inf if self.cut.criterion is None else self.cut.criterion, self.objective)

    def row(self) -> dict[str, object]:
        """Return the row of this candidate in the path table."""
        return {
            "penalty": self.penalty,
            "objective": self.objective,
            "kkt_residual": self.residual,
            "threshold": self.cut.threshold,
            "edges": int(self.cut.kept.sum()),
            "criterion": self.cut.criterion,
        }


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """Return the best candidate; among ties up to rounding, the first."""
    best = candidates[0]
    for one in candidates[1:]:
        (criterion, objective), (best_criterion, best_objective) = one.rank(), best.rank()
        # Objectives with different penalties cannot be compared.
        level = criterion <= best_criterion + TIE and one.penalty == best.penalty
        better = level and objective < best_objective - TIE
        if criterion < best_criterion - TIE or better:
            best = one
    return best
