"""The penalties that NOTEARS tries, and the units in which they are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss
from isthmus.searches.continuous.cuts import Cut
from isthmus.searches.continuous.notears_penalties import L1, Penalty, QuasiMCP
from isthmus.types import Floats

_PATH = (1.0, 0.5, 0.25, 0.125)
"""Default penalties, as shares of the largest gradient that noise alone reaches.

They are tried in turn until the criterion rises.
"""


def standardised(loss: LikelihoodLoss) -> tuple[LikelihoodLoss, Floats]:
    """Return the same problem for columns of variance one, and their standard deviations."""
    variance = np.diagonal(loss.matrix)
    spread = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    matrix = loss.matrix / spread[:, None] / spread[None, :]
    np.fill_diagonal(matrix, 1.0)
    return LikelihoodLoss(loss.nodes, matrix, loss.rows), spread


def penalty_path(
    penalty: float | Penalty | None, loss: MomentsLoss, starts: int
) -> tuple[Penalty, ...]:
    """Return the penalties to try.

    Parameters
    ----------
    penalty
        The one that the user gave, if any.
    loss
        The loss that is penalised.
    starts
        How often a likelihood is solved under the same penalty.
    """
    d = len(loss.nodes)
    if isinstance(penalty, int | float):
        penalty = L1(float(penalty))
    if isinstance(loss, LikelihoodLoss):
        if isinstance(penalty, L1):
            raise MismatchError(
                "An ℓ1 penalty shrinks strong weights, and a likelihood then prefers other graphs. "
                "Use QuasiMCP with LinearLikelihood, or LeastSquares with a number."
            )
        concave = QuasiMCP() if penalty is None else penalty
        if isinstance(concave, QuasiMCP):
            concave = concave.priced(loss.rows, d)
        return (concave,) * starts
    if isinstance(penalty, QuasiMCP):
        raise MismatchError(
            "QuasiMCP has a price in nats, and least squares has the units of the data. "
            "Use it with LinearLikelihood, or give LeastSquares a number."
        )
    if penalty is not None:
        return (penalty,)
    if loss.rows is None:
        raise MismatchError("The objective does not know its number of rows: give a penalty.")
    noise = noise_variance(np.diagonal(loss.matrix))
    unit = noise * np.sqrt(np.log(max(d, 2)) / loss.rows)
    return tuple(L1(float(unit * share)) for share in _PATH)


def noise_variance(variances: Floats) -> float:
    """Return the smallest variance: an upper bound on that of the noise if it has one scale."""
    positive = variances[variances > 0.0]
    return float(positive.min()) if len(positive) else 1.0


TIE = 1e-9
"""In nats per row: smaller differences may be rounding error between equivalent graphs."""


@final
@dataclass(frozen=True, eq=False)
class NotearsCandidate:
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


def best_of(candidates: Sequence[NotearsCandidate]) -> NotearsCandidate:
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
