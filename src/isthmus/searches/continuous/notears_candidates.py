"""Solutions of NOTEARS for one penalty each, and which of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.searches.continuous.notears_penalties import Cut, Penalty
from isthmus.types import Floats

TIE = 1e-9
"""In nats a row: equivalent graphs differ by rounding, and the same data must give one answer."""


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
        """Give what candidates are compared by: the criterion, or else the objective."""
        return (np.inf if self.cut.criterion is None else self.cut.criterion, self.objective)

    def row(self) -> dict[str, object]:
        """Give a line of the path table."""
        return {
            "penalty": self.penalty,
            "objective": self.objective,
            "kkt_residual": self.residual,
            "threshold": self.cut.threshold,
            "edges": int(self.cut.kept.sum()),
            "criterion": self.cut.criterion,
        }


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """Give the best; of several as good as each other, up to rounding, the first."""
    best = candidates[0]
    for one in candidates[1:]:
        (criterion, objective), (least, lowest) = one.rank(), best.rank()
        # Objectives with different penalties say nothing about each other.
        level = criterion <= least + TIE and one.penalty == best.penalty
        if criterion < least - TIE or (level and objective < lowest - TIE):
            best = one
    return best
