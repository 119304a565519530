"""A table of all families holds the score of every parent set, and nothing that is not allowed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.objectives.problems import discrete_score, gaussian_score

from isthmus.errors import DataError, SchemaError
from isthmus.graphs import Knowledge
from isthmus.objectives import FAMILIES, FamilyTable, LocalScore, list_parent_sets
from isthmus.scores import BIC, GaussianBIC
from isthmus.testing import enumerate_dags


@pytest.mark.parametrize("discrete", [True, False])
def test_every_parent_set_has_its_score(discrete: bool) -> None:
    def make(seed: int, d: int) -> LocalScore:
        if discrete:
            return discrete_score(BIC(), seed, 200, d)
        return gaussian_score(GaussianBIC(), seed, 200, d)

    local = make(0, 5)
    table = FamilyTable.from_score(local)
    assert FAMILIES.of(table) is table
    assert len(table) == 5 * 2**4
    for child in range(5):
        others = [v for v in range(5) if v != child]
        for size in range(5):
            for parents in itertools.combinations(others, size):
                assert table.local(child, parents) == pytest.approx(
                    local.local(child, parents), rel=1e-12
                )
    small = make(1, 4)
    totals = FamilyTable.from_score(small)
    for dag in enumerate_dags(small.nodes):
        assert totals.total(dag) == pytest.approx(small.total(dag), rel=1e-12)


def test_candidates_bounds_and_knowledge_limit_the_sets() -> None:
    local = gaussian_score(GaussianBIC(), 0, 200, 5)
    known = Knowledge(required=[(local.nodes[0], local.nodes[1])]).bind(local.nodes)
    table = FamilyTable.from_score(
        local, candidates=[[1], [2], [], [0, 1], [3]], max_parents=1, knowledge=known
    )
    assert table.candidates == ((), (0, 2), (), (0, 1), (3,))  # 0 → 1 is required, so not 1 → 0
    assert table.local(1, ()) == table.local(1, (2,)) == -np.inf
    assert table.local(1, (0,)) == pytest.approx(local.local(1, (0,)))
    assert table.local(3, (0, 1)) == -np.inf
    assert table.local(4, (0,)) == -np.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_undominated_sets_are_those_of_a_score_table(seed: int) -> None:
    local = discrete_score(BIC(), seed, 200, 5)
    ours = FamilyTable.from_score(local).undominated()
    theirs = list_parent_sets(local)
    assert ours.starts.tolist() == theirs.starts.tolist()
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-12)
    assert (ours.sets == theirs.sets).all()


def test_wrong_tables_are_refused() -> None:
    local = gaussian_score(GaussianBIC(), 0, 200, 3)
    with pytest.raises(SchemaError, match="ascending order"):
        FamilyTable(local.nodes, ((2, 1), (), ()), (np.zeros(4), np.zeros(1), np.zeros(1)))
    with pytest.raises(SchemaError, match="needs 4 scores"):
        FamilyTable(local.nodes, ((1, 2), (), ()), (np.zeros(3), np.zeros(1), np.zeros(1)))
    wide = gaussian_score(GaussianBIC(), 0, 200, 25)
    with pytest.raises(DataError, match="Give fewer candidates"):
        FamilyTable.from_score(wide)
