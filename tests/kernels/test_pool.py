"""Starts in several threads: the same graph for any number of them, and they can be stopped."""

from __future__ import annotations

import _thread
import threading
import time

import numpy as np
import pytest
from tests.kernels.problems import Problem, bic, problem

from isthmus.kernels.orders import BossRun, ParallelBossRun
from isthmus.kernels.scoring import LocalScore, python_score


def finish(run: ParallelBossRun | BossRun, seconds: float = 0.01) -> None:
    while not run.step(seconds):
        pass


def parallel(p: Problem, score: LocalScore, jobs: int, seconds: float = 0.01) -> ParallelBossRun:
    run = ParallelBossRun(
        score,
        np.random.default_rng(3),
        jobs=jobs,
        starts=5,
        required=p.required,
        forbidden=p.forbidden,
    )
    finish(run, seconds)
    return run


@pytest.mark.long
@pytest.mark.parametrize("demands", [False, True])
def test_the_graph_does_not_depend_on_the_threads(demands: bool) -> None:
    p = problem(40, 6, demands=demands)
    score = bic(p)
    want = parallel(p, score, 1).best()
    for jobs in (2, 3, 8, 0):
        for seconds in (0.001, 0.01, 3600.0):
            assert parallel(p, score, jobs, seconds).best() == want
    singles = []
    for own in np.random.default_rng(3).spawn(5):
        run = BossRun(score, own, starts=1, required=p.required, forbidden=p.forbidden)
        finish(run)
        singles.append(run.best())
    assert want == max(singles, key=lambda result: result[1])


def test_python_scores_run_in_threads_and_their_exceptions_pass() -> None:
    names = set()

    def score(child: int, parents: tuple[int, ...]) -> float:
        names.add(threading.get_ident())
        time.sleep(0.0005)
        if child == 3 and len(parents) == 2 and len(names) > 1:
            raise ZeroDivisionError("in a thread")
        return -abs(child - sum(parents)) - 0.01 * len(parents)

    run = ParallelBossRun(python_score(12, score), np.random.default_rng(0), jobs=3)
    with pytest.raises(ZeroDivisionError, match="in a thread"):
        finish(run, 3600.0)
    assert len(names) > 1
    assert run.best()[0]


@pytest.mark.timing
def test_ctrl_c_stops_all_threads() -> None:
    p = problem(80, 2)
    score = bic(p)
    run = ParallelBossRun(score, np.random.default_rng(3), jobs=2, starts=8)
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        finish(run, 3600.0)
    assert time.perf_counter() - begin < 0.5
    finish(run)
    again = ParallelBossRun(score, np.random.default_rng(3), jobs=1, starts=8)
    finish(again)
    assert run.best() == again.best()


def test_bad_arguments_are_refused() -> None:
    score = bic(problem(3, 0))
    with pytest.raises(ValueError, match="jobs"):
        ParallelBossRun(score, np.random.default_rng(0), jobs=-1)
    with pytest.raises(ValueError, match="starts"):
        ParallelBossRun(score, np.random.default_rng(0), jobs=2, starts=0)
