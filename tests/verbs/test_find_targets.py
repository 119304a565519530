"""Targets of interventions that nobody stated: found, challenged, and passed on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, MismatchError, MissingValuesError, SchemaError
from isthmus.fitting.changes import rows_changed
from isthmus.verbs.find_targets import _SharedRegressions, _SharedTables


def regimes(seed: int, *, curve: bool = False, moved: tuple[str, ...] = ("b",)) -> dict[str, Any]:
    """The chain a → b → c in a control and a regime in which some variables moved."""
    r = np.random.default_rng(seed)
    regime = np.repeat(["control", "drug"], [600, 300])
    drug = regime == "drug"
    a = 1.5 * r.normal(size=900) + 2.0 * drug * ("a" in moved)
    b = (np.tanh(2.0 * a) if curve else a) + r.normal(size=900) + 1.5 * drug * ("b" in moved)
    c = b + r.normal(size=900)
    return {"a": a, "b": b, "c": c, "regime": regime}


def test_targets_are_found_and_interventions_take_them() -> None:
    table = regimes(0)
    found = ist.find_targets(table, column="regime", control="control")
    assert dict(found) == {"control": (), "drug": ("b",)}
    assert found.dag.edges == (("a", "b"), ("b", "c"))
    assert "drug: b" in str(found)
    assert len(found.to_frame()["node"]) == 3


def test_interventions_take_what_is_found() -> None:
    table = regimes(0)
    drug = table["regime"] == "drug"
    r = np.random.default_rng(1)
    table["b"] = np.where(drug, 2.0 * r.normal(size=900), table["b"])
    table["c"] = table["b"] + r.normal(size=900)
    found = ist.find_targets(table, column="regime", control="control")
    assert dict(found) == {"control": (), "drug": ("b",)}
    solution = ist.learn(ist.Interventions(table, found, column="regime"))
    assert set(solution.cpdag.directed) == {("a", "b"), ("b", "c")}


def test_nothing_is_found_where_nothing_changed() -> None:
    """The bound is that of a binomial of 60 tables at 5%: it is exceeded once in 200 times."""
    false = 0
    for seed in range(60):
        found = ist.find_targets(regimes(seed, moved=()), column="regime", control="control")
        false += found["drug"] != ()
    assert false <= 8


@pytest.mark.parametrize("seed", range(3))
def test_a_curve_whose_cause_moved_is_no_target(seed: int) -> None:
    table = regimes(seed, curve=True, moved=("a",))
    found = ist.find_targets(table, column="regime", control="control")
    assert found["drug"] == ("a",)
    place = {v: i for i, v in enumerate("abc")}
    rows = np.column_stack([table[v] for v in "abc"])
    control = table["regime"] == "control"
    pair = [rows[own][:, [place["a"], place["b"]]] for own in (control, ~control)]
    assert rows_changed(pair[0], pair[1]) > 0.01


def test_a_parent_that_is_held_constant_changes_no_child() -> None:
    r = np.random.default_rng(0)
    regime = np.repeat(["control", "knocked out"], 400)
    a = np.where(regime == "control", r.normal(size=800), 0.0)
    table = {"a": a, "b": a + r.normal(size=800), "regime": regime}
    found = ist.find_targets(table, column="regime", control="control")
    assert dict(found) == {"control": (), "knocked out": ("a",)}


def codes(seed: int) -> dict[str, Any]:
    """The chain a → b → c of two levels, in which the drug sets b at random."""
    r = np.random.default_rng(seed)
    regime = np.repeat([1, 2], 500)
    a = r.integers(0, 2, 1000)
    b = np.where((r.random(1000) < 0.85) & (regime == 1), a, r.integers(0, 2, 1000))
    c = np.where(r.random(1000) < 0.85, b, 1 - b)
    words = np.array(["no", "yes"])
    return {"a": words[a], "b": words[b], "c": words[c], "regime": regime}


def test_categories() -> None:
    found = ist.find_targets(codes(0), column="regime", control=1)
    assert dict(found) == {1: (), 2: ("b",)}
    assert found.dag.edges == (("a", "b"), ("b", "c"))


def test_scores_are_those_of_their_definition() -> None:
    """BIC of one regression or table for both regimes, or of one each if that is larger."""
    r = np.random.default_rng(1)
    regime = np.repeat([0, 1], [50, 40])
    x = r.normal(size=(90, 2))
    x[:, 1] += 2.0 * regime * x[:, 0]
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    for parents in ((), (0,)):
        likelihoods = []
        for rows in (z[regime == 0], z[regime == 1], z):
            design = np.column_stack([np.ones(len(rows)), rows[:, list(parents)]])
            rest = rows[:, 1] - design @ np.linalg.lstsq(design, rows[:, 1], rcond=None)[0]
            likelihoods.append(-0.5 * len(rows) * np.log(np.mean(rest**2)))
        price = 0.5 * np.log(90) * (len(parents) + 2)
        expected = max(likelihoods[0] + likelihoods[1] - 2 * price, likelihoods[2] - price)
        assert _SharedRegressions(x, regime).family(1, parents)[0] == pytest.approx(
            expected, rel=1e-6
        )
    y = r.integers(0, 3, size=(90, 2))
    likelihoods = []
    for rows in (y[regime == 0], y[regime == 1], y):
        table = np.histogram2d(rows[:, 0], rows[:, 1], bins=3, range=((-0.5, 2.5),) * 2)[0]
        share = table / table.sum(axis=1, keepdims=True)
        likelihoods.append(float((table[table > 0] * np.log(share[table > 0])).sum()))
    price = 0.5 * np.log(90) * 6
    expected = max(likelihoods[0] + likelihoods[1] - 2 * price, likelihoods[2] - price)
    assert _SharedTables(y, regime, [3, 3]).family(1, (0,))[0] == pytest.approx(expected, rel=1e-12)


def test_refusals() -> None:
    table = regimes(0)
    with pytest.raises(ArgumentError, match="untreated"):
        ist.find_targets(table, column="regime", control="untreated")
    with pytest.raises(ArgumentError, match="alpha"):
        ist.find_targets(table, column="regime", control="control", alpha=2.0)
    with pytest.raises(SchemaError, match="batch"):
        ist.find_targets(table, column="batch", control="control")
    with pytest.raises(MissingValuesError, match="complete rows"):
        ist.find_targets(
            table | {"a": np.append(np.nan, table["a"][1:])}, column="regime", control="control"
        )
    mixed = table | {"a": np.where(table["a"] > 0, "high", "low")}
    with pytest.raises(MismatchError, match="'a' are discrete"):
        ist.find_targets(mixed, column="regime", control="control")


def test_a_change_that_a_curve_explains_cannot_be_shown() -> None:
    """The parent has other values in the second table, and few of them."""
    r = np.random.default_rng(0)
    x = r.integers(0, 6, 600).astype(float)
    rows = np.column_stack([x, x + 3.0 * (x > 2) + r.normal(size=600)])
    assert rows_changed(rows[x <= 2], rows[x > 2]) == 1.0
