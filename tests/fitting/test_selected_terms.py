"""Terms of effects are selected from counts of equal rows as they would be from the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.fitting.curves import (
    CurvedTerm,
    Equation,
    RegressionColumn,
    RowResiduals,
    _best,
    _ScoreTest,
)
from isthmus.fitting.effects import grouped, least_squares_residual
from isthmus.fitting.logit import distinct
from isthmus.networks import MixedNetwork
from isthmus.networks.conditionals import CurvedGaussian

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


def _two_rows_apart(seed: int, n: int = 300) -> tuple[Floats, Floats, Floats]:
    """Return two straight effects, with two rows far away that agree with each other."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    z[:2] = 6.0, 6.1
    x = z + rng.normal(size=n)
    y = x + 2.0 * z + rng.normal(size=n)
    y[:2] += 20.0
    return z, x, y


def test_the_test_without_decisive_rows_is_that_of_the_other_rows() -> None:
    z, x, y = _two_rows_apart(0, 60)
    n, term = len(z), z**2
    design = np.stack([np.ones(n), z, x], axis=1)

    def hc3(some: Any) -> float:
        wide, own = np.column_stack([design, term])[some], y[some]
        weights = np.linalg.lstsq(wide, own)[0]
        hat = wide @ np.linalg.inv(wide.T @ wide) @ wide.T
        error = (own - wide @ weights) / (1.0 - hat.diagonal())
        alone = term[some] - design[some] @ np.linalg.lstsq(design[some], term[some])[0]
        return float((alone @ own) ** 2 / ((alone * error) ** 2).sum())

    residual = y - design @ np.linalg.lstsq(design, y)[0]
    rows = RowResiduals(design, residual, residual**2, np.ones(n))
    test = _ScoreTest(rows, np.ones(n), 1e-300)
    assert test.of(term[None])[0] == pytest.approx(hc3(slice(None)))
    assert test.without_decisive(term[None]) == pytest.approx(hc3(slice(2, None)))
    assert hc3(slice(None)) > 50.0 > 5.0 > hc3(slice(2, None))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("apart", [True, False])
def test_two_rows_do_not_decide_on_a_curve(apart: bool) -> None:
    """Without the guard, all tables with two rows far away get curves."""
    dag, found = ist.DAG(list("zxy"), [("z", "x"), ("z", "y"), ("x", "y")]), []
    for seed in range(10):
        columns = np.array(_two_rows_apart(seed))
        if not apart:  # a curve that all rows have
            columns = columns[:, 2:]
            columns[2] += 0.4 * columns[0] ** 2
        table = dict(zip("zxy", columns, strict=True))
        network = ist.fit(table, dag)
        curved = isinstance(network, MixedNetwork) and isinstance(
            network.conditionals["y"], CurvedGaussian
        )
        found.append((bool(ist.effect(table, dag, "x", "y").alternatives[0].terms), curved))
    shares = np.mean(found, axis=0)
    assert shares.max() <= 0.2 if apart else shares.min() == 1.0
