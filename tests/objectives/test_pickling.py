"""Scores, statistics and results travel to other processes, and can be copied."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MismatchError
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.scores.base import Score
from isthmus.statistics import CountPlan, Kind, Moments

Copier = Callable[[Any], Any]


def by_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301


COPIERS = [copy.copy, copy.deepcopy, by_pickle]


def numbers(n: int = 60) -> dict[str, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(n, 4))
    x[:, 1] += x[:, 0]
    return {name: x[:, i] for i, name in enumerate("abcd")}


def categories(n: int = 60) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, n)
    return {"a": a, "b": (a + rng.integers(0, 2, n)) % 3, "c": rng.choice(["x", "y"], n)}


def mixed() -> dict[str, np.ndarray]:
    return {**numbers(), "e": categories()["c"]}


@final
@dataclass(frozen=True)
class FewParents(Score[Moments, LocalScore]):
    """Scores by a closure, as a user would write it."""

    price: float = 0.1
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def bind(self, statistics: Moments) -> LocalScore:
        r = statistics.correlation()
        return PythonLocalScore(
            statistics.schema.names,
            lambda child, parents: sum(abs(r[p, child]) - self.price for p in parents),
            equivalent=False,
        )


CASES: list[Any] = [
    (ist.BIC(), categories),
    (ist.BDeu(ess=3.0), categories),
    (ist.K2(), categories),
    (ist.GaussianBIC(), numbers),
    (ist.GaussianEBIC(), numbers),
    (ist.BGe(), numbers),
    (ist.DegenerateGaussian(), mixed),
    (FewParents(), numbers),
]


@pytest.mark.parametrize("copier", COPIERS)
@pytest.mark.parametrize(("score", "data"), CASES)
def test_scores_and_statistics_are_bound_again_after_copying(
    score: Any, data: Any, copier: Copier
) -> None:
    statistics = ist.summarise(
        data(), plan=CountPlan.everything() if score.kind is Kind.DISCRETE else None
    )
    local = score.bind(statistics)
    copied, copied_statistics = copier((score, statistics))
    again = copied.bind(copied_statistics)
    assert (again.nodes, again.equivalent) == (local.nodes, local.equivalent)
    d = len(local.nodes)
    for child in range(d):
        others = [v for v in range(d) if v != child]
        np.testing.assert_array_equal(
            again.extensions(child, others[:1], others[1:]),
            local.extensions(child, others[:1], others[1:]),
        )


def test_a_local_score_says_why_it_cannot_be_pickled() -> None:
    local = PythonLocalScore(("a", "b"), lambda child, parents: 0.0, equivalent=True)
    with pytest.raises(MismatchError, match="bind them in"):
        pickle.dumps(local)


@pytest.mark.parametrize("copier", COPIERS)
@pytest.mark.parametrize(
    "plan", [CountPlan.everything(), CountPlan.up_to(2), CountPlan.sets([["a", "b"], ["c"]])]
)
def test_counts_can_be_pickled_and_copied(plan: CountPlan, copier: Copier) -> None:
    counts = ist.summarise(categories(), plan=plan)
    again = copier(counts)
    assert again == counts
    block = next(iter(again.tables.values()))
    with pytest.raises(ValueError, match="read-only"):
        (block.codes if plan.is_everything else block)[0, 0] = 1
    moments = ist.summarise(numbers())
    assert copier(moments) == moments


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("copier", COPIERS)
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (numbers, {}),
        (categories, {}),
        (mixed, {}),
        (numbers, {"score": FewParents(), "search": ist.HillClimb()}),
        (numbers, {"search": ist.Notears()}),
        (numbers, {"search": ist.NotearsAdditive()}),
    ],
)
def test_solutions_can_be_pickled_and_copied(data: Any, options: Any, copier: Copier) -> None:
    solution = ist.learn(data(), progress=False, **options)
    again = copier(solution)
    assert (again.dag, again.score, str(again)) == (solution.dag, solution.score, str(solution))
    assert again.cpdag == solution.cpdag
    if not isinstance(options.get("search"), ist.Notears | ist.NotearsAdditive):
        assert again.strengths() == solution.strengths()
    if data is not mixed and not isinstance(options.get("search"), ist.NotearsAdditive):
        assert again.fit() == solution.fit()


def test_a_pickled_solution_of_a_neural_network_holds_no_rows() -> None:
    pytest.importorskip("jax")
    data = numbers(400)
    solution = ist.learn(data, search=ist.NotearsMLP(), progress=False, time_limit=2)
    stored = pickle.dumps(solution)
    assert by_pickle(solution).dag == solution.dag
    for column in data.values():
        assert column[:2].tobytes() not in stored
        assert column[200:202].tobytes() not in stored


def answers(score: Any, statistics: Any, solution: Any) -> tuple[int, Any]:
    """Use a score, statistics and a solution; return the process, too."""
    gains = score.bind(statistics).extensions(1, [0], [2]).tolist()
    return os.getpid(), (score, gains, solution.dag, solution.score, solution.strengths())


def parcels() -> list[Any]:
    parts = []
    for score, data in CASES:
        plan = CountPlan.everything() if score.kind is Kind.DISCRETE else None
        statistics = ist.summarise(data(), plan=plan)
        parts.append((score, statistics, ist.learn(data(), score=score, progress=False)))
    return parts


def check_elsewhere(found: list[tuple[int, Any]]) -> None:
    expected = [answers(*parcel)[1] for parcel in parcels()]
    assert [answer for _, answer in found] == expected
    assert os.getpid() not in {process for process, _ in found}


@pytest.mark.long
def test_scores_statistics_and_solutions_go_through_loky() -> None:
    joblib = pytest.importorskip("joblib")
    work = (joblib.delayed(answers)(*parcel) for parcel in parcels())
    check_elsewhere(joblib.Parallel(n_jobs=2, backend="loky")(work))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scores_statistics_and_solutions_go_through_ray() -> None:
    ray: Any = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        remote = ray.remote(answers)
        check_elsewhere(ray.get([remote.remote(*parcel) for parcel in parcels()]))
    finally:
        ray.shutdown()
