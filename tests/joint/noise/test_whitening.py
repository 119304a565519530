"""Moments with noise: what one row can change, and what the rounds tell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint.noise.rounds import estimate
from tests.joint.noise.test_noisy_statistics import study

import isthmus as ist
from isthmus.statistics import Kind, Moments, Schema, Variable
from isthmus_joint.noise.cost import described_forecast, forecast
from isthmus_joint.noise.statistics import LEAST, NoisyMoments
from isthmus_joint.noise.whitening import (
    GRID,
    LARGEST_ENTRY,
    LAST,
    SHARES,
    SURVEY,
    ColumnLayout,
    in_ball,
    products_sensitivity,
    products_spread,
    shrinkage,
    survey_sensitivity,
)

MIXED = Schema(
    (
        Variable("age", Kind.CONTINUOUS),
        Variable("dose", Kind.CONTINUOUS),
        Variable("ward", Kind.DISCRETE, ("a", "b", "c")),
    )
)
LAYOUT = ColumnLayout(MIXED, {"age": (0.0, 100.0), "dose": (-1.0, 3.0)})
WIDTH = LAYOUT.width
NOWHERE = np.zeros(WIDTH - 1)


def numbers(d: int) -> Schema:
    return Schema(tuple(Variable(f"x{i}", Kind.CONTINUOUS) for i in range(d)))


def chain(n: int, d: int, seed: int) -> Any:
    """Rows of x0 → x1 → … with bounds of 0 to 100, whose neighbours are strongly correlated."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    for j in range(1, d):
        rows[:, j] += 2.0 * rows[:, j - 1]
    return 50.0 + 6.0 * rows / rows.std(axis=0)


finite = st.floats(-1e12, 1e12)


@settings(deadline=None)
@given(
    st.tuples(finite, finite, st.integers(0, 2)),
    st.lists(st.floats(-LARGEST_ENTRY, LARGEST_ENTRY), min_size=WIDTH**2, max_size=WIDTH**2),
)
def test_no_row_changes_products_by_more_than_their_sensitivity(
    row: tuple[float, float, int], entries: list[float]
) -> None:
    """Whatever the coordinator chooses as the map."""
    transform = np.array(entries).reshape(WIDTH, WIDTH)
    integers = LAYOUT.products(np.array([row]), transform, NOWHERE).astype(float)
    norm = np.linalg.norm(integers / products_spread(WIDTH))
    assert norm <= products_sensitivity(WIDTH)


def test_the_sensitivity_of_products_is_nearly_attained() -> None:
    transform = 1e6 * np.random.default_rng(0).normal(size=(WIDTH, WIDTH))
    integers = LAYOUT.products(np.array([[20.0, 1.0, 1.0]]), transform, NOWHERE).astype(float)
    norm = np.linalg.norm(integers / products_spread(WIDTH))
    assert norm > 0.999 * products_sensitivity(WIDTH)


@given(st.tuples(finite, finite, st.integers(0, 2)))
def test_every_row_changes_the_survey_by_its_sensitivity(row: tuple[float, float, int]) -> None:
    integers = LAYOUT.survey(np.array([row])).astype(float)
    assert np.linalg.norm(integers) == pytest.approx(survey_sensitivity(3))
    assert len(integers) == 1 + sum(LAYOUT.bins)


def test_rows_in_the_ball_are_integers_and_add_up() -> None:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.uniform(-50, 150, (40, 2)), rng.integers(0, 3, 40)])
    transform = rng.normal(size=(WIDTH, WIDTH))
    ball = in_ball(LAYOUT.rows(rows), transform)
    assert np.array_equal(ball, np.rint(ball))
    assert np.sqrt((ball**2).sum(axis=1)).max() <= GRID + math.sqrt(WIDTH)
    for answer in (LAYOUT.survey, lambda x: LAYOUT.products(x, transform, NOWHERE)):
        assert np.array_equal(answer(rows), answer(rows[:15]) + answer(rows[15:]))


def test_the_rounds_cost_the_budget_of_the_study() -> None:
    terms = study(MIXED, ["moments"])
    rounds = [NoisyMoments(terms, k) for k in range(SURVEY, LAST + 1)]
    assert sum(SHARES) == pytest.approx(1.0, rel=1e-12)
    assert terms.privacy is not None
    for release in rounds:
        assert release.cost(terms.privacy.honest) <= release.rho
        assert release.spread.min() == 1.0  # so that `scale` is that of the least noise
    assert sum(r.rho for r in rounds) <= terms.privacy.rho * (1 + 1e-9)


