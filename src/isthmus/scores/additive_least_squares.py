"""Least squares of sums of curves, from the moments of basis functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.objectives import ADDITIVE_MODEL, AdditiveLoss, Capabilities, QuadraticAdditiveLoss
from isthmus.scores.base import Score
from isthmus.statistics import Basis, Chebyshev, Kind, Moments

_DEPENDENT = 1e-8


@final
@dataclass(frozen=True)
class AdditiveLeastSquares(Score[Moments, AdditiveLoss]):
    """``|x_j - Σ_i f_ij(x_i)|² / 2n`` with each curve a combination of basis functions.

    Only moments of the basis functions are needed, so the data may be a warehouse or many
    sites. The weight of an edge is the standard deviation of its curve, in the units of the child.

    Parameters
    ----------
    basis
        The basis functions; `learn` adds them to the table if it has none.
    equal_variances
        Whether to add up squares as they are, which is right where all noise has the same
        variance; otherwise their logarithms, the likelihood of noise of any variance, which does
        not depend on units.
    """

    basis: Basis = Chebyshev()
    equal_variances: bool = True
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def bind(self, statistics: Moments) -> AdditiveLoss:
        """Bind the score to the moments of variables with basis functions."""
        schema = statistics.schema
        bare = [v.name for v in schema.variables if v.features is None]
        if bare:
            raise MismatchError(
                f"{self!r} needs basis functions of every variable; {bare[:5]} have none. "
                "Give WithFeatures(table, basis), or the moments of such a table."
            )
        covariance = statistics.covariance()
        targets = [start for start, _ in schema.blocks]
        if not self.equal_variances:
            covariance = _standardised(covariance, targets)
        blocks = [list(range(start + 1, stop)) for start, stop in schema.blocks]
        mapping, owner = _whitened(covariance, blocks)
        inner = mapping.T @ covariance @ mapping
        return QuadraticAdditiveLoss(
            schema.names,
            owner,
            (inner + inner.T) / 2,
            mapping.T @ covariance[:, targets],
            covariance[targets, targets],
            profiled=not self.equal_variances,
            sample_size=statistics.n,
        )


def _standardised(covariance: NDArray[np.float64], targets: list[int]) -> NDArray[np.float64]:
    """Give the targets unit variance, and the features the scale they have."""
    scale = np.ones(len(covariance))
    spread = np.sqrt(covariance.diagonal()[targets])
    scale[targets] = np.where(spread > 0, spread, 1.0)
    found: NDArray[np.float64] = covariance / scale[:, None] / scale
    return found


def _whitened(
    covariance: NDArray[np.float64], blocks: list[list[int]]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Combine each block's columns to uncorrelated ones of variance one; say whose each is.

    So the norm of the coefficients is the standard deviation of the curve. Combinations that do not
    vary, as with a column of few distinct values, are left out.
    """
    parts, owner = [], []
    for node, columns in enumerate(blocks):
        values, vectors = np.linalg.eigh(covariance[np.ix_(columns, columns)])
        kept = values > _DEPENDENT * max(float(values.max(initial=0.0)), 1e-300)
        part = np.zeros((len(covariance), int(kept.sum())))
        part[columns] = vectors[:, kept] / np.sqrt(values[kept])
        parts.append(part)
        owner += [node] * part.shape[1]
    return np.concatenate(parts, axis=1), np.array(owner, dtype=np.int64)
