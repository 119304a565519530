"""XGES of the compiled core: against enumeration, under demands, stopped, and with odd scores."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.kernels.discrete_problems import dependent_codes
from tests.kernels.problems import Problem, bic, correlate, likelihood_tables, problem

from isthmus.graphs import DAG
from isthmus.kernels._native import XgesRun
from isthmus.kernels.greedy import begin_xges
from isthmus.kernels.scoring import (
    DiscreteForm,
    LocalScore,
    discrete_score,
    gaussian_score,
    local,
    python_score,
)
from isthmus.testing import enumerate_dags

Parents = Sequence[Sequence[int]]

NAMES = tuple(f"v{i:03d}" for i in range(300))


def finish(run: XgesRun, seconds: float = 0.01) -> tuple[list[list[int]], float]:
    while not run.step(seconds):
        pass
    assert run.finished
    return run.best()


def begin(p: Problem, score: LocalScore | None = None, *, extended: bool = True) -> XgesRun:
    return begin_xges(
        bic(p) if score is None else score,
        required=p.required,
        forbidden=p.forbidden,
        max_parents=p.max_parents,
        extended=extended,
    )


def total(score: LocalScore, parents: Parents) -> float:
    return sum(local(score, v, p) for v, p in enumerate(parents))


def check_graph(p: Problem, score: LocalScore, parents: Parents) -> None:
    """It has no cycle, obeys, and is as good as it is said to be."""
    DAG.from_parents(NAMES[: p.d], parents)
    edges = np.zeros((p.d, p.d), np.bool_)
    for v, those in enumerate(parents):
        edges[list(those), v] = True
    assert not (edges & p.forbidden).any()
    assert (edges >= p.required).all()
    assert p.max_parents is None or edges.sum(axis=0).max() <= p.max_parents


@pytest.mark.long
def test_four_nodes_against_all_543_graphs() -> None:
    reached = 0
    for seed in range(40):
        p = problem(4, seed, n=200)
        score = bic(p)
        best = max(total(score, g.parent_indices()) for g in enumerate_dags(NAMES[:4]))
        parents, value = finish(begin(p, score))
        assert value == total(score, parents)
        assert value <= best + 1e-9
        reached += value >= best - 1e-9
    assert reached >= 36


def changes(parents: Parents) -> list[list[set[int]]]:
    """All graphs with one edge more, fewer or reversed."""
    d = len(parents)
    found = []
    for a, b in itertools.permutations(range(d), 2):
        changed = [set(those) for those in parents]
        if a in changed[b]:
            changed[b].remove(a)
            found.append([set(those) for those in changed])
            changed[a].add(b)
        elif b in changed[a]:
            continue
        else:
            changed[b].add(a)
        try:
            DAG.from_parents(NAMES[:d], [sorted(those) for those in changed])
        except ValueError:
            continue
        found.append(changed)
    return found


@pytest.mark.parametrize("extended", [False, True])
def test_no_change_of_any_member_gains_at_the_end(extended: bool) -> None:
    for seed in range(12):
        p = problem(5, seed, n=100)
        score = bic(p)
        parents, value = finish(begin(p, score, extended=extended))
        for member in DAG.from_parents(NAMES[:5], parents).cpdag().members():
            for changed in changes(member.parent_indices()):
                assert total(score, [sorted(those) for those in changed]) <= value + 1e-5


def test_the_second_phase_is_never_worse_and_sometimes_better() -> None:
    better = 0
    for seed in range(20):
        p = problem(12, seed, n=60)
        first, both = (finish(begin(p, extended=e))[1] for e in (False, True))
        assert both >= first - 1e-9
        better += both > first + 1e-6
    assert better > 0


@pytest.mark.long
@pytest.mark.parametrize("d", [2, 5, 9, 70])
def test_demands_are_obeyed_at_any_time(d: int) -> None:
    for seed in range(3 if d > 60 else 10):
        p = problem(d, seed, n=100 + 4 * d, demands=True)
        score = bic(p)
        run = begin(p, score)
        for _ in range(seed):
            run.step(0.0)
        parents, value = run.best()
        check_graph(p, score, parents)
        empty = [np.flatnonzero(p.required[:, v]).tolist() for v in range(d)]
        assert value >= total(score, empty) - 1e-9
        parents, value = finish(run)
        check_graph(p, score, parents)
        assert run.score == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_max_parents(limit: int) -> None:
    p = problem(10, 1, max_parents=limit)
    parents, _ = finish(begin(p))
    assert max(len(those) for those in parents) == limit


def test_one_variable() -> None:
    assert finish(begin(problem(1, 0)))[0] == [[]]


def test_contradictions_and_odd_shapes_are_refused() -> None:
    score = bic(problem(3, 0))
    edge = np.zeros((3, 3), np.bool_)
    edge[0, 1] = True
    with pytest.raises(ValueError, match="required"):
        begin_xges(score, required=edge, forbidden=edge)
    with pytest.raises(ValueError, match="required"):
        begin_xges(score, required=edge | edge.T)
    circle = np.zeros((3, 3), np.bool_)
    circle[[0, 1, 2], [1, 2, 0]] = True
    with pytest.raises(ValueError, match="cycle"):
        begin_xges(score, required=circle)
    for shape in ((3, 2), (2, 2), (4, 4), (0, 0)):
        with pytest.raises(ValueError, match=r"square|variables"):
            begin_xges(score, required=np.zeros(shape, np.bool_))
    with pytest.raises(TypeError):
        begin_xges(score, required=np.zeros(3, np.bool_))
    with pytest.raises(TypeError):
        begin_xges(score, max_parents=-1)


# --- stopping ------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_shortest_slices_give_the_same_graph() -> None:
    for demands in (False, True):
        p = problem(30, 3, demands=demands)
        assert finish(begin(p), seconds=0.0) == finish(begin(p), seconds=3600.0)
    codes = dependent_codes(1, [30, 40, 2, 900, 3] * 3, 3_000, np.uint16)
    score = discrete_score(codes, None, np.array([30, 40, 2, 900, 3] * 3), DiscreteForm.BDEU, 1.0)
    assert finish(begin_xges(score), seconds=0.0) == finish(begin_xges(score), seconds=3600.0)


def longest_step(run: XgesRun, seconds: float) -> float:
    longest, end, done = 0.0, time.perf_counter() + seconds, False
    while not done and time.perf_counter() < end:
        begun = time.thread_time()
        done = run.step()
        longest = max(longest, time.thread_time() - begun)
    return longest


@pytest.mark.long
@pytest.mark.timing
def test_a_step_is_short_with_many_variables() -> None:
    assert longest_step(begin(problem(300, 1)), 3.0) < 0.03


@pytest.mark.long
@pytest.mark.timing
def test_a_step_is_short_with_thousands_of_levels() -> None:
    """K5: one call for a column with thousands of levels held everything."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3_000, (12, 60_000)).astype(np.uint16)
    codes[1] = codes[0] // 2
    for form in (DiscreteForm.LIKELIHOOD, DiscreteForm.BDEU):
        run = begin_xges(discrete_score(codes, None, np.full(12, 3_000), form, 5.0))
        assert longest_step(run, 2.0) < 0.05


