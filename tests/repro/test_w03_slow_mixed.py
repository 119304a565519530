"""w03: wide categories make a family expensive, so the default must not score every family."""

import numpy as np
import pytest

import isthmus as ist
from isthmus.objectives import LOCAL_SCORES
from isthmus.verbs.defaults import choose_search
from isthmus.verbs.prepare import Problem, prepare


def table(columns: int, levels: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, levels + 1) ** 1.5
    names = np.array([f"l{i}" for i in range(levels)])
    half = columns // 2
    numbers = {f"x{i}": rng.normal(size=500) for i in range(half)}
    drawn = {f"c{i}": names[rng.choice(levels, 500, p=shares / shares.sum())] for i in range(half)}
    return {**numbers, **drawn}


def seconds(problem: Problem) -> float:
    return LOCAL_SCORES.require(problem.objective).seconds_for_all()


@pytest.mark.timing
def test_wide_categories_are_not_searched_exhaustively() -> None:
    score = ist.DegenerateGaussian(gamma=0.5)
    wide = prepare(table(12, 80), score=score)
    assert seconds(wide) > 3.0
    assert isinstance(choose_search(wide.schema, wide.objective)[0], ist.Boss)
    narrow = prepare(table(12, 3), score=score)
    assert seconds(narrow) < 0.3
    assert isinstance(choose_search(narrow.schema, narrow.objective)[0], ist.SubsetDP)


def test_the_choice_does_not_depend_on_the_clock() -> None:
    first, second = (seconds(prepare(table(8, 40))) for _ in range(2))
    assert first == second


def test_a_bootstrap_counts_its_replicates() -> None:
    rng = np.random.default_rng(1)
    numbers = prepare({f"v{i}": rng.normal(size=100) for i in range(13)})
    assert isinstance(choose_search(numbers.schema, numbers.objective)[0], ist.SubsetDP)
    search, _ = choose_search(numbers.schema, numbers.objective, runs=200)
    assert search == ist.Boss(starts=4)
