"""Local enumeration around a cause against the enumeration of all members of the class."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from isthmus.graphs import CPDAG, DAG, PDAG, Knowledge
from isthmus.graphs.possible_parents import (
    is_identified,
    outcome_parents,
    parent_configurations,
    possible_descendants,
    possible_parents,
)
from isthmus.testing import enumerate_dags

FOUR = sorted({dag.cpdag() for dag in enumerate_dags("abcd")}, key=repr)


def with_knowledge(dag: DAG, rng: np.random.Generator, edges: int) -> PDAG:
    """Reveal the directions of some edges of a graph."""
    revealed = [dag.edges[i] for i in rng.permutation(len(dag.edges))[:edges]]
    return dag.cpdag(Knowledge(required=revealed))


def random_graphs(count: int, seed: int) -> Iterator[CPDAG | PDAG]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        names = "abcdef"[: rng.integers(5, 7)]
        order = rng.permutation(len(names))
        share = rng.uniform(0.3, 1.0)
        pairs = [(names[i], names[j]) for i, j in combinations(order, 2) if rng.random() < share]
        dag = DAG(list(names), pairs)
        yield dag.cpdag()
        yield with_knowledge(dag, rng, int(rng.integers(1, 4)))


def four_with_knowledge() -> Iterator[PDAG]:
    rng = np.random.default_rng(0)
    for cpdag in FOUR:
        members = list(cpdag.members())
        for _ in range(2):
            yield with_knowledge(members[rng.integers(len(members))], rng, int(rng.integers(1, 3)))


GRAPHS = [*FOUR, *four_with_knowledge(), *random_graphs(40, 1)]


def coefficients(graph: CPDAG | PDAG, seed: int) -> np.ndarray:
    """Return the covariance matrix of a linear model on a member, with random coefficients."""
    member, d = graph.to_dag(), len(graph.nodes)
    weights = member.adjacency() * np.random.default_rng(seed).uniform(0.3, 1.5, (d, d))
    total = np.linalg.inv(np.eye(d) - weights)
    covariance: np.ndarray = total.T @ total
    return covariance


def effect(covariance: np.ndarray, x: int, y: int, given: tuple[int, ...]) -> float:
    if y in given:
        return 0.0
    rows = [x, *given]
    return float(np.linalg.solve(covariance[np.ix_(rows, rows)], covariance[rows, y])[0])


def test_there_is_something_to_enumerate() -> None:
    assert len(FOUR) == 185
    assert sum(bool(g.undirected) for g in GRAPHS) > 200
    assert max(len(g.nodes) for g in GRAPHS) == 6


@pytest.mark.parametrize("part", range(8))
def test_possible_parents_are_those_of_the_members(part: int) -> None:
    for graph in GRAPHS[part::8]:
        members = list(graph.members())
        for node in graph.nodes:
            found = list(possible_parents(graph, node))
            assert len(found) == len(set(found))
            assert set(found) == {member.parents(node) for member in members}
            assert found[0] == graph.parents(node)


@pytest.mark.parametrize("part", range(8))
def test_an_effect_is_identified_iff_the_members_agree(part: int) -> None:
    for seed, graph in enumerate(GRAPHS[part::8]):
        covariance = coefficients(graph, seed)
        members = list(graph.members())
        for cause in graph.nodes:
            x = graph.index(cause)
            families = {member.parent_indices()[x] for member in members}
            for other in graph.nodes:
                if other == cause:
                    continue
                values = [effect(covariance, x, graph.index(other), own) for own in families]
                agree = max(values) - min(values) < 1e-9
                assert is_identified(graph, [cause], [other]) == agree, (graph.directed, cause)


def test_configurations_of_several_causes() -> None:
    for graph in GRAPHS[::5]:
        members = list(graph.members())
        for causes in combinations(graph.nodes, 2):
            found = [
                tuple(dag.parents(v) for v in causes)
                for dag in parent_configurations(graph, causes)
            ]
            assert len(found) == len(set(found))
            assert set(found) == {tuple(dag.parents(v) for v in causes) for dag in members}


def test_outcome_parents_keep_an_adjustment_set_valid() -> None:
    used = 0
    for graph in GRAPHS[::3]:
        for cause, other in combinations(graph.nodes, 2):
            more = outcome_parents(graph, cause, other)
            assert not {*more} & {*possible_descendants(graph, cause), cause, other}
            used += bool(more)
            for member in graph.members():
                assert not {*more} & set(member.descendants(cause))
    assert used > 50


def test_a_clique_of_fourteen_takes_its_neighbours_only() -> None:
    """A class with 14! members: the parents of a node are any subset of the others."""
    names = [f"v{i}" for i in range(14)]
    graph = DAG(names, list(combinations(names, 2))).cpdag()
    assert sum(1 for _ in possible_parents(graph, "v3")) == 2**13
    assert not is_identified(graph, ["v0"], ["v13"])


def test_independent_pairs_do_not_multiply() -> None:
    pairs = [(f"a{k}", f"b{k}") for k in range(40)]
    graph = DAG([name for pair in pairs for name in pair], pairs).cpdag()
    assert set(possible_parents(graph, "a39")) == {(), ("b39",)}
    assert not is_identified(graph, ["a39"], ["b39"])
    assert is_identified(graph, ["a39"], ["b0"])
