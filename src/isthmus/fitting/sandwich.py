"""Standard errors of regressions whose rows have noise of any variance, or come in clusters."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from isthmus.types import Floats, Integers

_LEFT = 1e-6
"""What at least is left of the leverage of a row or a cluster."""


@final
class Sandwich(NamedTuple):
    """The parts of a robust variance.

    Attributes
    ----------
    contributions
        What each row, or each cluster, adds to the estimate by its noise; the variance is the sum
        of their squares.
    degrees
        Degrees of freedom of that sum (Bell and McCaffrey 2002).
    """

    contributions: Floats
    degrees: float


def sandwich(
    basis: Floats,
    influence: Floats,
    residual: Floats,
    noise: Floats | None = None,
    clusters: Integers | None = None,
) -> Sandwich:
    """Return the robust variance of a linear function of the coefficients (HC2, or CR2).

    Residuals are divided by the root of what leverage leaves of them, so that the variance is
    unbiased if the variance of the noise is as the regression assumes. The degrees of freedom are
    few if the estimate rests on few rows or clusters.

    Parameters
    ----------
    basis
        The design of the regression, orthonormal if it is weighted by the noise.
    influence, residual
        Of each row.
    noise
        Variance of the residuals, up to a factor; by default the same for all rows.
    clusters
        The cluster of each row, numbered from zero; by default, rows are independent.
    """
    root = np.ones(len(basis)) if noise is None else np.sqrt(noise)
    scaled, pull = basis * root[:, None], influence * root
    rest = np.divide(residual, root, out=np.zeros(len(root)), where=root > 0.0)
    if clusters is None:
        left = 1.0 - np.minimum(np.einsum("ij,ij->i", scaled, scaled), 1.0 - _LEFT)
        own = pull / np.sqrt(left)
        squares, inner = own**2, scaled * own[:, None]
        contributions = own * rest
    else:
        contributions, squares, inner = _of_clusters(scaled, pull, rest, clusters)
    # Mean and variance of the estimated variance, if that of the noise is as the model says.
    lost = np.einsum("ij,ij->i", inner, inner)
    mean = float((squares - lost).sum())
    spread = float((squares**2 - 2.0 * squares * lost).sum() + ((inner.T @ inner) ** 2).sum())
    return Sandwich(contributions, max(mean**2 / spread, 1.0) if spread > 0.0 else 1.0)


def _of_clusters(
    basis: Floats, pull: Floats, rest: Floats, clusters: Integers
) -> tuple[Floats, Floats, Floats]:
    """Return the contribution of each cluster, and the sums that degrees of freedom need.

    With the rows Q of a cluster in an orthonormal basis, ``(I - QQ')^-1/2`` differs from the
    identity in k directions only, so that clusters of any size cost the same per row.
    """
    count, k = int(clusters.max()) + 1, basis.shape[1]
    contributions, squares, inner = np.zeros(count), np.zeros(count), np.zeros((count, k))
    order = np.argsort(clusters, kind="stable")
    ends = np.cumsum(np.bincount(clusters, minlength=count))
    for g, rows in enumerate(np.split(order, ends[:-1])):
        q = basis[rows]
        values, vectors = np.linalg.eigh(q.T @ q)
        values = np.clip(values, 0.0, 1.0 - _LEFT)
        stretch = np.divide(
            1.0 / np.sqrt(1.0 - values) - 1.0, values, out=np.full(k, 0.5), where=values > _LEFT
        )
        own = pull[rows] + q @ (vectors @ (stretch * (vectors.T @ (q.T @ pull[rows]))))
        contributions[g] = own @ rest[rows]
        squares[g] = own @ own
        inner[g] = q.T @ own
    return contributions, squares, inner
