"""Conformance check for searches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, final

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import MismatchError
from isthmus.graphs import DAG, Knowledge
from isthmus.graphs.names import mask_of, transpose
from isthmus.graphs.orientation import connected
from isthmus.objectives import IndependenceTest, LocalScore, PythonLocalScore
from isthmus.results import Ending, Status
from isthmus.scores import GaussianBIC
from isthmus.searches import Search, SearchResult, Watch
from isthmus.statistics import Moments, Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

# --- A test of independence that knows the true graph -------------------------------------------


@final
class SeparationOracle(IndependenceTest):
    """Answers tests of independence by d-separation in a graph: the data of infinitely many rows.

    With it, a search shows whether it is correct, apart from errors of tests.

    Parameters
    ----------
    dag
        The true graph.
    hidden
        Names of the variables that are not observed; none by default.

    Examples
    --------
    >>> import numpy as np
    >>> import isthmus as ist
    >>> from isthmus.searches import Watch
    >>> from isthmus.testing import SeparationOracle
    >>> dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("c", "b")])
    >>> oracle = SeparationOracle(dag)
    >>> oracle.p_values(0, [], [1, 2]), oracle.p_values(0, [1], [2])
    (array([0., 1.]), array([0.]))
    >>> knowledge = ist.Knowledge().bind(oracle.nodes)
    >>> print(ist.FCI().search(oracle, knowledge, np.random.default_rng(0), Watch()).pag)
    a o-> b
    c o-> b
    """

    def __init__(self, dag: DAG, hidden: Iterable[str] = ()) -> None:
        outside = set(hidden)
        super().__init__([name for name in dag.nodes if name not in outside])
        self._at = [dag.index(name) for name in self.nodes]
        self._parents = dag.parent_masks
        self._children = transpose(dag.parent_masks, len(dag.nodes))

    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        """Return 1 for variables that are separated from x, and 0 for the others."""
        condition = mask_of(self._at[v] for v in given)
        reached = connected(self._parents, self._children, 1 << self._at[x], condition)
        return np.array([0.0 if reached >> self._at[y] & 1 else 1.0 for y in others])

    def local_score(self) -> LocalScore:
        """Refuse: there are no data."""
        raise MismatchError("An oracle has no data to compute a score from.")


# --- Enumeration of all DAGs over a few nodes, for exact tests ----------------------------------


def enumerate_dags(nodes: Sequence[str]) -> Iterator[DAG]:
    """Yield every labelled DAG over some nodes once.

    For one to six nodes there are 1, 3, 25, 543, 29,281 and 3,781,503 of them.

    Parameters
    ----------
    nodes
        Names of the nodes.

    Examples
    --------
    >>> from isthmus.testing import enumerate_dags
    >>> sum(1 for _ in enumerate_dags(["a", "b", "c"]))
    25
    """
    names = tuple(nodes)
    for parents in _parent_sets(frozenset(range(len(names)))):
        yield DAG.from_parents(names, [parents.get(i, ()) for i in range(len(names))])


def _parent_sets(members: frozenset[int]) -> Iterator[dict[int, tuple[int, ...]]]:
    """Recurse over the set of sinks, which is unique for a DAG, so that no DAG is repeated."""
    if not members:
        yield {}
        return
    ordered = sorted(members)
    for size in range(1, len(ordered) + 1):
        for sinks in combinations(ordered, size):
            rest = members.difference(sinks)
            choices = [s for k in range(len(rest) + 1) for s in combinations(sorted(rest), k)]
            for upper in _parent_sets(rest):
                # Every sink of the rest must have a child among the new sinks.
                childless = rest.difference(*upper.values())
                for own in product(choices, repeat=size):
                    if childless <= frozenset().union(*own):
                        yield {**upper, **dict(zip(sinks, own, strict=True))}


# --- Conformance check for searches -------------------------------------------------------------


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


# --- Conformance check for local scores ---------------------------------------------------------


def check_score(objective: LocalScore, *, tolerance: float = 1e-8) -> None:
    """Check that a local score satisfies the requirements of its interface.

    All values must be finite and independent of the order of the parents, and extensions must equal
    the local scores of the extended sets. If the score claims to be score-equivalent, all members
    of a Markov equivalence class must have the same total. Use three to five variables: all parent
    sets and graphs are enumerated.

    Raises
    ------
    AssertionError
        If a requirement is not met. The message names the family.
    """
    d = len(objective.nodes)
    for child in range(d):
        others = [v for v in range(d) if v != child]
        for size in range(d):
            for parents in itertools.combinations(others, size):
                _check_family(objective, child, parents, tolerance)
    if objective.equivalent:
        _check_equivalence(objective, tolerance)


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def _check_family(
    objective: LocalScore, child: int, parents: tuple[int, ...], tolerance: float
) -> None:
    family = f"{objective.nodes[child]!r} with the parents {[objective.nodes[p] for p in parents]}"
    value = objective.local(child, parents)
    assert np.isfinite(value), f"{family} scores {value}"
    reordered = objective.local(child, parents[::-1])
    assert _close(value, reordered, tolerance), (
        f"{family} scores {value}, with the parents in another order {reordered}"
    )
    candidates = [v for v in range(len(objective.nodes)) if v != child and v not in parents]
    extensions = objective.extensions(child, parents, candidates)
    assert len(extensions) == len(candidates) + 1, f"{family}: extensions has the wrong length"
    assert _close(float(extensions[0]), value, tolerance), (
        f"{family} scores {value}, but {extensions[0]} as the first entry of extensions"
    )
    for candidate, extended in zip(candidates, extensions[1:], strict=True):
        value = objective.local(child, (*parents, candidate))
        assert _close(float(extended), value, tolerance), (
            f"{family} and {objective.nodes[candidate]!r} scores {value}, "
            f"but {extended} as an extension"
        )


def _check_equivalence(objective: LocalScore, tolerance: float) -> None:
    totals: dict[object, float] = {}
    for dag in enumerate_dags(objective.nodes):
        value = objective.total(dag)
        first = totals.setdefault(dag.cpdag(), value)
        assert _close(first, value, tolerance), (
            f"the score claims to be score-equivalent, but {dag!r} scores {value} "
            f"and another member of its equivalence class {first}"
        )
