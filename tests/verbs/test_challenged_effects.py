"""Effects whose lines are challenged by curves and interactions, and errors by clusters."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import ArgumentError, DataError, MismatchError, SchemaError

DAG = ist.DAG(["z", "x", "y"], [("z", "x"), ("z", "y"), ("x", "y")])
Table = dict[str, np.ndarray]


def curved(n: int, seed: int, *, binary: bool) -> Table:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    if binary:
        treated = rng.random(n) < 1 / (1 + np.exp(1 - z**2))
        return {"z": z, "x": np.where(treated, "t", "c"), "y": treated + z**2 + rng.normal(size=n)}
    x = z**2 + rng.normal(size=n)
    return {"z": z, "x": x, "y": x + 2 * z**2 + rng.normal(size=n)}


@pytest.mark.long
@pytest.mark.parametrize("binary", [True, False])
def test_a_curved_confounder_is_adjusted_for(*, binary: bool) -> None:
    inside = 0
    for seed in range(40):
        found = ist.effect(curved(500, seed, binary=binary), DAG, "x", "y")
        low, high = found.interval()
        inside += low <= 1.0 <= high
        assert "with a curve of z" in str(found)
    assert inside >= 34


def test_a_threshold_of_a_confounder_is_adjusted_for() -> None:
    """A smooth curve leaves a bias of 0.15 to 0.2."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=2000)
        x = 2 * (z > 0.5) + rng.normal(size=2000)
        table = {"z": z, "x": x, "y": x + 4 * (z > 0.5) + rng.normal(size=2000)}
        found = ist.effect(table, DAG, "x", "y")
        assert abs(found.value - 1.0) < 3 * found.standard_error < 0.1


def mean_of(answer: Any) -> float:
    return float(np.ravel(answer.mean)[0])


def test_a_product_of_confounders_is_adjusted_for() -> None:
    rng = np.random.default_rng(0)
    z, w = rng.normal(size=(2, 1000))
    x = z * w + rng.normal(size=1000)
    table = {"z": z, "w": w, "x": x, "y": x + 2 * z * w + rng.normal(size=1000)}
    edges = [("z", "x"), ("w", "x"), ("z", "y"), ("w", "y"), ("x", "y")]
    found = ist.effect(table, ist.DAG(list(table), edges), "x", "y")
    assert abs(found.value - 1.0) < 4 * found.standard_error
    assert found.alternatives[0].terms == ("z·w",)


def test_a_slope_that_differs_between_rows_is_averaged_over_them() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1000)
    x = group + np.where(group, 0.4, 2) * rng.normal(size=1000)
    y = x * np.where(group, 2, 0) + group + rng.normal(size=1000)
    found = ist.effect({"z": np.array(["p", "q"])[group], "x": x, "y": y}, DAG, "x", "y")
    assert found.value == pytest.approx(2 * group.mean(), abs=4 * found.standard_error)
    assert found.alternatives[0].averaged
    assert "the average slope over the rows" in str(found)
    assert np.isnan(found.robustness_value)


