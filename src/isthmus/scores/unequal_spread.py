"""What unequal spread does to tests and penalties, from rows and from sums.

Noise whose variance depends on other variables makes two columns agree by chance more often than
tests of constant variance assume. Tests of moments are asked again, with the variance that the
products of residuals have: in rows, or from products of functions of the columns.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.objectives import IndependenceTest, LocalScore
from isthmus.scores.tests import FisherZ, MixedLikelihoodRatio, NonlinearLikelihoodRatio
from isthmus.statistics import Chebyshev, Kind, Moments, Schema
from isthmus.statistics.relations import shares_within

# --- How much more two variables agree by chance if both vary most where a third one is high ----
#
# The gain of a false edge is half a nat per coefficient if the spread of the noise is constant.
# If the noise of both ends depends on a common cause, the products of residuals have a larger
# variance than the score assumes, and the gain grows in proportion: to more than twice as much
# for two rare levels that become frequent where a cause is high. The ratio is that of a robust
# (sandwich) to the usual variance of a coefficient. It follows from products of functions of the
# columns.

_COMBINATION = 1e-6
"""Share of the largest eigenvalue up to which a polynomial counts as a combination of others."""


def spread_ratios(moments: Moments) -> Floats:
    """Return by what factor chance gains between two variables exceed those of constant spread.

    It is the largest factor over all third variables, and at least one. With ``v(k)`` the variance
    of a variable at level k of the third one, relative to its mean over levels, the factor is the
    mean of the product of both. A continuous variable has the nodes of a Gauss quadrature as
    levels, and a discrete one as many variances as it has levels, which are averaged.

    Parameters
    ----------
    moments
        Moments with Chebyshev polynomials of each continuous variable.

    Returns
    -------
    ratios
        Shape (d, d), symmetric.
    """
    d = len(moments.schema)
    ratios = np.ones((d, d))
    if d < 3:
        return ratios
    products, functions = _products(moments)
    discrete = [variable.kind is Kind.DISCRETE for variable in moments.schema.variables]
    own = [f if levels else f[1:2] for f, levels in zip(functions, discrete, strict=True)]
    squares = [f if levels else f[2:3] for f, levels in zip(functions, discrete, strict=True)]
    if any(map(len, own)) != any(map(len, squares)):
        return ratios
    sizes = np.array([len(f) for f in own])
    first, second = np.concatenate(own), np.concatenate(squares)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    halved = np.repeat(np.where(discrete, 1.0, 0.5), sizes)[:, None]  # u² = (T_2 + 1) / 2
    mean = halved[:, 0] * products[0, second]
    of_squares = halved[:, 0] ** 2 * products[second, second] - mean**2
    fewest = np.sqrt(moments.n)
    for third in range(d):
        weights, shares = (_levels if discrete[third] else _nodes)(products, functions[third])
        common = moments.n * shares >= fewest
        if np.count_nonzero(common) < 2:
            continue
        shares = shares[common] / shares[common].sum()
        means = products[:, functions[third]] @ weights[:, common]
        square = halved * means[second] + (1.0 - halved)
        variances = np.maximum(square - means[first] ** 2, 0.0)
        average = variances @ shares
        safe = np.where(average > 0.0, average, np.inf)
        unequal = (variances - average[:, None]) / safe[:, None]
        # Of what chance makes of equal variances, nothing must be left (James and Stein).
        noise = len(shares) * of_squares / (moments.n * safe**2)
        size = unequal**2 @ shares
        unequal *= np.maximum(1.0 - noise / np.where(size > 0.0, size, np.inf), 0.0)[:, None]
        of_variables = np.add.reduceat(unequal, starts) / sizes[:, None]
        found = 1.0 + (of_variables * shares) @ of_variables.T
        found[third] = found[:, third] = 1.0
        np.maximum(ratios, found, out=ratios)
    np.fill_diagonal(ratios, 1.0)
    return ratios


def _products(moments: Moments) -> tuple[Floats, list[Integers]]:
    """Return means of products of functions, and which of them belong to each variable.

    A continuous variable has the constant and its polynomials, a discrete one all its indicators.
    """
    mean = _means(moments)
    p = len(mean)
    base = np.empty((p + 1, p + 1))
    base[0, 0], base[0, 1:], base[1:, 0] = 1.0, mean, mean
    base[1:, 1:] = moments.covariance() + np.outer(mean, mean)
    functions: list[Integers] = []
    first_levels: list[Floats] = []
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        own = np.arange(start + 1, stop + 1)
        if variable.kind is Kind.DISCRETE:
            level = np.zeros(p + 1)
            level[0], level[own] = 1.0, -1.0
            functions.append(np.append(own, p + 1 + len(first_levels)))
            first_levels.append(level)
        else:
            functions.append(np.append([0], own[1:]))
    levels = np.array(first_levels).reshape(-1, p + 1)
    added = levels @ base
    return np.block([[base, added.T], [added, added @ levels.T]]), functions


def _means(moments: Moments) -> Floats:
    """Return the mean of each column.

    Within groups, a variable has the mean zero, from which those of its polynomials follow.
    """
    if moments.groups is None:
        return moments.mean()
    mean, covariance = shares_within(moments), moments.covariance()
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        if variable.kind is Kind.DISCRETE:
            continue
        before, last = 1.0, 0.0  # of T_0 and T_1
        for k, column in enumerate(range(start + 2, stop)):
            # T_1 T_k = (T_k+1 + T_k-1) / 2
            before, last = last, 2.0 * covariance[start + 1, start + 1 + k] - before
            mean[column] = last
    return mean


def _levels(products: Floats, functions: Integers) -> tuple[Floats, Floats]:
    """Return what indicators are multiplied by to have means given each level, and shares."""
    shares = products[functions, functions]
    return np.diag(1.0 / np.where(shares > 0.0, shares, 1.0)), shares


def _nodes(products: Floats, functions: Integers) -> tuple[Floats, Floats]:
    """Return the same of polynomials and the nodes of the Gauss quadrature that they have.

    The nodes are the eigenvalues of multiplication by the variable, among polynomials.
    """
    known = len(functions) - 1
    row = np.arange(known)
    gram = products[np.ix_(functions[:-1], functions[:-1])]
    above = products[np.ix_(functions[1:], functions[:-1])]
    below = products[np.ix_(functions[np.abs(row - 1)], functions[:-1])]
    basis = _inverse_root(gram)
    times = basis.T @ (above + below) @ basis
    _, turned = np.linalg.eigh(0.5 * (times + times.T))
    weights = np.zeros((known + 1, turned.shape[1]))
    weights[:-1] = basis @ turned
    means = gram[0] @ weights[:-1]
    safe = np.where(means == 0.0, 1.0, means)
    return weights / safe, means**2


# --- Tests of independence that hold their level if the spread of the noise is not constant -----

_CURVES = Chebyshev(6, 3.0)
"""Functions of a number that is conditioned on, for tables with levels: shares of levels are
curves. With cubics, the level at 20,000 rows was too high; see ``benchmarks/hidden/levels.py``."""
_TOLERANCE = 1e-9
"""Share of the largest eigenvalue up to which a direction is taken for rounding."""
_INDEPENDENT, _DEPENDENT = 0.5, 1e-40
"""Nothing is tested again if the first p-value is above the one, as no level of a test is, or below
the other: with a variance that is ten times as large, it would still be below 0.0001."""


_DEGREE = 2
"""Highest degree of the functions of one variable that are tested against the other one, from sums.
With 3, unequal spread by one of three variables was rejected in 11 to 22% instead of 5 to 12%."""
_LEAST = 0.1
"""Least variance of a product of residuals, relative to that of constant spread."""
_TESTS = (FisherZ, MixedLikelihoodRatio, NonlinearLikelihoodRatio)


def functions_for(score: object) -> Chebyshev | None:
    """Return the functions by which a test of moments holds its level from sums, else None."""
    return _CURVES if isinstance(score, _TESTS) else None


def hold_level_of_sums(score: object, test: IndependenceTest, moments: Moments) -> IndependenceTest:
    """Return a test of moments that also holds its level if spread is unequal, from sums.

    Parameters
    ----------
    score
        The test as it was chosen, one for which there are `functions_for` it.
    test
        The test, bound to moments.
    moments
        Moments with Chebyshev polynomials of each continuous variable.
    """
    if not {*test.nodes} <= {*moments.schema.names}:
        return test
    kinds = [moments.schema[name].kind for name in test.nodes]
    mixed = isinstance(score, MixedLikelihoodRatio)
    numbers = {k for k, kind in enumerate(kinds) if kind is Kind.CONTINUOUS}
    return SpreadFromSums(
        test,
        moments,
        curves=isinstance(score, NonlinearLikelihoodRatio),
        straight=isinstance(score, FisherZ),
        lines=frozenset(numbers if mixed else ()),
    )


def hold_level(
    score: object, test: IndependenceTest, schema: Schema, columns: Sequence[NDArray[np.generic]]
) -> IndependenceTest:
    """Return a test of moments that also holds its level on these rows if spread is unequal.

    Parameters
    ----------
    score
        The test as it was chosen; others than those of moments are returned as they are.
    test
        The test, bound to moments.
    schema
        The variables of the rows.
    columns
        Numbers, or the codes of levels, one array per variable.
    """
    if not isinstance(score, _TESTS):
        return test
    if not {*test.nodes} <= {*schema.names}:
        return test
    places = schema.indices(test.nodes)
    variables = [(schema.variables[i], columns[i]) for i in places]
    values = [_values(column, len(v.levels), v.kind) for v, column in variables]
    if isinstance(score, FisherZ):
        return UnequalSpread(test, values, values, curves=False)
    basis = score.basis if isinstance(score, NonlinearLikelihoodRatio) else _CURVES
    functions = [
        own if v.kind is Kind.DISCRETE else basis.evaluate(own[:, 0]).T
        for own, (v, _) in zip(values, variables, strict=True)
    ]
    if isinstance(score, NonlinearLikelihoodRatio):
        return UnequalSpread(test, values, functions, curves=True)
    lines = frozenset(k for k, (v, _) in enumerate(variables) if v.kind is Kind.CONTINUOUS)
    return UnequalSpread(test, values, functions, curves=False, lines=lines)


class ChallengedTest(IndependenceTest):
    """A test whose p-value is the larger one of two.

    The first assumes noise of constant variance, as tests of moments do. The second asks whether
    the products of two residuals have the mean zero, whatever their variances are (Shah and Peters
    2020), as the heteroscedasticity-consistent standard errors of a regression have it. An edge has
    to hold in both.

    Parameters
    ----------
    test
        The first test.
    lines
        Variables of which the first test has no functions. Given one of them, its p-value means
        nothing, and only the second one counts.
    """

    def __init__(self, test: IndependenceTest, lines: frozenset[int]) -> None:
        super().__init__(test.nodes)
        self._test, self._lines = test, lines
        self._known: dict[tuple[int, ...], float] = {}

    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        p_values = self._test.p_values(x, given, others)
        alone = not self._lines.isdisjoint(given)
        for k, y in enumerate(others):
            first = float(p_values[k])
            if (alone and not math.isnan(first)) or _DEPENDENT <= first <= _INDEPENDENT:
                second = self._second(x, y, tuple(given))
                p_values[k] = second if alone else max(first, second)
        return p_values

    def local_score(self) -> LocalScore:
        return self._test.local_score()

    def _second(self, x: int, y: int, given: tuple[int, ...]) -> float:
        key = (min(x, y), max(x, y), *given)
        if key not in self._known:
            self._known[key] = self._tested(min(x, y), max(x, y), given)
        return self._known[key]

    @abstractmethod
    def _tested(self, x: int, y: int, given: tuple[int, ...]) -> float:
        """Return the p-value of the second test."""


@final
class UnequalSpread(ChallengedTest):
    """The second test from rows.

    Parameters
    ----------
    test, lines
        As for `ChallengedTest`.
    values
        Columns of each variable that are tested: a standardised number, or indicators of levels.
    functions
        Columns of each variable that are conditioned on.
    curves
        Whether functions of one variable are tested against the value of the other one.
    """

    def __init__(
        self,
        test: IndependenceTest,
        values: Sequence[Floats],
        functions: Sequence[Floats],
        *,
        curves: bool,
        lines: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(test, lines)
        self._values, self._functions = values, functions
        self._curves = curves
        self._condition: tuple[tuple[int, ...], Floats] | None = None
        self._rests: dict[int, Floats] = {}

    def _tested(self, x: int, y: int, given: tuple[int, ...]) -> float:
        condition = self._basis(given)
        rest = [self._rest(v, condition) for v in (x, y)]
        lost = condition.shape[1]
        if not self._curves:
            products = rest[0][:, :, None] * rest[1][:, None, :]
            return mean_is_zero(products.reshape(len(products), -1), lost)
        p_values = []
        for own, other in ((rest[0], self._functions[y]), (rest[1], self._functions[x])):
            curves = other - condition @ (condition.T @ other)
            p_values.append(mean_is_zero(own * curves, lost))
        return _smaller_of_two(p_values)

    def _rest(self, variable: int, condition: Floats) -> Floats:
        """Return what the condition leaves of the values of a variable."""
        if variable not in self._rests:
            values = self._values[variable]
            self._rests[variable] = values - condition @ (condition.T @ values)
        return self._rests[variable]

    def _basis(self, given: tuple[int, ...]) -> Floats:
        """Return orthonormal columns that span the constant and the functions of variables."""
        if self._condition is None or self._condition[0] != given:
            self._rests.clear()
            n = len(self._values[0])
            parts = [self._functions[v] for v in given]
            columns = np.column_stack([np.ones(n), *parts])
            columns /= np.sqrt(np.square(columns).sum(axis=0)).clip(min=1e-300)
            self._condition = given, columns @ _inverse_root(columns.T @ columns, _TOLERANCE)
        return self._condition[1]


@final
class SpreadFromSums(ChallengedTest):
    """The second test from products of functions of the columns.

    The variance of a product of two residuals is that of constant spread, and what the variances of
    both ends add that depend on the same variable which is conditioned on: each such variable is
    looked at alone. Values beyond the radius of the functions are clipped.

    Parameters
    ----------
    test, lines
        As for `ChallengedTest`.
    moments
        Moments with Chebyshev polynomials of each continuous variable.
    curves
        Whether parabolas of one variable are tested against the value of the other one.
    straight
        Whether numbers are conditioned on by lines, not by curves.
    """

    def __init__(
        self,
        test: IndependenceTest,
        moments: Moments,
        *,
        curves: bool,
        straight: bool,
        lines: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(test, lines)
        self._products, functions = _products(moments)
        places = moments.schema.indices(test.nodes)
        self._rows, self._curves, self._straight = moments.n, curves, straight
        self._functions = [functions[i] for i in places]
        self._discrete = [moments.schema.variables[i].kind is Kind.DISCRETE for i in places]
        self._at: dict[tuple[int, int, int], tuple[Floats, Floats]] = {}

    def _tested(self, x: int, y: int, given: tuple[int, ...]) -> float:
        if not self._curves:
            return self._wald(x, y, given, 1, 1)
        return _smaller_of_two(
            [self._wald(x, y, given, 1, _DEGREE), self._wald(x, y, given, _DEGREE, 1)]
        )

    def _own(self, variable: int, degree: int) -> Integers:
        """Return the columns of a variable that are tested; the last level follows from others."""
        functions = self._functions[variable]
        if self._discrete[variable]:
            return functions[:-1]
        # Squares of functions must be known, too.
        return functions[1 : 1 + max(1, min(degree, (len(functions) - 1) // 2))]

    def _conditions(self, given: tuple[int, ...]) -> Integers:
        own = [self._functions[v][: -1 if self._discrete[v] else None] for v in given]
        if self._straight:
            own = [self._functions[v][1:2] for v in given]
        else:
            own = [f if self._discrete[v] else f[1:] for f, v in zip(own, given, strict=True)]
        return np.concatenate([np.zeros(1, np.int64), *own])

    def _wald(self, x: int, y: int, given: tuple[int, ...], of_x: int, of_y: int) -> float:
        from scipy.special import chdtrc

        first, second = self._own(x, of_x), self._own(y, of_y)
        products, condition = self._products, self._conditions(given)
        basis = _inverse_root(products[np.ix_(condition, condition)])
        explained = [products[np.ix_(own, condition)] @ basis for own in (first, second)]

        def rest(i: int, j: int) -> Floats:
            own = (first, second)
            left: Floats = products[np.ix_(own[i], own[j])] - explained[i] @ explained[j].T
            return left

        scales = [_inverse_root(rest(i, i)) for i in (0, 1)]
        mean = (scales[0].T @ rest(0, 1) @ scales[1]).ravel()
        variance = np.eye(len(mean))
        for third in given:
            unequal = []
            for v, degree, scale in ((x, of_x, scales[0]), (y, of_y, scales[1])):
                at_nodes, shares = self._unequal(v, third, degree)
                unequal.append(np.einsum("ai,abn,bj->ijn", scale, at_nodes, scale))
            more = np.einsum("ijn,kln,n->ikjl", *unequal, shares)
            variance += more.reshape(variance.shape)
        if not len(mean):
            return 1.0
        roots, vectors = np.linalg.eigh(0.5 * (variance + variance.T))
        free = max(self._rows - basis.shape[1], 0)
        statistic = free * float(((vectors.T @ mean) ** 2 / np.maximum(roots, _LEAST)).sum())
        return float(chdtrc(len(mean), statistic))

    def _unequal(self, variable: int, third: int, degree: int) -> tuple[Floats, Floats]:
        """Return covariances at the nodes of a third variable, less their mean, and shares."""
        key = (variable, third, degree)
        if key not in self._at:
            nodes = _levels if self._discrete[third] else _nodes
            weights, shares = nodes(self._products, self._functions[third])
            common = self._rows * shares >= math.sqrt(self._rows)
            shares = shares[common] / max(float(shares[common].sum()), 1e-300)
            means = self._products[:, self._functions[third]] @ weights[:, common]
            own = self._own(variable, degree)
            if self._discrete[variable]:
                squares = np.eye(len(own))[:, :, None] * means[own]
            else:  # T_k T_l = (T_k+l + T_|k-l|) / 2
                functions, k = self._functions[variable], np.arange(1, len(own) + 1)
                sums, differences = k[:, None] + k, np.abs(k[:, None] - k)
                squares = 0.5 * (means[functions[sums]] + means[functions[differences]])
            covariances = squares - means[own][:, None] * means[own]
            average = covariances @ shares
            self._at[key] = covariances - average[:, :, None], shares
        return self._at[key]


def _smaller_of_two(p_values: Sequence[float]) -> float:
    """Return the p-value of the smaller one of two (Šidák)."""
    return -math.expm1(2.0 * math.log1p(-min(p_values))) if min(p_values) < 1.0 else 1.0


def _inverse_root(covariance: Floats, least: float = _COMBINATION) -> Floats:
    """Return a matrix that makes columns uncorrelated, of variance one.

    Directions with at most this share of the largest variance are taken for rounding.
    """
    roots, vectors = np.linalg.eigh(covariance)
    kept = roots > least * max(float(roots[-1]), 0.0)
    kept &= roots > 0.0
    scaled: Floats = vectors[:, kept] / np.sqrt(roots[kept])
    return scaled


def mean_is_zero(products: Floats, lost: int) -> float:
    """Test whether the mean of the rows is zero, whatever their variances are.

    The statistic is that of Hotelling (T²), with the mean of squares in place of the covariance. If
    rows had random signs, it would have the mean q, the number of columns, and the variance
    ``2 (q - h)``, with h the sum of the squared leverages of the rows. A multiple of chi-squared
    with these two is compared: few rows with large products decide little. The F distribution
    rejected 2% instead of 5% with 200 rows and six columns.

    Parameters
    ----------
    products
        Shape (rows, columns).
    lost
        Degrees of freedom that the residuals in the products have lost.
    """
    from scipy.special import chdtrc

    n = len(products)
    scale = np.sqrt(np.square(products).sum(axis=0))
    scaled = products[:, scale > 0] / scale[scale > 0]
    if not scaled.size:
        return 1.0
    rotated = scaled @ _inverse_root(scaled.T @ scaled, _TOLERANCE)
    columns = rotated.shape[1]
    spread = columns - float(np.square(np.square(rotated).sum(axis=1)).sum())
    if n - lost - columns < 1 or spread <= _TOLERANCE:
        return 1.0
    statistic = float(np.square(rotated.sum(axis=0)).sum()) * (n - lost) / n
    return float(chdtrc(columns * columns / spread, statistic * columns / spread))


def _values(column: NDArray[np.generic], levels: int, kind: Kind) -> Floats:
    if kind is Kind.DISCRETE:
        return np.asarray(column[:, None] == np.arange(1, levels), np.float64)
    number = np.asarray(column, np.float64)
    number = number - number.mean()
    deviation = float(np.sqrt(np.mean(number**2)))
    scaled: Floats = number / deviation if deviation > 0 else number
    return scaled[:, None]
