"""Missing values in tables of numbers and categories, against independent computations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.errors import MissingValuesError
from isthmus.fitting import fit_incomplete
from isthmus.fitting.incomplete import sweep
from isthmus.networks import ConditionalGaussian, MixedNetwork, MultinomialLogit, ProbabilityTable
from isthmus.statistics import Variable
from isthmus.tables import Missing

EXACT = ist.ExpectationMaximisation(max_iterations=3000, tolerance=1e-11)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mixed(n: int, share: float, seed: int = 0) -> dict[str, Any]:
    """A chain: group → dose → effect → side, and a column that depends on none of them."""
    draw = rng(seed)
    group = draw.choice(np.array(["a", "b", "c"], dtype=object), n)
    dose = np.where(group == "b", 2.0, 0.0) + draw.normal(size=n)
    effect = 5.0 + dose + draw.normal(size=n)
    side = np.where(effect + draw.logistic(size=n) / 2 > 6.0, "yes", "no").astype(object)
    table = {"group": group, "dose": dose, "effect": effect, "side": side}
    table["other"] = draw.normal(size=n)
    for column in table.values():
        column[draw.random(n) < share] = np.nan if column.dtype.kind == "f" else None
    return table


def moments_of(table: Any, missing: Missing) -> ist.Moments:
    moments = ist.summarise(table, missing=missing)
    assert isinstance(moments, ist.Moments)
    return moments


EDGES = {frozenset(e) for e in (("group", "dose"), ("dose", "effect"), ("effect", "side"))}


def wide(table: dict[str, Any]) -> Floats:
    """Numbers and indicators of levels, with NaN for missing values."""
    columns = []
    for column in table.values():
        if column.dtype.kind == "f":
            columns.append(column)
            continue
        there = np.array([x is not None for x in column])
        levels = sorted({x for x in column if x is not None})[1:]
        columns += [np.where(there, column == x, np.nan).astype(np.float64) for x in levels]
    return np.stack(columns, axis=1)


def by_loops(x: Floats) -> tuple[Floats, Floats]:
    """Means and covariances by expectation-maximisation, row by row."""
    mean, cov = np.nanmean(x, axis=0), np.diag(np.nanvar(x, axis=0))
    for _ in range(150):
        sums, products = np.zeros(len(mean)), np.zeros_like(cov)
        for row in x:
            there = ~np.isnan(row)
            gain = cov[np.ix_(~there, there)] @ np.linalg.inv(cov[np.ix_(there, there)])
            full, spread = np.where(there, row, 0.0), np.zeros_like(cov)
            full[~there] = mean[~there] + gain @ (row[there] - mean[there])
            spread[np.ix_(~there, ~there)] = (
                cov[np.ix_(~there, ~there)] - gain @ cov[np.ix_(there, ~there)]
            )
            sums += full
            products += np.outer(full, full) + spread
        mean = sums / len(x)
        cov = products / len(x) - np.outer(mean, mean)
    return mean, cov


@pytest.mark.long
def test_expectation_maximisation_treats_levels_as_indicator_columns() -> None:
    table = mixed(50, 0.12)
    moments = moments_of(table, missing=EXACT)
    mean, cov = by_loops(wide(table))
    assert moments.mean() == pytest.approx(mean, abs=1e-6)
    assert moments.covariance() == pytest.approx(cov, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engines_give_what_memory_gives(engine: str) -> None:
    table = mixed(300, 0.15, seed=3)
    frame = pytest.importorskip("polars").DataFrame(table, nan_to_null=True)
    data = frame.lazy()
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        pytest.importorskip("pyarrow")
        arrow = frame.to_arrow()
        data = duckdb.from_arrow(arrow)
    inside, outside = (moments_of(t, missing=EXACT) for t in (table, data))
    assert outside.schema == inside.schema
    assert outside.n == inside.n
    assert outside.mean() == pytest.approx(inside.mean(), abs=1e-7)
    assert outside.covariance() == pytest.approx(inside.covariance(), abs=1e-7)
    notes = ist.learn(data, missing=EXACT).notes
    assert notes[0] == ist.learn(table, missing=EXACT).notes[0]


def test_complete_tables_are_as_without_a_strategy() -> None:
    table = mixed(200, 0.0)
    assert ist.learn(table, missing=EXACT).score == ist.learn(table).score


def test_the_graph_is_found() -> None:
    solution = ist.learn(mixed(1000, 0.2), missing=EXACT)
    assert {frozenset(edge) for edge in solution.dag.edges} == EDGES


def test_constant_columns_are_noted() -> None:
    table = mixed(100, 0.1) | {"still": np.array([7.5, np.nan] * 50)}
    with noted("still"):
        solution = ist.learn(table, missing=EXACT)
    assert not solution.dag.parents("still")


def test_errors_say_what_to_use() -> None:
    table = mixed(50, 0.2)
    for missing in (ist.StructuralEM(), ist.AvailableCases()):
        with pytest.raises(MissingValuesError, match=r"takes discrete .*Use ExpectationMaximisa"):
            ist.learn(table, missing=missing)
    categories = {name: table[name] for name in ("group", "side")}
    with pytest.raises(MissingValuesError, match=r"all columns are discrete\. Use StructuralEM"):
        ist.learn(categories, missing=ist.ExpectationMaximisation())


NODES = ist.DAG(["c", "x", "y", "d"], [("c", "x"), ("x", "y"), ("x", "d"), ("c", "d")])
SCHEMA = ist.Schema(
    (
        Variable("c", ist.Kind.DISCRETE, ("p", "q")),
        Variable("x", ist.Kind.CONTINUOUS),
        Variable("y", ist.Kind.CONTINUOUS),
        Variable("d", ist.Kind.DISCRETE, ("no", "yes")),
    )
)
TRUE = MixedNetwork(
    NODES,
    {
        "c": ProbabilityTable(("p", "q"), (), np.array([0.4, 0.6])),
        "x": ConditionalGaussian(
            ("c",), (), np.array([0.0, 2.0]), np.zeros((2, 0)), np.array([1.0, 0.5])
        ),
        "y": ConditionalGaussian((), ("x",), np.array(1.0), np.array([0.8]), np.array(0.4)),
        "d": MultinomialLogit(
            ("no", "yes"),
            ("c",),
            ("x",),
            np.array([0.0, -1.0]),
            (np.array([[0.0, 0.0], [0.0, 0.5]]),),
            np.array([[0.0, 1.0]]),
        ),
    },
)


def coded(table: dict[str, Any]) -> Floats:
    columns = [np.asarray(table[v]) for v in NODES.nodes]
    columns[0], columns[3] = columns[0] == "q", columns[3] == "yes"
    return np.stack([np.asarray(c, dtype=np.float64) for c in columns], axis=1)


def test_draws_have_the_distribution_given_the_observed_values() -> None:
    """Two hidden values of copies of one row, against integration on a grid."""
    n, y, draw = 4000, 2.2, rng(1)
    rows = np.tile([0.0, 0.0, y, 1.0], (n, 1))
    absent = np.tile([True, True, False, False], (n, 1))
    drawn: list[Floats] = []
    for step in range(60):
        rows = sweep(TRUE, SCHEMA, rows, absent, draw)
        if step >= 20:
            drawn.append(rows)
    sample = np.concatenate(drawn)
    grid = np.linspace(-6.0, 8.0, 4001)
    weights = []
    for code in (0, 1):
        columns = {"c": np.full(len(grid), code), "x": grid}
        columns |= {"y": np.full(len(grid), y), "d": np.ones(len(grid), dtype=np.int64)}
        logs = sum(own.log_density(columns[v], columns) for v, own in TRUE.conditionals.items())
        weights.append(np.exp(logs))
    shares = np.stack(weights) / np.sum(weights)
    mean = float((shares.sum(axis=0) * grid).sum())
    spread = float((shares.sum(axis=0) * (grid - mean) ** 2).sum())
    # 160,000 dependent draws, at least 4,000 of them independent: errors of less than 0.01.
    assert sample[:, 0].mean() == pytest.approx(float(shares[1].sum()), abs=0.02)
    assert sample[:, 1].mean() == pytest.approx(mean, abs=0.03)
    assert sample[:, 1].var() == pytest.approx(spread, abs=0.03)


@pytest.mark.long
def test_parameters_from_values_missing_at_random() -> None:
    """A value of x is missing if d is "yes", mostly: complete rows have another mean and slope."""
    n = 4000
    rows = coded(TRUE.sample(n, seed=2))
    draw = rng(3)
    rows[(rows[:, 3] == 1.0) & (draw.random(n) < 0.9), 1] = np.nan
    rows[draw.random(n) < 0.2, 0] = np.nan
    fitted = fit_incomplete(SCHEMA, rows, NODES)
    own = fitted.conditionals
    x, y, d = own["x"], own["y"], own["d"]
    assert isinstance(x, ConditionalGaussian)
    assert isinstance(y, ConditionalGaussian)
    assert isinstance(d, MultinomialLogit)
    # Standard errors are below 0.04.
    assert x.intercepts == pytest.approx([0.0, 2.0], abs=0.1)
    assert x.variances == pytest.approx([1.0, 0.5], abs=0.1)
    assert y.coefficients == pytest.approx([0.8], abs=0.05)
    assert d.slopes[0, 1] - d.slopes[0, 0] == pytest.approx(1.0, abs=0.15)
    complete = rows[~np.isnan(rows).any(axis=1)]
    biased = complete[complete[:, 0] == 0.0, 1].mean()
    assert biased < -0.15  # what dropping rows gives
    again = fit_incomplete(SCHEMA, rows, NODES)
    assert np.array_equal(again.conditionals["x"].intercepts, x.intercepts)  # type: ignore[attr-defined]


def test_variances_of_configurations_with_few_observed_values_do_not_collapse() -> None:
    draw = rng(5)
    n, levels = 600, 30
    c = draw.integers(0, levels, n).astype(np.float64)
    x = draw.normal(size=n)
    y = x + draw.normal(size=n)
    y[draw.random(n) < 0.8] = np.nan  # about four observed values per level
    schema = ist.Schema(
        (
            Variable("c", ist.Kind.DISCRETE, tuple(range(levels))),
            Variable("x", ist.Kind.CONTINUOUS),
            Variable("y", ist.Kind.CONTINUOUS),
        )
    )
    dag = ist.DAG(["c", "x", "y"], [("c", "y"), ("x", "y")])
    own = fit_incomplete(schema, np.stack([c, x, y], axis=1), dag).conditionals["y"]
    assert isinstance(own, ConditionalGaussian)
    assert own.variances.min() > 0.05


@pytest.mark.long
def test_fit_uses_the_incomplete_rows() -> None:
    table = mixed(200, 0.2)
    solution = ist.learn(table, missing=ist.ExpectationMaximisation())
    network = solution.fit()
    assert isinstance(network, MixedNetwork)
    direct = ist.fit(table, solution.dag, missing=ist.ExpectationMaximisation())
    assert network.log_likelihood(mixed(100, 0.0)) == direct.log_likelihood(mixed(100, 0.0))
