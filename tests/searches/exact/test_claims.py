"""What exact searches claim holds, and is about the graphs they have compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.objectives import ScoreTable
from isthmus.testing import enumerate_dags

NAMES = tuple("abcd")


def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    x[:, 3] += x[:, 0] + x[:, 1] + x[:, 2]
    return {name: x[:, i] for i, name in enumerate(NAMES)}


def searches(**options: Any) -> list[Any]:
    return [ist.SubsetDP(**options), ist.AStar(**options), ist.ILP(**options)]


@pytest.mark.long
@pytest.mark.parametrize("i", range(3))
def test_a_bound_on_parents_is_part_of_the_claim(i: int) -> None:
    search = searches(max_parents=1)[i]
    if isinstance(search, ist.ILP):
        pytest.importorskip("pyscipopt")
    solution = ist.learn(table(), score=ist.GaussianBIC(), search=search, progress=False)
    assert "no graph with at most 1 parent per node scores higher" in solution.status.message
    within = [g for g in enumerate_dags(NAMES) if all(len(g.parents(v)) <= 1 for v in NAMES)]
    best = max(ist.score(table(), graph, ist.GaussianBIC()) for graph in within)
    assert solution.score == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("i", range(3))
def test_required_edges_beyond_the_bound_are_part_of_the_claim(i: int) -> None:
    search = searches(max_parents=2)[i]
    if isinstance(search, ist.ILP):
        pytest.importorskip("pyscipopt")
    knowledge = ist.Knowledge(required=[("a", "d"), ("b", "d"), ("c", "d")])
    solution = ist.learn(
        table(), score=ist.GaussianBIC(), search=search, knowledge=knowledge, progress=False
    )
    assert len(solution.dag.parents("d")) == 3
    assert (
        "no graph with at most 2 parents per node (more only where more are required) "
        "that agrees with the knowledge scores higher" in solution.status.message
    )


def test_without_bounds_the_claim_is_about_all_graphs() -> None:
    solution = ist.learn(table(), score=ist.GaussianBIC(), search=ist.AStar(), progress=False)
    assert solution.status.message == "no graph scores higher."
    forbidden = ist.Knowledge(forbidden=[("a", "d")])
    solution = ist.learn(table(), search=ist.SubsetDP(), knowledge=forbidden, progress=False)
    assert "no graph that agrees with the knowledge scores higher" in solution.status.message


def test_the_bound_of_a_table_is_part_of_the_claim() -> None:
    sets = ist.parent_sets(table(), score=ist.GaussianBIC(), max_parents=1)
    for search in (ist.SubsetDP(), ist.AStar()):
        message = ist.solve(sets, search=search).status.message
        assert "no graph with at most 1 parent per node scores higher" in message
    listed = ScoreTable.from_lists(
        ["a", "b"], [[((), -1.0)], [((), -2.0)]], complete=False, max_parents=3
    )
    message = ist.solve(listed, search=ist.AStar()).status.message
    assert "no graph of the listed parent sets with at most 3 parents per node" in message


def test_a_known_order_claims_no_more_than_its_bound() -> None:
    search = ist.KnownOrder(NAMES, max_parents=1, exact=True)
    message = ist.learn(table(), search=search, progress=False).status.message
    assert message == (
        "no graph with at most 1 parent per node that agrees with the order scores higher."
    )
