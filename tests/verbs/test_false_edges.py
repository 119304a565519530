"""Defaults do not find edges in noise, whatever the columns are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist


def noise(d: int, n: int, seed: int, *, discrete: float = 0.0, levels: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    categories = round(d * discrete)
    words = np.array([f"level {i}" for i in range(levels)])
    return {
        f"v{i}": words[rng.integers(0, levels, n)] if i < categories else rng.normal(size=n)
        for i in range(d)
    }


@pytest.mark.long
def test_one_text_column_does_not_loosen_the_control_of_false_edges() -> None:
    table = noise(100, 200, 0)
    before = len(ist.learn(table).dag.edges)
    table["sex"] = np.random.default_rng(1).choice(["m", "f"], 200)
    after = len(ist.learn(table).dag.edges)
    assert before <= 10
    assert after <= 10  # once 170


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("discrete", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize(("d", "n"), [(10, 100), (100, 100), (100, 1000)])
def test_a_tenth_of_an_edge_per_variable_at_most(discrete: float, d: int, n: int) -> None:
    edges = [
        len(ist.learn(noise(d, n, seed, discrete=discrete, levels=2 + seed % 2)).dag.edges)
        for seed in range(3)
    ]
    assert np.mean(edges) <= 0.1 * d


@pytest.mark.parametrize(("d", "n", "discrete"), [(10, 8, 0.0), (10, 8, 0.3), (100, 20, 1.0)])
def test_few_rows_give_few_edges_and_a_note(d: int, n: int, discrete: float) -> None:
    edges = []
    for seed in range(4):
        with noted(f"{n} rows for {d} variables"):
            solution = ist.learn(noise(d, n, seed, discrete=discrete))
        edges.append(len(solution.dag.edges))
        assert any("Use more rows" in note for note in solution.notes)
    assert np.mean(edges) <= 0.2 * d  # once 27 of 45, and 98


def test_the_exact_search_is_the_default_up_to_fifteen_variables() -> None:
    rng = np.random.default_rng(0)
    for d, name in ((15, "SubsetDP"), (16, "Boss")):
        solution = ist.learn({f"v{i}": rng.normal(size=100) for i in range(d)})
        assert name in solution.choice
