"""Which values are missing tells nothing about the directions of edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.testing import enumerate_dags

Table = dict[str, Any]


def _pair(share: float) -> Table:
    """A noisy copy in which values are missing completely at random."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 1000)
    b = np.where(rng.random(1000) < 0.75, a, 1 - a)
    table = {"a": np.array(["a0", "a1"], object)[a], "b": np.array(["b0", "b1"], object)[b]}
    table["b"][rng.random(1000) < share] = None
    return table


def _triangle() -> Table:
    """Three variables that depend on each other, with different shares of missing values."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 600)
    b = np.where(rng.random(600) < 0.8, a, rng.integers(0, 2, 600))
    c = np.where(rng.random(600) < 0.6, (a + b) % 3, rng.integers(0, 3, 600))
    table = {name: x.astype(str).astype(object) for name, x in (("a", a), ("b", b), ("c", c))}
    for name, share in (("a", 0.05), ("b", 0.4), ("c", 0.2)):
        table[name][rng.random(600) < share] = None
    return table


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_missing_values_do_not_direct_an_edge(share: float) -> None:
    options: Table = {"score": ist.BIC(), "missing": ist.AvailableCases()}
    posterior = ist.sample(_pair(share), draws=50, seed=1, **options)
    assert posterior.probability(ist.edge("a", "b")) == pytest.approx(0.5, abs=1e-6)
    assert posterior.probability(ist.edge("b", "a")) == pytest.approx(0.5, abs=1e-6)
    scores = [
        ist.learn(_pair(share), search=search, **options).score
        for search in (ist.XGES(), ist.SubsetDP(), ist.HillClimb())
    ]
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-6)


def test_equivalent_graphs_have_the_same_score() -> None:
    table = _triangle()
    classes: dict[object, float] = {}
    for dag in enumerate_dags(["a", "b", "c"]):
        value = ist.score(table, dag, ist.BIC(), missing=ist.AvailableCases())
        assert classes.setdefault(dag.cpdag(), value) == pytest.approx(value, abs=1e-6)
    assert len(set(classes.values())) == 11


def test_structural_em_starts_without_directions_from_missingness() -> None:
    solution = ist.learn(_pair(0.5), score=ist.BIC(), missing=ist.StructuralEM())
    assert solution.equivalent
    assert len(solution.cpdag.undirected) == 1


def _beside_a_copy(rows: int, seed: int) -> Table:
    """A noisy copy, and an independent variable of which half of the values are missing."""
    rng = np.random.default_rng(seed)
    a = rng.random(rows) < 0.15
    b = np.where(rng.random(rows) < 0.05, ~a, a)
    c = np.where(rng.random(rows) < 0.5, "yes", "no").astype(object)
    c[rng.random(rows) < 0.5] = None
    return {"a": a, "b": b, "c": c}


def _beside_an_exclusive_or(rows: int, seed: int) -> Table:
    """Three variables that are independent in pairs, and an independent one as above."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(rows) < 0.5, rng.random(rows) < 0.5
    x = a ^ b ^ (rng.random(rows) < 0.08)
    return {"a": a, "b": b, "x": x, "c": _beside_a_copy(rows, 1000 + seed)["c"]}


@pytest.mark.parametrize("rows", [300, 1000, 4000, 20_000])
@pytest.mark.parametrize("table", [_beside_a_copy, _beside_an_exclusive_or])
def test_an_independent_variable_with_missing_values_has_no_edges(table: Any, rows: int) -> None:
    missing = ist.AvailableCases()
    graphs = [ist.learn(table(rows, seed), missing=missing).dag for seed in range(20)]
    assert sum(any("c" in edge for edge in dag.edges) for dag in graphs) <= 1
    if table is _beside_a_copy:
        assert all({"a", "b"} in map(set, dag.edges) for dag in graphs)


def test_asia_with_missing_values_everywhere_has_few_false_edges() -> None:
    data = ist.datasets.asia(rows=20_000, seed=1)
    rng = np.random.default_rng(1001)  # other draws than those of the table
    table = {name: np.array(column, object) for name, column in data.items()}
    for column in table.values():
        column[rng.random(20_000) < 0.3] = None
    true = set(data.dag.skeleton().edges)
    found = set(ist.learn(table, missing=ist.AvailableCases()).dag.skeleton().edges)
    assert len(found - true) <= 1
    assert len(found & true) >= 6
