"""Products about the noisy mean of each site: what a person changes, and what levels cause."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint.noise.private_group import consortium
from tests.joint.noise.rounds import estimate
from tests.joint.noise.test_distinguishing import observed_epsilon
from tests.joint.noise.test_noisy_statistics import study
from tests.joint.noise.test_whitening import LAYOUT, MIXED, WIDTH, chain, numbers

import isthmus as ist
from isthmus.arrays import Floats, Integers
from isthmus.errors import IsthmusWarning
from isthmus_joint import AskMoments, Federation
from isthmus_joint.noise.accounting import epsilon_of
from isthmus_joint.noise.answers import NoisyAnswers
from isthmus_joint.noise.centring import HALF, LAST_SHARE, share_of_centres
from isthmus_joint.noise.cost import described_forecast, forecast, warn_of_noise
from isthmus_joint.noise.statistics import NoisyMoments, SiteAnswer
from isthmus_joint.noise.whitening import (
    GRID,
    LARGEST_ENTRY,
    LAST,
    SURVEY,
    products_sensitivity,
    products_spread,
    sums_sensitivity,
)
from isthmus_joint.secure_sum.terms import from_int64, to_int64

TERMS = study(MIXED, ["moments"])
entries = st.lists(
    st.floats(-LARGEST_ENTRY, LARGEST_ENTRY), min_size=WIDTH**2, max_size=WIDTH**2
).map(lambda own: np.array(own).reshape(WIDTH, WIDTH))
offsets = st.lists(st.floats(-2.0, 2.0), min_size=WIDTH - 1, max_size=WIDTH - 1).map(np.array)
values = st.tuples(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.integers(0, 2))


def people(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-20, 120, (n, 2)), rng.integers(0, 3, n)])


@settings(deadline=None)
@given(values, entries, offsets)
def test_no_row_changes_more_than_the_sensitivity_about_any_centre(
    row: tuple[float, float, int], transform: Floats, offset: Floats
) -> None:
    """Whatever the coordinator chooses as the map, and the noise as the centre."""
    one = np.array([row])
    sums = LAYOUT.sums(one, transform, offset).astype(float)
    products = LAYOUT.products(one, transform, offset).astype(float)
    assert np.linalg.norm(sums) <= sums_sensitivity(WIDTH)
    assert np.linalg.norm(products / products_spread(WIDTH)) <= products_sensitivity(WIDTH)


def test_the_sensitivity_of_sums_is_nearly_attained() -> None:
    transform = 1e6 * np.random.default_rng(0).normal(size=(WIDTH, WIDTH))
    sums = LAYOUT.sums(np.array([[20.0, 1.0, 1.0]]), transform, np.zeros(WIDTH - 1)).astype(float)
    assert np.linalg.norm(sums) > 0.999 * sums_sensitivity(WIDTH)


def test_the_exact_mean_would_change_products_nearly_four_times_as_much() -> None:
    """The other rows move with it: this is why the mean of a site has noise."""
    ball = np.zeros((1001, WIDTH))
    ball[:, 1] = GRID
    ball[-1, 1] = -GRID

    def scatter(rows: Floats) -> Floats:
        left = rows - rows.mean(axis=0)
        whole: Floats = (left.T @ left)[np.triu_indices(WIDTH)]
        return whole

    change = (scatter(ball) - scatter(ball[:-1])) / products_spread(WIDTH)
    assert 3.9 < np.linalg.norm(change) / products_sensitivity(WIDTH) <= 4.0


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), entries, offsets)
def test_an_answer_depends_on_rows_through_noisy_sums_and_products_alone(
    seed: int, transform: Floats, before: Floats
) -> None:
    """If the noise hides a person in the sums, the rest of the answer is that without the person.

    But for the person's own products. So the cost is that of two sums, one after the other.
    """
    release = NoisyMoments(TERMS, LAST, transform)
    rng, rows = np.random.default_rng(seed), people(30, seed)
    noise = [rng.integers(-(10**6), 10**6, size) for size in (WIDTH, release.numbers)]
    person = release._columns.sums(rows[:1], transform, before)
    drawn = iter([noise[0], noise[1], noise[0] + person, noise[1]])

    def draw(spread: Floats, scale: float) -> Integers:
        assert len(spread) in (WIDTH, release.numbers)
        assert scale in (release.centre_scale, release.scale)
        return next(drawn)

    whole = release.answer(rows, before, draw)
    without = release.answer(rows[1:], before, draw)
    np.testing.assert_array_equal(whole.offset, without.offset)
    own = release.integers(rows[:1], whole.offset)
    np.testing.assert_array_equal(whole.numbers - without.numbers, own)
    assert not own[-WIDTH:].any()  # of the centre: it follows from the noisy sums


@pytest.mark.long
@pytest.mark.parametrize("share", [1.0, 1 / 6])
def test_who_sees_the_centre_of_a_site_does_not_see_a_person(share: float) -> None:
    """The likelihood ratio of the centre and of the products together, with the worst map."""
    transform = np.zeros((WIDTH, WIDTH))
    transform[0, 0], transform[1, :2] = 0.2, [5.0, 10.0]
    release = NoisyMoments(TERMS, LAST, transform)
    honest = math.sqrt(release.privacy.honest)
    rows, before = np.full((20, 3), [10.0, 50.0, 0.0]), np.zeros(WIDTH - 1)
    rows[0, 0] = 95.0
    rng = np.random.default_rng(5)

    def ratio(table: Any, *, present: bool) -> float:
        drawn: list[Integers] = []

        def draw(spread: Floats, scale: float) -> Integers:
            # The honest sites' noise of the products adds up.
            wide = scale * (honest if len(spread) == release.numbers else 1.0)
            drawn.append(np.rint(rng.normal(0.0, share * wide * spread)).astype(np.int64))
            return drawn[-1]

        offset = release.answer(table, before, draw).offset
        sums = release._columns.sums(rows[:1], transform, before)
        products = release.integers(rows[:1], offset)
        seen = [noise + own * present for noise, own in zip(drawn, (sums, products), strict=True)]
        wide = honest * release.scale * release.spread
        centre = float(sums @ seen[0]) / release.centre_scale**2
        return centre + float(products @ (seen[1] / wide**2))

    runs = 4_000
    a = np.array([ratio(rows, present=True) for _ in range(runs)])
    b = np.array([ratio(rows[1:], present=False) for _ in range(runs)])
    epsilon = epsilon_of(release.rho, release.privacy.delta)
    assert (observed_epsilon(a, b) <= epsilon) is (share == 1.0)


def test_a_round_costs_its_centre_and_its_products() -> None:
    for number in range(SURVEY, LAST + 1):
        release = NoisyMoments(TERMS, number, np.eye(WIDTH))
        assert release.cost(release.privacy.honest) <= release.rho * (1 + 1e-12)
        assert release.cost(release.privacy.honest) > 0.999 * release.rho
        # Sites beyond the honest ones add nothing to what hides a centre.
        share = 0.0 if number == SURVEY else share_of_centres(4, last=number == LAST)
        assert release.cost(10**6) == pytest.approx(release.rho * share, rel=1e-4, abs=1e-8)
    assert share_of_centres(HALF, last=False) == 0.5
    assert share_of_centres(HALF, last=True) == LAST_SHARE


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), entries, st.integers(0, 30))
def test_whatever_the_map_a_site_answers(seed: int, transform: Floats, n: int) -> None:
    rng = np.random.default_rng(seed)

    def draw(spread: Floats, scale: float) -> Integers:
        return np.rint(rng.normal(0.0, scale * spread)).astype(np.int64)

    offset = np.empty(0)
    for number in (1, 2, LAST):
        release = NoisyMoments(TERMS, number, transform)
        answer = release.answer(people(n, seed), offset, draw)
        offset = answer.offset
        assert np.abs(offset).max() <= 2.0
        assert len(answer.numbers) == release.numbers


def test_a_coordinator_can_ask_for_products_of_all_rows() -> None:
    """A map whose constant is negative leaves every site where it is: the levels are in the sum."""
    transform = np.diag([-0.2, *(WIDTH - 1) * [0.1]])
    release, rows = NoisyMoments(TERMS, 1, transform), people(50, 1)

    def draw(spread: Floats, scale: float) -> Integers:
        return np.zeros(len(spread), dtype=np.int64)

    answer = release.answer(rows, np.empty(0), draw)
    assert not answer.offset.any()
    np.testing.assert_array_equal(answer.numbers, release.integers(rows))


def levelled(n: int, sites: int, sd: float, seed: int) -> tuple[Any, Any]:
    """Rows of a chain at sites whose levels differ, all within the bounds of 0 to 100."""
    rng = np.random.default_rng(seed)
    rows, site = chain(n, 10, seed), np.arange(n) % sites
    rows = 50.0 + 0.5 * (rows - 50.0)
    return rows + rng.normal(0.0, sd * 3.0, (sites, 10))[site], site


CHAIN = {frozenset({f"x{i}", f"x{i + 1}"}) for i in range(9)}


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("sd", [0.5, 2.0])
def test_sites_of_different_levels_cause_no_edges(sd: float) -> None:
    """The sum over all rows has edges between everything that differs between sites."""
    terms = study(numbers(10), ["moments"])
    rows, site = levelled(10_000, 4, sd, 0)
    found = estimate(terms, rows, np.random.default_rng(1), site_of=site)
    assert {frozenset(e) for e in ist.learn(found.statistic).dag.edges} == CHAIN
    assert found.statistic.groups == 4
    assert found.worth >= forecast(terms, 10_000) > 3_000
    assert found.centres < 0.1
    means = np.abs(found.statistic.mean() - rows.mean(axis=0)) / 3.0
    assert means.max() < 0.2

    pooled = study(numbers(10), ["moments"], within_sites=False)
    found = estimate(pooled, rows, np.random.default_rng(1), site_of=site)
    assert found.statistic.groups is None
    assert {frozenset(e) for e in ist.learn(found.statistic).dag.edges} - CHAIN


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_alike_sites_lose_little() -> None:
    rows, site = levelled(10_000, 4, 0.0, 2)
    worth = [
        estimate(
            study(numbers(10), ["moments"], within_sites=within),
            rows,
            np.random.default_rng(2),
            site_of=site,
        ).worth
        for within in (True, False)
    ]
    assert 0.85 * worth[1] < worth[0] < worth[1]


def test_small_sites_are_warned_of() -> None:
    rows, site = levelled(1_000, 4, 0.5, 3)
    found = estimate(study(numbers(10), ["moments"]), rows, np.random.default_rng(3), site_of=site)
    assert found.centres > 0.2
    with pytest.warns(IsthmusWarning, match="too few rows for this noise to find their means"):
        warn_of_noise("moments", found)


def test_the_forecast_says_that_sites_are_too_small() -> None:
    said = [
        described_forecast(
            study(numbers(10), ["moments"], within_sites=within, sites=30, expected_rows=n)
        )
        for n, within in ((10_000, True), (10_000, False), (40_000, True))
    ]
    assert all("will be worth" in phrase for phrase in said)
    assert ["levels of sites" in phrase for phrase in said] == [True, False, False]


def test_a_site_that_was_restarted_knows_its_centre(tmp_path: Path) -> None:
    """It is kept with the answer, and a repeated question gets the same one."""
    pytest.importorskip("opendp")
    group = consortium(tmp_path, requests=["moments"])
    transform = np.eye(1 + group.study.schema.width)
    first, second = (
        AskMoments(group.study.schema.names, k, tuple(transform.ravel())) for k in (1, 2)
    )
    group.federation()._sum(first)
    kept = list((tmp_path / "north.jsonl.kept").iterdir())
    assert len(kept) == 1
    size = NoisyMoments(group.study, 1).numbers
    answer = SiteAnswer.from_bytes(kept[0].read_bytes(), size)
    assert len(answer.offset) == group.study.schema.width

    site = NoisyAnswers(group.study, group.controller("north")._writer)
    np.testing.assert_array_equal(site._offset_before(second), answer.offset)
    assert not len(site._offset_before(first))
    again = to_int64(site.numbers(first, group.extract("north"))[:, :2])
    np.testing.assert_array_equal(again, to_int64(from_int64(answer.numbers)))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.IsthmusWarning")
def test_a_federation_of_different_levels() -> None:
    """The whole protocol, with noise as sites draw it."""
    pytest.importorskip("opendp")
    rows, site = levelled(12_000, 3, 0.5, 4)
    names = [f"x{i}" for i in range(10)]
    tables = [dict(zip(names, rows[site == k].T, strict=True)) for k in range(3)]
    bounds = dict.fromkeys(names, (0.0, 100.0))
    privacy = ist.DifferentialPrivacy(1.0, bounds=bounds)
    federation = Federation.simulate(tables, privacy=privacy)
    assert federation.within_groups
    assert {frozenset(e) for e in ist.learn(federation).dag.edges} == CHAIN
