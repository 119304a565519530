"""Extended criteria: the published term, and its exact version for few rows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.notes import noted
from tests.objectives.problems import discrete_rows, discrete_score, gaussian_score

import isthmus as ist
from isthmus.objectives import PythonLocalScore
from isthmus.objectives.local import PenalisedScore
from isthmus.scores.base import size_penalties, small_sample_prices, student_log_ratio
from isthmus.testing import check_score, enumerate_dags


def test_the_extended_criterion_is_bic_minus_a_price_for_each_edge() -> None:
    rows = discrete_rows(0, 300, 4)
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    for dag in list(enumerate_dags(tuple(rows)))[::40]:
        plain = ist.score(rows, dag, ist.BIC(), kinds=kinds)
        extended = ist.score(rows, dag, ist.EBIC(gamma=0.7), kinds=kinds)
        assert extended == pytest.approx(plain - 1.4 * np.log(4) * len(dag.edges))
        assert ist.score(rows, dag, ist.EBIC(gamma=0.0), kinds=kinds) == plain


def test_published_gaussian_form() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    table = {name: x[:, i] for i, name in enumerate("abc")}
    dag = ist.DAG(list("abc"), [("a", "c"), ("b", "c")])
    plain = ist.score(table, dag, ist.GaussianBIC())
    extended = ist.score(table, dag, ist.GaussianEBIC(gamma=0.5, small_sample=False))
    assert extended == pytest.approx(plain - 2 * np.log(3))


@pytest.mark.parametrize("score", [ist.EBIC(), ist.EBIC(gamma=1.0)])
def test_discrete_score_keeps_its_promises(score: ist.EBIC) -> None:
    check_score(discrete_score(score, 1, 200, 4))


@pytest.mark.parametrize(
    "score", [ist.GaussianEBIC(), ist.DegenerateGaussian(gamma=0.5), ist.GaussianEBIC(gamma=0.0)]
)
@pytest.mark.parametrize("n", [200, 9])
def test_gaussian_scores_keep_their_promises(score: ist.GaussianEBIC, n: int) -> None:
    check_score(gaussian_score(score, 1, n, 4))


def test_few_rows_have_the_level_that_many_rows_have() -> None:
    """Under the null, a parent passes by chance as often as the published threshold intends."""
    from scipy import stats

    n, d, gamma = 15, 4, 0.25
    level = 0.5 * np.log(n) + 2 * gamma * np.log(d)
    intended = float(stats.chi2.sf(2 * level, 1))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 40_000, n))
    x -= x.mean(axis=1, keepdims=True)
    y -= y.mean(axis=1, keepdims=True)
    r2 = (x * y).sum(axis=1) ** 2 / (x * x).sum(axis=1) / (y * y).sum(axis=1)
    gain = -0.5 * n * np.log1p(-r2)
    exact = small_sample_prices(n, d, gamma)[1]
    error = 4 * np.sqrt(intended / 40_000)
    assert abs((gain > exact).mean() - intended) < error
    assert (gain > level).mean() > intended + error  # the published threshold is too low


@pytest.mark.parametrize("n", [3, 4, 10, 100, 99_999, 100_010, 10**6, 10**9])
@pytest.mark.parametrize("level", [0.3, 2.0, 12.0, 60.0])
def test_students_quantile_is_that_of_scipy(n: int, level: float) -> None:
    from scipy import stats

    freedom = n - 2.0 - np.arange(min(n - 2, 300), dtype=np.float64)
    t = stats.t.isf(0.5 * stats.chi2.sf(2.0 * level, 1), freedom)
    expected = np.log1p(t * t / freedom)
    np.testing.assert_allclose(student_log_ratio(level, freedom), expected, rtol=1e-7)


def test_many_rows_need_no_correction() -> None:
    exact = np.diff(small_sample_prices(10**6, 10, 0.5))
    published = 0.5 * np.log(10**6) + np.diff(size_penalties(10, 0.5))
    np.testing.assert_allclose(exact, published, rtol=1e-3)
    assert (np.diff(small_sample_prices(30, 100, 0.5)) > 0).all()


def test_parents_for_which_there_are_too_few_rows_are_never_worth_it() -> None:
    x = np.random.default_rng(3).normal(size=(5, 8))
    with noted("5 rows for 8 variables"):
        solution = ist.learn({f"v{i}": x[:, i] for i in range(8)}, score=ist.GaussianEBIC())
    assert max(len(solution.dag.parents(v)) for v in solution.dag.nodes) <= 1


def test_a_price_reaches_compiled_and_python_scores_alike() -> None:
    inner = gaussian_score(ist.GaussianBIC(), 0, 100, 4)
    prices = np.array([0.0, 1.0, 3.0, 7.0, 20.0])
    slow = PythonLocalScore(inner.nodes, inner.local, equivalent=True)
    for score in (inner, slow):
        check_score(PenalisedScore(score, prices))
        found = PenalisedScore(score, prices).extensions(0, [1], [2, 3])
        expected = inner.extensions(0, [1], [2, 3]) - [1.0, 3.0, 3.0]
        np.testing.assert_allclose(found, expected)
    from isthmus.objectives import list_parent_sets

    ours = list_parent_sets(PenalisedScore(inner, prices))
    theirs = list_parent_sets(
        PythonLocalScore(
            inner.nodes, lambda c, p: inner.local(c, p) - prices[len(p)], equivalent=True
        )
    )
    np.testing.assert_allclose(ours.scores, theirs.scores)
