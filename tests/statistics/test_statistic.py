"""A statistic that the package does not know, with a score on it: one class each, in one file.

It is learned from, fitted, drawn again and kept through the public verbs.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats, Integers
from isthmus.errors import MismatchError
from isthmus.fitting import fit_gaussian
from isthmus.graphs import DAG
from isthmus.networks import GaussianNetwork
from isthmus.objectives import LocalScore
from isthmus.scores import GaussianBIC, Score
from isthmus.statistics import Kind, Moments, Schema, Statistic
from isthmus.statistics.base import Gatherable


def _normal_scores(rows: Floats) -> Floats:
    from scipy.special import ndtri

    ranks = rows.argsort(axis=0).argsort(axis=0) + 1
    scores: Floats = ndtri(ranks / (len(rows) + 1))
    return scores


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
        schema, rows = source.schema(), source.rows()
        if dag is not None:
            schema, rows = schema.subset(dag.nodes), rows[:, list(schema.indices(dag.nodes))]
        return cls(Moments.from_array(schema, _normal_scores(rows)))

    def constants(self) -> tuple[str, ...]:
        return self.moments.constants()

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return self.moments.duplicates()

    def cells(self) -> Sequence[Integers]:
        return ()

    def without_rows(self) -> Statistic:
        return self

    def fit(self, dag: DAG, pseudo_count: float) -> GaussianNetwork | None:
        return self.moments.fit(dag, pseudo_count)


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
    scores = _normal_scores(np.stack(list(bent.values()), axis=1))
    moments = Moments.from_array(Schema.continuous(bent), scores)
    assert solution.fit(curves=False) == fit_gaussian(moments, solution.dag)
    statistic = RankMoments.gather(ist.Frame(bent))
    again = ist.learn(statistic, score=RankBIC(), search=ist.HillClimb())
    assert again.dag == solution.dag
    with pytest.raises(MismatchError, match="moments of ranks"):
        ist.learn(statistic)


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_a_statistic_from_outside_is_drawn_again_and_keeps_no_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 300))
    bent = {"a": np.exp(2 * a), "b": b**3, "c": np.sinh(a + b + rng.normal(size=300))}
    options = {"score": RankBIC(), "search": ist.HillClimb()}
    ensemble = ist.bootstrap(bent, replicates=20, jobs=1, **options)  # type: ignore[arg-type]
    shares = ensemble.adjacency_probabilities()
    assert min(shares[0, 2], shares[1, 2]) == 1.0
    assert shares[0, 1] < 1.0
    # A replicate is the statistic of drawn rows.
    statistic = RankMoments.gather(ist.Frame(bent))
    drawn = statistic.resampler(ist.Frame(bent)).draw(np.random.default_rng(2))
    rows = np.random.default_rng(2).integers(300, size=300)
    same = RankMoments.gather(ist.Frame({name: column[rows] for name, column in bent.items()}))
    assert isinstance(drawn, RankMoments)
    assert drawn.moments == same.moments
    assert drawn.moments != statistic.moments
    solution = ist.learn(bent, score=RankBIC(), search=ist.HillClimb())
    dag = solution.dag
    assert ist.score(bent, dag, RankBIC()) == pytest.approx(solution.score)
    assert pickle.loads(pickle.dumps(solution)).strengths() == solution.strengths()  # noqa: S301
    solution.save(tmp_path / "solution", statistics=True)
    loaded = ist.Solution.load(tmp_path / "solution")
    assert loaded.fit() == solution.fit()
    with pytest.raises(MismatchError, match="no statistics"):
        loaded.strengths()


def test_a_source_without_rows_says_what_the_score_needs() -> None:
    moments = ist.summarise({"a": np.arange(5.0) + 0.5, "b": np.arange(5.0) ** 2})
    with pytest.raises(MismatchError, match=r"RankBIC.*needs moments of ranks.*only statistics"):
        ist.learn(moments, score=RankBIC(), search=ist.HillClimb())
