"""Score tables of the compiled core."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.kernels.tables import bound_of, build, new_builder
from tests.objectives.problems import discrete_score, gaussian_score

from isthmus.kernels import _native
from isthmus.kernels.scoring import python_score
from isthmus.scores import AIC, BIC, K2, BDeu, BGe, DegenerateGaussian, GaussianBIC

SCORES: dict[str, Any] = {
    "BIC": lambda seed: discrete_score(BIC(), seed, 200, 7),
    "AIC": lambda seed: discrete_score(AIC(), seed, 100, 6),
    "BDeu": lambda seed: discrete_score(BDeu(), seed, 300, 8),
    "K2": lambda seed: discrete_score(K2(), seed, 50, 6),
    "GaussianBIC": lambda seed: gaussian_score(GaussianBIC(), seed, 200, 9),
    "BGe": lambda seed: gaussian_score(BGe(), seed, 100, 9),
    "DegenerateGaussian": lambda seed: gaussian_score(DegenerateGaussian(), seed, 100, 6),
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"max_parents": 0},
    {"max_parents": 2},
    {"quota": 300},
    {"quota": 50},
    {"slack": 2.0, "max_parents": 3},
]


def rough(child: int, parents: tuple[int, ...]) -> float:
    """A score without structure: the same for the same family, on every machine."""
    word = hash((child, *parents)) * 0x9E3779B97F4A7C15 % 2**64
    return word / 2**64 * 10 - 0.5 * len(parents)


def same(table: tuple[Any, Any, Any], starts: Any, sets: Any, scores: Any) -> bool:
    return all(
        np.array_equal(new, old) for new, old in zip(table, (starts, sets, scores), strict=True)
    )


@pytest.mark.long
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", SCORES)
def test_neither_slices_nor_threads_matter(name: str, options: dict[str, Any]) -> None:
    for seed in range(2):
        local = SCORES[name](seed)
        whole = new_builder(local.kernel, bound_of(local), **options)
        table = build(whole, 60.0)
        for seconds, jobs in ((0.0, 1), (0.0, 2), (0.002, 3)):
            new = new_builder(local.kernel, bound_of(local), jobs=jobs, **options)
            assert same(build(new, seconds), *table)
            assert new.scored == whole.scored
            assert new.complete == whole.complete


def slow_lists(d: int, most: int) -> list[list[tuple[float, tuple[int, ...]]]]:
    """Useful parent sets of each child by looking at all, best first."""
    lists = []
    for child in range(d):
        others = [p for p in range(d) if p != child]
        scores = {
            parents: rough(child, parents)
            for k in range(most + 1)
            for parents in itertools.combinations(others, k)
        }
        useful = [
            (value, parents)
            for parents, value in scores.items()
            if all(
                value > scores[less] + 2e-10
                for k in range(len(parents))
                for less in itertools.combinations(parents, k)
            )
        ]
        lists.append(sorted(useful, key=lambda one: -one[0]))
    return lists


def unpacked(table: tuple[Any, Any, Any]) -> list[list[tuple[float, tuple[int, ...]]]]:
    starts, sets, scores = table
    lists = []
    for begin, end in itertools.pairwise(starts.tolist()):
        masks = [sum(int(w) << 64 * i for i, w in enumerate(row)) for row in sets[begin:end]]
        members = [tuple(p for p in range(m.bit_length()) if m >> p & 1) for m in masks]
        lists.append(list(zip(scores[begin:end].tolist(), members, strict=True)))
    return lists


@pytest.mark.parametrize("jobs", [1, 3])
def test_lists_what_is_useful(jobs: int) -> None:
    builder = new_builder(python_score(7, rough), max_parents=4, jobs=jobs)
    table = build(builder)
    assert unpacked(table) == slow_lists(7, 4)
    assert builder.complete
    assert builder.finished == builder.children == 7


def test_result_does_not_depend_on_threads_or_slices() -> None:
    local = gaussian_score(BGe(), 1, 100, 60)
    tables = [
        build(new_builder(local.kernel, bound_of(local), quota=600, jobs=jobs), seconds)
        for jobs, seconds in ((1, 10.0), (4, 10.0), (4, 0.0), (2, 0.003))
    ]
    assert all(same(table, *tables[0]) for table in tables[1:])


def test_closing_gives_every_child_a_set_at_once_and_then_one_parent() -> None:
    local = gaussian_score(GaussianBIC(), 1, 100, 40)
    builder = new_builder(local.kernel, bound_of(local), quota=500)
    builder.step(0.0)
    with pytest.raises(RuntimeError, match="not ready"):
        builder.table()
    builder.close()
    while not builder.ready:
        builder.step(0.0)
    starts, _, _ = builder.table()
    assert (np.diff(starts) >= 1).all()
    lists = unpacked(build(builder, 0.0))
    single = unpacked(build(new_builder(local.kernel, bound_of(local), max_parents=1)))
    assert lists[1:] == single[1:]
    assert not builder.complete


def test_a_hurry_lists_the_rest_when_there_is_time() -> None:
    local = gaussian_score(GaussianBIC(), 1, 100, 8)
    builder = new_builder(local.kernel, bound_of(local))
    builder.step(0.0)
    builder.hurry()
    whole = new_builder(local.kernel, bound_of(local))
    assert same(build(builder), *build(whole))
    assert builder.complete


def test_a_child_that_is_skipped_ends_with_what_is_there() -> None:
    local = gaussian_score(GaussianBIC(), 1, 100, 30)
    builder = new_builder(local.kernel, bound_of(local))
    builder.hurry()
    while not builder.step(0.001):
        builder.skip()
    starts, _, _ = builder.table()
    assert len(starts) == 31
    assert (np.diff(starts) >= 1).all()
    assert not builder.complete


def test_a_failure_of_the_score_comes_through_and_the_builder_can_go_on() -> None:
    fail = True

    def sometimes(child: int, parents: tuple[int, ...]) -> float:
        if fail and len(parents) == 2:
            raise ZeroDivisionError("no")
        return rough(child, parents)

    for jobs in (1, 2):
        fail = True
        builder = new_builder(python_score(5, sometimes), max_parents=3, jobs=jobs)
        with pytest.raises(ZeroDivisionError):
            build(builder)
        fail = False
        assert unpacked(build(builder)) == slow_lists(5, 3)


@pytest.mark.timing
def test_a_step_is_short_with_a_thousand_variables() -> None:
    local = gaussian_score(GaussianBIC(), 1, 50, 1000)
    builder = new_builder(local.kernel, None, quota=2000)
    longest = 0.0
    for _ in range(50):
        start = time.thread_time()
        builder.step(0.01)
        longest = max(longest, time.thread_time() - start)
    assert longest < 0.03
    builder.close()
    start = time.monotonic()
    while not builder.ready:
        builder.step(0.01)
    assert time.monotonic() - start < 0.5


@pytest.mark.timing
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_a_long_step(jobs: int) -> None:
    local = gaussian_score(GaussianBIC(), 1, 500, 24)
    builder = new_builder(local.kernel, None, jobs=jobs)
    threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        builder.step(60.0)
    assert time.monotonic() - start < 2.0
    builder.step(0.0)


def test_odd_input_is_refused() -> None:
    score = python_score(3, rough)
    with pytest.raises(ValueError, match="square"):
        new_builder(score, required=np.zeros((3, 2), np.bool_))
    with pytest.raises(ValueError, match="same variables"):
        new_builder(
            score, required=np.zeros((4, 4), np.bool_), forbidden=np.zeros((4, 4), np.bool_)
        )
    with pytest.raises(ValueError, match="slack"):
        new_builder(score, slack=float("nan"))
    with pytest.raises(IndexError):
        new_builder(score, children=np.array([3]))
    with pytest.raises(TypeError):
        new_builder(score, max_parents=-1)
    with pytest.raises(ValueError, match="top"):
        _native.ScoreBound(
            top=np.zeros((3, 3)),
            weight=np.zeros((1, 3)),
            scale=np.zeros(3),
            levels=np.ones(3),
            factor=np.zeros(3),
            support=None,
            gain=np.empty((0, 0, 0)),
        )
    with pytest.raises(ValueError, match="support"):
        _native.ScoreBound(
            top=np.zeros((3, 4)),
            weight=np.zeros((1, 3)),
            scale=np.zeros(3),
            levels=np.ones(3),
            factor=np.ones(3),
            support=None,
            gain=np.empty((0, 0, 0)),
        )


def test_no_and_one_variable() -> None:
    assert [len(part) for part in build(new_builder(python_score(0, rough)))] == [1, 0, 0]
    starts, sets, scores = build(new_builder(python_score(1, rough)))
    assert starts.tolist() == [0, 1]
    assert sets.tolist() == [[0]]
    assert scores.tolist() == [rough(0, ())]
