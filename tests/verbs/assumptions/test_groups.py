"""Groups that nobody named, and slopes that differ between groups that were named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate

pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")

UNNAMED, UNEQUAL = "Learn within the groups", "on their own"


def notes(table: dict[str, Any], text: str, **options: Any) -> list[str]:
    return [note for note in ist.learn(table, **options).notes if text in note]


def clinics(seed: int, spread: float, groups: int = 30, rows: int = 30) -> dict[str, Any]:
    """A pair, and three columns on their own; rows in random order."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(groups), rows))
    x = {f"v{i}": rng.normal(size=len(group)) for i in range(5)}
    x["v1"] += x["v0"]
    table: dict[str, Any] = {
        name: column + rng.normal(scale=spread, size=groups)[group] for name, column in x.items()
    }
    return table | {"clinic": group + 100}


@pytest.mark.long
def test_a_column_of_clinics_is_named_with_the_edges_that_vanish() -> None:
    false = 0
    for seed in range(5):
        table = clinics(seed, 1.5)
        (note,) = notes(table, UNNAMED)
        assert "groups='clinic'" in note
        assert "v0 – v1" not in note
        assert "v1 – v0" not in note
        within = ist.learn(table, groups="clinic")
        edges = {frozenset(e) for e in within.dag.edges}
        assert frozenset(("v0", "v1")) in edges
        false += len(edges) - 1
        assert not within.notes
    assert false <= 1


def test_no_note_where_groups_do_not_differ() -> None:
    assert not any(notes(clinics(seed, 0.0), UNNAMED) for seed in range(10))


@pytest.mark.long
def test_quantities_are_no_groups() -> None:
    """Ages, counts and whole numbers that take part in the graph have values in an order."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = simulate.linear(simulate.erdos_renyi(6, 8, seed=seed), 600, seed=seed).data
        table: dict[str, Any] = {n: np.array(v) for n, v in data.items()}
        first, second, *_ = table
        table[first] = np.round(2 * table[first])
        table["age"] = np.round(40 + 8 * table[second] + 3 * rng.normal(size=600))
        table["count"] = rng.poisson(np.exp(0.4 * np.clip(table[second], -4, 4)))
        assert not notes(table, UNNAMED)


def slopes(seed: int, spread: float, noise: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(6), 100)
    x, y, z = rng.normal(size=(3, 600)) + rng.normal(size=(3, 6))[:, group]
    own = 0.3 + spread * np.linspace(-1.0, 1.0, 6)
    y = own[group] * x + y * np.exp(noise * rng.normal(size=6)[group])
    return {"x": x, "y": y, "z": z, "site": group}


def test_slopes_that_differ_between_groups_are_named() -> None:
    found = [notes(slopes(seed, 0.6), UNEQUAL, groups="site") for seed in range(10)]
    assert sum(map(len, found)) >= 8
    assert all("y" in own[0] and "x" in own[0] and "z" not in own[0] for own in found if own)


@pytest.mark.long
def test_equal_slopes_have_no_note_whatever_the_noise_of_groups_is() -> None:
    assert not any(notes(slopes(seed, 0.0), UNEQUAL, groups="site") for seed in range(20))
    unequal = [notes(slopes(seed, 0.0, 0.5), UNEQUAL, groups="site") for seed in range(20)]
    assert sum(map(len, unequal)) <= 1
