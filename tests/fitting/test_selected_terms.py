"""Terms of effects are selected from counts of equal rows as they would be from the rows."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.fitting.curves import CurvedTerm, Equation, RegressionColumn, RowResiduals, _best
from isthmus.fitting.effects import grouped, least_squares_residual
from isthmus.fitting.logit import distinct

RNG = np.random.default_rng(0)
X = RNG.integers(0, 7, size=(3, 2000)) - 3.0
Y = 0.2 * X[0] ** 2 + 0.1 * X[0] * X[1] + X[2] + np.exp(0.3 * X[0]) * RNG.normal(size=2000)


def test_a_test_is_that_of_a_regression_on_all_rows() -> None:
    """HC3: the squared coefficient over its variance, by leaving out row after row."""
    columns = [RegressionColumn.of(str(i), x, i, number=True) for i, x in enumerate(X)]
    first, place = distinct([*X], 2000)
    assert len(first) < 400
    each, (mean, within) = np.bincount(place).astype(np.float64), grouped(Y, place)
    part = [c._replace(values=c.values[first]) for c in columns]

    def fit(chosen: tuple[CurvedTerm, ...]) -> RowResiduals:
        design = np.stack([np.ones(len(first)), *X[:, first]], axis=1)
        away = least_squares_residual(design, mean, each)
        return RowResiduals(design, each * away, within + each * away**2, np.ones(len(first)))

    best = _best(part, Equation(fit, (0, 1, 2), each), (), 1)
    assert best is not None
    terms = [CurvedTerm((i,) * k) for i in range(3) for k in (2, 3)]
    terms += [CurvedTerm((i,), c.bends[:2]) for i, c in enumerate(columns)]  # type: ignore[arg-type]
    terms += [CurvedTerm((0, 1)), CurvedTerm((0, 2)), CurvedTerm((1, 2))]
    tests = {}
    for term in terms:
        design = np.stack([np.ones(2000), *X, term.values(columns)], axis=1)
        inverse = np.linalg.inv(design.T @ design)
        residual = Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]
        leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
        pull = design @ inverse[:, -1]
        coefficient = float(pull @ Y)
        tests[term] = coefficient**2 / float(((pull * residual / (1 - leverage)) ** 2).sum())
    price = np.log(2000) + 2.0 * np.log(len(terms))
    assert best[0] == max(tests, key=tests.__getitem__)
    assert best[1] == pytest.approx(tests[best[0]] - price, rel=1e-9)


def test_residuals_of_rows_that_count_several_times() -> None:
    design = np.stack([np.ones(50), *X[:, :50], X[0, :50]], axis=1)  # two columns are the same
    each = RNG.integers(1, 4, 50).astype(np.float64)
    found = least_squares_residual(design, Y[:50], each)
    root = np.sqrt(each)
    weights = np.linalg.lstsq(design * root[:, None], Y[:50] * root, rcond=None)[0]
    np.testing.assert_allclose(found, Y[:50] - design @ weights, atol=1e-12)
