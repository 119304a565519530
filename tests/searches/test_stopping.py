"""Searches with local scores stop when they are asked to, whatever the table."""

from __future__ import annotations

import pytest
from tests.patience import LATENESS
from tests.searches.stopping import TABLES, ending_and_seconds

SCORES = {
    "12 columns of 3,000 levels": "ist.BDeu()",
    "2,000 numeric columns": "ist.GaussianBIC()",
}
SEARCHES = ["XGES", "HillClimb", "Boss"]


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("search", SEARCHES)
def test_time_limit(table: str, search: str) -> None:
    arguments = f"score={SCORES[table]}, search=ist.{search}(), time_limit=0.5"
    ending, seconds = ending_and_seconds(table, arguments)
    assert ending in {"TIME_LIMIT", "CONVERGED"}
    assert seconds < 0.5 + LATENESS


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("after", [0.3, 1.1])
def test_ctrl_c(table: str, search: str, after: float) -> None:
    arguments = f"score={SCORES[table]}, search=ist.{search}()"
    ending, seconds = ending_and_seconds(table, arguments, ctrl_c_after=after)
    assert ending in {"INTERRUPTED", "CONVERGED", "KEYBOARD_INTERRUPT"}
    assert seconds < LATENESS
