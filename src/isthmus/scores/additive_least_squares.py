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
from isthmus.statistics.symmetry import symmetrise

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
        maps = [
            _whitening(covariance[start + 1 : stop, start + 1 : stop])
            for start, stop in schema.blocks
        ]
        firsts = [start + 1 for start, _ in schema.blocks]
        owner = np.repeat(np.arange(len(maps)), [m.shape[1] for m in maps])
        whitened = _mapped(covariance, firsts, maps)
        inner = _mapped(whitened.T, firsts, maps)
        symmetrise(inner)
        return QuadraticAdditiveLoss(
            schema.names,
            owner,
            inner,
            whitened[:, targets],
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


def _whitening(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a map from the features of a node to uncorrelated ones of variance one.

    In these, the norm of the coefficients is the standard deviation of the curve. Constant
    combinations, for example of a column with few distinct values, are left out.
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _DEPENDENT * max(float(values.max(initial=0.0)), 1e-300)
    mapping: NDArray[np.float64] = vectors[:, kept] / np.sqrt(values[kept])
    return mapping


def _mapped(
    rows: NDArray[np.float64], firsts: list[int], maps: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Apply the map of each node to its rows, of which the first is given."""
    mapped = np.empty((sum(m.shape[1] for m in maps), rows.shape[1]))
    at = 0
    for first, mapping in zip(firsts, maps, strict=True):
        features, size = mapping.shape
        np.matmul(mapping.T, rows[first : first + features], out=mapped[at : at + size])
        at += size
    return mapped