def test_noise_of_any_scale_is_paid_for() -> None:
    """The cost of independent noise is the sum of squares over variances, for every map."""
    release = NoisyMoments(study(MIXED, ["moments"]), LAST, 5.0 * np.eye(WIDTH))
    row = release.integers(np.array([[100.0, 0.0, 2.0]])).astype(float)
    honest = math.sqrt(release.privacy.honest)
    deviation = honest * release.scale * release.spread
    assert float(((row / deviation) ** 2).sum()) / 2 <= release.rho


def test_with_much_budget_the_moments_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    n = 40_000
    rows = np.column_stack([rng.normal(50, 8, n), rng.normal(0, 1, n), rng.integers(0, 3, n)])
    rows[:, 1] = 0.02 * rows[:, 0] + 0.1 * rows[:, 1]
    terms = study(MIXED, ["moments"], epsilon=500.0, bounds={"dose": (-1.0, 3.0)})
    found = estimate(terms, rows, rng)
    exact = Moments.from_array(MIXED, rows)
    assert found.rows == pytest.approx(n, abs=5)
    assert found.worth > 0.9 * n
    scale = np.sqrt(exact.covariance().diagonal())
    assert np.abs((found.statistic.mean() - exact.mean()) / scale).max() < 0.01
    difference = found.statistic.covariance() - exact.covariance()
    assert np.abs(difference / np.outer(scale, scale)).max() < 0.02
    assert (found.hidden, found.clipped) == ((), ())


def test_rounds_end_early_when_the_rows_are_white() -> None:
    terms, rng = study(numbers(4), ["moments"]), np.random.default_rng(2)
    few, many = list[int](), list[int]()
    estimate(terms, rng.normal(50, 10, (30_000, 4)), rng, few)
    estimate(terms, chain(2_000, 4, 2), rng, many)
    assert few == [SURVEY, 1, LAST]
    assert len(few) < len(many)
    assert many == sorted(many)
    assert many[-1] == LAST


@pytest.mark.parametrize("seed", range(3))
def test_strong_relations_are_found_at_epsilon_1(seed: int) -> None:
    """Ten variables, each with a correlation of 0.9 with the next, in 20,000 rows."""
    terms = study(numbers(10), ["moments"])
    found = estimate(terms, chain(20_000, 10, seed), np.random.default_rng(seed))
    dag = ist.learn(found.statistic).dag
    pairs = {frozenset(e) for e in dag.edges}
    assert pairs == {frozenset({f"x{i}", f"x{i + 1}"}) for i in range(9)}
    assert found.worth >= forecast(terms, 20_000) > 10_000


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize(("n", "epsilon"), [(100, 1.0), (1_000, 0.2), (20_000, 0.02), (1_500, 1.0)])
def test_noise_hides_edges_and_invents_none(n: int, epsilon: float) -> None:
    terms = study(numbers(10), ["moments"], epsilon=epsilon)
    wrong = 0
    for seed in range(4):
        found = estimate(terms, chain(n, 10, seed), np.random.default_rng(seed))
        pairs = {frozenset(e) for e in ist.learn(found.statistic).dag.edges}
        wrong += len(pairs - {frozenset({f"x{i}", f"x{i + 1}"}) for i in range(9)})
    assert wrong / 4 <= 0.1 * 10


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0, 1, 3, 200]),
    st.sampled_from([1e-3, 0.1, 10.0]),
)
def test_whatever_the_noise_the_moments_are_valid(seed: int, n: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.uniform(0, 100, (n, 2)), rng.integers(0, 3, n)])
    found = estimate(study(MIXED, ["moments"], epsilon=epsilon), rows, rng)
    moments = found.statistic
    assert moments.n >= 2
    assert moments.n == 2 or moments.n >= LEAST * MIXED.width
    assert np.linalg.eigvalsh(moments.correlation()).min() > 0.0