def test_the_error_of_an_average_slope_by_hand() -> None:
    rng = np.random.default_rng(4)
    z = rng.choice([-1.0, 1.0], 60)  # has no curve
    x = z + rng.normal(size=60)
    y = x + 2 * z * x + np.abs(x) * rng.normal(size=60) / 2
    found = ist.effect({"z": z, "x": x, "y": y}, DAG, "x", "y", kinds={"z": "continuous"})
    assert found.alternatives[0].terms == ("x·z",)
    ones = np.ones(60)
    design = np.stack([ones, x, z, x * z], axis=1)
    slopes = np.stack([0 * ones, ones, 0 * ones, z], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ y
    each = slopes @ weights
    left = 1 - np.einsum("ij,jk,ik->i", design, inverse, design)
    noise = design @ inverse @ slopes.mean(axis=0) * (y - design @ weights) / np.sqrt(left)
    away = (each - each.mean()) / 60
    between = away @ (away + 2 * noise) * 60 / 59
    assert found.value == pytest.approx(each.mean())
    assert found.standard_error == pytest.approx(np.sqrt(noise @ noise + between))


def test_straight_effects_are_those_of_moments() -> None:
    import polars as pl

    rng = np.random.default_rng(1)
    z = rng.normal(size=400)
    x = z + rng.normal(size=400)
    table = {"z": z, "x": x, "y": x + z + rng.normal(size=400)}
    found = ist.effect(table, DAG, "x", "y")
    of_sums = ist.effect(ist.summarise(table), DAG, "x", "y")
    assert found.value == of_sums.value
    assert found.alternatives[0].challenged
    assert not of_sums.alternatives[0].challenged
    assert "straight lines, not challenged" in str(of_sums)
    assert "challenged" not in str(found)
    with pytest.raises(MismatchError, match="rows in memory"):
        ist.effect(pl.LazyFrame(table | {"g": z}), DAG, "x", "y", clusters="g")


def clustered(binary: bool = False) -> Table:
    rng = np.random.default_rng(2)
    g = rng.integers(0, 12, 120)
    x = rng.normal(size=12)[g] + rng.normal(size=120)
    y = x + rng.normal(size=12)[g] + rng.normal(size=120)
    cause = np.where(x > 0, "t", "c") if binary else x
    return {"x": cause, "y": y, "clinic": np.array([f"clinic {i}" for i in g])}


PAIR = ist.DAG(["x", "y"], [("x", "y")])


@pytest.mark.long
def test_errors_by_clusters_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import polars as pl
    from scipy.linalg import sqrtm

    table = clustered()
    found = ist.effect(table, PAIR, "x", "y", clusters="clinic")
    design = np.stack([np.ones(120), table["x"]], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    residual = table["y"] - design @ inverse @ design.T @ table["y"]
    maker = np.eye(120) - design @ inverse @ design.T
    variance, weights = 0.0, []
    for label in np.unique(table["clinic"]):
        own = np.flatnonzero(table["clinic"] == label)
        stretch = np.linalg.inv(np.real(sqrtm(maker[np.ix_(own, own)])))
        pull = (inverse @ design[own].T)[1] @ stretch
        variance += (pull @ residual[own]) ** 2
        weights.append(maker[:, own] @ pull)
    assert found.standard_error == pytest.approx(np.sqrt(variance))
    values = np.linalg.eigvalsh(np.array(weights) @ np.array(weights).T)
    assert found.degrees == pytest.approx(values.sum() ** 2 / (values**2).sum())
    assert found.value == pytest.approx(ist.effect(table, PAIR, "x", "y").value)
    assert "by 12 clusters" in str(found)
    labels = table.pop("clinic")
    assert ist.effect(table, PAIR, "x", "y", clusters=list(labels)) == found
    known = ist.Knowledge(required=[("x", "y")])
    again = ist.learn(table, knowledge=known).effect("x", "y", clusters=list(labels))
    assert again.interval() == pytest.approx(found.interval())
    file = tmp_path / "table.csv"
    pl.DataFrame(table | {"clinic": labels}).write_csv(file)
    ist.io.write_json(PAIR, tmp_path / "graph.json")
    asked = ["effect", str(tmp_path / "graph.json"), str(file), "x", "y", "--clusters", "clinic"]
    assert main(asked) == 0
    assert "by 12 clusters" in capsys.readouterr().out


def test_clusters_of_one_row_are_independent_rows() -> None:
    for binary in (False, True):
        table = clustered(binary)
        alone = ist.effect(table, PAIR, "x", "y", clusters=range(120))
        plain = ist.effect(table, PAIR, "x", "y")
        assert alone.value == pytest.approx(plain.value)
        assert alone.standard_error == pytest.approx(plain.standard_error, rel=0.01)
        together = ist.effect(table, PAIR, "x", "y", clusters="clinic")
        assert together.standard_error > 1.2 * plain.standard_error


def test_clusters_that_say_nothing_are_refused() -> None:
    table = clustered()
    with pytest.raises(SchemaError, match="ward"):
        ist.effect(table, PAIR, "x", "y", clusters="ward")
    with pytest.raises(ArgumentError, match="one label per row"):
        ist.effect(table, PAIR, "x", "y", clusters=[1, 2])
    with pytest.raises(DataError, match="three clusters"):
        ist.effect(table, PAIR, "x", "y", clusters=[0, 1] * 60)
    with pytest.raises(MismatchError, match="one label per row"):
        ist.effect(ist.Frame(table), PAIR, "x", "y", clusters="ward")


def test_rows_that_depend_on_their_neighbours_are_told_with_the_effect() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 500))
    for i in range(1, 500):
        x[i] += 0.9 * x[i - 1]
        y[i] += 0.9 * y[i - 1]
    found = ist.effect({"x": x, "y": y}, PAIR, "x", "y")
    assert len(found.notes) == 1
    assert str(found).count(found.notes[0]) == 1
    assert not ist.effect(clustered(), PAIR, "x", "y", clusters="clinic").notes


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_answers_say_like_effects_which_rows_were_dropped() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 200))
    x[:40] = np.nan
    table = {"x": x, "y": y + np.nan_to_num(x)}
    (note,) = ist.effect(table, PAIR, "x", "y", missing=ist.DropRows()).notes
    network = ist.fit(table, PAIR, missing=ist.DropRows())
    assert network.notes == (note,)
    assert str(network.query("y", do={"x": 1.0})).count(note) == 1
    solution = ist.learn(
        table, knowledge=ist.Knowledge(required=[("x", "y")]), missing=ist.DropRows()
    )
    assert solution.fit().notes == (note,)
    assert not ist.fit({"x": x[40:], "y": y[40:]}, PAIR, missing=ist.DropRows()).notes


