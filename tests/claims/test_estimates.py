"""Intervals of every answer in numbers contain the truth, or a note says why they may not.

With ``ISTHMUS_LONG``, 40 tables per cell; otherwise two, of which one must hold: that finds
answers that are wrong, and not those that are too sharp. ``benchmarks/claims/estimates.py`` writes
the shares.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from tests.claims.estimates import ANSWERS, BROKEN, KNOWN_GAPS, LEAST_COVERED, NOT_ASKED, covered

import isthmus as ist

LONG = "ISTHMUS_LONG" in os.environ
# In 40 tables, a share has a standard error of 5%: clusters have 88%, and 96% in 300 others.
TABLES, ROWS, LEAST = (40, 500, LEAST_COVERED - 0.05) if LONG else (2, 300, 0.5)
NAMES = {broken.name: broken for broken in BROKEN}


@pytest.mark.long
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_interval_covers(answer: str) -> None:
    shares = {}
    for broken in BROKEN:
        if (broken.name, answer) in {**NOT_ASKED, **KNOWN_GAPS}:
            continue
        own = [covered(broken, answer, seed, ROWS) for seed in range(TABLES)]
        shares[broken.name] = float(np.mean([1.0 if noted else inside for inside, noted in own]))
    assert not {name: share for name, share in shares.items() if share < LEAST}


@pytest.mark.parametrize("answer", ["effect", "query", "posterior"])
def test_errors_are_not_those_of_equal_spread(answer: str) -> None:
    """With plain standard errors, 72%, 88% and 70% of these intervals cover."""
    broken = NAMES["spread grows with the cause"]
    own = [covered(broken, answer, seed, 300) for seed in range(50)]
    assert np.mean([inside for inside, _ in own]) >= LEAST_COVERED


@pytest.mark.long
def test_known_gaps_are_as_wide_as_stated() -> None:
    """A gap that is closed must leave the list, and one that grows must be seen."""
    for (name, answer), (stated, _) in KNOWN_GAPS.items():
        own = [covered(NAMES[name], answer, seed, n) for n in (300, 500) for seed in range(10)]
        assert not any(noted for _, noted in own), name
        assert np.mean([inside for inside, _ in own]) == pytest.approx(stated, abs=0.101), name


def test_lines_alone_do_not_cover() -> None:
    """So that the cells above can fail."""
    for name in ("curved confounder", "saturating confounder", "product of two confounders"):
        numbers = NAMES[name].make(np.random.default_rng(0), 500)
        sums = ist.summarise(numbers.table)
        low, high = ist.effect(sums, numbers.dag, "x", "y").interval()
        assert not low <= numbers.effect <= high
