"""Tests of independence hold their level if spread is unequal, and shares of levels are curves.

At 5%, `MixedLikelihoodRatio` rejected 84% of the tables of logits with 5,000 rows,
`NonlinearLikelihoodRatio` 55% and `FisherZ` 20% of those with growing spread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.scores import Score

TABLES = 200
pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
Make = Callable[[np.random.Generator, int], dict[str, Any]]


def growing(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    z, a, b = rng.normal(size=(3, rows))
    spread = 0.3 + np.abs(z)
    return {"x": z + spread * a, "y": z + spread * b, "z": z}


def logits(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    z = rng.normal(size=rows)
    share = 1.0 / (1.0 + np.exp(-2.0 * z))
    x, y = np.where(rng.random((2, rows)) < share, "yes", "no")
    return {"x": x, "y": y, "z": z}


def groups(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    z = rng.integers(0, 3, rows)
    y = np.where(rng.random(rows) < (1 + z) / 4, "yes", "no")
    return {"x": (0.2 + z) * rng.normal(size=rows), "y": y, "z": np.array([*"abc"])[z]}


CASES: list[tuple[Score[Any, Any], Make, int]] = [
    (ist.FisherZ(), growing, 500),
    (ist.FisherZ(), growing, 5000),
    (ist.NonlinearLikelihoodRatio(), growing, 1000),
    (ist.NonlinearLikelihoodRatio(), growing, 5000),
    (ist.MixedLikelihoodRatio(), logits, 500),
    (ist.MixedLikelihoodRatio(), logits, 5000),
    (ist.MixedLikelihoodRatio(), groups, 500),
]


@pytest.mark.long
@pytest.mark.parametrize(("test", "make", "rows"), CASES)
def test_the_level_is_held(test: Score[Any, Any], make: Make, rows: int) -> None:
    from scipy import stats

    rejected = 0
    for seed in range(TABLES):
        table = make(np.random.default_rng((seed, rows)), rows)
        search = ist.PC(alpha=0.05)
        edges = ist.learn(table, search=search, score=test).dag.edges
        rejected += bool({("x", "y"), ("y", "x")} & {*edges})
    assert stats.binom.sf(rejected - 1, TABLES, 0.05) > 0.005
    assert stats.binom.cdf(rejected, TABLES, 0.05) > 0.005


def test_effects_are_still_seen() -> None:
    """A slope of 4 standard errors; the power of the test from moments is 0.98."""
    seen = 0
    for seed in range(100):
        z, a, b = np.random.default_rng(seed).normal(size=(3, 400))
        table = {"x": z + a, "y": z + b + 0.2 * a, "z": z}
        edges = ist.learn(table, search=ist.PC(alpha=0.05)).dag.edges
        seen += bool({("x", "y"), ("y", "x")} & {*edges})
    assert seen >= 94
