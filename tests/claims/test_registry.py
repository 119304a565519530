"""Every answer about graphs holds whatever is violated, or a note says why it may not.

With ``ISTHMUS_LONG``, all tables; otherwise a sample. ``benchmarks/claims/registry.py`` writes the
shares of tables.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from tests.claims.registry import ANSWERS, LEAST_TABLES, judge, known_gap
from tests.claims.violations import VIOLATIONS, Violation

import isthmus as ist

TABLES, ROWS = (20, (1000, 5000, 20_000)) if "ISTHMUS_LONG" in os.environ else (2, (1000,))
NAMES = {violation.name: violation for violation in VIOLATIONS}


def cells() -> list[object]:
    """Return every violation with every answer; known gaps must fail, so that mending shows."""
    return [
        pytest.param(
            violation,
            answer,
            rows,
            id=f"{violation.name}-{answer}-{rows}",
            marks=[pytest.mark.xfail(strict=True, reason=reason)] if reason else [],
        )
        for violation in VIOLATIONS
        for answer in ANSWERS
        for rows in ROWS
        for reason in [known_gap(violation, answer, rows)]
    ]


@pytest.mark.long
@pytest.mark.parametrize(("violation", "answer", "rows"), cells())
def test_an_answer_holds(violation: Violation, answer: str, rows: int) -> None:
    verdicts = [judge(violation, answer, seed, rows) for seed in range(TABLES)]
    assert np.mean([verdict.holds for verdict in verdicts]) >= LEAST_TABLES, verdicts


@pytest.mark.long
@pytest.mark.parametrize("answer", ["graph", "posterior", "bootstrap", "PAG"])
def test_true_edges_are_found(answer: str) -> None:
    """So that answers do not hold because they say nothing."""
    for name in ("none", "counts (Poisson)", "three levels", "six sites, named"):
        found = [judge(NAMES[name], answer, seed, 1000).found for seed in range(TABLES)]
        assert np.mean(found) >= 0.9


def test_directions_are_found() -> None:
    found = [judge(NAMES["none"], "directions", seed, 5000).found for seed in range(5)]
    assert np.mean(found) >= 0.7


def test_lines_alone_do_not_hold() -> None:
    """So that the cells above can fail."""
    false = 0
    for name in ("counts (Poisson)", "saturating (tanh)", "log-normal"):
        sample = NAMES[name].make(np.random.default_rng(0), 5000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dag = ist.learn(sample.table, score=ist.GaussianEBIC()).dag
        true = {frozenset(edge) for edge in sample.edges}
        false += sum(frozenset(edge) not in true for edge in dag.edges)
    assert false >= 6


@pytest.mark.long
def test_clean_tables_have_no_notes() -> None:
    """At most 2%; ``benchmarks/assumptions/measure.py`` has more kinds of clean tables."""
    alarms, tables = 0, 100
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        table = NAMES["none"].make(rng, int(rng.choice([100, 300, 1000, 3000]))).table
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alarms += bool(ist.learn(table).notes)
    assert alarms <= 0.02 * tables
