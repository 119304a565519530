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
from isthmus.joint.noise.moments import NoisyMoments
from isthmus.joint.noise.release import first_rows, widened
from isthmus.joint.noise.whitening import LAST, SURVEY
from isthmus.joint.secure_sum.limbs import to_ints
from isthmus.statistics import CountPlan, Counts, Kind, Schema, Variable

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


COUNTS = NoisyCounts(study(DISCRETE, ["counts"]))


@given(st.tuples(*(st.integers(0, k - 1) for k in (2, 3, 2, 2))))
def test_every_row_changes_counts_by_the_sensitivity(row: tuple[int, ...]) -> None:
    integers = COUNTS.integers(np.array([row], dtype=float))
    assert np.linalg.norm(integers.astype(float)) == pytest.approx(COUNTS.row_sensitivity)
    assert COUNTS.row_sensitivity == FINE * math.sqrt(7)
    assert len(integers) == COUNTS.numbers


def test_several_rows_per_person_need_as_much_more_noise() -> None:
    more = NoisyCounts(study(DISCRETE, ["counts"], rows_per_person=5))
    assert more.sensitivity == 5 * COUNTS.sensitivity
    assert more.scale == pytest.approx(5 * COUNTS.scale, rel=1e-3)


def test_requests_share_the_budget() -> None:
    both = study(DISCRETE, ["counts", "moments"])
    parts = [NoisyCounts(both), *(NoisyMoments(both, k) for k in range(SURVEY, LAST + 1))]
    assert both.privacy is not None
    assert sum(p.rho for p in parts) == pytest.approx(both.privacy.rho, rel=1e-12)
    for part in parts:
        assert part.cost(part.privacy.honest) <= part.rho


def test_the_noise_of_the_agreed_number_of_sites_suffices() -> None:
    """The threshold is 3 of 4 sites; one of these may collude, so two sites pay."""
    assert COUNTS.privacy.honest == 2
    assert COUNTS.cost(2) == pytest.approx(COUNTS.rho, rel=1e-4)
    assert COUNTS.cost(1) > COUNTS.rho > COUNTS.cost(3)


def test_the_first_rows_of_each_person_are_used() -> None:
    persons = np.array([3, 1, 3, 3, 0, 1, 1])
    assert first_rows(persons, 2).tolist() == [0, 1, 2, 4, 5]
    assert first_rows(persons, 1).tolist() == [0, 1, 4]


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5))
def test_integers_keep_their_sign_in_more_limbs(values: list[int]) -> None:
    for limbs in (2, 4):
        assert to_ints(widened(np.array(values, dtype=np.int64), limbs)) == values


def test_without_noise_the_counts_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.integers(0, k, 500) for k in (2, 3, 2, 2)])
    estimate = COUNTS.estimate(COUNTS.integers(rows.astype(float)).tolist(), 0.0)
    assert estimate.statistic == Counts.from_codes(DISCRETE, rows.T, plan=CountPlan.up_to(2))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0, 3, 200]), st.sampled_from([10.0, 1e3, 1e5]))
def test_whatever_the_noise_the_statistics_are_valid(seed: int, n: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
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