def test_an_effect_on_censored_values_says_so() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    low, high, both = np.maximum(y, 0.5), np.minimum(y, 0.5), np.abs(y)
    (note,) = ist.effect({"x": x, "y": low}, PAIR, "x", "y").notes
    assert f"{np.mean(low == 0.5):.0%}" in note
    assert "least" in note
    assert "largest" in ist.effect({"x": x, "y": high}, PAIR, "x", "y").notes[0]
    assert not ist.effect({"x": x, "y": both}, PAIR, "x", "y").notes
    # A value in the middle, few values, and a limit of the cause.
    middle = np.where(rng.random(400) < 0.5, 0.0, y)
    assert not ist.effect({"x": x, "y": middle}, PAIR, "x", "y").notes
    assert not ist.effect({"x": np.maximum(x, 0.5), "y": y}, PAIR, "x", "y").notes
    died = np.where(rng.random(400) < 1 / (1 + np.exp(-y)), "yes", "no")
    treated = np.where(x > 0, "t", "c")
    levels = {"x": treated, "y": died}
    assert not ist.effect(levels, PAIR, "x", "y", change=("c", "t"), outcome="yes").notes


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_draws_of_a_posterior_are_those_of_effect() -> None:
    known = ist.Knowledge(required=DAG.edges)
    tables = [curved(500, 1, binary=False)]
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=500), rng.exponential(size=500)
    tables.append({"z": z, "x": x + z, "y": x + z + (0.2 + x) ** 2 * rng.normal(size=500)})
    for table in tables:
        found = ist.effect(table, DAG, "x", "y")
        posterior = ist.sample(table, score=ist.BGe(), knowledge=known, draws=4000, seed=1)
        drawn = posterior.effects("x", "y", seed=1)
        error = found.standard_error
        assert drawn.mean() == pytest.approx(found.value, abs=0.1 * error)
        assert drawn.std() == pytest.approx(error, rel=0.1)
        network = ist.fit(table, DAG)
        means = [mean_of(network.query("y", do={"x": v})) for v in (0.0, 1.0)]
        assert means[1] - means[0] == pytest.approx(found.value, abs=error)
        lines = copy.deepcopy(posterior).effects("x", "y", seed=1)
        assert lines.std() != pytest.approx(error, rel=0.1)  # rows stay where they are


def test_errors_of_incomplete_rows_follow_from_their_likelihood() -> None:
    from isthmus.fitting.incomplete import incomplete_error

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    x[:, 2] += x[:, 0] - x[:, 1] + np.abs(x[:, 0]) * rng.normal(size=300)
    mean, covariance = x.mean(axis=0), np.cov(x.T, bias=True)
    slopes = np.linalg.solve(covariance[:2, :2], covariance[:2, 2]).astype(np.float64)
    centred = x - mean
    bread = np.linalg.inv(centred[:, :2].T @ centred[:, :2])
    residual = centred[:, 2] - centred[:, :2] @ slopes
    whole = np.sqrt((((bread @ centred[:, :2].T)[0] * residual) ** 2).sum())
    assert incomplete_error(x, mean, covariance, slopes) == pytest.approx(whole)
    # Rows of which nothing that matters is known add nothing.
    more = np.concatenate([x, np.full((50, 3), np.nan)])
    assert incomplete_error(more, mean, covariance, slopes) == pytest.approx(whole)
    # A cause that is missing regardless of others leaves the error of the rows that have it.
    beside = np.concatenate([x, np.full((900, 3), np.nan)])
    beside[300:, 1] = rng.normal(size=900)
    assert incomplete_error(beside, mean, covariance, slopes) == pytest.approx(whole, rel=0.05)


