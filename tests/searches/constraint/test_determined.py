"""Columns that others determine: copies, codes and totals must not take edges from the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats, Integers
from isthmus.searches import Search

ROWS = 1000
SEARCHES: list[Search[Any]] = [ist.PC(), ist.FCI()]
pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")


def neighbours(table: dict[str, Any], search: Search[Any]) -> set[str]:
    solution = ist.learn(table, search=search)
    if isinstance(solution, ist.PAGSolution):
        return {a + b for a, _, b in solution.pag.edges}
    return {"".join(sorted(edge)) for edge in solution.dag.edges}


def numbers() -> list[Floats]:
    rng = np.random.default_rng(19)
    a, b, c = rng.normal(size=(3, ROWS))
    return [a, a + b, a + b + c]


def levels() -> list[Integers]:
    rng = np.random.default_rng(19)
    a, b, c = rng.integers(0, 3, (3, ROWS))
    b = np.where(rng.random(ROWS) < 0.8, a, b)
    return [a, b, np.where(rng.random(ROWS) < 0.8, b, c)]


def text(**columns: Integers) -> dict[str, Any]:
    return {name: np.array([f"level {code}" for code in own]) for name, own in columns.items()}


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_a_copy_takes_no_edges(search: Search[Any]) -> None:
    x, y, z = numbers()
    assert neighbours({"a": x, "b": y, "c": z, "d": 3.0 - x}, search) == {"ab", "ad", "bc", "bd"}
    a, b, c = levels()
    assert neighbours(text(a=a, b=b, c=c, d=2 - a), search) == {"ab", "ad", "bc", "bd"}
    mixed = {**text(a=a, d=a), "b": x + a}
    assert neighbours(mixed, search) >= {"ab", "ad"}


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_a_total_and_a_combined_code_take_no_edges(search: Search[Any]) -> None:
    x, y, z = numbers()
    assert "bc" in neighbours({"a": x, "b": y, "c": z, "d": x + y}, search)
    a, b, c = levels()
    assert "bc" in neighbours(text(a=a, b=b, c=c, d=3 * a + b), search)


@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_merged_levels_have_the_column_that_determines_them_as_the_only_neighbour(
    search: Search[Any],
) -> None:
    a, b, c = levels()
    assert neighbours(text(a=a, b=b, c=c, d=a // 2), search) == {"ab", "ad", "bc"}


def test_pc_finds_the_class_of_asia() -> None:
    rows = ist.datasets.asia(rows=5000, seed=1)
    solution = ist.learn(rows, search=ist.PC())
    edges = "at sl sb te le bd ex ed"
    assert {frozenset((a[0], b[0])) for a, b in solution.dag.edges} == {
        *map(frozenset, edges.split())
    }


@pytest.mark.parametrize("kind", ["numbers", "levels", "mixed"])
def test_the_p_value_is_not_a_number_given_what_determines(kind: str) -> None:
    a, b, _ = numbers()
    table: dict[str, Any] = {"a": a, "b": b, "c": -a}
    test: Any = ist.FisherZ() if kind == "numbers" else ist.MixedLikelihoodRatio()
    if kind == "levels":
        table, test = text(a=levels()[0], b=levels()[1], c=levels()[0]), ist.ChiSquared()
        bound = test.bind(ist.Frame(table).counts(ist.CountPlan.everything()))
    else:
        bound = test.bind(ist.summarise(table))
    assert np.isnan(bound.p_values(0, [2], [1])).all()
    assert np.isnan(bound.p_values(1, [2], [0])).all()
    assert (bound.p_values(0, [1], [2]) < 1e-9).all()
