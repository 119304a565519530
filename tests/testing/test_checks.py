"""The shipped checks pass what is right and catch what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from isthmus.arrays import Floats
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import (
    INDEPENDENCE_TESTS,
    LOCAL_SCORES,
    Capabilities,
    IndependenceTest,
    LocalScore,
    PythonLocalScore,
)
from isthmus.scores import (
    BGe,
    ChiSquared,
    FisherZ,
    MixedLikelihoodRatio,
    NonlinearLikelihoodRatio,
    Score,
)
from isthmus.searches import Boss, HillClimb, Search, SearchResult, Watch
from isthmus.searches.base import Accepts
from isthmus.statistics import Kind, Moments, Schema
from isthmus.testing import check_score, check_search, check_test


def objective() -> LocalScore:
    x = np.random.default_rng(0).normal(size=(50, 4))
    x[:, 1] += x[:, 0]
    return BGe().bind(Moments.from_array(Schema.continuous("abcd"), x))


def test_a_right_score_passes() -> None:
    check_score(objective())


@pytest.mark.parametrize(
    ("complaint", "wrong"),
    [
        ("scores -inf", lambda right, c, p: float("-inf") if len(p) == 2 else right),
        ("claims to be score-equivalent", lambda right, c, p: right + 0.1 * c * len(p)),
    ],
)
def test_a_wrong_score_is_caught(complaint: str, wrong: object) -> None:
    right = objective()
    assert callable(wrong)
    bad = PythonLocalScore(
        right.nodes, lambda c, p: wrong(right.local(c, p), c, p), equivalent=True
    )
    with pytest.raises(AssertionError, match=complaint):
        check_score(bad)


@pytest.mark.parametrize("search", [Boss(), HillClimb(tabu=10, patience=20)])
def test_a_right_search_passes(search: Search[LocalScore]) -> None:
    check_search(search)


@dataclass(frozen=True)
class _Wrong(Search[LocalScore]):
    """Returns the graph in which everybody is the child of the first, or a wrong score."""

    lie: float
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)

    def search(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        parents = tuple((0,) if v else () for v in range(len(objective.nodes)))
        score = sum(objective.local(v, p) for v, p in enumerate(parents))
        return SearchResult(parents, score + self.lie)


@pytest.mark.parametrize(("complaint", "lie"), [("the search reports", 1.0), ("was found in", 0.0)])
def test_a_wrong_search_is_caught(complaint: str, lie: float) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_search(_Wrong(lie))


@pytest.mark.long
@pytest.mark.parametrize(
    "test", [FisherZ(), ChiSquared(), MixedLikelihoodRatio(), NonlinearLikelihoodRatio()]
)
def test_a_right_test_of_independence_passes(test: Score[Any, IndependenceTest]) -> None:
    check_test(test, tables=60)


@dataclass(frozen=True)
class _Changed(Score[Moments, IndependenceTest]):
    """Fisher's z with other p-values."""

    change: Callable[[Floats, int, Sequence[int]], Any]
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({INDEPENDENCE_TESTS})

    def bind(self, statistics: Moments) -> IndependenceTest:
        right, change = FisherZ().bind(statistics), self.change

        class Wrong(IndependenceTest):
            def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
                return np.asarray(change(right.p_values(x, given, others), x, others))

            def local_score(self) -> LocalScore:
                return right.local_score()

        return Wrong(right.nodes)


@pytest.mark.parametrize(
    ("complaint", "change"),
    [
        ("are independent, and", lambda p, x, others: p / 6),
        ("are dependent, and only", lambda p, x, others: np.sqrt(np.sqrt(p)) + (1 - p) * 0.05),
        ("p-values", lambda p, x, others: p + 1),
        ("in the other direction", lambda p, x, others: p / (1 + x)),
        ("and .* alone", lambda p, x, others: p / len(others)),
        (r"\(1,\) p-values", lambda p, x, others: p[:1]),
    ],
)
def test_a_wrong_test_of_independence_is_caught(
    complaint: str, change: Callable[[Floats, int, Sequence[int]], Any]
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_test(_Changed(change), tables=60)
