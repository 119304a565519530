"""Poisson regression of counts on each other, from rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.objectives import (
    ADDITIVE_MODEL,
    AdditiveLoss,
    Capabilities,
    GeneralisedLinearLoss,
    PoissonFamily,
)
from isthmus.scores.base import Score
from isthmus.statistics import Rows


@final
@dataclass(frozen=True)
class Poisson(Score[Rows, AdditiveLoss]):
    """Minus the mean log-likelihood of ``x_j ~ Poisson(exp(b_j + Σ_i w_ij z_i))``.

    For columns of counts. As a cause a count enters as ``z = log(1 + x)``: with the count itself
    the predictor of a chain explodes, for its exponential is a count again. Needs rows.

    Parameters
    ----------
    log_causes
        False for ``z = x``, as in the original NOTEARS.
    """

    log_causes: bool = True
    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[None] = None
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def bind(self, statistics: Rows) -> AdditiveLoss:
        """Give the objective that a search sees."""
        counts = statistics.numbers()
        bad = ((counts < 0) | (counts != np.rint(counts))).any(axis=0)
        if bad.any():
            names = [n for n, b in zip(statistics.schema.names, bad, strict=True) if b]
            raise MismatchError(
                f"Poisson takes columns of counts 0, 1, 2 …; {names[:5]} hold other numbers. "
                "Use LeastSquares() or AdditiveLeastSquares() for measurements."
            )
        causes = np.log1p(counts) if self.log_causes else counts
        return GeneralisedLinearLoss(statistics.schema.names, causes, counts, PoissonFamily())
