"""Searches over weights find next to nothing in noise; the whole table is in the benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.searches import FamilyEBIC, Search

CASES = [(10, 100), (10, 1000), (30, 100)]


def noise(d: int, n: int, seed: int = 0, scale: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {f"x{i}": scale * rng.normal(size=n) for i in range(d)}


@pytest.mark.long
@pytest.mark.parametrize(("d", "n"), CASES)
def test_additive_search_finds_next_to_nothing_in_noise(d: int, n: int) -> None:
    edges = [
        len(ist.learn(noise(d, n, seed), search=ist.NotearsAdditive()).dag.edges)
        for seed in range(3)
    ]
    assert np.mean(edges) <= 0.1 * d


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize(("d", "n"), [*CASES, (20, 50)])
def test_dynamic_search_finds_next_to_nothing_in_noise(d: int, n: int) -> None:
    edges = [
        len(ist.learn(ist.Series(noise(d, n, seed), lags=2), search=ist.Dynotears()).dag.edges)
        for seed in range(3)
    ]
    assert np.mean(edges) <= 0.1 * d


@pytest.mark.long
def test_columns_in_other_units_bring_no_false_edges() -> None:
    table = noise(10, 200)
    table["x3"] = 1e4 * table["x3"]
    table["x7"] = 1e-4 * table["x7"]
    assert len(ist.learn(table, search=ist.NotearsAdditive()).dag.edges) <= 1


@pytest.mark.long
def test_logistic_search_finds_next_to_nothing_in_noise() -> None:
    rng = np.random.default_rng(0)
    table = {f"x{i}": rng.random(300) < 0.4 for i in range(8)}
    found = ist.learn(table, score=ist.Logistic(), search=ist.NotearsAdditive())
    assert len(found.dag.edges) <= 1


@pytest.mark.long
def test_poisson_search_finds_next_to_nothing_in_noise() -> None:
    rng = np.random.default_rng(0)
    table = {f"x{i}": rng.poisson(2.0, size=300) for i in range(8)}
    found = ist.learn(table, score=ist.Poisson(), search=ist.NotearsAdditive())
    assert len(found.dag.edges) <= 1


def test_the_criterion_refuses_negative_options() -> None:
    with pytest.raises(ist.errors.ArgumentError, match="gamma"):
        FamilyEBIC(gamma=-1.0)


@pytest.mark.parametrize("search", [ist.NotearsAdditive(0.05), ist.NotearsAdditive(threshold=0.1)])
def test_one_of_penalty_and_threshold_is_enough(search: Search) -> None:  # type: ignore[type-arg]
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    table = {"a": a, "b": np.sin(2 * a) + 0.3 * rng.normal(size=400)}
    assert set(ist.learn(table, search=search).dag.edges) == {("a", "b")}
