"""The bootstrap and cross-validation of rows with missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist

EM = ist.ExpectationMaximisation()


def numbers(n: int, share: float, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    table = {"a": a, "b": b, "c": b + rng.normal(size=n), "d": rng.normal(size=n)}
    for column in table.values():
        column[rng.random(n) < share] = np.nan
    return table


def levels(n: int, share: float, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    table = numbers(n, 0.0, seed)
    return {
        name: np.where(rng.random(n) < share, np.array(None), np.where(x > 0, "yes", "no"))
        for name, x in table.items()
    }


def mixed(n: int, share: float, seed: int = 0) -> dict[str, Any]:
    return numbers(n, share, seed) | {"b": levels(n, share, seed)["b"]}


@pytest.mark.long
@pytest.mark.parametrize("table", [numbers, mixed])
def test_the_bootstrap_estimates_moments_in_each_replicate(table: Any) -> None:
    data = table(600, 0.25)
    ensemble = ist.bootstrap(data, missing=EM, replicates=15, seed=2)
    shares = ensemble.adjacency_probabilities()
    assert shares["a", "b"] > 0.9
    assert shares["b", "c"] > 0.9
    assert shares["a", "d"] < 0.3
    assert any("with their missing values" in note for note in ensemble.notes)
    again = ist.bootstrap(data, missing=EM, replicates=15, seed=2, jobs=1)
    assert np.array_equal(ensemble.edge_probabilities(), again.edge_probabilities())
    assert len({ensemble.edge_probabilities()["a", "b"], 0.0, 1.0}) == 3  # replicates differ


def test_the_bootstrap_completes_categories_in_each_replicate() -> None:
    data = levels(800, 0.25)
    missing = ist.StructuralEM(completions=3, max_iterations=3)
    ensemble = ist.bootstrap(data, missing=missing, replicates=8, seed=1)
    shares = ensemble.adjacency_probabilities()
    assert shares["a", "b"] > 0.9
    assert shares["a", "d"] < 0.3


@pytest.mark.long
def test_a_replicate_without_common_rows_has_no_edge_between_them() -> None:
    data = numbers(200, 0.0)
    data["a"][8:] = np.nan
    ensemble = ist.bootstrap(data, missing=EM, replicates=10, seed=0)
    assert ensemble.adjacency_probabilities()["b", "c"] > 0.9


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "missing"),
    [
        (numbers, EM),
        (mixed, EM),
        (levels, ist.StructuralEM(completions=3, max_iterations=3)),
        (levels, ist.AvailableCases()),
    ],
)
def test_rows_that_are_left_out_are_scored_by_what_is_there(table: Any, missing: Any) -> None:
    data, folds = table(300, 0.25), 3
    learned = ist.cross_validate(data, folds=folds, missing=missing, seed=1)
    nothing = ist.Knowledge(forbidden=[(a, b) for a in data for b in data if a != b])
    empty = ist.cross_validate(data, folds=folds, missing=missing, seed=1, knowledge=nothing)
    assert learned.mean > empty.mean
    whole = ist.cross_validate(table(300, 0.0), folds=folds, missing=missing, seed=1)
    assert whole == ist.cross_validate(table(300, 0.0), folds=folds, seed=1)
    assert learned.mean > whole.mean  # fewer values are there to be predicted
