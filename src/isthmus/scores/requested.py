"""Scores of counts that are computed on request, estimated from a sample until they are there."""

from __future__ import annotations

import math
from typing import Any, final

from isthmus.objectives import LOCAL_SCORES, IndependenceTest, LocalScore, PythonLocalScore
from isthmus.scores.base import Score
from isthmus.scores.tests import LIKELIHOOD, ChiSquared, TableTest
from isthmus.statistics.base import Positions
from isthmus.statistics.requested import LARGEST_TABLE, RequestedCounts


@final
class RequestedScores:
    """Local scores of all rows where the tables are known, and estimates elsewhere.

    A family whose table is not known is added to those that are asked for. Its score is estimated
    so that a search goes on and asks for most of what it needs. The gain from adding x to the
    parents P of y is symmetric in x and y for score-equivalent scores, so a score of the set
    {x, y} and P is estimated from those of its subsets and the gain in the sample, times the number
    of rows per row of the sample. The gain in the sample includes the penalty for its size, which
    keeps chance out.

    Parameters
    ----------
    score
        A score of counts.
    statistics
        The counts.

    Attributes
    ----------
    too_large
        Families that were excluded because their tables have too many cells.
    """

    def __init__(self, score: Score[Any, Any], statistics: RequestedCounts) -> None:
        self._statistics = statistics
        self._exact = LOCAL_SCORES.require(score.bind(statistics))
        self._sampled = LOCAL_SCORES.require(score.bind(statistics.sample))
        self._scale = statistics.n / statistics.sample.n
        self._of_sample: dict[Positions, float] = {(): 0.0}
        self.too_large = 0

    def objective(self) -> LocalScore:
        """Return an objective for one run of a search; its estimates are kept for that run."""
        statistics = self._statistics
        estimates: dict[Positions, float] = {(): 0.0}
        self.too_large = 0

        def total(members: Positions) -> float:
            """Score of the variables as a complete graph: the same for all orders."""
            if members not in estimates:
                estimates[members] = (
                    total(members[:-1]) + self._exact.local(members[-1], members[:-1])
                    if statistics.knows(members)
                    else estimated(members)
                )
            return estimates[members]

        def estimated(members: Positions) -> float:
            if len(members) == 1:
                return self._scale * self._total_of_sample(members)
            known = [i for i in members if statistics.knows(_without(members, i))]
            others = [i for i in reversed(members) if i not in known]
            x, y = (*known, *others)[:2]
            parts = (_without(members, x), _without(members, y))
            both = _without(parts[0], y)
            gain = self._total_of_sample(members) + self._total_of_sample(both)
            gain -= sum(map(self._total_of_sample, parts))
            return sum(map(total, parts)) - total(both) + self._scale * gain

        def local(child: int, parents: tuple[int, ...]) -> float:
            members = tuple(sorted((child, *parents)))
            if statistics.cells_of(members) > LARGEST_TABLE:
                self.too_large += 1
                return -math.inf
            if statistics.knows(members):
                return self._exact.local(child, parents)
            statistics.asked[members] = None
            return total(members) - total(parents)

        return PythonLocalScore(
            statistics.schema.names,
            local,
            equivalent=self._exact.equivalent,
            cost=lambda _: math.inf,
        )

    def _total_of_sample(self, members: Positions) -> float:
        if members not in self._of_sample:
            before = self._total_of_sample(members[:-1])
            self._of_sample[members] = before + self._sampled.local(members[-1], members[:-1])
        return self._of_sample[members]


def _without(members: Positions, member: int) -> Positions:
    return tuple(i for i in members if i != member)


# --- Scores and tests of counts that an engine computes after a search has asked for them -------


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
