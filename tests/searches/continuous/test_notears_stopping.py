"""NOTEARS can be stopped at any moment, with many variables too, and where does not matter."""

from __future__ import annotations

import _thread
import itertools
import math
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.patience import LATENESS
from tests.searches.watching import Polls, stopped

from isthmus import simulate
from isthmus.arrays import Floats, completed, completed_within
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss, QuadraticLoss
from isthmus.searches.base import SearchResult
from isthmus.searches.notears import Notears
from isthmus.searches.notears_penalties import BackgroundCall, EqualNoiseEBIC, RefitEBIC, best_cut
from isthmus.searches.relaxation import ExponentialAcyclicity, LogDet, _inverse
from isthmus.watch import Ending, Watch, drive

MODULES = [f"isthmus.searches.{name}" for name in ("relaxation", "notears_penalties")]
LOSSES = [QuadraticLoss, LikelihoodLoss]
AnyLoss = type[QuadraticLoss] | type[LikelihoodLoss]


def drawn(d: int, n: int, kind: AnyLoss = QuadraticLoss) -> MomentsLoss:
    dag = simulate.erdos_renyi(d, 2 * d, seed=1)
    rows = simulate.linear(dag, n, seed=1).array()
    return kind(dag.nodes, np.cov(rows, rowvar=False, bias=True), n)


@pytest.fixture(scope="module")
def thousand() -> MomentsLoss:
    return drawn(1000, 400)


def begun(search: Notears, loss: MomentsLoss) -> Callable[[Watch], SearchResult]:
    return partial(search.search, loss, Knowledge().bind(loss.nodes), np.random.default_rng(0))


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("kind", LOSSES)
def test_a_time_limit_holds_with_a_thousand_variables(thousand: MomentsLoss, kind: AnyLoss) -> None:
    loss = kind(thousand.nodes, thousand.matrix, thousand.rows)
    start = time.monotonic()
    result, status = drive(begun(Notears(), loss), "test", time_limit=1.0)
    assert status.ending is Ending.TIME_LIMIT
    assert time.monotonic() - start < 1.0 + LATENESS
    DAG.from_parents(loss.nodes, result.parents)
    assert np.isnan(result.details.kkt_residual)


@pytest.mark.timing
@pytest.mark.parametrize("search", [Notears(), Notears(acyclicity=ExponentialAcyclicity())])
def test_ctrl_c_is_heard_with_many_variables(thousand: MomentsLoss, search: Notears) -> None:
    # SciPy's optimiser itself takes long steps for the two million variables of a thousand nodes.
    loss = thousand if search == Notears() else drawn(150, 400)
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        _thread.interrupt_main()

    threading.Timer(0.7, press).start()
    _, status = drive(begun(search, loss), "test", time_limit=60.0)
    assert status.ending is Ending.INTERRUPTED
    assert time.monotonic() - pressed[0] < LATENESS


@pytest.mark.long
def test_the_score_of_a_stopped_run_is_that_of_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in MODULES:
        monkeypatch.setattr(f"{module}._SLICE", 1e-5)
    loss = drawn(12, 100)
    for best in stopped(lambda watch: begun(Notears(penalty=0.05), loss)(watch)):
        weights = best.details.weights_before_threshold
        value = loss.value_and_gradient(weights)[0] + 0.05 * np.abs(weights).sum()
        assert best.score == pytest.approx(value, rel=1e-9)
    stages: set[str] = set()
    monkeypatch.setattr("isthmus.watch._REPORT_INTERVAL", 0.0)
    drive(
        begun(Notears(penalty=0.05), loss), "x", report=lambda p: stages.add(p.text.split(",")[0])
    )
    assert {"barrier stage 7 of 7", "problem 1: moves"} <= stages


def longest_step(steps: Generator[None, None, Any], seconds: float) -> float:
    end, longest = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        begin = time.thread_time()
        if next(steps, "end") == "end":
            break
        longest = max(longest, time.thread_time() - begin)
    return longest


@pytest.mark.timing
def test_thresholds_for_many_edges_are_compared_in_short_steps(thousand: MomentsLoss) -> None:
    """One call took half a minute for so many edges."""
    rng = np.random.default_rng(0)
    weights = np.triu(rng.normal(size=(1000, 1000)), 1) * (rng.random((1000, 1000)) < 0.4)
    assert np.count_nonzero(weights) > 190_000
    none = np.zeros((1000, 1000), np.bool_)
    steps = best_cut(weights, thousand.matrix, 5000, none, EqualNoiseEBIC())
    assert longest_step(steps, 3.0) < 0.15


@pytest.mark.long
@pytest.mark.timing
def test_it_polls_often(thousand: MomentsLoss) -> None:
    polls = Polls(math.inf, time.thread_time)
    begun(Notears(penalty=0.5), thousand)(Watch(time_limit=4.0, stop=polls))
    assert polls.longest < 0.25


