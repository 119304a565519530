"""Scores and tests of counts that an engine computes after a search has asked for them."""

from __future__ import annotations

from typing import Any, final

from isthmus.objectives import IndependenceTest
from isthmus.scores.base import Score
from isthmus.scores.independence.chi_squared import LIKELIHOOD, ChiSquared, TableTest
from isthmus.scores.requested import RequestedScores
from isthmus.statistics.requested import RequestedCounts


def on_request(
    score: Score[Any, Any], statistics: RequestedCounts
) -> RequestedScores | RequestedTests:
    """Bind a score or a test to counts that are computed on request."""
    if isinstance(score, ChiSquared):
        return RequestedTests(score, statistics)
    return RequestedScores(score, statistics)


@final
class RequestedTests:
    """Tests of all rows where the tables are known, and estimates from a sample elsewhere.

    Parameters
    ----------
    test
        The test of counts.
    statistics
        The counts.
    """

    def __init__(self, test: ChiSquared, statistics: RequestedCounts) -> None:
        self._statistics = statistics
        self._likelihood = RequestedScores(LIKELIHOOD, statistics)
        self._scores = RequestedScores(test.score, statistics)

    @property
    def too_large(self) -> int:
        """Number of tables that have too many cells to be counted."""
        return self._likelihood.too_large + self._scores.too_large

    def objective(self) -> IndependenceTest:
        """Return an objective for one run of a search."""
        return TableTest(self._statistics, self._likelihood.objective(), self._scores.objective)
