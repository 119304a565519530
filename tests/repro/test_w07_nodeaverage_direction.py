"""w07: which values are missing tells nothing about the directions of edges."""

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
    options: Table = {"score": ist.BIC(), "missing": ist.NodeAverage()}
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
        value = ist.score(table, dag, ist.BIC(), missing=ist.NodeAverage())
        assert classes.setdefault(dag.cpdag(), value) == pytest.approx(value, abs=1e-6)
    assert len(set(classes.values())) == 11


def test_structural_em_starts_without_directions_from_missingness() -> None:
    solution = ist.learn(_pair(0.5), score=ist.BIC(), missing=ist.StructuralEM())
    assert solution.equivalent
    assert len(solution.cpdag.undirected) == 1
