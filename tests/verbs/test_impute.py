"""Completed tables: what is drawn and expected, and what stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError
from isthmus.networks import (
    ConditionalGaussian,
    DiscreteNetwork,
    MixedNetwork,
    Normal,
    ProbabilityTable,
)
from isthmus.verbs.impute import observed_log_likelihood

EM = ist.ExpectationMaximisation()


def numbers(n: int, share: float = 0.3, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 1.0 + x + rng.normal(size=n)
    table = {"x": x, "y": y, "z": 2e3 * y + 1e3 * rng.normal(size=n)}
    for column in table.values():
        column[rng.random(n) < share] = np.nan
    return table


def test_observed_values_and_types_stay() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(numbers(60), index=range(100, 160))
    table["note"] = "as it is"
    table["count"] = pd.array([None, *range(59)], dtype="Int64")
    solution = ist.learn(table[["x", "y", "z"]], missing=EM)
    completed = ist.impute(table, solution)
    assert list(completed.columns) == list(table.columns)
    assert (completed.index == table.index).all()
    assert (completed.dtypes == table.dtypes).all()
    assert not completed[["x", "y", "z"]].isna().any().any()
    there = table[["x", "y", "z"]].notna()
    assert completed[["x", "y", "z"]].where(there).equals(table[["x", "y", "z"]])
    assert completed["count"].isna().sum() == 1
    first, second = ist.impute(table, solution, draws=2, seed=3)
    assert first["x"].where(there["x"]).equals(table["x"])
    assert not first["x"].equals(second["x"])
    assert ist.impute(table, solution, draws=2, seed=3)[0].equals(first)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_tables_keep_their_kind(library: str) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(numbers(60), nan_to_null=True)
    frame = frame.with_columns(c=pl.Series([*"ab" * 29, None, None], dtype=pl.Categorical))
    table = frame if library == "polars" else frame.to_arrow()
    network = ist.learn(table, missing=EM, kinds={"c": "discrete"}).fit()
    completed = ist.impute(table, network)
    assert type(completed) is type(table)
    if library == "polars":
        assert completed.schema == table.schema
        assert completed.null_count().sum_horizontal().item() == 0


def test_expected_values_are_predictions() -> None:
    table = numbers(200)
    network = ist.learn(table, missing=EM).fit()
    completed = ist.impute(table, network)
    hole = np.isnan(table["y"])
    assert completed["y"][hole] == pytest.approx(network.predict(table, "y")[hole])
    assert completed["y"][~hole] == pytest.approx(table["y"][~hole])
    assert np.isnan(table["y"]).any()  # the table itself is not changed


def test_drawn_numbers_have_the_distribution_given_the_others() -> None:
    network = ist.fit(numbers(500, 0.0), ist.DAG(["x", "y", "z"], [("x", "y"), ("y", "z")]))
    n = 20_000
    table = {"x": np.full(n, 1.0), "y": np.full(n, np.nan), "z": np.full(n, 5e3)}
    (drawn,) = ist.impute(table, network, draws=1, seed=1)
    answer = network.query("y", evidence={"x": 1.0, "z": 5e3})
    assert isinstance(answer, Normal)
    assert drawn["y"].mean() == pytest.approx(float(answer.mean[0]), abs=0.02)
    assert drawn["y"].std() == pytest.approx(float(answer.deviation[0]), rel=0.03)


def test_drawn_levels_have_the_distribution_given_the_others() -> None:
    dag = ist.DAG(["a", "b"], [("a", "b")])
    tables = {"a": np.array([0.3, 0.7]), "b": np.array([[0.9, 0.1], [0.2, 0.8]])}
    network = DiscreteNetwork(dag, {"a": ("n", "y"), "b": ("n", "y")}, tables)
    n = 4000
    table = {"a": [None] * n, "b": ["y"] * n}
    first, second = ist.impute(table, network, draws=2, seed=0)
    wanted = 0.7 * 0.8 / (0.7 * 0.8 + 0.3 * 0.1)
    assert np.mean([v == "y" for v in first["a"]]) == pytest.approx(wanted, abs=0.015)
    assert first["a"] != second["a"]
    assert observed_log_likelihood(network, table) == pytest.approx(n * np.log(0.59))


def simple_mixed() -> MixedNetwork:
    return MixedNetwork(
        ist.DAG(["c", "x"], [("c", "x")]),
        {
            "c": ProbabilityTable(("p", "q"), (), np.array([0.4, 0.6])),
            "x": ConditionalGaussian(
                ("c",), (), np.array([0.0, 2.0]), np.zeros((2, 0)), np.array([1.0, 1.0])
            ),
        },
    )


@pytest.mark.long
def test_mixed_rows_are_drawn_and_scored_by_what_is_there() -> None:
    n = 3000
    table = {"c": [None] * n, "x": np.full(n, 1.5)}
    (drawn,) = ist.impute(table, simple_mixed(), draws=1, seed=0)
    density = {"p": 0.4 * np.exp(-(1.5**2) / 2), "q": 0.6 * np.exp(-(0.5**2) / 2)}
    wanted = density["q"] / sum(density.values())
    assert np.mean([v == "q" for v in drawn["c"]]) == pytest.approx(wanted, abs=0.03)
    scored = observed_log_likelihood(simple_mixed(), table) / n
    assert scored == pytest.approx(np.log(sum(density.values()) / np.sqrt(2 * np.pi)), abs=0.01)


def test_the_likelihood_of_observed_numbers_is_that_of_their_margin() -> None:
    whole = numbers(300, 0.0)
    network = ist.fit(whole, ist.DAG(["x", "y", "z"], [("x", "y"), ("y", "z")]))
    complete = observed_log_likelihood(network, whole)
    assert complete == pytest.approx(ist.log_likelihood(network, whole))
    only = whole | {"y": np.full(300, np.nan), "z": np.full(300, np.nan)}
    alone = ist.fit({"x": whole["x"]}, ist.DAG(["x"], []))
    wanted = ist.log_likelihood(alone, {"x": whole["x"]})
    assert observed_log_likelihood(network, only) == pytest.approx(wanted)


@pytest.mark.long
def test_intervals_from_drawn_tables_cover() -> None:
    """Rubin's rules for the slope of y on x, from ten completed tables."""
    covered, repetitions = 0, 60
    for seed in range(repetitions):
        table = numbers(200, 0.3, seed)
        network = ist.learn(table, missing=EM).fit()
        values, variances = [], []
        for one in ist.impute(table, network, draws=10, seed=seed):
            x, y = one["x"] - one["x"].mean(), one["y"] - one["y"].mean()
            slope = x @ y / (x @ x)
            values.append(slope)
            variances.append(((y - slope * x) ** 2).sum() / (198 * (x @ x)))
        error = np.sqrt(np.mean(variances) + 1.1 * np.var(values, ddof=1))
        covered += abs(np.mean(values) - 1.0) < 2.0 * error
    assert covered / repetitions >= 0.85


def test_what_is_not_a_network_or_a_table_is_refused() -> None:
    with pytest.raises(ArgumentError, match="fitted network or a solution"):
        ist.impute(numbers(10), "network")  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="table with names"):
        ist.impute(np.zeros((3, 2)), simple_mixed())
