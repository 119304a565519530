"""The default search: exact where every family can be scored in time, and greedy elsewhere.

Families of wide categories and of Gaussian processes are expensive. A greedy search over tables
can miss everything.
"""

import numpy as np
import pytest

import isthmus as ist
from isthmus.objectives import LOCAL_SCORES
from isthmus.results import Ending
from isthmus.statistics import CountPlan
from isthmus.verbs.defaults import choose_search
from isthmus.verbs.prepare import Problem, prepare

RNG = np.random.default_rng(0)
A, B = RNG.integers(0, 2, (2, 1000))
XOR = {"a": A, "b": B, "c": A ^ B}


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


def test_a_slow_score_is_climbed() -> None:
    rng = np.random.default_rng(0)
    table = {f"v{i}": rng.normal(size=60) for i in range(10)}
    for score in (ist.GP(), ist.ExactGP()):
        problem = prepare(table, score=score)
        search, reason = choose_search(problem.schema, problem.objective)
        assert search == ist.HillClimb(restarts=0)
        assert "milliseconds" in reason


def test_few_variables_are_searched_exhaustively() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    solution = ist.learn({"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=100)}, score=ist.GP())
    assert solution.dag.edges == (("x", "y"),)
    assert "SubsetDP" in solution.choice


def test_xor_is_found() -> None:
    solution = ist.learn(XOR)
    assert len(solution.dag.edges) == 2
    assert solution.score > ist.learn(XOR, search=ist.XGES()).score + 600
    assert solution.status.ending is Ending.OPTIMAL


def test_a_greedy_search_says_that_its_optimum_is_local() -> None:
    assert "local optimum" in str(ist.learn(XOR, search=ist.XGES()).status)
    assert "local optimum" in str(ist.learn(XOR, search=ist.HillClimb()).status)
    assert "local optimum" in str(ist.learn(XOR, search=ist.Boss(starts=2)).status)


def test_a_source_with_planned_tables_is_not_asked_for_more() -> None:
    counts = ist.summarise(XOR, plan=CountPlan.up_to(2))
    solution = ist.learn(counts, score=ist.BIC(), search=ist.XGES(max_parents=1))
    assert solution.dag.edges == ()
    problem = prepare(counts, score=ist.BIC())
    assert isinstance(choose_search(problem.schema, problem.objective)[0], ist.XGES)
