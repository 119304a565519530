"""Exact searches agree on samples of known networks."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import pytest
from tests.io.cases import DATA

import isthmus as ist
from isthmus.io import read_bif
from isthmus.results import Ending
from isthmus.searches import SubsetDP

NETWORKS = [
    ("asia", None, True),
    ("sachs", None, True),
    pytest.param("insurance", 2, False, marks=pytest.mark.slow),
]
if "ISTHMUS_LONG" in os.environ:
    NETWORKS.append(("child", None, True))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
@pytest.mark.parametrize(("name", "max_parents", "all_subsets"), NETWORKS)
def test_they_agree(name: str, max_parents: int | None, all_subsets: bool) -> None:
    path = DATA / "networks" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip("the networks are not at hand")
    sample = read_bif(path).sample_codes(5000, seed=1)
    kinds = dict.fromkeys(sample, ist.Kind.DISCRETE)
    table = ist.parent_sets(sample, score=ist.BIC(), kinds=kinds, max_parents=max_parents)
    searches: list[Any] = [ist.AStar()]
    if find_spec("pyscipopt") is not None:
        searches.append(ist.ILP())
    if all_subsets:
        searches.append(SubsetDP())
    found = [ist.solve(table, search=search) for search in searches]
    assert all(one.status.ending is Ending.OPTIMAL for one in found)
    assert [one.score for one in found] == pytest.approx([found[0].score] * len(found), rel=1e-12)
    greedy = ist.learn(sample, score=ist.BIC(), search=ist.Boss(), kinds=kinds)
    if max_parents is None:
        assert found[0].score >= greedy.score - 1e-6
