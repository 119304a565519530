"""w13: one family of a Gaussian process takes milliseconds, so few of them may be scored."""

import numpy as np

import isthmus as ist
from isthmus.verbs.defaults import choose_search
from isthmus.verbs.prepare import prepare


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
