"""Effects of discrete causes whose levels do not overlap, and what is said about them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError, GraphError, MismatchError
from isthmus.fitting.effects import Estimate
from isthmus.fitting.standardised import standardised_effect
from isthmus.results import PossibleEffect
from isthmus.statistics import Kind, Schema, Variable

TIERS = ist.Knowledge(tiers=[["z"], ["t"], ["y"]])
DAG = ist.DAG(["z", "t", "y"], [("z", "t"), ("z", "y"), ("t", "y")])


def treated_women(n: int, share: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z = rng.choice(["f", "m"], n)
    t = rng.random(n) < np.where(z == "f", share, 0.5)
    y = rng.random(n) < np.where(z == "f", 0.6 - 0.3 * t, 0.2)
    return {"z": z, "t": np.where(t, "yes", "no"), "y": np.where(y, "dead", "alive")}


def estimated(t: Any, y: Any, z: Any, *, binary: bool) -> Estimate:
    """Return the effect of t on y, adjusted for a number z."""
    outcome = (0, 1) if binary else ()
    schema = Schema(
        (
            Variable("t", Kind.DISCRETE, (0, 1)),
            Variable("y", Kind.DISCRETE if binary else Kind.CONTINUOUS, outcome),
            Variable("z", Kind.CONTINUOUS),
        )
    )
    rows = np.column_stack([t, y, z]).astype(np.float64)
    return standardised_effect(schema, rows, (0, 1), 1 if binary else None)


def test_a_rare_level_is_named() -> None:
    table = treated_women(1000, 1.0, 1)
    table["t"][np.flatnonzero(table["z"] == "f")[:4]] = "no"
    estimate = ist.effect(table, DAG, "t", "y", outcome="dead")
    share = (table["z"] == "f").mean()
    assert estimate.alternatives[0].without_overlap == pytest.approx(share)
    assert f"{share:.1%} of rows have little or no overlap (positivity)." in str(estimate)
    assert "extrapolation" not in str(estimate)


def assert_covers(inside: list[bool], most: float = 1.0) -> None:
    from scipy.stats import binom

    least = binom.ppf(0.0005, len(inside), 0.95)
    assert least <= sum(inside) <= most * len(inside)


def test_a_combination_without_one_of_the_levels_is_refused() -> None:
    table = treated_women(600, 1.0, 0)
    share = f"{(table['z'] == 'f').mean():.1%}"
    said = rf"\(positivity\): no row has t = 'no' and z = 'f', a combination that {share} of rows"
    with pytest.raises(DataError, match=said):
        ist.learn(table, knowledge=TIERS).effect("t", "y", outcome="dead")
    with pytest.raises(DataError, match=said):
        ist.effect(table | {"y": np.arange(600.0)}, DAG, "t", "y")
    # Nor are few rows a reason to believe a regression: nobody says anything about women.
    few = {name: column[:24] for name, column in table.items()}
    with pytest.raises(DataError, match="no row has t = 'no' and z = 'f'"):
        ist.effect(few, DAG, "t", "y", outcome="dead")


def test_few_rows_without_overlap_are_left_out() -> None:
    table = treated_women(600, 0.5, 1)
    table["z"][:12] = "x"
    table["t"][:12] = "yes"
    estimate = ist.effect(table, DAG, "t", "y", outcome="dead")
    rest = {name: column[12:] for name, column in table.items()}
    same = ist.effect(rest, DAG, "t", "y", outcome="dead")
    assert estimate.value == pytest.approx(same.value)
    assert estimate.alternatives[0].without_overlap == pytest.approx(0.02)
    assert str(estimate).endswith(
        "adjusted for z. 2.0% of rows have little or no overlap (positivity)."
    )
    assert "overlap" not in str(same)


def test_curves_of_one_level_do_not_explode_where_only_the_other_has_rows() -> None:
    rng = np.random.default_rng(33)
    z = rng.normal(size=500)
    t = rng.random(500) < 1.0 / (1.0 + np.exp(-2.0 * z))
    y = t + np.exp(z) + rng.normal(size=500)
    estimate = estimated(t, y, z, binary=False)
    assert "a curve of z" in estimate.terms  # by curves alone, the effect is 3,329
    assert abs(estimate.value - 1.0) < 2.0 * estimate.standard_error < np.ptp(y) / 4.0
    assert estimate.extrapolated


def test_combinations_that_lack_a_level_by_chance_are_predicted() -> None:
    rng = np.random.default_rng(2)
    z = rng.random((150, 6)) < 0.5
    t = rng.random(150) < 0.3 + 0.4 * z[:, 0]
    names = [f"z{j}" for j in range(6)]
    table = {
        "t": t,
        "y": 1.0 * t - z[:, 0] + rng.normal(size=150),
        **dict(zip(names, z.T, strict=True)),
    }
    estimate = ist.effect(table, dag_of(*names), "t", "y")
    assert estimate.alternatives[0].extrapolated
    _, place = np.unique(z, axis=0, return_inverse=True)
    both = [{False, True} == set(t[place.ravel() == k]) for k in place.ravel()]
    assert estimate.alternatives[0].without_overlap == pytest.approx(1 - np.mean(both))
    assert str(estimate).startswith("t (False → True) → y: rests on extrapolation of the regressio")
    assert estimate.interval()[0] < 1.0 < estimate.interval()[1]
    event = ist.effect(table | {"y": table["y"] > 0}, dag_of(*names), "t", "y")
    assert event.alternatives[0].extrapolated  # the prior of a probability is a regression, too
    assert "rests on extrapolation of the regression" in str(event)
    # All of the rows with z0 and z1 are treated: an interaction, which no regression shows.
    gap = table | {"t": t | (z[:, 0] & z[:, 1])}
    with pytest.raises(DataError, match=r"z0 = True and z1 = True.*all combinations"):
        ist.effect(gap, dag_of("z0", "z1", "z2"), "t", "y")


def dag_of(*names: str) -> ist.DAG:
    edges = [(v, w) for v in names for w in ("t", "y")]
    return ist.DAG(["t", "y", *names], [*edges, ("t", "y")])


@pytest.mark.long
def test_intervals_cover_if_nearly_all_are_treated() -> None:
    schema = Schema(tuple(Variable(v, Kind.DISCRETE, (0, 1)) for v in "tyz"))
    inside = []
    for seed in range(150):
        table = treated_women(1000, 0.99, seed)
        columns = [table["t"] == "yes", table["y"] == "dead", table["z"] == "m"]
        try:
            found = standardised_effect(
                schema, np.column_stack(columns).astype(np.float64), (0, 1), 1
            )
        except DataError:
            continue
        low, high = PossibleEffect((), (), *found).interval()
        inside.append(low <= -0.15 <= high)
    assert len(inside) > 140
    assert_covers(inside)


@pytest.mark.long
@pytest.mark.parametrize("slope", [5.0, np.inf])
def test_the_error_includes_that_of_the_regressions(slope: float) -> None:
    inside = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=200)
        t = z > 0 if math.isinf(slope) else rng.random(200) < 1 / (1 + np.exp(-slope * z))
        found = estimated(t, 2 * z - t + rng.normal(size=200), z, binary=False)
        low, high = PossibleEffect((), (), *found).interval()
        inside.append(low <= -1.0 <= high)
        assert found.extrapolated
    assert_covers(inside)


def test_the_error_by_hand() -> None:
    # The estimate is linear in the outcomes, so differences give the influence of each of them.
    rng = np.random.default_rng(3)
    n = 30
    z = rng.normal(size=n)
    t = rng.random(n) < 1 / (1 + np.exp(-z))
    y = z + t + rng.normal(size=n)
    found = estimated(t, y, z, binary=False)
    influence = np.array(
        [estimated(t, y + (np.arange(n) == i), z, binary=False).value for i in range(n)]
    )
    influence -= found.value
    assert influence @ y == pytest.approx(found.value)
    design = np.column_stack([np.ones(n), z])
    predicted, noise = np.zeros((2, n)), np.zeros(n)
    for level in (0, 1):
        own = design[t == level]
        hat = own @ np.linalg.inv(own.T @ own)
        coefficients = hat.T @ y[t == level]
        predicted[level] = design @ coefficients
        left = 1 - (hat * own).sum(axis=1)
        noise[t == level] = (y - predicted[level])[t == level] / np.sqrt(left)
    difference = predicted[1] - predicted[0]
    whole = (difference - difference.mean()) / math.sqrt(n * (n - 1))
    cross = 2 * n / (n - 1) * ((difference - difference.mean()) / n) @ (influence * noise)
    variance = whole @ whole + cross + (influence * noise) @ (influence * noise)
    assert found.standard_error == pytest.approx(math.sqrt(variance))


@pytest.mark.long
def test_the_error_of_a_probability_is_that_of_the_bootstrap() -> None:
    rng = np.random.default_rng(4)
    z = rng.normal(size=400)
    t = rng.random(400) < 1 / (1 + np.exp(-2 * z))
    y = rng.random(400) < 1 / (1 + np.exp(1 - z - t))
    found = estimated(t, y, z, binary=True)
    draws = rng.integers(400, size=(80, 400))
    values = [estimated(t[i], y[i], z[i], binary=True).value for i in draws]
    assert found.standard_error == pytest.approx(np.std(values), rel=0.3)


def test_risk_differences_and_ratios_have_limits() -> None:
    t = np.array([True, False] * 10)
    dag = ist.DAG(["t", "y"], [("t", "y")])
    estimate = ist.effect({"t": t, "y": t.copy()}, dag, "t", "y")
    assert estimate.interval()[1] == 1.0
    assert estimate.alternatives[0].interval(0.999)[1] == 1.0
    assert estimate.e_value() == math.inf
    assert math.isnan(estimate.e_value(0.95))
    # No deaths at all under one level: a fitted probability near zero has an error, too.
    z = np.random.default_rng(5).normal(size=60)
    none = estimated(np.arange(60) % 2, (np.arange(60) % 4 == 1), z, binary=True)
    assert none.standard_error > 0.09


def test_what_refusals_say(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    table: dict[str, Any] = {"t": rng.choice(list("abc"), 80), "y": rng.choice(["u", "v"], 80)}
    solution, ty = ist.learn(table), ist.DAG(["t", "y"], [("t", "y")])
    with pytest.raises(GraphError, match="same node, 't'"):
        solution.effect("t", "t")
    with pytest.raises(DataError, match="'y' is constant: all of its rows have 'dead'"):
        ist.effect(table | {"y": np.repeat("dead", 80)}, ty, "t", "y", outcome="dead")
    solution.save(tmp_path / "a.isthmus", statistics=True)
    with pytest.raises(MismatchError, match="has no rows: files and copies"):
        ist.Solution.load(tmp_path / "a.isthmus").effect("t", "y", change=("a", "b"))
    gaps = {"t": np.where(rng.random(80) < 0.1, None, table["t"]), "y": table["y"]}
    partial = ist.learn(gaps, missing=ist.AvailableCases())
    with pytest.raises(MismatchError, match=r"values of the table are missing.*DropRows\(\)"):
        partial.effect("t", "y", change=("a", "b"))
    a, b = rng.normal(size=(2, 80))
    total = {"a": a, "b": b, "sum": a + b, "y": a + rng.normal(size=80)}
    graph = ist.PDAG(list(total), [("a", "sum"), ("b", "sum"), ("sum", "y")])
    with pytest.raises(DataError, match=r"'sum', 'a', 'b' are linearly dependent.*Leave one"):
        ist.effect(total, graph, "sum", "y")


def test_an_intervention_without_a_path_points_to_the_effect() -> None:
    rng = np.random.default_rng(0)
    t = rng.random(300) < 0.5
    y = rng.random(300) < np.where(t, 0.45, 0.30)
    z = rng.random(300) < np.where(t, 0.8, 0.2)
    solution = ist.learn(
        {"z": z, "t": t, "y": y}, knowledge=ist.Knowledge(tiers=[["t"], ["y", "z"]])
    )
    assert ("t", "y") not in solution.dag.edges
    network = solution.fit()
    answer = network.query("y", do={"t": True})
    assert re.search("no directed path from 't' to 'y'.*solution.effect", str(answer))
    assert "no directed path" in str(solution.effect("t", "y"))
    assert "path" not in str(network.query("z", do={"t": True}))
    assert "path" not in str(network.query("y", {"t": True}))
    chosen = ist.fit({"z": z, "t": t, "y": y}, ist.DAG(["z", "t", "y"], []))
    assert "path" not in str(chosen.query("y", do={"t": True}))  # the user says so