def test_ctrl_c_and_errors_leave_a_run_that_goes_on() -> None:
    p = problem(12, 4)
    score = bic(p)
    calls = itertools.count()

    def asked(child: int, parents: tuple[int, ...]) -> float:
        if next(calls) % 7 == 3:
            raise KeyboardInterrupt
        return local(score, child, parents)

    run = begin(p, python_score(p.d, asked))
    for _ in range(100_000):
        try:
            if run.step():
                break
        except KeyboardInterrupt:
            pass
    while True:
        try:
            parents, _ = run.best()
            break
        except KeyboardInterrupt:
            pass
    assert run.finished
    assert parents == finish(begin(p, python_score(p.d, lambda v, q: local(score, v, q))))[0]


def test_two_threads_in_one_run_are_refused() -> None:
    busy = threading.Event()

    def slow(child: int, parents: tuple[int, ...]) -> float:
        busy.set()
        time.sleep(0.005)
        return -float(len(parents))

    run = begin_xges(python_score(6, slow))
    thread = threading.Thread(target=run.step, args=(0.3,))
    thread.start()
    busy.wait()
    with pytest.raises(RuntimeError, match="in use"):
        run.step()
    thread.join()


# --- scores whose gains do not add up ------------------------------------------------------------


def total_of(score: Callable[[int, tuple[int, ...]], float], parents: Parents) -> float:
    return sum(score(v, tuple(those)) for v, those in enumerate(parents))


@pytest.mark.parametrize("d", [2, 3, 4, 6, 9])
def test_any_score_comes_to_an_end(d: int) -> None:
    """K3: with gains that circle the search went on for ever."""
    guarded = 0
    for seed in range(30):

        def random(child: int, parents: tuple[int, ...], seed: int = seed) -> float:
            code = child + d * sum(1 << p for p in parents)
            value = np.random.default_rng([seed, code]).normal()
            return float(value) * 10.0 ** (seed % 5)

        run = begin_xges(python_score(d, random))
        end = time.perf_counter() + 30.0
        while not run.step():
            assert time.perf_counter() < end
        parents, value = run.best()
        DAG.from_parents(NAMES[:d], parents)
        guarded += run.guarded
        # Whatever the gains were, the graph is not worse than the one of the start.
        assert value == pytest.approx(total_of(random, parents), rel=1e-12)
        assert value >= total_of(random, [()] * d) - 1e-9 or not run.guarded
    assert guarded > 0 or d == 2


def dependent_problem(covariance: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> LocalScore:
    """BIC with the tolerance relative to the child's own variance, which is not equivalent."""
    correlation, variance = correlate(covariance)
    constant, log_variance, log_determinant = likelihood_tables(100, len(covariance))
    return gaussian_score(
        correlation,
        np.log(variance),
        constant=constant,
        log_variance=log_variance,
        log_determinant=log_determinant,
        tolerance=1e-10,
    )


def test_exact_dependence_comes_to_an_end() -> None:
    """K3: a column that is the sum of two others, and each set of levels of a coarser one."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 100))
        c = a + rng.normal(size=100)
        columns = np.stack([a, 10.0 ** (seed % 4) * b, c, a + 10.0 ** (seed % 4) * b])
        city = rng.integers(0, 6, 100)
        levels = [(city == i).astype(float) for i in range(1, 6)]
        levels += [(city // 2 == i).astype(float) for i in range(1, 3)]
        for data in (columns, np.stack([*levels, a])):
            run = begin_xges(dependent_problem(np.cov(data, bias=True)))
            end = time.perf_counter() + 20.0
            while not run.step():
                assert time.perf_counter() < end
            DAG.from_parents(NAMES[: len(data)], run.best()[0])
