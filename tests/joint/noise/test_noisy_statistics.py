"""Integers of a site, their sensitivity, and valid statistics from noisy sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.statistics import CountPlan, Kind, Schema, Variable
from isthmus_joint import DifferentialPrivacy, Identity, Member, SecureSums, Study
from isthmus_joint.noise.statistics import (
    NoisyCounts,
    NoisyMoments,
    NoisyRelease,
    first_rows,
    planned_pairs,
    widened,
)
from isthmus_joint.noise.structure import PAIRS, TABLES
from isthmus_joint.noise.whitening import LAST, SURVEY
from isthmus_joint.secure_sum.terms import to_ints

DISCRETE = Schema(
    tuple(
        Variable(n, Kind.DISCRETE, tuple(range(k)))
        for n, k in zip("abcd", (2, 3, 2, 2), strict=True)
    )
)


def study(
    schema: Schema,
    requests: list[str],
    plan: int = 2,
    *,
    within_sites: bool = True,
    sites: int = 4,
    **privacy: Any,
) -> Study:
    options: dict[str, Any] = {"epsilon": 1.0} | privacy
    keys = [Identity.generate() for _ in range(sites + 2)]
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
        plan=CountPlan.up_to(plan),
        privacy=DifferentialPrivacy(**options),
        within_sites=within_sites,
    )


PLAN = CountPlan.up_to(2)
ONE_STUDY = study(DISCRETE, ["counts"])
COUNTS = NoisyCounts(ONE_STUDY, PAIRS, planned_pairs(ONE_STUDY))


def test_several_rows_per_person_need_as_much_more_noise() -> None:
    more = study(DISCRETE, ["counts"], rows_per_person=5)
    release = NoisyCounts(more, PAIRS, planned_pairs(more))
    assert release.sensitivity == 5 * COUNTS.sensitivity
    assert release.scale == pytest.approx(5 * COUNTS.scale, rel=1e-3)


def test_requests_share_the_budget() -> None:
    both = study(DISCRETE, ["counts", "moments"])
    plans = {PAIRS: planned_pairs(both), TABLES: CountPlan.sets(["ab", "bc"])}
    parts: list[NoisyRelease] = [NoisyCounts(both, k, plan) for k, plan in plans.items()]
    parts += [NoisyMoments(both, k) for k in range(SURVEY, LAST + 1)]
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
