"""Test of independent noise in linear regressions, for continuous variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats, Integers
from isthmus.errors import MismatchError, counted
from isthmus.graphs import DAG
from isthmus.objectives import (
    INDEPENDENT_NOISE,
    LOCAL_SCORES,
    Capabilities,
    LocalScore,
    PythonLocalScore,
)
from isthmus.objectives.smooth import NoiseFit, NoiseTest
from isthmus.options import require_instance
from isthmus.scores.base import Score
from isthmus.scores.gaussian import GaussianEBIC
from isthmus.statistics import Features, Kind, Moments, Products, Variable

_CLIPPED = 1e-4
"""Share of the variance beyond the radius of the basis from which a column is not tested."""
_CONFIDENCE = 0.95
"""Confidence of the upper limit of a misfit."""
_CURVES = 6
"""Functions of the ranks of a cause and of the noise whose products are looked at."""
MOST_ROWS = 10_000
"""With more, hidden causes show in moments, and ranks would take longer than they."""
_SINGULAR = 1e-9
"""Eigenvalues of the correlations of conditions up to this are taken for zero."""


@final
@dataclass(frozen=True)
class IndependentNoise(Score[Moments, NoiseTest]):
    """Test whether the noise of a linear regression is independent of the parents.

    It is so in the direction of cause and effect. In the other direction it is not, unless all
    noise is normal, so that directions can be told which partial correlations leave open. Tested
    is whether squares and cubes of the parents improve the regression, and whether the variance of
    the noise depends on the parents and their squares. All are moments of the columns, their powers
    and their products, so that the test works wherever sums do: in a warehouse, and across
    organisations. Of more than 100 columns, only those pairs are multiplied that have the
    largest partial correlations; the variance is tested where the products are known.

    Parameters
    ----------
    score
        Score of the graph that `LiNGAM` begins with.
    basis
        Powers and products, with a radius that no value exceeds. Columns with values beyond it
        are not tested.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> cause = rng.uniform(size=500)
    >>> table = {"cause": cause, "effect": cause + rng.uniform(size=500)}
    >>> test = ist.IndependentNoise()
    >>> test = test.bind(ist.summarise(ist.WithFeatures(table, test.basis)))
    >>> round(test.fit(1, [0]).p_value, 3), round(test.fit(0, [1]).p_value, 3)
    (0.103, 0.0)
    """

    score: Score[Any, Any] = GaussianEBIC()
    basis: Products = Products()
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({INDEPENDENT_NOISE})

    def __post_init__(self) -> None:
        require_instance(self, "score", Score, "GaussianBIC()")
        require_instance(self, "basis", Products, "Products()")

    def bind(self, statistics: Moments) -> NoiseTest:
        features = [v.features for v in statistics.schema.variables]
        if not all(f and isinstance(f.basis, Products) for f in features):
            raise MismatchError(
                f"{self!r} needs powers and products of every variable. Give the table, or the "
                "moments of WithFeatures(table, Products())."
            )
        return _FourthMoments(statistics, self.score)


@final
class _FourthMoments(NoiseTest):
    """Joint moments up to the fourth order of columns of mean 0 and variance 1.

    `_covariance` is that of the columns, of their products and of their cubes. Column i is in place
    i, the product of columns i and j in place ``_product[i, j]``, which is -1 if there is none, and
    the cube of column i in place ``_cube[i]``.
    """

    def __init__(self, moments: Moments, score: Score[Any, Any]) -> None:
        super().__init__(moments.schema.names, moments.n)
        self._values = moments.without_features()
        self._score = score
        self._covariance, self._product = _standardised(moments)
        self._cube = np.arange(-len(self.nodes), 0) + len(self._covariance)
        self._tested = _tested(moments)
        self._columns: list[Floats] = []
        self._ranked: dict[int, Floats] = {}

    def with_rows(self, columns: Sequence[NDArray[np.generic]]) -> NoiseTest:
        numbers = [np.asarray(column, np.float64) for column in columns]
        self._columns = [(x - x.mean()) / (float(x.std()) or 1.0) for x in numbers]
        return self

    def fit(self, child: int, parents: Sequence[int]) -> NoiseFit:
        found = self._of_moments(child, parents)
        if not self._columns or found.possible == math.inf:
            return found
        values = np.array(parents, np.int64)
        weights = self._residual(child, values)
        noise = weights[0] * self._columns[child]
        for parent, weight in zip(parents, weights[1:], strict=True):
            noise = noise + weight * self._columns[parent]
        left = _of_ranks(noise)
        for parent in parents:
            if parent not in self._ranked:
                self._ranked[parent] = _of_ranks(self._columns[parent])
        products = (self._ranked[parent] @ left.T for parent in parents)
        return found._replace(
            dependence=tuple(float(np.square(each).sum()) / len(noise) for each in products)
        )

    def _of_moments(self, child: int, parents: Sequence[int]) -> NoiseFit:
        from scipy.special import chdtrc, chndtrinc

        values = np.array(parents, np.int64)
        if not len(values) or not (self._tested[child] and self._tested[values].all()):
            return NoiseFit(1.0)
        weights = self._residual(child, values)
        family = np.array([child, *parents])
        covariance, squares = self._covariance, self._product[values, values]
        powers = np.concatenate([squares, self._cube[values]])
        variance = float(weights @ covariance[np.ix_(family, family)] @ weights)
        if variance <= _SINGULAR:
            return NoiseFit(1.0)  # determined by the parents, so there is no noise
        # Noise that is independent of the parents is uncorrelated with every curve of them.
        inner, cross = covariance[np.ix_(values, values)], covariance[np.ix_(values, powers)]
        whole = covariance[np.ix_(powers, powers)]
        left = whole - cross.T @ np.linalg.lstsq(inner, cross)[0]
        line = left.diagonal() <= _SINGULAR * whole.diagonal()  # as for two values
        left[line], left[:, line] = 0.0, 0.0
        conditions = weights @ covariance[np.ix_(family, powers)]
        spread = variance * left
        coefficients, products = self._square_of(weights, family)
        if (products >= 0).all():  # and its square is uncorrelated with every function of them
            functions = np.concatenate([values, squares])
            third, fourth = self._higher(weights, family, coefficients, products, variance)
            k = len(values)
            both = third * np.concatenate([np.zeros((2 * k, k)), left[:, :k]], axis=1)
            own = (fourth - variance**2) * covariance[np.ix_(functions, functions)]
            conditions = np.concatenate(
                [conditions, coefficients @ covariance[np.ix_(products, functions)]]
            )
            spread = np.block([[spread, both], [both.T, own]])
        statistic, freedom = _quadratic_form(conditions, spread)
        if not freedom:
            return NoiseFit(1.0)
        misfit = self.rows * statistic
        # A fit that is better than is to be expected is chance.
        possible = float(chndtrinc(max(misfit, freedom), freedom, 1.0 - _CONFIDENCE))
        return NoiseFit(float(chdtrc(freedom, misfit)), misfit, possible)

    def _residual(self, child: int, parents: Integers) -> Floats:
        """Return the weights of a child and its parents in what the regression leaves."""
        covariance = self._covariance
        inner, cross = covariance[parents[:, None], parents], covariance[parents, child]
        try:
            slopes = np.linalg.solve(inner, cross)
        except np.linalg.LinAlgError:
            slopes = np.linalg.lstsq(inner, cross)[0]
        return np.concatenate([[1.0], -slopes])

    def _square_of(self, weights: Floats, family: Integers) -> tuple[Floats, Integers]:
        """Return the square of a weighted sum: coefficients, and the products they belong to."""
        rows, columns, twice = _pairs(len(family))
        products = self._product[family[rows], family[columns]]
        return twice * weights[rows] * weights[columns], products

    def _higher(
        self,
        weights: Floats,
        family: Integers,
        coefficients: Floats,
        products: Integers,
        variance: float,
    ) -> tuple[float, float]:
        """Return the third and the fourth moment of a weighted sum."""
        covariance = self._covariance
        third = weights @ covariance[family[:, None], products] @ coefficients
        fourth = coefficients @ covariance[products[:, None], products] @ coefficients
        return float(third), float(fourth) + variance**2

    def local_score(self) -> LocalScore:
        return LOCAL_SCORES.require(self._score.bind(self._values))

    def noise_score(self) -> LocalScore | None:
        if (self._product < 0).any():
            return None
        return PythonLocalScore(
            self.nodes, _NoiseScore(self.local_score(), self._gain), equivalent=False
        )

    def _gain(self, child: int, parents: Integers) -> float:
        """Return by how much a model of the skewness and the tails of noise is better.

        This is the difference of the entropies of normal noise and of noise with these cumulants
        (Jones and Sibson 1987), for all rows, less the penalty of BIC for two parameters. Its
        logarithm grows slowly where the approximation, which is one for small cumulants, does not:
        it has the entropy of exponential noise. A faster one preferred wrong orders there.
        """
        if not (self._tested[child] and self._tested[parents].all()):
            return 0.0
        weights = self._residual(child, parents)
        family = np.concatenate([[child], parents])
        variance = float(weights @ self._covariance[family, child])
        if variance <= _SINGULAR:
            return 0.0
        square = self._square_of(weights, family)
        third, fourth = self._higher(weights, family, *square, variance)
        skewness, excess = third / variance**1.5, fourth / variance**2 - 3.0
        entropy = 0.25 * math.log1p(skewness**2 / 3.0 + excess**2 / 12.0)
        return max(0.0, self.rows * entropy - math.log(self.rows))

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


@final
class _NoiseScore:
    """A score, plus the gain of a model of the noise.

    Cumulants change by chance with every parent, and much if noise has heavy tails. So the gain is
    that of the parents without those that the score alone would remove.
    """

    def __init__(self, score: LocalScore, gain: Callable[[int, Integers], float]) -> None:
        self._score, self._gain = score, gain
        self._plain: dict[tuple[int, tuple[int, ...]], float] = {}
        self._gains: dict[tuple[int, tuple[int, ...]], float] = {}

    def __call__(self, child: int, parents: tuple[int, ...]) -> float:
        kept = self._kept(child, parents)
        if (child, kept) not in self._gains:
            self._gains[child, kept] = self._gain(child, np.array(kept, np.int64))
        return self._plain[child, parents] + self._gains[child, kept]

    def _local(self, child: int, parents: tuple[int, ...]) -> float:
        if (child, parents) not in self._plain:
            self._plain[child, parents] = self._score.local(child, parents)
        return self._plain[child, parents]

    def _kept(self, child: int, parents: tuple[int, ...]) -> tuple[int, ...]:
        """Remove parents as long as that improves the score."""
        own = self._local(child, parents)
        smaller = [(*parents[:i], *parents[i + 1 :]) for i in range(len(parents))]
        # One of the smaller sets is usually known, and better: that without the latest candidate.
        for some in sorted(smaller, key=lambda s: (child, s) not in self._plain):
            if self._local(child, some) >= own:
                return self._kept(child, some)
        return parents


@cache
def _pairs(size: int) -> tuple[Integers, Integers, Floats]:
    """Return the two places of every product of a sum, and how often it is in the square."""
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, 2.0)


def _standardised(moments: Moments) -> tuple[Floats, Integers]:
    """Return the covariances of standardised columns, products and cubes, in this order.

    The second item says where the product of two columns is.
    """
    starts = np.array([start for start, _ in moments.blocks])
    d, schema = len(starts), moments.schema
    # The functions of a variable are u, 2 u² - 1, 4 u³ - 3 u, and products with its partners.
    multiplied = [(i, i, start + 2) for i, start in enumerate(starts)]
    multiplied += [
        (i, schema.index(name), start + 4 + k)
        for i, (v, start) in enumerate(zip(schema.variables, starts, strict=True))
        for k, (name, *_) in enumerate(_features(v).partners)
    ]
    later, earlier, places = np.array(multiplied).T
    product = np.full((d, d), -1)
    product[later, earlier] = product[earlier, later] = d + np.arange(len(later))
    factors = np.concatenate([np.ones(d), np.where(later == earlier, 0.5, 1.0), np.full(d, 0.25)])
    chosen = np.concatenate([starts + 1, places, starts + 3])
    last = len(chosen) - d
    covariance = moments.scatter()[np.ix_(chosen, chosen)] / moments.n
    covariance *= factors[:, None]
    covariance *= factors
    centre, spread = moments.mean()[starts + 1], np.sqrt(covariance.diagonal()[:d])
    for _ in range(2):  # in rows and then in columns
        # (u - a)³ = u³ - 3 a u² + 3 a² u - a³, and a quarter of the polynomial is u³ - 3/4 u.
        covariance[last:] -= 3.0 * centre[:, None] * covariance[d : 2 * d]
        covariance[last:] += (3.0 * centre[:, None] ** 2 + 0.75) * covariance[:d]
        # (u - a)(v - b) = u v - b u - a v + a b
        covariance[d:last] -= centre[earlier, None] * covariance[later]
        covariance[d:last] -= centre[later, None] * covariance[earlier]
        covariance = covariance.T
    spread = np.where(spread > 0, spread, 1.0)
    scales = np.concatenate([spread, spread[later] * spread[earlier], spread**3])
    covariance /= scales[:, None]
    covariance /= scales
    return covariance, product


def _of_ranks(column: Floats) -> Floats:
    """Return cosines of the ranks of a column, uncorrelated and of variance one."""
    ranks = np.empty(len(column))
    ranks[np.argsort(column, kind="stable")] = (np.arange(len(column)) + 0.5) / len(column)
    waves: Floats = math.sqrt(2.0) * np.cos(np.pi * np.arange(1, _CURVES + 1)[:, None] * ranks)
    return waves


def _features(variable: Variable) -> Features:
    assert variable.features is not None
    return variable.features


def _tested(moments: Moments) -> Bools:
    """Return which columns vary, and have no values that the basis clips."""
    starts = np.array([start for start, _ in moments.blocks])
    widths = np.array([_features(v).window for v in moments.schema.variables])
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
