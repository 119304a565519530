"""Counts with noise: their sensitivity, tests that know the noise, and graphs from both rounds."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint.noise.test_noisy_statistics import DISCRETE, study

import isthmus as ist
from isthmus.metrics import shd_cpdag
from isthmus.statistics import CountPlan, Counts, Kind, Schema, Variable
from isthmus_joint.noise.statistics import (
    NoisyCounts,
    NoisyEstimate,
    NoisyRelease,
    made_rows,
    noisy_counts,
    onto_simplex,
    planned_pairs,
    rounded,
)
from isthmus_joint.noise.structure import (
    FINE,
    PAIRS,
    TABLES,
    ContrastLayout,
    Dependence,
    Interactions,
    directed,
    first_skeleton,
    last_skeleton,
    wanted_tables,
)

SIZES = (2, 3, 4)
LAYOUT = ContrastLayout.of(SIZES, [(0, 1, 2)], 1)


def found(rows: Any, tables: Any, noise: float = 0.0, sizes: tuple[int, ...] = SIZES) -> Any:
    """Interactions of rows, as sums with noise tell them."""
    layout, own = ContrastLayout.of(sizes, tables, 1), Interactions(sizes)
    drawn = np.random.default_rng(0).normal(size=sum(layout.lengths)) * layout.spread * noise * FINE
    own.add(layout, (layout.integers(rows) + np.rint(drawn).astype(int)).tolist(), noise * FINE)
    return own


def estimate(rows: Any, schema: Schema, seed: int, epsilon: float = 1.0) -> NoisyEstimate[Counts]:
    """What a coordinator learns from rows of four sites together."""
    agreed, rng = study(schema, ["counts"], epsilon=epsilon, plan=3), np.random.default_rng(seed)

    def ask(release: NoisyRelease) -> tuple[list[int], int]:
        noise = rng.normal(size=release.numbers) * release.spread * release.scale * 2.0
        return (release.integers(rows) + np.rint(noise).astype(int)).tolist(), 4

    return noisy_counts(agreed, ask)


def test_no_row_changes_the_sums_by_more_than_the_sensitivity() -> None:
    rows = np.array(list(product(*(range(k) for k in SIZES))))
    norms = [np.linalg.norm(LAYOUT.integers(row[None]) / LAYOUT.spread) for row in rows]
    assert max(norms) == pytest.approx(LAYOUT.sensitivity, rel=1e-12)
    assert min(norms) > 0.99 * LAYOUT.sensitivity
    parts = [math.prod(1 - 1 / SIZES[i] for i in s) for s in LAYOUT.sets]
    assert LAYOUT.sensitivity / FINE == pytest.approx(math.sqrt(sum(parts)), rel=0.01)
    assert LAYOUT.sensitivity / FINE < math.sqrt(len(LAYOUT.sets))  # that of the tables


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 200))
def test_tables_follow_from_their_interactions(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, k, n) for k in SIZES])
    own = found(rows, [(0, 1, 2)])
    for positions in [(0,), (1, 2), (0, 1, 2)]:
        table = np.zeros([SIZES[i] for i in positions])
        np.add.at(table, tuple(rows[:, i] for i in positions), 1)
        assert np.allclose(own.table(positions), table, atol=1e-6)


def test_answers_are_averaged_by_their_noise() -> None:
    layout, own = ContrastLayout.of((2, 2), [(0, 1)], 1), Interactions((2, 2))
    own.add(layout, [FINE * 100, 0, 0, 0], 3.0 * FINE)
    own.add(ContrastLayout.of((2, 2), [(0, 1)], 2), [FINE * 200, FINE**2 * 10], 4.0 * FINE)
    assert own.n == pytest.approx(100 + 100 * 9 / 25)
    assert own.values[0, 1] == pytest.approx(10 * 9 / 25)
    assert own.variances[0, 1] == pytest.approx(9 * 16 / 25)
    assert own.variances[(0,)] == 9.0


def test_noise_looks_like_no_dependence() -> None:
    """Of independent variables, tests are positive about as often as their level says."""
    level, positive, tests = 0.05, 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([rng.choice(k, 2000, p=_skewed(k)) for k in (2, 3, 4, 2)])
        layout, own = (
            ContrastLayout.of((2, 3, 4, 2), combinations(range(4), 2), 1),
            Interactions((2, 3, 4, 2)),
        )
        noise = rng.normal(size=sum(layout.lengths)) * layout.spread * 30 * FINE
        own.add(layout, (layout.integers(rows) + np.rint(noise).astype(int)).tolist(), 30.0 * FINE)
        seen = Dependence(own, level)
        results = [*seen.marginal.values(), *(seen.given(0, 1, (k,)) for k in (2, 3))]
        positive, tests = (
            positive + sum(r > 0 for r in results if r is not None),
            tests + len(results),
        )
    assert positive / tests < 1.5 * level


def _skewed(k: int) -> Any:
    share = np.arange(1.0, k + 1) ** 2
    return share / share.sum()


def test_a_path_explains_what_its_ends_share() -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 20_000)
    second = np.where(rng.random(20_000) < 0.85, first, 1 - first)
    third = np.where(rng.random(20_000) < 0.85, second, 1 - second)
    seen = Dependence(
        found(np.column_stack([first, second, third]), combinations(range(3), 2), 20.0, (2, 2, 2)),
        0.01,
    )
    assert seen.marginal[0, 2] > 0
    through = seen.given(0, 2, (1,))
    assert through is not None
    assert through < 0
    direct = seen.given(0, 1, (2,))
    assert direct is not None
    assert direct > 0
    assert first_skeleton(seen) == {(0, 1), (1, 2)}
    assert wanted_tables(seen, first_skeleton(seen)) == [(0, 1), (0, 1, 2), (1, 2)]


def test_two_causes_explain_more_than_each_of_them() -> None:
    """Effects of the same two causes depend more on each other than on either cause."""
    rng = np.random.default_rng(4)
    causes = rng.integers(0, 2, (40_000, 2))
    both = causes @ [1, 2]
    effects = [np.where(rng.random(40_000) < 0.95, both, rng.integers(0, 4, 40_000)) for _ in "ab"]
    tables = combinations(range(4), 3)
    seen = Dependence(found(np.column_stack([causes, *effects]), tables, 20.0, (2, 2, 4, 4)), 0.01)
    assert seen.strength(2, (3,))[0] > max(seen.strength(2, (k,))[0] for k in (0, 1))
    assert seen.strength(2, (3,))[0] < seen.strength(2, (0, 1))[0]
    every = frozenset(combinations(range(4), 2))
    assert last_skeleton(seen, every) == {(0, 2), (0, 3), (1, 2), (1, 3)}


def test_edges_point_at_a_collider() -> None:
    rng = np.random.default_rng(2)
    causes = rng.integers(0, 2, (20_000, 2))
    effect = np.where(rng.random(20_000) < 0.9, causes.max(axis=1), 0)
    rows = np.column_stack([causes[:, 0], effect, causes[:, 1]])
    seen = Dependence(found(rows, [(0, 1, 2)], 20.0, (2, 2, 2)), 0.01)
    assert directed(seen, frozenset({(0, 1), (1, 2)})) == [(), (0, 2), ()]


def test_made_rows_have_the_tables_of_their_families() -> None:
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(0, k, 1000) for k in SIZES])
    codes = made_rows(found(rows, [(0, 1, 2)]), [(), (0,), (0, 1)], 1000)
    for positions in [(0, 1), (0, 1, 2)]:
        shape = [SIZES[i] for i in positions]
        tables = [np.zeros(shape), np.zeros(shape)]
        np.add.at(tables[0], tuple(codes[list(positions)]), 1)
        np.add.at(tables[1], tuple(rows[:, i] for i in positions), 1)
        assert np.abs(tables[0] - tables[1]).max() <= 1.0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0, 3, 200]), st.sampled_from([0.01, 1.0, 100.0]))
def test_whatever_the_noise_the_counts_are_valid(seed: int, n: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, k, n) for k in (2, 3, 2, 2)]).astype(float)
    result = estimate(rows, DISCRETE, seed, epsilon)
    counts = result.statistic
    assert counts.plan == CountPlan.everything()
    assert 1 <= counts.n <= max(result.rows, 1)
    assert all(counts.table([a]).sum() == counts.n for a in "abcd")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_noise_invents_no_edges(epsilon: float) -> None:
    """Rows of independent variables, some of them with rare levels."""
    names, sizes = tuple("abcdefgh"), (2, 2, 3, 3, 4, 4, 2, 5)
    schema = Schema(
        tuple(
            Variable(n, Kind.DISCRETE, tuple(range(k))) for n, k in zip(names, sizes, strict=True)
        )
    )
    edges = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([rng.choice(k, 3000, p=_skewed(k)) for k in sizes]).astype(float)
        edges += len(ist.learn(estimate(rows, schema, seed, epsilon).statistic).dag.edges)
    assert edges <= 3  # of 8 · 8 variables


def test_the_graph_is_found_from_rows_that_were_too_few_for_all_tables() -> None:
    """At ε = 1, 30,000 rows of asia; 100,000 gave 2.2 errors when all tables were released."""
    names, edges = ("smoke", "lung", "bronc", "dysp", "xray"), 5
    rng = np.random.default_rng(5)
    smoke = rng.random(30_000) < 0.5
    lung = rng.random(30_000) < np.where(smoke, 0.15, 0.01)
    bronc = rng.random(30_000) < np.where(smoke, 0.6, 0.3)
    dysp = rng.random(30_000) < np.where(lung, np.where(bronc, 0.9, 0.7), np.where(bronc, 0.8, 0.1))
    xray = rng.random(30_000) < np.where(lung, 0.98, 0.05)
    rows = np.column_stack([smoke, lung, bronc, dysp, xray]).astype(float)
    truth = ist.DAG(
        names,
        [
            ("smoke", "lung"),
            ("smoke", "bronc"),
            ("lung", "dysp"),
            ("bronc", "dysp"),
            ("lung", "xray"),
        ],
    )
    schema = Schema(tuple(Variable(n, Kind.DISCRETE, (False, True)) for n in names))
    learned = ist.learn(estimate(rows, schema, 1).statistic).dag
    assert len(learned.edges) == edges
    assert shd_cpdag(learned, truth) == 0


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
    if nearest.sum() <= round(n):
        assert rounded(nearest, round(n)).sum() == round(n)


def test_the_second_request_costs_the_rest_of_the_budget_whatever_it_asks() -> None:
    agreed = study(DISCRETE, ["counts"], plan=3)
    first = NoisyCounts(agreed, PAIRS, planned_pairs(agreed))
    for tables in (["ab"], ["abc", "bcd"], ["abc", "abd", "acd", "bcd"]):
        second = NoisyCounts(agreed, TABLES, CountPlan.sets(tables))
        total = first.cost(2) + second.cost(2)
        assert total <= first.privacy.rho
        assert total == pytest.approx(first.privacy.rho, rel=1e-3)
