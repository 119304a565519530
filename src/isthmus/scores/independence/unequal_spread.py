"""Tests of independence that hold their level if the spread of the noise is not constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.objectives import IndependenceTest, LocalScore
from isthmus.scores.independence.fisher_z import FisherZ
from isthmus.scores.independence.mixed_likelihood_ratio import MixedLikelihoodRatio
from isthmus.scores.independence.nonlinear_likelihood_ratio import NonlinearLikelihoodRatio
from isthmus.statistics import Chebyshev, Kind, Schema
from isthmus.types import Floats

_CURVES = Chebyshev(6, 3.0)
"""Functions of a number that is conditioned on, for tables with levels: shares of levels are
curves. With cubics, the level at 20,000 rows was too high; see ``benchmarks/hidden/levels.py``."""
_TOLERANCE = 1e-9
"""Share of the largest eigenvalue up to which a direction is taken for rounding."""
_INDEPENDENT, _DEPENDENT = 0.5, 1e-40
"""Nothing is tested again if the first p-value is above the one, as no level of a test is, or below
the other: with a variance that is ten times as large, it would still be below 0.0001."""


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
    if not isinstance(score, (FisherZ, MixedLikelihoodRatio, NonlinearLikelihoodRatio)):
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


@final
class UnequalSpread(IndependenceTest):
    """A test whose p-value is the larger one of two.

    The first assumes noise of constant variance, as tests of moments do. The second asks whether
    the products of two residuals have the mean zero, whatever their variances are: a Wald test with
    the covariance of these products (Shah and Peters 2020), as the heteroscedasticity-consistent
    standard errors of a regression have it. An edge has to hold in both.

    Parameters
    ----------
    test
        The first test.
    values
        Columns of each variable that are tested: a standardised number, or indicators of levels.
    functions
        Columns of each variable that are conditioned on.
    curves
        Whether functions of one variable are tested against the value of the other one.
    lines
        Variables of which the first test has no functions. Given one of them, its p-value means
        nothing, and only the second one counts.
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
        super().__init__(test.nodes)
        self._test = test
        self._values, self._functions = values, functions
        self._curves, self._lines = curves, lines
        self._condition: tuple[tuple[int, ...], Floats] | None = None
        self._rests: dict[int, Floats] = {}
        self._known: dict[tuple[int, ...], float] = {}

    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        p_values = self._test.p_values(x, given, others)
        alone = not self._lines.isdisjoint(given)
        for k, y in enumerate(others):
            first = float(p_values[k])
            if (alone and not math.isnan(first)) or _DEPENDENT <= first <= _INDEPENDENT:
                second = self._p_value(x, y, tuple(given))
                p_values[k] = second if alone else max(first, second)
        return p_values

    def local_score(self) -> LocalScore:
        return self._test.local_score()

    def _p_value(self, x: int, y: int, given: tuple[int, ...]) -> float:
        key = (min(x, y), max(x, y), *given)
        if key not in self._known:
            self._known[key] = self._tested(min(x, y), max(x, y), given)
        return self._known[key]

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
        return -math.expm1(2.0 * math.log1p(-min(p_values))) if min(p_values) < 1.0 else 1.0

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
            roots, vectors = np.linalg.eigh(columns.T @ columns)
            kept = roots > _TOLERANCE * roots[-1]
            self._condition = given, columns @ (vectors[:, kept] / np.sqrt(roots[kept]))
        return self._condition[1]


def mean_is_zero(products: Floats, lost: int) -> float:
    """Test whether the mean of the rows is zero (Hotelling's T²); ``lost`` degrees of freedom."""
    from scipy.special import fdtrc

    n = len(products)
    scale = np.sqrt(np.square(products).sum(axis=0))
    scaled = products[:, scale > 0] / scale[scale > 0]
    if not scaled.size:
        return 1.0
    roots, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = roots > _TOLERANCE * roots[-1]
    sums = vectors[:, kept].T @ scaled.sum(axis=0)
    explained = min(float((sums**2 / roots[kept]).sum()) / n, 1.0 - 1e-15)
    freedom, rest = int(kept.sum()), n - lost - int(kept.sum())
    if rest < 1:
        return 1.0
    return float(fdtrc(freedom, rest, explained / (1.0 - explained) * rest / freedom))


def _values(column: NDArray[np.generic], levels: int, kind: Kind) -> Floats:
    if kind is Kind.DISCRETE:
        return np.asarray(column[:, None] == np.arange(1, levels), np.float64)
    number = np.asarray(column, np.float64)
    number = number - number.mean()
    deviation = float(np.sqrt(np.mean(number**2)))
    scaled: Floats = number / deviation if deviation > 0 else number
    return scaled[:, None]
