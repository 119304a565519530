"""Conformance check for searches."""

from __future__ import annotations

import itertools

import numpy as np

from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.results import Ending, Status
from isthmus.scores import GaussianBIC
from isthmus.searches import Search, SearchResult, Watch
from isthmus.statistics import Moments, Schema
from isthmus.testing.enumerate import enumerate_dags


def check_search(
    search: Search[LocalScore], *, problems: int = 10, reached: float = 0.8, seed: int = 0
) -> None:
    """Check a search over local scores on small random problems.

    The search must return acyclic graphs and their true scores, and find the best of all 543 graphs
    over four nodes on at least the fraction ``reached`` of the problems. It must satisfy knowledge,
    return the same graph for the same seed, propagate errors of the score, and return a graph when
    it is interrupted.

    Raises
    ------
    AssertionError
        If a requirement is not met. The message names the problem.
    """
    rng = np.random.default_rng(seed)
    optimal = 0
    for number in range(problems):
        objective = _problem(rng, 4)
        best = max(objective.total(dag) for dag in enumerate_dags(objective.nodes))
        result = _solve(search, objective, Knowledge(), number)
        assert result.score <= best + 1e-7, f"problem {number}: {result.score} is above {best}"
        optimal += result.score >= best - 1e-7
        second = _solve(search, objective, Knowledge(), number)
        assert second.parents == result.parents, (
            f"problem {number}: the same seed gave different graphs"
        )
    assert optimal >= reached * problems, (
        f"the best graph was found in {optimal} of {problems} problems"
    )
    for number in range(problems):
        objective = _problem(rng, 6)
        knowledge = _some_knowledge(rng, objective.nodes)
        result = _solve(search, objective, knowledge, number)
        dag = DAG.from_parents(objective.nodes, result.parents)
        assert knowledge.allows(dag), f"problem {number}: {dag!r} violates {knowledge!r}"
    _check_failure(search, _problem(rng, 6))
    _check_interruption(search, _problem(rng, 6))


def _problem(rng: np.random.Generator, d: int) -> LocalScore:
    x = rng.normal(size=(200, d))
    for child in range(1, d):
        weights = rng.choice([0.0, 0.0, 1.0, -1.0], size=child)
        x[:, child] += x[:, :child] @ weights
    shuffled = rng.permutation(d)
    names = [f"v{i}" for i in range(d)]
    return GaussianBIC().bind(Moments.from_array(Schema.continuous(names), x[:, shuffled]))


def _some_knowledge(rng: np.random.Generator, nodes: tuple[str, ...]) -> Knowledge:
    order = [nodes[i] for i in rng.permutation(len(nodes))]
    forward = list(itertools.combinations(order, 2))
    shuffled = [forward[i] for i in rng.permutation(len(forward))]
    return Knowledge(
        required=shuffled[:2],
        forbidden=[*shuffled[2:5], *((b, a) for a, b in shuffled[5:7])],
        tiers=[order[:3], order[3:]],
    )


def _solve(
    search: Search[LocalScore], objective: LocalScore, knowledge: Knowledge, seed: int
) -> SearchResult:
    result, status = _watched(search, objective, knowledge, seed)
    assert status.finished, f"the search ended with {status}"
    DAG.from_parents(objective.nodes, result.parents)
    true = sum(objective.local(v, p) for v, p in enumerate(result.parents))
    assert abs(true - result.score) <= 1e-7 * max(1.0, abs(true)), (
        f"the graph scores {true}, but the search reports {result.score}"
    )
    return result


def _watched(
    search: Search[LocalScore], objective: LocalScore, knowledge: Knowledge, seed: int
) -> tuple[SearchResult, Status]:
    watch = Watch()
    bound = knowledge.bind(objective.nodes)
    result = search.search(objective, bound, np.random.default_rng(seed), watch)
    return result, watch.status(result)


class _PlannedFailureError(Exception):
    """The error that a failing score raises on purpose."""


def _check_failure(search: Search[LocalScore], objective: LocalScore) -> None:
    def broken(child: int, parents: tuple[int, ...]) -> float:
        if parents:
            raise _PlannedFailureError
        return objective.local(child, parents)

    failing = PythonLocalScore(objective.nodes, broken, equivalent=True)
    try:
        _solve(search, failing, Knowledge(), 0)
    except _PlannedFailureError:
        return
    raise AssertionError("the search did not propagate an error of the score")


def _check_interruption(search: Search[LocalScore], objective: LocalScore) -> None:
    calls = itertools.count()

    def interrupted(child: int, parents: tuple[int, ...]) -> float:
        if next(calls) == 40:
            raise KeyboardInterrupt
        return objective.local(child, parents)

    stopping = PythonLocalScore(objective.nodes, interrupted, equivalent=True)
    result, status = _watched(search, stopping, Knowledge(), 0)
    assert status.ending is Ending.INTERRUPTED, f"an interrupted search ended with {status}"
    DAG.from_parents(objective.nodes, result.parents)
