"""Test of independent noise in linear regressions, for continuous variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.objectives import INDEPENDENT_NOISE, LOCAL_SCORES, Capabilities, LocalScore, NoiseTest
from isthmus.options import require_instance
from isthmus.plurals import counted
from isthmus.scores.base import Score
from isthmus.scores.gaussian_criteria import GaussianEBIC
from isthmus.statistics import Chebyshev, Kind, Moments
from isthmus.types import Bools, Floats

_CLIPPED = 1e-4
"""Share of the variance beyond the radius of the basis from which a column is not tested."""
_SINGULAR = 1e-9
"""Eigenvalues of the correlations of conditions up to this are taken for zero."""


@final
@dataclass(frozen=True)
class IndependentNoise(Score[Moments, NoiseTest]):
    """Test whether the noise of a linear regression is independent of the parents.

    It is so in the direction of cause and effect. In the other direction it is not, unless all
    noise is normal, so that directions can be told which partial correlations leave open. Tested
    are cross moments up to the fourth order: whether squares and cubes of the parents improve the
    regression, and, for a single parent, whether the variance of the noise depends on it. All are
    moments of the first three powers of each column, so that the test works wherever sums do: in a
    warehouse, and across organisations.

    Parameters
    ----------
    score
        Score of the graph that `LiNGAM` begins with.
    basis
        Polynomials up to the third degree, with a radius that no value exceeds. Columns with
        values beyond it are not tested.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> cause = rng.uniform(size=500)
    >>> table = {"cause": cause, "effect": cause + rng.uniform(size=500)}
    >>> test = ist.IndependentNoise()
    >>> test = test.bind(ist.summarise(ist.WithFeatures(table, test.basis)))
    >>> round(test.p_value(1, [0]), 3), round(test.p_value(0, [1]), 3)
    (0.103, 0.0)
    """

    score: Score[Any, Any] = GaussianEBIC()
    basis: Chebyshev = Chebyshev(3, 30.0)
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({INDEPENDENT_NOISE})

    def __post_init__(self) -> None:
        require_instance(self, "score", Score, "GaussianBIC()")
        require_instance(self, "basis", Chebyshev, "Chebyshev(3, 30.0)")

    def bind(self, statistics: Moments) -> NoiseTest:
        features = [v.features for v in statistics.schema.variables]
        if not all(f and isinstance(f.basis, Chebyshev) and f.size >= 3 for f in features):
            raise MismatchError(
                f"{self!r} needs Chebyshev polynomials up to the third degree of every variable. "
                "Give the table, or the moments of WithFeatures(table, Chebyshev(3, 30.0))."
            )
        return _FourthMoments(statistics, self.score)


@final
class _FourthMoments(NoiseTest):
    """Cross moments of columns of mean 0 and variance 1, up to the third power of each.

    Power k of variable i is in place ``3 i + k - 1`` of `_mean` and `_covariance`.
    """

    def __init__(self, moments: Moments, score: Score[Any, Any]) -> None:
        super().__init__(moments.schema.names)
        self._values = moments.without_features()
        self._n = moments.n
        self._score = score
        self._mean, self._covariance = _powers(moments)
        self._tested = _tested(moments)

    def p_value(self, child: int, parents: Sequence[int]) -> float:
        from scipy.special import chdtrc

        chosen = list(parents)
        if not chosen or not (self._tested[child] and self._tested[chosen].all()):
            return 1.0
        own, values = 3 * child, 3 * np.array(chosen)
        curves = np.concatenate([values + 1, values + 2])
        covariance = self._covariance
        inner = covariance[np.ix_(values, values)]
        others = np.concatenate([[own], curves])
        weights: Floats = np.linalg.lstsq(inner, covariance[np.ix_(values, others)])[0]
        slopes, projected = weights[:, 0], weights[:, 1:]
        variance = float(covariance[own, own] - slopes @ covariance[values, own])
        if variance <= _SINGULAR:
            return 1.0  # determined by the parents, so there is no noise
        # Noise that is independent of the parents is uncorrelated with every curve of them.
        left = covariance[np.ix_(curves, curves)] - covariance[np.ix_(curves, values)] @ projected
        conditions = covariance[curves, own] - covariance[np.ix_(curves, values)] @ slopes
        spread = variance * left
        if len(chosen) == 1:
            conditions, spread = self._with_variance(
                child, chosen[0], float(slopes[0]), left, conditions, spread
            )
        statistic, freedom = _quadratic_form(conditions, spread)
        return float(chdtrc(freedom, self._n * statistic)) if freedom else 1.0

    def _with_variance(
        self, x: int, y: int, slope: float, left: Floats, conditions: Floats, spread: Floats
    ) -> tuple[Floats, Floats]:
        """Add the conditions that the variance of ``r = x - slope y`` does not depend on y."""
        powers = np.zeros((5, 5))  # [a, b]: mean of x^a y^b, for a + b <= 4
        for a in range(5):
            for b in range(5 - a):
                powers[a, b] = self._cross(x, a, y, b)
        minus = -slope
        variance = 1.0 - slope * slope
        third = sum(c * minus**b * powers[3 - b, b] for b, c in enumerate((1, 3, 3, 1)))
        fourth = sum(c * minus**b * powers[4 - b, b] for b, c in enumerate((1, 4, 6, 4, 1)))
        linear = sum(c * minus**b * powers[2 - b, 1 + b] for b, c in enumerate((1, 2, 1)))
        square = sum(c * minus**b * powers[2 - b, 2 + b] for b, c in enumerate((1, 2, 1)))
        # The functions of y are y and y² - 1; the curves left are uncorrelated with y.
        functions = np.array([[1.0, powers[0, 3]], [powers[0, 3], powers[0, 4] - 1.0]])
        both = np.column_stack([np.zeros(2), left[:, 0]])
        return (
            np.array([*conditions, linear, square - variance]),
            np.block(
                [[spread, third * both], [third * both.T, (fourth - variance**2) * functions]]
            ),
        )

    def _cross(self, x: int, a: int, y: int, b: int) -> float:
        """Return the mean of ``x^a y^b``."""
        if a == 0 or b == 0:
            variable, power = (y, b) if a == 0 else (x, a)
            x = y = variable
            a, b = power // 2, power - power // 2
            if a == 0:
                return 1.0 - power  # columns have mean 0
        i, j = 3 * x + a - 1, 3 * y + b - 1
        return float(self._covariance[i, j] + self._mean[i] * self._mean[j])

    def local_score(self) -> LocalScore:
        return LOCAL_SCORES.require(self._score.bind(self._values))

    def notes(self, dag: DAG) -> Sequence[str]:
        """Name the columns that were not tested because of values far from the mean."""
        wide = [name for name, tested in zip(self.nodes, self._tested, strict=True) if not tested]
        wide = [name for name in wide if dag.parents(name) or dag.children(name)]
        if not wide:
            return ()
        note = (
            f"Directions at {wide[:5]} are left open: {counted(len(wide), 'column')} with values "
            "beyond the radius of the basis. Remove outliers, or transform the columns."
        )
        return (note,)


def _powers(moments: Moments) -> tuple[Floats, Floats]:
    """Return the means and covariances of the first three powers of all standardised columns."""
    starts = np.array([start for start, _ in moments.blocks])
    columns = (starts[:, None] + [1, 2, 3]).ravel()
    mean = moments.mean()[columns]
    covariance = moments.scatter()[np.ix_(columns, columns)] / moments.n
    d = len(starts)
    centre, spread = mean[::3], np.sqrt(covariance.diagonal()[::3])
    spread = np.where(spread > 0, spread, 1.0)
    # From T1 = u, T2 = 2u² - 1 and T3 = 4u³ - 3u to the powers of (u - centre) / spread.
    maps, offsets = np.zeros((d, 3, 3)), np.zeros((d, 3))
    maps[:, 0, 0] = 1.0
    maps[:, 1, 0], maps[:, 1, 1] = -2.0 * centre, 0.5
    maps[:, 2, 0], maps[:, 2, 1] = 0.75 + 3.0 * centre**2, -1.5 * centre
    maps[:, 2, 2] = 0.25
    offsets[:, 0] = -centre
    offsets[:, 1] = 0.5 + centre**2
    offsets[:, 2] = -1.5 * centre - centre**3
    scales = spread[:, None] ** np.array([1, 2, 3])
    maps, offsets = maps / scales[:, :, None], offsets / scales
    means = np.einsum("ikl,il->ik", maps, mean.reshape(d, 3)) + offsets
    blocks = covariance.reshape(d, 3, d, 3)
    mapped = np.einsum("ika,iajb,jlb->ikjl", maps, blocks, maps, optimize=True)
    return means.ravel(), mapped.reshape(3 * d, 3 * d)


def _tested(moments: Moments) -> Bools:
    """Return which columns vary, and have no values that the basis clips."""
    starts = np.array([start for start, _ in moments.blocks])
    widths = np.array([v.features.window for v in moments.schema.variables if v.features])
    unit = (widths[:, 1] - widths[:, 0]) / 2.0  # of the first polynomial
    scatter = moments.scatter()
    value, both = scatter.diagonal()[starts], scatter[starts, starts + 1]
    inside = unit**2 * scatter.diagonal()[starts + 1]
    tested: Bools = (inside > 0) & (value - 2.0 * unit * both + inside < _CLIPPED * inside)
    return tested


def _quadratic_form(conditions: Floats, spread: Floats) -> tuple[float, int]:
    """Return ``c' V⁺ c`` and the rank of V, which is scaled to a unit diagonal before."""
    scale = np.sqrt(np.maximum(spread.diagonal(), 0.0))
    kept = scale > 0
    if not kept.any():
        return 0.0, 0
    scale = scale[kept]
    values, vectors = np.linalg.eigh(spread[np.ix_(kept, kept)] / scale[:, None] / scale)
    regular = values > _SINGULAR
    rotated = vectors[:, regular].T @ (conditions[kept] / scale)
    return float((rotated**2 / values[regular]).sum()), int(regular.sum())
