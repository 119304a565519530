"""Nobody is held: slices end, Ctrl-C works, exceptions pass, other threads run."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.kernels.problems import bic, boss, problem

from isthmus.kernels.orders import BossRun
from isthmus.kernels.scoring import LocalScore, python_score


def finish(run: BossRun, seconds: float = 0.01) -> None:
    while not run.step(seconds):
        pass


def slow_score(d: int, seconds: float) -> LocalScore:
    def score(child: int, parents: tuple[int, ...]) -> float:
        time.sleep(seconds)
        return -abs(child - sum(parents)) - len(parents)

    return python_score(d, score)


def test_the_shortest_slices_give_the_same_graph() -> None:
    p = problem(40, 3, demands=True)
    score = bic(p)
    assert boss(p, score, seed=5, seconds=0.0) == boss(p, score, seed=5, seconds=3600.0)


@pytest.mark.long
@pytest.mark.timing
def test_a_step_is_short() -> None:
    p = problem(200, 1)
    run = BossRun(bic(p), np.random.default_rng(0), starts=1)
    longest, done = 0.0, False
    while not done:
        # Time of this thread: others on a busy machine are not what is tested.
        begin = time.thread_time()
        done = run.step()
        longest = max(longest, time.thread_time() - begin)
    assert longest < 0.03


@pytest.mark.timing
def test_a_step_is_short_with_a_slow_score() -> None:
    run = BossRun(slow_score(30, 0.002), np.random.default_rng(0))
    for _ in range(20):
        begin = time.perf_counter()
        run.step()
        assert time.perf_counter() - begin < 0.2


@pytest.mark.timing
def test_ctrl_c_ends_a_long_call_and_the_run_goes_on() -> None:
    p = problem(150, 2)
    score = bic(p)
    run = BossRun(score, np.random.default_rng(0), starts=1, forbidden=p.forbidden)
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        finish(run, 3600.0)
    assert time.perf_counter() - begin < 0.5
    run.best()
    finish(run)
    assert run.best()[0] == boss(p, score, seed=0, starts=1)[0]


def test_exceptions_of_a_python_score_pass() -> None:
    calls = 0

    def score(child: int, parents: tuple[int, ...]) -> float:
        nonlocal calls
        calls += 1
        if calls == 20:
            raise ZeroDivisionError("the twentieth")
        return -float(len(parents))

    run = BossRun(python_score(6, score), np.random.default_rng(0), starts=1)
    with pytest.raises(ZeroDivisionError, match="the twentieth") as failure:
        finish(run, 3600.0)
    assert failure.traceback[-1].name == "score"
    finish(run)  # the same question again: this time it is answered
    assert run.best()[0] == ((),) * 6


def test_what_is_not_a_number_is_refused() -> None:
    score: Any = lambda _child, _parents: "high"  # noqa: E731
    run = BossRun(python_score(3, score), np.random.default_rng(0))
    with pytest.raises(TypeError):
        run.step()


def test_a_score_cannot_step_the_run_that_called_it() -> None:
    def score(child: int, parents: tuple[int, ...]) -> float:
        run.step()
        return 0.0

    run = BossRun(python_score(3, score), np.random.default_rng(0))
    with pytest.raises(RuntimeError, match="in use already"):
        run.step()


@pytest.mark.timing
def test_other_threads_run_meanwhile() -> None:
    p = problem(120, 2)

    def work() -> None:
        boss(p, bic(p), seed=0, starts=1, seconds=3600.0)

    ticks = 0
    begin = time.perf_counter()
    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        ticks += 1
        time.sleep(0.001)
    # With the GIL held there would be a handful: one for each sweep.
    assert ticks > 20 * (time.perf_counter() - begin)


def test_runs_in_threads_share_a_score() -> None:
    p = problem(60, 4)
    score = bic(p)
    found = {}

    def work(seed: int) -> None:
        found[seed] = boss(p, score, seed=seed, starts=1)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {seed: boss(p, score, seed=seed, starts=1) for seed in range(4)}