@pytest.mark.long
def test_intervals_of_incomplete_rows_cover_with_many_confounders() -> None:
    inside = 0
    names = [f"z{i}" for i in range(8)]
    dag = ist.DAG([*names, "x", "y"], [(v, e) for v in names for e in "xy"] + [("x", "y")])
    for seed in range(60):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(400, 8))
        x = z.sum(axis=1) / 8**0.5 + rng.normal(size=400)
        y = x + z.sum(axis=1) / 8**0.5 + rng.normal(size=400)
        rows = np.column_stack([z, x, y])
        rows[rng.random(rows.shape) < 0.3] = np.nan
        table = {v: rows[:, i] for i, v in enumerate(dag.nodes)}
        found = ist.effect(table, dag, "x", "y", missing=ist.ExpectationMaximisation())
        low, high = found.interval()
        inside += low <= 1.0 <= high
    assert inside >= 54


def with_gaps(table: Table, share: float, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return {k: np.where(rng.random(len(v)) < share, np.nan, v) for k, v in table.items()}


@pytest.mark.long
def test_a_curved_confounder_with_missing_values_is_adjusted_for() -> None:
    inside = 0
    for seed in range(30):
        table = with_gaps(curved(500, seed, binary=False), 0.3, seed)
        found = ist.effect(table, DAG, "x", "y", missing=ist.ExpectationMaximisation())
        low, high = found.interval()
        inside += low <= 1.0 <= high
    assert inside >= 26
    there = ~np.any([np.isnan(column) for column in table.values()], axis=0)
    complete = {k: v[there] for k, v in table.items()}
    assert found.value == pytest.approx(ist.effect(complete, DAG, "x", "y").value)
    assert f"from the {there.sum()} complete rows, assuming" in str(found)


def test_queries_and_posteriors_of_incomplete_rows_answer_as_effects_do() -> None:
    table = with_gaps(curved(1000, 3, binary=False), 0.2, 1)
    options: dict[str, Any] = {"missing": ist.ExpectationMaximisation()}
    found = ist.effect(table, DAG, "x", "y", **options)
    network = ist.fit(table, DAG, **options)
    asked = [mean_of(network.query("y", do={"x": x})) for x in (0.0, 1.0)]
    assert asked[1] - asked[0] == pytest.approx(found.value, abs=found.standard_error)
    known = ist.Knowledge(required=[*DAG.edges])
    posterior = ist.sample(table, knowledge=known, draws=2000, seed=1, **options)
    drawn = posterior.effects("x", "y")
    assert np.mean(drawn) == pytest.approx(found.value, abs=found.standard_error)
    assert np.std(drawn) == pytest.approx(found.standard_error, rel=0.1)


def test_lines_of_incomplete_rows_are_challenged_if_enough_are_complete() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=400)
    x = z + rng.normal(size=400)
    straight = {"z": z, "x": x, "y": x + z + rng.normal(size=400)}
    missing = ist.ExpectationMaximisation()
    some, most = with_gaps(straight, 0.3, 2), with_gaps(straight, 0.6, 2)
    found = ist.effect(some, DAG, "x", "y", missing=missing)
    complete = int(np.isfinite([*some.values()]).all(axis=0).sum())
    assert f"lines challenged on the {complete} complete rows" in str(found)
    assert found.degrees > complete
    assert not found.alternatives[0].terms
    sparse = ist.effect(most, DAG, "x", "y", missing=missing)
    assert "straight lines, not challenged" in str(sparse)


def test_effects_say_once_which_rows_were_dropped() -> None:
    table = curved(400, 0, binary=True)
    table["y"][:100] = np.nan
    found = ist.effect(table, DAG, "x", "y", missing=ist.DropRows())
    assert "100 of 400 rows (25.0%) lack a value and were dropped" in str(found)
    assert "about 1.15 times those of a complete table" in str(found)  # the root of 4 / 3
    assert str(found).count("dropped") == 1
    whole = {name: column[100:] for name, column in table.items()}
    assert "dropped" not in str(ist.effect(whole, DAG, "x", "y", missing=ist.DropRows()))
    assert "dropped" in str(ist.learn(table, missing=ist.DropRows()).effect("x", "y"))
