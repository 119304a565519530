"""Least squares of additive models, from the moments of basis functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.objectives import ADDITIVE_MODEL, AdditiveLoss, Capabilities, QuadraticAdditiveLoss
from isthmus.options import require_boolean, require_instance
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

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> table = {"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=500)}
    >>> score = ist.AdditiveLeastSquares()
    >>> ist.learn(table, score=score, search=ist.NotearsAdditive()).dag.edges
    (('x', 'y'),)
    """

    basis: Basis = Chebyshev()
    equal_variances: bool = True
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def __post_init__(self) -> None:
        require_instance(self, "basis", Basis, "Chebyshev()")
        require_boolean(self, "equal_variances")

    def bind(self, statistics: Moments) -> AdditiveLoss:
        schema = statistics.schema
        bare = [v.name for v in schema.variables if v.features is None]
        if bare:
            raise MismatchError(
                f"{self!r} needs basis functions of every variable; {bare[:5]} have none. "
                "Give WithFeatures(table, basis), or the moments of such a table."
            )
        targets = [start for start, _ in schema.blocks]
        # The covariance of all features is large, so only the rows of one node exist at a time.
        scatter, n = statistics.scatter(), statistics.n
        variances = scatter.diagonal()[targets] / n
        scale = np.ones(len(scatter))
        if not self.equal_variances:
            spread = np.sqrt(variances)
            scale[targets] = np.where(spread > 0, spread, 1.0)
            variances = variances / scale[targets] / scale[targets]

        def covariance(features: slice) -> NDArray[np.float64]:
            rows: NDArray[np.float64] = scatter[features] / n
            if not self.equal_variances:
                rows /= scale[features, None]
                rows /= scale
            return rows

        features = [slice(start + 1, stop) for start, stop in schema.blocks]
        maps = [_whitening(scatter[own, own] / n) for own in features]
        owner = np.repeat(np.arange(len(maps)), [m.shape[1] for m in maps])
        whitened = _mapped(covariance, len(scatter), features, maps)
        inner = _mapped(lambda own: whitened[:, own].T, len(whitened), features, maps)
        symmetrise(inner)
        return QuadraticAdditiveLoss(
            schema.names,
            owner,
            inner,
            whitened[:, targets],
            variances,
            profiled=not self.equal_variances,
            sample_size=n,
        )


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
    rows: Callable[[slice], NDArray[np.float64]],
    width: int,
    features: list[slice],
    maps: list[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Apply the map of each node to the rows of its features."""
    mapped = np.empty((sum(m.shape[1] for m in maps), width))
    at = 0
    for own, mapping in zip(features, maps, strict=True):
        size = mapping.shape[1]
        np.matmul(mapping.T, rows(own), out=mapped[at : at + size])
        at += size
    return mapped
