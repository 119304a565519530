"""The shipped checks pass what is right and catch what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, LocalScore, PythonLocalScore
from isthmus.scores import BGe
from isthmus.searches import Boss, HillClimb, Search, SearchResult, Watch
from isthmus.searches.base import Accepts
from isthmus.statistics import Moments, Schema
from isthmus.testing import check_score, check_search


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
