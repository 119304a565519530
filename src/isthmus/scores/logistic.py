"""Logistic regression of binary variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.errors import MismatchError
from isthmus.objectives import (
    ADDITIVE_MODEL,
    AdditiveLoss,
    Bernoulli,
    Capabilities,
    GeneralisedLinearLoss,
)
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Rows


@final
@dataclass(frozen=True)
class Logistic(Score[Rows, AdditiveLoss]):
    """Negative mean log-likelihood of logistic regressions, as a smooth loss of edge weights.

    For binary columns; lower is better. The model is ``P(x_j = 1) = sigmoid(b_j + Σ_i w_ij x_i)``,
    where the first level is 0 and the second is 1. The score needs rows.
    """

    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.DISCRETE
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def bind(self, statistics: Rows) -> AdditiveLoss:
        """Bind the score to rows."""
        wide = [v.name for v in statistics.schema.variables if len(v.levels) > 2]
        if wide:
            raise MismatchError(
                f"Logistic needs columns with two levels; {wide[:5]} have more. "
                "Merge levels until two remain, or use BIC() or BDeu()."
            )
        values = statistics.values
        return GeneralisedLinearLoss(statistics.schema.names, values, values, Bernoulli())
