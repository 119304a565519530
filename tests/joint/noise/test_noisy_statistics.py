"""Integers of a site, their sensitivity, and valid statistics from noisy sums."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.joint import DifferentialPrivacy, Identity, Member, SecureSums, Study
from isthmus.joint.noise.counts import (
    FINE,
    NoisyCounts,
    consistent,
    onto_simplex,
    rounded,
    shared_subsets,
)
from isthmus.joint.noise.moments import GRID, NoisyMoments, valid_covariance
from isthmus.joint.noise.release import first_rows, widened
from isthmus.joint.secure_sum.limbs import to_ints
from isthmus.statistics import CountPlan, Counts, Kind, Moments, Schema, Variable

MIXED = Schema(
    (
        Variable("age", Kind.CONTINUOUS),
        Variable("dose", Kind.CONTINUOUS),
        Variable("ward", Kind.DISCRETE, ("a", "b", "c")),
    )
)
DISCRETE = Schema(
    tuple(
        Variable(n, Kind.DISCRETE, tuple(range(k)))
        for n, k in zip("abcd", (2, 3, 2, 2), strict=True)
    )
)


def study(schema: Schema, requests: list[str], **privacy: Any) -> Study:
    options: dict[str, Any] = {"epsilon": 1.0} | privacy
    keys = [Identity.generate() for _ in range(6)]
    return Study.draft(
        "Noise",
        purpose="tests",
        author=keys[0].public,
        coordinator=keys[1].public,
        members=[Member(f"s{i}", f"o{i}", k.public) for i, k in enumerate(keys[2:])],
        schema=schema,
        bounds=dict.fromkeys(schema.of_kind(Kind.CONTINUOUS), (0.0, 100.0)),
        protocol=SecureSums(),
        requests=requests,
        plan=CountPlan.up_to(2),
        privacy=DifferentialPrivacy(**options),
    )


MOMENTS = NoisyMoments(study(MIXED, ["moments"], bounds={"dose": (-1.0, 3.0)}))
COUNTS = NoisyCounts(study(DISCRETE, ["counts"]))


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2), st.integers(0, 2))
def test_no_row_changes_moments_by_more_than_the_sensitivity(x: list[float], ward: int) -> None:
    integers = MOMENTS.integers(np.array([[*x, ward]]))
    assert np.linalg.norm(integers.astype(float)) <= MOMENTS.row_sensitivity
    assert len(integers) == MOMENTS.numbers


def test_the_sensitivity_of_moments_is_attained() -> None:
    integers = MOMENTS.integers(np.array([[100.0, -1.0, 2.0]]))
    assert np.linalg.norm(integers.astype(float)) == pytest.approx(MOMENTS.row_sensitivity)


@given(st.tuples(*(st.integers(0, k - 1) for k in (2, 3, 2, 2))))
def test_every_row_changes_counts_by_the_sensitivity(row: tuple[int, ...]) -> None:
    integers = COUNTS.integers(np.array([row], dtype=float))
    assert np.linalg.norm(integers.astype(float)) == pytest.approx(COUNTS.row_sensitivity)
    assert COUNTS.row_sensitivity == FINE * math.sqrt(7)
    assert len(integers) == COUNTS.numbers


def test_integers_of_rows_add_up() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(0, 100, (40, 2)), rng.integers(0, 3, 40)])
    assert np.array_equal(
        MOMENTS.integers(rows), MOMENTS.integers(rows[:15]) + MOMENTS.integers(rows[15:])
    )


def test_several_rows_per_person_need_as_much_more_noise() -> None:
    more = NoisyCounts(study(DISCRETE, ["counts"], rows_per_person=5))
    assert more.sensitivity == 5 * COUNTS.sensitivity
    assert more.scale == pytest.approx(5 * COUNTS.scale, rel=1e-3)


def test_requests_share_the_budget() -> None:
    both = study(DISCRETE, ["counts", "moments"])
    parts = NoisyCounts(both), NoisyMoments(both)
    assert both.privacy is not None
    assert sum(p.rho for p in parts) == both.privacy.rho
    for part in parts:
        assert part.cost(part.privacy.honest) <= part.rho


def test_the_noise_of_the_agreed_number_of_sites_suffices() -> None:
    """The threshold is 3 of 4 sites; one of these may collude, so two sites pay."""
    assert MOMENTS.privacy.honest == 2
    assert MOMENTS.cost(2) == pytest.approx(MOMENTS.rho, rel=1e-4)
    assert MOMENTS.cost(1) > MOMENTS.rho > MOMENTS.cost(3)


def test_the_first_rows_of_each_person_are_used() -> None:
    persons = np.array([3, 1, 3, 3, 0, 1, 1])
    assert first_rows(persons, 2).tolist() == [0, 1, 2, 4, 5]
    assert first_rows(persons, 1).tolist() == [0, 1, 4]


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5))
def test_integers_keep_their_sign_in_more_limbs(values: list[int]) -> None:
    for limbs in (2, 4):
        assert to_ints(widened(np.array(values, dtype=np.int64), limbs)) == values


def test_without_noise_the_moments_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.uniform(0, 100, 5000), rng.uniform(-1, 3, 5000), np.zeros(5000)])
    rows[:, 1] = 0.02 * rows[:, 0] + rng.uniform(-0.5, 0.5, 5000)
    rows[:, 2] = rng.integers(0, 3, 5000)
    estimate = MOMENTS.estimate(MOMENTS.integers(rows).tolist(), 0.0)
    exact = Moments.from_array(MIXED, rows)
    assert (estimate.rows, estimate.worth, estimate.statistic.n) == (5000, 5000, 5000)
    scale = np.array([50.0, 2.0, 1.0, 1.0])
    assert np.abs((estimate.statistic.mean() - exact.mean()) / scale).max() < 1e-5
    difference = estimate.statistic.covariance() - exact.covariance()
    assert np.abs(difference / np.outer(scale, scale)).max() < 1e-5


def test_variables_whose_bounds_are_wrong_are_named() -> None:
    rng = np.random.default_rng(5)
    rows = np.column_stack([rng.uniform(0, 100, 4000), rng.uniform(0, 2, 4000), np.zeros(4000)])
    scale = 50.0 * GRID**2

    def estimate(age: float, dose: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        scaled = rows * [age, dose, 1.0]
        noise = rng.normal(0, scale, MOMENTS.numbers).round()
        found = MOMENTS.estimate((MOMENTS.integers(scaled) + noise).astype(int).tolist(), scale)
        return found.hidden, found.clipped

    assert estimate(1.0, 1.0) == ((), ())
    assert estimate(1e-6, 1.0) == (("age",), ("age",))  # all at the lower bound
    assert estimate(1.0, 1e-6) == (("dose",), ())
    assert estimate(1e6, 1.0) == (("age",), ("age",))
    assert estimate(1.0, -1e6) == (("dose",), ("dose",))


def test_without_noise_the_counts_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.integers(0, k, 500) for k in (2, 3, 2, 2)])
    estimate = COUNTS.estimate(COUNTS.integers(rows.astype(float)).tolist(), 0.0)
    assert estimate.statistic == Counts.from_codes(DISCRETE, rows.T, plan=CountPlan.up_to(2))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0, 3, 200]), st.sampled_from([10.0, 1e3, 1e5]))
def test_whatever_the_noise_the_statistics_are_valid(seed: int, n: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.uniform(0, 100, (n, 2)), rng.integers(0, 3, n)])
    total = MOMENTS.integers(rows) + np.rint(rng.normal(0, noise * GRID**2, MOMENTS.numbers))
    moments = MOMENTS.estimate([int(v) for v in total], noise * GRID**2).statistic
    assert moments.n >= 2
    assert np.linalg.eigvalsh(moments.correlation()).min() > 0.0
    codes = np.column_stack([rng.integers(0, k, n) for k in (2, 3, 2, 2)])
    exact = COUNTS.integers(codes.astype(float)) if n else np.zeros(COUNTS.numbers)
    noisy = exact + np.rint(rng.normal(0, noise * FINE, COUNTS.numbers))
    counts = COUNTS.estimate([int(v) for v in noisy], noise * FINE).statistic
    assert all(t.min() >= 0 and t.sum() == counts.n for t in counts.cells())


def test_margins_of_tables_agree() -> None:
    rng = np.random.default_rng(3)
    sets: list[tuple[int, ...]] = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    shape = {0: 2, 1: 3, 2: 2, 3: 2}
    truth = rng.uniform(20, 60, (2, 3, 2, 2))
    exact = {s: truth.sum(axis=tuple(i for i in range(4) if i not in s)) for s in sets}
    noisy = {s: t + rng.normal(0, 5, t.shape) for s, t in exact.items()}
    assert all(t.shape == tuple(shape[i] for i in s) for s, t in noisy.items())
    agreed = consistent(noisy, truth.sum(), shared_subsets(sets))
    for pair in [(0, 1), (1, 2), (2, 3), (0, 3)]:
        margins = [
            t.sum(axis=tuple(k for k, i in enumerate(s) if i not in pair))
            for s, t in agreed.items()
            if set(pair) <= set(s)
        ]
        assert len(margins) == 2
        assert np.allclose(margins[0], margins[1])
    before = sum(((noisy[s] - exact[s]) ** 2).sum() for s in sets)
    after = sum(((agreed[s] - exact[s]) ** 2).sum() for s in sets)
    assert after < 0.7 * before
    untouched = consistent(exact, truth.sum(), shared_subsets(sets))
    assert all(np.allclose(untouched[s], exact[s]) for s in sets)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8), st.floats(1.0, 1e4))
def test_the_simplex_projection_is_the_nearest_table(cells: list[float], n: float) -> None:
    table = np.array(cells)
    nearest = onto_simplex(table, n)
    assert nearest.min() >= 0.0
    assert nearest.sum() == pytest.approx(n)
    # Optimality: the gradient is the same for all cells in use, and not larger for empty ones.
    step = table - nearest
    used = nearest > 0
    assert np.ptp(step[used]) < 1e-6
    assert (step[~used] <= step[used].max() + 1e-6).all()
    whole = rounded(nearest, round(n)) if nearest.sum() <= round(n) else None
    if whole is not None:
        assert whole.sum() == round(n)


def test_a_covariance_has_no_eigenvalue_below_the_noise() -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(6, 6))
    valid = valid_covariance(0.01 * (noise + noise.T), 0.01)
    assert np.linalg.eigvalsh(valid).min() >= 2 * 0.01 * math.sqrt(6) * (1 - 1e-9)
    good = np.eye(6) + 0.1
    assert np.allclose(valid_covariance(good, 1e-6), good)


def test_noise_is_no_more_significant_than_sampling_error_in_counts() -> None:
    """Independent variables: the statistic of a test has its degrees of freedom as its mean."""
    rng = np.random.default_rng(6)
    exact = COUNTS.integers(np.indices((2, 3, 2, 2)).reshape(4, -1).T.astype(float)) * 2000
    scale, values, raised = 1000.0 * FINE, [], []
    for _ in range(60):
        noise = np.rint(rng.normal(0, scale, COUNTS.numbers)).astype(int)
        found = COUNTS.estimate((exact + noise).tolist(), scale)
        assert found.worth == found.statistic.n < found.rows
        for pair in combinations("abcd", 2):
            table = found.statistic.table(list(pair)).astype(float)
            expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
            degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
            values.append(float(((table - expected) ** 2 / expected).sum()) / degrees)
            raised.append(values[-1] * found.rows / found.statistic.n)
    assert 0.5 < np.mean(values) < 1.3  # the rule is about the worst table
    assert np.mean(raised) > 10.0  # with the number of rows, noise would look like effects


def test_noise_is_no_more_significant_than_sampling_error_in_moments() -> None:
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.uniform(0, 100, (20_000, 2)), rng.integers(0, 3, 20_000)])
    exact, scale = MOMENTS.integers(rows), 400.0 * GRID**2
    values, raised = [], []
    for _ in range(60):
        noise = np.rint(rng.normal(0, scale, MOMENTS.numbers)).astype(int)
        found = MOMENTS.estimate((exact + noise).tolist(), scale)
        r = found.statistic.correlation()[0, 1]
        values.append(found.statistic.n * r**2)
        raised.append(found.rows * r**2)
        assert found.worth <= found.statistic.n < found.rows
    assert 0.2 < np.mean(values) < 1.5
    assert np.mean(raised) > 10.0


def test_statistics_are_worth_less_if_noise_hides_directions() -> None:
    rng = np.random.default_rng(8)
    rows = np.column_stack([rng.uniform(0, 100, 5000), rng.uniform(-1, 3, 5000), np.zeros(5000)])
    rows[:, 2] = rng.integers(0, 3, 5000)
    hidden = rows.copy()
    hidden[:, 1] = 1.0 + 1e-3 * rows[:, 1]
    scale = 30.0 * GRID**2
    noise = np.rint(rng.normal(0, scale, MOMENTS.numbers)).astype(int)
    seen, unseen = (
        MOMENTS.estimate((MOMENTS.integers(x) + noise).tolist(), scale) for x in (rows, hidden)
    )
    assert seen.worth == seen.statistic.n
    assert unseen.worth == pytest.approx((3 / 4) ** 2 * unseen.statistic.n, abs=1)