def test_noise_is_no_more_significant_than_sampling_error() -> None:
    """Independent variables: squared correlations are as large as those of the rows it is worth."""
    terms, rng = study(numbers(6), ["moments"], epsilon=0.5), np.random.default_rng(7)
    values, raised = [], []
    for _ in range(25):
        found = estimate(terms, rng.uniform(0, 100, (4_000, 6)), rng)
        squares = found.statistic.correlation()[np.triu_indices(6, 1)] ** 2
        values.append(found.statistic.n * squares.mean())
        raised.append(found.rows * squares.mean())
        assert found.worth == found.statistic.n < found.rows
    assert 0.2 < np.mean(values) < 1.1
    assert np.mean(raised) > 1.5


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize("value", [40.0, 0.0, 100 / 3])
def test_a_constant_column_hides_only_itself(epsilon: float, value: float) -> None:
    rows = chain(20_000, 5, 3)
    rows[:, 2] = value
    terms = study(numbers(5), ["moments"], epsilon=epsilon)
    found = estimate(terms, rows, np.random.default_rng(3))
    assert found.hidden == ("x2",)
    assert found.worth > 5_000
    pairs = {frozenset(e) for e in ist.learn(found.statistic).dag.edges}
    assert frozenset({"x0", "x1"}) in pairs
    assert not any("x2" in p for p in pairs)


def test_a_level_that_hardly_occurs_hides_nothing_else() -> None:
    rng = np.random.default_rng(4)
    rows = np.column_stack([chain(20_000, 2, 4), rng.integers(0, 2, 20_000)])
    rows[0, 2] = 2.0
    found = estimate(study(MIXED, ["moments"]), rows, rng)
    assert found.worth > 10_000
    assert {frozenset(e) for e in ist.learn(found.statistic).dag.edges} == {
        frozenset({"age", "dose"})
    }


def test_bounds_may_be_much_wider_than_the_values() -> None:
    """The survey finds where the values are: a hundred standard deviations are no harm."""
    rows, rng = chain(20_000, 5, 5), np.random.default_rng(5)
    wide = {f"x{i}": (-600.0, 700.0) for i in range(5)}
    found = estimate(study(numbers(5), ["moments"], bounds=wide), rows, rng)
    assert found.worth > 10_000
    assert len(ist.learn(found.statistic).dag.edges) == 4


def test_values_at_their_bounds_are_noticed() -> None:
    rows, rng = chain(4_000, 3, 6), np.random.default_rng(6)
    rows[:, 1] += 1e6
    found = estimate(study(numbers(3), ["moments"]), rows, rng)
    assert (found.hidden, found.clipped) == (("x1",), ("x1",))


@pytest.mark.parametrize(("bound", "noticed"), [(3.0, ("x1",)), (40.0, ())])
def test_a_clipped_tail_is_noticed(bound: float, noticed: tuple[str, ...]) -> None:
    """Few values are clipped, but they are far more than the density next to the bound has.

    A density that is largest at its bound, as that of x2 is, is not taken for clipped values.
    """
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(100_000, 3))
    rows[:, 1] = rng.gamma(2.0, size=100_000) - 2.0
    rows[:, 2] = rng.exponential(size=100_000)
    bounds = {"x0": (-6.0, 6.0), "x1": (-2.0 - bound, bound), "x2": (0.0, 40.0)}
    found = estimate(study(numbers(3), ["moments"], bounds=bounds), rows, rng)
    assert found.clipped == noticed


def test_variances_are_those_of_normal_rows() -> None:
    rng = np.random.default_rng(8)
    for columns in (1, 5, 20):
        z = rng.normal(size=(50_000, columns))
        length = (z**2).sum(axis=1)
        weight = np.minimum(1.0, (columns + 1) / (1 + length))
        variance = (weight * length).sum() / (columns * weight.sum())
        assert shrinkage(columns, columns + 1) == pytest.approx(variance, rel=0.02)


def test_the_forecast_depends_on_public_numbers_only() -> None:
    terms = study(numbers(10), ["moments"], epsilon=1.0)
    worth = [forecast(terms, n) for n in (100, 1_000, 10_000, 100_000, 10**7)]
    assert worth[:2] == [0, 0]
    assert 4_000 < worth[2] < 10_000
    assert 60_000 < worth[3] < 100_000
    assert worth[4] > 6 * 10**6
    assert "1,000 rows with noise will be too few" in described_forecast(terms)
    stated = study(numbers(10), ["moments"], expected_rows=10_000)
    assert described_forecast(stated) == (
        f"10,000 rows with noise will be worth about {worth[2]:,} without"
    )
