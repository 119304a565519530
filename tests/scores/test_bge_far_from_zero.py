"""BGe with prior mean zero is exact however far from zero the columns are."""

from __future__ import annotations

from fractions import Fraction
from math import lgamma, log, pi

import numpy as np
import pytest

import isthmus as ist
from isthmus.fitting import LinearEffects

NAMES = ("a", "b", "c")
N = 40


def columns(offset: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 3))
    x[:, 1] += x[:, 0]
    x[:, 2] -= 0.5 * x[:, 1]
    return np.asarray(x + offset * np.array([1.0, -0.5, 2.0]))


def posterior_matrix(x: np.ndarray) -> list[list[Fraction]]:
    """The posterior scatter matrix for alpha_mu = 1, with rational numbers."""
    d = x.shape[1]
    rows = [[Fraction(float(v)) for v in row] for row in x]
    mean = [sum((row[j] for row in rows), Fraction()) / N for j in range(d)]
    return [
        [
            sum(((r[i] - mean[i]) * (r[j] - mean[j]) for r in rows), Fraction())
            + (Fraction(1, 2) if i == j else 0)
            + Fraction(N, N + 1) * mean[i] * mean[j]
            for j in range(d)
        ]
        for i in range(d)
    ]


def determinant(matrix: list[list[Fraction]], within: list[int]) -> Fraction:
    if not within:
        return Fraction(1)
    first, *rest = within
    pivot = matrix[first][first]
    reduced = [
        [entry - row[first] * matrix[first][j] / pivot for j, entry in enumerate(row)]
        for row in matrix
    ]
    return pivot * determinant(reduced, rest)


def logarithm(value: Fraction) -> float:
    return log(value.numerator) - log(value.denominator)


def exact(x: np.ndarray, parents: list[list[int]]) -> float:
    """The score of a graph from its definition (Kuipers, Moffa and Heckerman 2014)."""
    d, t = x.shape[1], 0.5
    matrix, total = posterior_matrix(x), 0.0
    for child, own in enumerate(parents):
        k = len(own)
        free = 2 + k + 1  # alpha_w - d + k + 1
        total += 0.5 * log(1 / (N + 1)) - 0.5 * N * log(pi)
        total += lgamma((N + free) / 2) - lgamma(free / 2) + 0.5 * (free + k) * log(t)
        total += 0.5 * (N + free - 1) * logarithm(determinant(matrix, own))
        total -= 0.5 * (N + free) * logarithm(determinant(matrix, [*own, child]))
    assert d == len(parents)
    return total


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e2, 1e4, 1e6, 1e8])
def test_scores_are_those_of_rational_numbers(offset: float) -> None:
    x = columns(offset)
    table = {name: x[:, i] for i, name in enumerate(NAMES)}
    score = ist.BGe(prior_mean=ist.PriorMean.ZERO, prior_scale=ist.PriorScale.UNIT)
    graphs: list[tuple[list[tuple[str, str]], list[list[int]]]] = [
        ([], [[], [], []]),
        ([("a", "b")], [[], [0], []]),
        ([("a", "b"), ("a", "c"), ("b", "c")], [[], [0], [0, 1]]),
    ]
    # Numbers near the offset are rounded, and so is their scatter.
    limit = 1e-9 + 1e-14 * N * offset
    for edges, parents in graphs:
        found = ist.score(table, ist.DAG(NAMES, edges), score)
        assert found == pytest.approx(exact(x, parents), abs=limit)


@pytest.mark.parametrize("offset", [10.0, 1e4, 1e8])
def test_effects_are_those_of_rational_numbers(offset: float) -> None:
    x = columns(offset)
    moments = ist.Frame({name: x[:, i] for i, name in enumerate(NAMES)}).moments()
    score = ist.BGe(prior_mean=ist.PriorMean.ZERO, prior_scale=ist.PriorScale.UNIT)
    effects = LinearEffects(NAMES, *score.posterior(moments))
    dag = ist.DAG(NAMES, [("a", "c"), ("b", "c")])
    r = posterior_matrix(x)
    whole = determinant(r, [0, 1])
    expected = [
        float((r[0][2] * r[1][1] - r[1][2] * r[0][1]) / whole),
        float((r[1][2] * r[0][0] - r[0][2] * r[0][1]) / whole),
    ]
    np.testing.assert_allclose(effects.mean(dag)[:2, 2], expected, rtol=1e-6)
    spread = float(determinant(r, [0, 1, 2]) / whole) / (N + 3 + 2 - 1 - 3) * float(r[1][1] / whole)
    drawn = effects.draw([dag] * 4000, 0, 2, np.random.default_rng(0))
    assert drawn.var() == pytest.approx(spread, rel=0.15)


def test_a_search_finds_the_same_graph_near_and_far() -> None:
    score = ist.BGe(prior_mean=ist.PriorMean.ZERO)
    x = columns(1e8)
    far = ist.learn({name: x[:, i] for i, name in enumerate(NAMES)}, score=score)
    # The means vary together from a prior around zero: all columns are dependent.
    assert len(far.dag.edges) == 3
