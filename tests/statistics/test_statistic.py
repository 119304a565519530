"""A statistic that the package does not know, with a score on it: one class each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.objectives import LocalScore
from isthmus.scores import GaussianBIC, Score
from isthmus.statistics import Kind, Moments, Statistic
from isthmus.statistics.base import Gatherable
from isthmus.types import Integers


@dataclass(frozen=True, eq=False)
class RankMoments(Statistic):
    """Moments of normal scores of the ranks: what curves that only rise or fall do not change."""

    moments: Moments
    described: ClassVar[str] = "moments of ranks"

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", self.moments.schema)
        object.__setattr__(self, "n", self.moments.n)

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> RankMoments:
        from scipy.special import ndtri

        rows = source.rows()
        ranks = rows.argsort(axis=0).argsort(axis=0) + 1
        return cls(Moments.from_array(source.schema(), ndtri(ranks / (len(rows) + 1))))

    def constants(self) -> tuple[str, ...]:
        return self.moments.constants()

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return self.moments.duplicates()

    def cells(self) -> Sequence[Integers]:
        return ()

    def without_rows(self) -> Statistic:
        return self


@dataclass(frozen=True)
class RankBIC(Score[RankMoments, LocalScore]):
    """Gaussian BIC of normal scores."""

    needs: ClassVar[type[Statistic]] = RankMoments
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def bind(self, statistics: RankMoments) -> LocalScore:
        return GaussianBIC().bind(statistics.moments)


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_a_statistic_from_outside_is_gathered_scored_and_kept() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 800))
    c = 0.9 * a + 0.9 * b + rng.normal(size=800)
    table = {"a": a, "b": b, "c": c}
    bent = {"a": np.exp(3 * a), "b": b**3, "c": np.sinh(c)}
    solution = ist.learn(bent, score=RankBIC(), search=ist.HillClimb())
    plain = ist.learn(table, score=RankBIC(), search=ist.HillClimb())
    assert set(solution.dag.edges) == set(plain.dag.edges) == {("a", "c"), ("b", "c")}
    assert solution.strengths()[("a", "c")] > 0
    with pytest.raises(MismatchError, match="moments of ranks"):
        solution.fit()
    statistic = RankMoments.gather(ist.Frame(bent))
    again = ist.learn(statistic, score=RankBIC(), search=ist.HillClimb())
    assert again.dag == solution.dag
    with pytest.raises(MismatchError, match="moments of ranks"):
        ist.learn(statistic)


def test_a_source_without_rows_says_what_the_score_needs() -> None:
    moments = ist.summarise({"a": np.arange(5.0) + 0.5, "b": np.arange(5.0) ** 2})
    with pytest.raises(MismatchError, match=r"RankBIC.*needs moments of ranks.*only statistics"):
        ist.learn(moments, score=RankBIC(), search=ist.HillClimb())
