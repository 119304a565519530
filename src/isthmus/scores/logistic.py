"""Logistic regression of truth values on each other, from rows."""

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
    """Minus the mean log-likelihood of ``P(x_j = 1) = sigmoid(b_j + Σ_i w_ij x_i)``.

    For columns of two levels; the first level counts 0, the second 1. Needs rows.
    """

    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.DISCRETE
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def bind(self, statistics: Rows) -> AdditiveLoss:
        """Give the objective that a search sees."""
        wide = [v.name for v in statistics.schema.variables if len(v.levels) > 2]
        if wide:
            raise MismatchError(
                f"Logistic takes columns of two levels; {wide[:5]} have more. "
                "Join levels until two are left, or learn from counts with BIC() or BDeu()."
            )
        values = statistics.values
        return GeneralisedLinearLoss(statistics.schema.names, values, values, Bernoulli())
