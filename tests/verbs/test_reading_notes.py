"""Codes, columns that others determine, and texts for missing values are noted, once per kind."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import isthmus as ist

N = 900


def notes(table: Any) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [note for note in ist.learn(table).notes if "5 to 20" not in note]


def clinics(rng: np.random.Generator, spread: float) -> dict[str, Any]:
    clinic = rng.integers(0, 30, N)
    columns = {f"v{i}": rng.normal(size=N) for i in range(4)}
    levels = {name: spread * rng.normal(size=30) for name in columns}
    table = {name: x + levels[name][clinic] for name, x in columns.items()}
    return table | {"clinic": clinic + 100}


def test_codes_of_clinics_are_no_quantity() -> None:
    (note,) = notes(clinics(np.random.default_rng(0), 0.7))
    assert "groups='clinic'" in note
    assert "'v0', 'v1', 'v2' and 'v3' differ" in note


@pytest.mark.long
def test_numbers_are_no_codes_if_means_do_not_differ_or_follow_a_curve() -> None:
    alarms = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        alarms += bool(notes(clinics(rng, 0.0)))
        number = rng.integers(0, 30, N)
        curves = {f"v{i}": np.sin(number / 10 + i) + rng.normal(size=N) for i in range(4)}
        alarms += any("codes" in note for note in notes(curves | {"number": number}))
    assert alarms <= 2


@pytest.mark.parametrize("numbers", [8, 4])
def test_a_column_that_another_determines(numbers: int) -> None:
    """Numbers of levels are numbers or, if there are few of them, levels of their own."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 8, N)
    table = {
        "x": np.where(level + rng.normal(size=N) > 4, "a", "b"),
        "education": np.array([f"degree {i}" for i in range(8)])[level],
        "education_num": level % numbers,
    }
    (note,) = notes(table)
    assert note == "'education' determines 'education_num' exactly. Drop one."


@pytest.mark.long
def test_few_rows_determine_nothing() -> None:
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        table = {"a": rng.integers(0, 4, 30).astype(str), "b": rng.random(30) < 0.05}
        alarms += any("determine" in note for note in notes(table))
    assert alarms == 0


def test_texts_for_missing_values_are_noted_once() -> None:
    rng = np.random.default_rng(0)
    texts = [" ?", " NA ", "unknown", "-", "Missing"]
    table = {f"c{i}": rng.choice(["yes", "no", text], N) for i, text in enumerate(texts)}
    (note,) = notes(table)
    for name, text in zip(table, texts, strict=True):
        assert repr(name) in note
        assert repr(text) in note
    (note,) = notes({"c": table["c0"], "d": rng.choice(["yes", "none", "low - high"], N)})
    assert note.startswith("Column 'c' has the level ' ?'")


def test_numbers_for_missing_values_are_noted_once() -> None:
    rng = np.random.default_rng(0)
    table = {f"x{i}": np.where(rng.random(N) < 0.1, -999, rng.normal(size=N)) for i in range(3)}
    found = [note for note in notes(table) if "-999" in note]
    assert len(found) == 1
    assert all(repr(name) in found[0] for name in table)


def test_amounts_are_no_codes() -> None:
    """Most people have no capital loss, and few have one of some usual amounts."""
    rng = np.random.default_rng(0)
    amounts = np.append(0, rng.integers(1000, 4000, 25))
    share = np.append(0.8, np.full(25, 0.2 / 25))
    loss = rng.choice(amounts, 5000, p=share)
    level = {x: rng.normal() for x in amounts}
    effect = np.array([level[x] for x in loss])
    table = {f"v{i}": (i + 1) * effect + rng.normal(size=5000) for i in range(3)}
    assert not any("codes" in note for note in notes(table | {"loss": loss}))


def test_rare_levels_do_not_hide_what_is_determined() -> None:
    """As in Adult, where 51 of 32,561 people went no further than preschool."""
    rng = np.random.default_rng(0)
    level = np.minimum(rng.geometric(0.4, N), 9)
    level[:3] = 10
    education = np.array([f"degree {i}" for i in range(11)])[level]
    table = {"x": level + rng.normal(size=N), "education": education, "education_num": level}
    found = [note for note in notes(table) if "determine" in note]
    assert found == ["'education' determines 'education_num' exactly. Drop one."]


@pytest.mark.parametrize("cell", [-999.0, "?"])
def test_values_that_may_stand_for_missing_ones_are_noted(cell: float | str) -> None:
    rng = np.random.default_rng(0)
    x, rare = rng.normal(size=300), rng.random(300) < 0.1
    other = rng.normal(size=300) if isinstance(cell, float) else rng.choice(["u", "v"], 300)
    table = {"x": x, "y": x + rng.normal(size=300), "z": np.where(rare, cell, other)}
    found = [note for note in ist.learn(table).notes if "'z'" in note]
    assert len(found) == 1
    assert str(cell).rstrip("0.") in found[0]
    if cell == -999.0:
        effect = ist.effect(table, ist.DAG(list("xyz"), [("z", "x"), ("x", "y")]), "z", "y")
        assert [note for note in effect.notes if "'z'" in note] == found