@pytest.mark.long
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(
    "search",
    [
        Notears(starts=3),
        Notears(threshold=0.2, starts=2),
        Notears(acyclicity=ExponentialAcyclicity(), starts=1),
    ],
)
def test_slices_do_not_change_the_result(
    search: Notears, kind: AnyLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier = search.acyclicity == LogDet()
    loss = drawn(12 if barrier else 6, 60, kind)
    results = []
    for seconds in (1e-6 if barrier else 1e-3, 10.0):
        for module in MODULES:
            monkeypatch.setattr(f"{module}._SLICE", seconds)
        result, _ = drive(begun(search, loss), "test")
        results.append((result.parents, result.score, result.details.criterion))
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("share", [0.02, 0.9])
def test_columns_make_up_the_loss(kind: AnyLoss, share: float) -> None:
    loss, rng = drawn(60, 100, kind), np.random.default_rng(0)
    weights = np.triu(rng.normal(size=(60, 60)), 1) * (rng.random((60, 60)) < share)
    value, gradient = loss.value_and_gradient(weights)
    parts = [loss.columns(weights, a, b) for a, b in itertools.pairwise((0, 1, 20, 60))]
    assert sum(part for part, _ in parts) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(np.hstack([g for _, g in parts]), gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("rows", [4, 6, 9, 30])
@pytest.mark.parametrize("seed", range(4))
def test_no_threshold_leaves_nearly_as_many_parents_as_rows(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    loss = drawn(8, 200)
    weights = np.triu(rng.normal(size=(8, 8)), 1)
    required = np.zeros((8, 8), np.bool_)
    required[0, 7] = True
    totals: dict[bytes, float] = {}
    for threshold in [*np.abs(weights[weights != 0.0]).tolist(), np.inf]:
        kept = ((np.abs(weights) >= threshold) & (weights != 0.0)) | required
        if kept.sum(axis=0).max() < rows - 2:
            alone = completed(best_cut(np.zeros((8, 8)), loss.matrix, rows, kept, RefitEBIC()))
            assert alone.criterion is not None
            totals[kept.tobytes()] = alone.criterion
    cut = completed(best_cut(weights, loss.matrix, rows, required, RefitEBIC()))
    assert cut.criterion == pytest.approx(min(totals.values(), default=np.inf), rel=1e-9)
    assert totals[cut.kept.tobytes()] == pytest.approx(cut.criterion, rel=1e-9)


def test_required_parents_alone_may_be_too_many() -> None:
    required = np.triu(np.ones((5, 5), np.bool_), 1)
    cut = completed(best_cut(np.zeros((5, 5)), np.eye(5), 5, required, RefitEBIC()))
    assert cut.criterion is None
    np.testing.assert_array_equal(cut.kept, required)


def test_an_inverse_in_blocks() -> None:
    matrix: Floats = np.eye(150) + np.random.default_rng(0).normal(size=(150, 150)) / 20
    np.testing.assert_allclose(
        completed(_inverse(matrix.copy())), np.linalg.inv(matrix), atol=1e-10
    )


def test_a_computation_may_not_have_enough_time() -> None:
    def slow() -> Generator[None, None, int]:
        while time.monotonic() < end:
            yield
        return 7

    end = time.monotonic() + 60.0
    assert completed_within(slow(), 0.01) is None
    end = 0.0
    assert completed_within(slow(), 0.01) == 7


def counting(counts: list[int], last: int) -> Callable[[Callable[[], None]], str]:
    def call(check: Callable[[], None]) -> str:
        for k in range(last):
            check()
            counts.append(k)
            time.sleep(0.001)
        return "done"

    return call


def test_a_call_works_only_while_somebody_waits() -> None:
    counts: list[int] = []
    call = BackgroundCall(counting(counts, 200))
    time.sleep(0.02)
    assert counts == []
    while not call.wait(0.005):
        before = len(counts)
        time.sleep(0.01)
        assert len(counts) <= before + 1
    assert call.value() == "done"
    assert len(counts) == 200


def test_a_call_ends_when_it_is_abandoned() -> None:
    counts: list[int] = []
    threads = threading.active_count()
    call = BackgroundCall(counting(counts, 10**9))
    assert not call.wait(0.02)
    assert threading.active_count() == threads + 1
    del call
    end = time.monotonic() + 5.0
    while threading.active_count() > threads and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == threads


def test_errors_of_a_call_are_raised() -> None:
    def fail(check: Callable[[], None]) -> None:
        raise ZeroDivisionError

    call = BackgroundCall(fail)
    assert call.wait(5.0)
    with pytest.raises(ZeroDivisionError):
        call.value()
