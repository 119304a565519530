"""Least squares of additive models, from the moments of basis functions."""

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
    """Squared error ``|x_j - Σ_i f_ij(x_i)|² / 2n`` of an additive model; lower is better.

    Each curve ``f_ij`` is a linear combination of basis functions. Only moments of the basis
    functions are needed, so the data may be in a warehouse or at many sites. The weight of an edge
    is the standard deviation of its curve, in the units of the child.

    Parameters
    ----------
    basis
        The basis functions; `learn` adds them to the table if it has none.
    equal_variances
        Whether to sum the squared errors of the variables, which assumes noise of equal variance.
        If False, their logarithms are summed: the likelihood with a free noise variance for each
        variable, which does not depend on units.
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
    """Scale the targets to unit variance and leave the features unchanged."""
    scale = np.ones(len(covariance))
    spread = np.sqrt(covariance.diagonal()[targets])
    scale[targets] = np.where(spread > 0, spread, 1.0)
    scaled: NDArray[np.float64] = covariance / scale[:, None] / scale
    return scaled


def _whitened(
    covariance: NDArray[np.float64], blocks: list[list[int]]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return a map from each block to uncorrelated columns of variance one, and their owners.

    In the new columns, the norm of the coefficients is the standard deviation of the curve.
    Constant combinations, for example of a column with few distinct values, are left out.
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
