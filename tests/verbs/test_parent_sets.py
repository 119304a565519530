"""Score tables from data: the same on one core, on several and on a cluster; with a time limit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.objectives.problems import discrete_rows

import isthmus as ist
from isthmus.errors import ArgumentError, MismatchError
from isthmus.objectives import ScoreTable
from isthmus.results import Ending
from isthmus.verbs.learn import solve
from isthmus.verbs.score import parent_sets

pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")

NINE = discrete_rows(3, 400, 9)
KINDS = dict.fromkeys(NINE, ist.Kind.DISCRETE)


def same(one: ScoreTable, other: ScoreTable) -> bool:
    return (
        one.nodes == other.nodes
        and np.array_equal(one.starts, other.starts)
        and np.array_equal(one.sets, other.sets)
        and np.array_equal(one.scores, other.scores)
    )


def test_a_table_has_the_best_graph_in_it() -> None:
    table = parent_sets(NINE, score=ist.BIC(), kinds=KINDS)
    assert table.complete
    solution = solve(table)
    assert solution.status.ending is Ending.OPTIMAL
    direct = ist.learn(NINE, score=ist.BIC(), search=ist.AStar(), kinds=KINDS)
    assert direct.status.ending is Ending.OPTIMAL
    assert solution.score == pytest.approx(direct.score)
    assert ist.score(NINE, solution.dag, ist.BIC(), kinds=KINDS) == pytest.approx(solution.score)


def test_several_threads_and_processes_give_the_same() -> None:
    alone = parent_sets(NINE, score=ist.BDeu(), kinds=KINDS)
    for jobs in (2, 5, -1):
        assert same(alone, parent_sets(NINE, score=ist.BDeu(), kinds=KINDS, jobs=jobs))
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(n_jobs=2):
        assert same(alone, parent_sets(NINE, score=ist.BDeu(), kinds=KINDS, jobs=None))


@pytest.mark.parametrize("jobs", [0, -2, 1.5, True, "2"])
def test_odd_numbers_of_threads_are_refused(jobs: Any) -> None:
    with pytest.raises(ArgumentError, match="jobs"):
        parent_sets(NINE, kinds=KINDS, jobs=jobs)


@pytest.mark.timing
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_time_limit_is_kept_with_many_variables(jobs: int) -> None:
    values = np.random.default_rng(0).normal(size=(400, 300))
    rows = {str(i): column for i, column in enumerate(values)}
    begun = time.monotonic()
    table = parent_sets(rows, score=ist.GaussianBIC(), time_limit=1.0, jobs=jobs)
    assert time.monotonic() - begun < 2.0
    assert not table.complete
    assert (np.diff(table.starts) >= 1).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_takes_the_same_code() -> None:
    joblib = pytest.importorskip("joblib")
    ray: Any = pytest.importorskip("ray")
    plugin: Any = pytest.importorskip("ray.util.joblib")
    alone = parent_sets(NINE, kinds=KINDS)
    plugin.register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        with joblib.parallel_config(backend="ray"):
            assert same(alone, parent_sets(NINE, kinds=KINDS, jobs=None))
    finally:
        ray.shutdown()


@pytest.mark.timing
def test_a_time_limit_gives_the_best_so_far() -> None:
    rows = discrete_rows(8, 2000, 40)
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    parent_sets(rows, score=ist.BDeu(), kinds=kinds, time_limit=0.01)  # compiles
    begun = time.monotonic()
    table = parent_sets(rows, score=ist.BDeu(), kinds=kinds, time_limit=2.0)
    assert time.monotonic() - begun < 20.0
    assert not table.complete
    local = ist.BDeu().bind(ist.summarise(rows, plan=ist.CountPlan.everything(), kinds=kinds))  # type: ignore[arg-type]
    for child in range(40):
        listed = list(table.parent_sets(child))
        for parents, score in listed[:5]:
            assert score == pytest.approx(local.local(child, parents), abs=1e-9)
        for i, (parents, _) in enumerate(listed):
            assert not any(set(better) <= set(parents) for better, _ in listed[:i])
    greedy = ist.learn(rows, score=ist.BDeu(), search=ist.HillClimb(), kinds=kinds).score
    assert max(len(p) for v in range(40) for p, _ in table.parent_sets(v)) >= 3
    best = sum(next(table.parent_sets(v))[1] for v in range(40))
    assert best >= greedy


def test_what_is_not_complete_is_not_called_optimal() -> None:
    table = ScoreTable.from_lists(["a", "b"], [[((), -1.0)], [((), -2.0)]], complete=False)
    solution = solve(table)
    assert solution.status.ending is Ending.CONVERGED
    assert solution.details.gap is None


def test_knowledge_and_files(tmp_path: Path) -> None:
    known = ist.Knowledge(required=[("x0", "x1")], forbidden=[("x2", "x1")])
    table = parent_sets(NINE, kinds=KINDS, knowledge=known)
    solution = solve(table, knowledge=known)
    assert known.allows(solution.dag)
    table.save(tmp_path / "scores.jkl")
    assert solve(ScoreTable.load(tmp_path / "scores.jkl")).score == pytest.approx(solution.score)


def test_a_loss_is_no_local_score() -> None:
    with pytest.raises(MismatchError, match="weights"):
        parent_sets({"a": np.random.default_rng(0).normal(size=50)}, score=ist.LeastSquares())
