"""Checks of rows: what they find, and what they must not."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.verbs.notes_rows import (
    RowTable,
    alike_neighbours,
    copied_cells,
    copied_rows,
    outlying_rows,
    repeated_units,
)

Rng = np.random.Generator
SEEDS = range(5)


def rows_of(table: dict[str, Any], **options: Any) -> RowTable:
    table = {name: np.asarray(x) for name, x in table.items()}
    rows = RowTable.of(ist.Frame(table, **options))
    assert rows is not None
    return rows


def named(values: Any) -> dict[str, Any]:
    return {f"v{j}": values[:, j] for j in range(values.shape[1])}


def linear(rng: Rng, n: int = 500) -> dict[str, Any]:
    a, b, c, d = rng.normal(size=(4, n))
    return {"a": a, "b": a + b, "c": a - b + c, "d": d}


def test_outliers_are_named_by_their_position_in_the_given_table() -> None:
    table = linear(np.random.default_rng(0))
    table["b"][123] = -700.0
    found = outlying_rows(rows_of(table))
    assert found.rows.tolist() == [123]
    assert "Check row 123 (counted from 0)" in found.notes[0]
    table["a"][7] = np.nan
    holes = RowTable.of(ist.Frame(table, missing=ist.ExpectationMaximisation()))
    assert holes is not None
    assert "Check row 123 (counted from 0)" in outlying_rows(holes).notes[0]
    dropped = rows_of(table, missing=ist.DropRows())
    assert "Check row 122 (counted from 0 without dropped rows)" in outlying_rows(dropped).notes[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_heavy_tails_and_rare_counts_are_not_outliers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clean = linear(rng, 60)
    clean["t"] = rng.standard_t(3, 60)
    clean["rare"] = np.where(np.arange(60) == 3, 9.0, 0.0)
    assert outlying_rows(rows_of(clean, kinds={"rare": "continuous"})).notes == ()
    assert outlying_rows(rows_of(named(np.exp(rng.normal(size=(300, 4)))))).notes == ()


def test_answers_of_a_fitted_network_say_that_rows_depend_on_each_other() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 100, 400)
    copied = {name: column[rows] for name, column in linear(rng, 100).items()}
    steps = np.cumsum(rng.normal(size=(2, 400)), axis=1)
    walks = {"a": steps[0], "b": steps[0] + steps[1]}
    high = np.where(copied["a"] > 0, "high", "low")
    dag = ist.DAG(["a", "b"], [("a", "b")])
    for table, word in ((copied, "copies"), (copied | {"a": high}, "copies"), (walks, "Series")):
        value = table["a"][0].item()
        with pytest.warns(ist.errors.NotesWarning):
            network: Any = ist.fit({"a": table["a"], "b": table["b"]}, dag)
        (note,) = network.notes
        assert word in note
        assert "too narrow" in note
        assert note in repr(network)
        assert note in network.query("b", do={"a": value}).note
        again: Any = ist.io.from_json(ist.io.to_json(network))
        assert again.notes == copy.copy(network).notes == (note,)
        assert again.reorder(["b", "a"]).notes == (note,)
        text = str(ist.effect(table, dag, "a", "b"))
        assert note in text
    clean = {name: column for name, column in linear(rng).items() if name in "ab"}
    assert not ist.fit(clean, dag).notes
    assert not ist.effect(clean, dag, "a", "b").notes
    clean["a"][17] = 1e4
    assert "Check row 17" in str(ist.effect(clean, dag, "a", "b"))
    with noted("Check row 17"):
        assert "Check row 17" in str(ist.fit(clean, dag).query("b", do={"a": 1.0}))


def test_ranges_of_answers_say_that_rows_depend_on_each_other() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 100, 400)
    table = {name: column[rows] for name, column in linear(rng, 100).items() if name in "ab"}
    with noted():
        network: Any = ist.learn(table, score=ist.GaussianBIC()).fit(curves=False)
    assert "copies" in str(network.query("b", do={"a": 1.0}))
    a = rng.integers(0, 6, 100)
    b = np.where(rng.random(100) < 0.7, a, rng.integers(0, 6, 100))
    levels = np.array(list("pqrstu"))
    twice = {name: np.tile(levels[own], 4) for name, own in {"a": a, "b": b}.items()}
    with noted():
        discrete: Any = ist.learn(twice).fit()
    assert "copies" in str(discrete.query("b", do={"a": "p"}))


@pytest.mark.parametrize("n", [300, 30_000])
def test_copies_are_found_wherever_they_are(n: int) -> None:
    rng = np.random.default_rng(1)
    kinds = {
        "each in turn": np.repeat(np.arange(n // 2), 2),
        "the table twice": np.tile(np.arange(n // 2), 2),
        "a tenth again": np.concatenate([np.arange(n), np.arange(n // 9)]),
        "drawn": rng.integers(0, n, n),
    }
    for name, rows in kinds.items():
        table = {key: x[rows] for key, x in linear(rng, n).items()}
        assert copied_rows(rows_of(table)), name
        assert not copied_rows(rows_of(linear(rng, n)))


@pytest.mark.parametrize("seed", SEEDS)
def test_repeats_of_few_levels_are_not_copies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 2, 400)
    levels = np.array(["no", "yes"])
    same = {f"v{j}": levels[base ^ (rng.random(400) < 0.05)] for j in range(8)}
    assert not copied_rows(rows_of(same))
    likert = np.clip(np.round(4 + rng.normal(size=(400, 4))), 1, 7)
    numbers = rows_of(named(likert), kinds=dict.fromkeys(("v0", "v1", "v2", "v3"), "continuous"))
    assert not copied_rows(numbers)
    design = np.array([(i, j, k) for i in range(3) for j in range(3) for k in range(3)] * 10)
    assert not copied_rows(rows_of(named(np.array(["a", "b", "c"])[design])))


@pytest.mark.parametrize("seed", SEEDS)
def test_one_frequent_row_and_rounded_columns_are_not_copies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    users = rng.random(400) < 0.3
    used = {k: np.where(users, rng.gamma(2, size=400).round(2), 0.0) for k in "abc"}
    assert not copied_rows(rows_of(used))
    exact = {k: x + np.where(users, 1e-3 * rng.random(400), 0.0) for k, x in used.items()}
    copied = {k: np.concatenate([x, x[users][:60]]) for k, x in exact.items()}
    assert "13% of the rows repeat others" in copied_rows(rows_of(copied))[0]
    amounts = np.where(rng.random(4000) < 0.7, 0.0, np.exp(rng.normal(8.0, 1.0, 4000)))
    spent = {"amount": amounts, "sex": rng.choice(["f", "m"], 4000)}
    assert not copied_rows(rows_of(spent))
    twice = {name: np.concatenate([x, x[:1000]]) for name, x in spent.items()}
    assert copied_rows(rows_of(twice))
    rounded = rng.normal(size=400).round(1)
    assert not copied_rows(rows_of({"y": rounded}))
    assert not copied_rows(rows_of({"y": rounded, "z": (2 * rounded + 1).round(1)}))


def test_counts_show_copies_of_the_whole_table() -> None:
    import polars as pl

    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(0, 3, size=(60, 8)), 20, axis=0)
    table = pl.DataFrame(named(np.array(["a", "b", "c"])[codes]))
    counts = ist.summarise(table.lazy(), plan=ist.CountPlan.everything())
    assert isinstance(counts, ist.Counts)
    assert "occurs 20 times" in copied_cells(counts)[0]
    with noted("remove the copies"):
        ist.learn(counts)
    other = ist.summarise(ist.datasets.asia(rows=500, seed=0), plan=ist.CountPlan.everything())
    assert isinstance(other, ist.Counts)
    assert copied_cells(other) == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_repeated_units(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 80, 400)
    effects = rng.normal(size=(80, 3))[number]
    table = {"person": number, **named(effects + 0.5 * rng.normal(size=(400, 3)))}
    assert "each 'person'" in repeated_units(rows_of(table))[0]
    text = {**table, "person": np.array([f"p{i}" for i in np.repeat(np.arange(80), 5)])}
    text.update(named(np.repeat(effects[:80], 5, axis=0) + rng.normal(size=(400, 3)) / 2))
    assert "each 'person'" in repeated_units(rows_of(text, kinds={"person": "discrete"}))[0]
    # Ages are whole numbers too, and explain others smoothly.
    age = rng.integers(20, 80, 400)
    smooth = {"age": age, "x": 0.1 * age + rng.normal(size=400), "y": (age - 40) ** 2 / 100.0}
    assert not repeated_units(rows_of(smooth))
    assert not repeated_units(rows_of({"person": number, **named(rng.normal(size=(400, 3)))}))


@pytest.mark.parametrize("n", [200, 5_000])
@pytest.mark.parametrize("seed", SEEDS)
def test_sorted_rows_are_not_a_time_series(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    table = linear(rng, n)
    group = rng.integers(0, 4, n)
    table["b"] += group
    table["group"] = np.array(list("uvwx"))[group]
    for order in (np.argsort(table["a"]), np.lexsort((table["a"], group)), np.argsort(group)):
        assert not alike_neighbours(rows_of({name: x[order] for name, x in table.items()}))
        assert not alike_neighbours(rows_of({name: x[order[::-1]] for name, x in table.items()}))


@pytest.mark.parametrize("n", [200, 5_000])
def test_series_are_noticed_with_and_without_a_column_of_time(n: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4))
    for t in range(1, n):
        x[t] += 0.8 * x[t - 1]
    words = np.array(["low", "high"])
    states = {f"s{j}": words[(x[:, j] > 0).astype(int)] for j in range(4)}
    for table in (named(x), {"time": np.arange(n) + 0.5, **named(x)}, states):
        assert "neighbouring rows are alike" in alike_neighbours(rows_of(table))[0]


def test_a_trend_that_time_explains_is_not_noted() -> None:
    rng = np.random.default_rng(0)
    time = np.arange(600) + 0.5
    table = {"time": time, **named(rng.normal(size=(600, 3)) + 0.01 * time[:, None])}
    assert not alike_neighbours(rows_of(table))
    del table["time"]
    assert alike_neighbours(rows_of(table))


def test_too_few_rows_and_other_sources_are_not_checked() -> None:
    import polars as pl

    few = {name: x[:19] for name, x in linear(np.random.default_rng(0)).items()}
    assert RowTable.of(ist.Frame(few)) is None
    assert RowTable.of(ist.Lazy(pl.DataFrame(few).lazy())) is None
