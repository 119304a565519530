"""Scores of some of the rows of a table are those of a table with these rows alone."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from isthmus.kernels.scoring import LocalScore, gaussian_score, gaussian_score_of_part, local
from isthmus.statistics import Moments, Schema
from isthmus.statistics.regimes import Whole

D, LEFT = 7, 200
NONE = np.empty(0, np.int64)


@pytest.fixture(scope="module")
def scores() -> tuple[LocalScore, LocalScore]:
    """The score of the first rows by both ways; the last column is a sum of two others."""
    rng = np.random.default_rng(3)
    rows = rng.normal(5.0, 2.0, size=(LEFT + 60, D)) @ np.triu(rng.normal(size=(D, D)))
    rows[LEFT:] += rng.normal(size=D)  # the others are about another mean
    rows[:, -1] = rows[:, 0] + rows[:, 1]
    schema = Schema.continuous([f"x{i}" for i in range(D)])
    whole = Whole(Moments.from_array(schema, rows))
    rest = whole.without(list(rows.T), np.arange(LEFT, len(rows)))
    assert rest is not None
    weights: dict[str, Any] = {
        "constant": -np.arange(D + 1.0),
        "log_variance": np.full(D + 1, LEFT / 2),
        "log_determinant": np.full(D + 1, 0.5),
        "tolerance": 1e-10,
    }
    spread = np.sqrt(1.0 - rest.squares)
    part = gaussian_score_of_part(
        whole.correlation, rest.removed, spread, np.log(rest.variance), **weights
    )
    few = rows[:LEFT]
    np.testing.assert_allclose(rest.variance, few.var(axis=0), rtol=1e-12)
    correlation: Any = np.corrcoef(few.T)
    alone = gaussian_score(correlation, np.log(few.var(axis=0)), **weights)
    return part, alone


def test_every_family_has_the_same_score(scores: tuple[LocalScore, LocalScore]) -> None:
    part, alone = scores
    families = 0
    for child in range(D):
        others = [v for v in range(D) if v != child]
        for k in range(D):
            for parents in combinations(others, k):
                families += 1  # some leave a millionth of a variance, and six digits of it
                expected = local(alone, child, parents)
                assert local(part, child, parents) == pytest.approx(expected, rel=1e-9, abs=2e-6)
    assert families == D * 2 ** (D - 1)


def test_batches_have_the_scores_of_single_families(
    scores: tuple[LocalScore, LocalScore],
) -> None:
    part = scores[0]
    parents, candidates = np.array([4, 1, 3]), np.array([0, 5, 6])
    several = part.extensions(2, parents, candidates)
    one_by_one = [local(part, 2, [*parents, v]) for v in candidates]
    np.testing.assert_allclose(several[1:], one_by_one, rtol=1e-8)
    less = part.reductions(2, parents)
    one_by_one = [local(part, 2, [p for p in parents if p != left]) for left in parents]
    np.testing.assert_allclose(less, one_by_one, rtol=1e-8)


def test_what_does_not_fit_is_refused() -> None:
    given: dict[str, Any] = {
        "whole": np.eye(3),
        "removed": np.zeros((2, 3)),
        "spread": np.ones(3),
        "log_scale": np.zeros(3),
        "constant": np.zeros(4),
        "log_variance": np.ones(4),
        "log_determinant": np.zeros(4),
        "tolerance": 1e-10,
    }
    for wrong in ({"whole": np.eye(2)}, {"removed": np.zeros((2, 4))}, {"spread": np.zeros(3)}):
        with pytest.raises(ValueError, match=r"row|value|spread"):
            gaussian_score_of_part(**(given | wrong))
