"""Losses of generalised linear models: logistic and Poisson regressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.objectives import (
    ADDITIVE_MODEL,
    AdditiveLoss,
    Bernoulli,
    Capabilities,
    GeneralisedLinearLoss,
    PoissonFamily,
)
from isthmus.options import require_boolean
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
        wide = [v.name for v in statistics.schema.variables if len(v.levels) > 2]
        if wide:
            raise MismatchError(
                f"Logistic needs columns with two levels; {wide[:5]} have more. "
                "Merge levels until two remain, or use BIC() or BDeu()."
            )
        values = statistics.values
        return GeneralisedLinearLoss(statistics.schema.names, values, values, Bernoulli())


@final
@dataclass(frozen=True)
class Poisson(Score[Rows, AdditiveLoss]):
    """Negative mean log-likelihood of Poisson regressions, as a smooth loss of edge weights.

    For columns of counts; lower is better. The model is
    ``x_j ~ Poisson(exp(b_j + Σ_i w_ij z_i))`` with predictors ``z = log(1 + x)``. With the counts
    themselves as predictors, means would grow exponentially along a chain. The score needs rows.

    Parameters
    ----------
    log_causes
        Whether predictors are ``log(1 + x)``. False uses ``z = x``, as in the original NOTEARS.
    """

    log_causes: bool = True
    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def __post_init__(self) -> None:
        require_boolean(self, "log_causes")

    def bind(self, statistics: Rows) -> AdditiveLoss:
        counts = statistics.values
        invalid = ((counts < 0) | (counts != np.rint(counts))).any(axis=0)
        if invalid.any():
            names = [n for n, b in zip(statistics.schema.names, invalid, strict=True) if b]
            raise MismatchError(
                f"Poisson needs columns of counts 0, 1, 2 …; {names[:5]} contain other numbers. "
                "Use LeastSquares() or AdditiveLeastSquares() for measurements."
            )
        causes = np.log1p(counts) if self.log_causes else counts
        return GeneralisedLinearLoss(statistics.schema.names, causes, counts, PoissonFamily())
