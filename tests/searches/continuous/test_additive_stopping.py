"""Searches over additive models with 1,000 variables stop when they are asked to."""

from __future__ import annotations

import _thread
import math
import os
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from tests.patience import LATENESS
from tests.searches.watching import Polls

import isthmus as ist
from isthmus import simulate
from isthmus.arrays import Floats
from isthmus.graphs import Knowledge
from isthmus.objectives import AdditiveLoss
from isthmus.results import Ending
from isthmus.searches import SearchResult, Watch, drive

BASIS = ist.Chebyshev(5)


def rows(d: int, n: int) -> Floats:
    dag = simulate.erdos_renyi(d, d, seed=0)
    mechanism = simulate.FourierAdditive(decay=2.0)
    table = simulate.nonlinear(dag, n, mechanism=mechanism, seed=0).data
    return np.column_stack([np.asarray(table[name]) for name in dag.nodes])


@pytest.fixture(scope="module")
def large() -> AdditiveLoss:
    moments = ist.WithFeatures(rows(1000, 200), BASIS).moments()
    return ist.AdditiveLeastSquares(BASIS).bind(moments)


def begun(search: ist.NotearsAdditive, loss: AdditiveLoss) -> Callable[[Watch], SearchResult]:
    return partial(search.search, loss, Knowledge().bind(loss.nodes), np.random.default_rng(0))


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize(
    "search", [ist.NotearsAdditive(), ist.NotearsAdditive(penalty=0.1, threshold=0.1)]
)
def test_it_polls_often(search: ist.NotearsAdditive, large: AdditiveLoss) -> None:
    # Time of this thread: others on a busy machine are not what is tested.
    polls, end = Polls(math.inf, time.thread_time), time.thread_time() + 2.5
    watch = Watch(stop=lambda: polls() or polls.times[-1] > end)
    begun(search, large)(watch)
    assert watch.stopped
    assert polls.longest < 0.4
    assert time.thread_time() - polls.times[-1] < 0.3


@pytest.mark.timing
def test_ctrl_c_is_heard(large: AdditiveLoss) -> None:
    run = begun(ist.NotearsAdditive(penalty=0.1), large)
    timer = threading.Timer(1.0, _thread.interrupt_main)
    begin = time.perf_counter()
    timer.start()
    result, status = drive(run, "NotearsAdditive")
    assert time.perf_counter() - begin < 1.0 + LATENESS
    assert status.ending is Ending.INTERRUPTED
    assert len(result.parents) == 1000


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.skipif(not os.environ.get("ISTHMUS_LONG"), reason="set ISTHMUS_LONG=1")
def test_the_time_limit_includes_reading_the_table() -> None:
    x = rows(1000, 500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        solution = ist.learn(x, search=ist.NotearsAdditive(), time_limit=8.0)
    assert time.perf_counter() - begin < 8.5
    assert solution.status.ending is Ending.TIME_LIMIT


def test_at_the_first_poll_there_is_an_answer() -> None:
    moments = ist.WithFeatures(rows(4, 100), BASIS).moments()
    loss = ist.AdditiveLeastSquares(BASIS).bind(moments)
    known = Knowledge(required=[("x0", "x1")]).bind(loss.nodes)
    watch = Watch(time_limit=0.0)
    result = ist.NotearsAdditive().search(loss, known, np.random.default_rng(0), watch)
    assert result.parents == ((), (0,), (), ())
    # Nothing is explained yet: half of all variances.
    assert result.score == pytest.approx(0.5 * moments.select(loss.nodes).without_features()
                                         .covariance().trace())  # fmt: skip
    assert not result.converged
