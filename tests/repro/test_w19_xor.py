"""w19: a greedy search over tables can miss everything, so small tables are searched exactly."""

import numpy as np

import isthmus as ist
from isthmus.results import Ending
from isthmus.statistics import CountPlan
from isthmus.verbs.defaults import choose_search
from isthmus.verbs.prepare import prepare

RNG = np.random.default_rng(0)
A, B = RNG.integers(0, 2, (2, 1000))
XOR = {"a": A, "b": B, "c": A ^ B}


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
