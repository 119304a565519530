"""Cross-validation and effects: against loops, and against simulated interventions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, GraphError, MismatchError
from isthmus.networks import GaussianNetwork
from isthmus.testing import enumerate_dags


def gaussian(dag: ist.DAG, rng: np.random.Generator) -> GaussianNetwork:
    return GaussianNetwork(
        dag,
        {v: rng.normal() for v in dag.nodes},
        {v: {p: rng.uniform(0.5, 1.5) for p in dag.parents(v)} for v in dag.nodes},
        {v: rng.uniform(0.5, 1.5) for v in dag.nodes},
    )


def test_cross_validation_is_a_loop_over_folds() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=40)
    table = {"a": a, "b": a + rng.normal(size=40), "c": rng.normal(size=40)}
    found = ist.cross_validate(table, folds=4, seed=3)
    order = np.random.default_rng(3).permutation(40)
    for fold, part in enumerate(np.array_split(order, 4)):
        kept = np.setdiff1d(order, part)
        network = ist.learn({k: v[kept] for k, v in table.items()}, seed=3).fit()
        assert isinstance(network, GaussianNetwork)
        expected = network.log_likelihood({k: v[part] for k, v in table.items()}) / 10
        assert found.log_likelihoods[fold] == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(found.log_likelihoods))
    assert "4 folds" in str(found)


def test_cross_validation_of_discrete_and_mixed_tables_prefers_the_truth() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 200)
    b = np.where(rng.random(200) < 0.9, a, 1 - a)
    for table in (
        {"a": a.astype(str), "b": b.astype(str)},
        {"a": a.astype(str), "b": b.astype(str), "x": b + rng.normal(size=200)},
    ):
        learned = ist.cross_validate(table, folds=5)
        none = ist.Knowledge(forbidden=[(u, v) for u in table for v in table if u != v])
        empty = ist.cross_validate(table, folds=5, knowledge=none)
        assert learned.mean > empty.mean + 0.2
        assert learned.standard_error > 0


@pytest.mark.parametrize("wrong", [{"folds": 1}, {"folds": 99}, {"seed": -1}, {"kinds": "x"}])
def test_wrong_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        ist.cross_validate({"a": [1.0, 2.0, 3.0], "b": [2.0, 2.5, 1.0]}, **wrong)


def test_cross_validation_needs_rows() -> None:
    with pytest.raises(MismatchError, match="needs rows"):
        ist.cross_validate(ist.summarise({"a": [1.0, 2.0], "b": [0.5, 0.0]}))


def test_adjustment_sets_of_all_graphs_of_four_nodes() -> None:
    """A set is valid if, and only if, the adjusted coefficient is the sum over paths."""
    rng = np.random.default_rng(0)
    for dag in list(enumerate_dags("abcd"))[::4]:
        network = gaussian(dag, rng)
        effects = np.linalg.inv(np.eye(4) - network.weights())
        covariance = network.covariance()
        for x, y in ((0, 1), (2, 3), (3, 0)):
            cause, effect = dag.nodes[x], dag.nodes[y]
            others = [i for i in range(4) if i not in (x, y)]
            valid = []
            for mask in range(4):
                given = [v for k, v in enumerate(others) if mask >> k & 1]
                regressors = [x, *given]
                coefficient = np.linalg.solve(
                    covariance[np.ix_(regressors, regressors)], covariance[regressors, y]
                )[0]
                names = [dag.nodes[v] for v in given]
                right = abs(coefficient - effects[x, y]) < 1e-9
                assert dag.is_adjustment_set(cause, effect, names) == right, (dag, names)
                if right:
                    valid.append(set(names))
            if abs(effects[x, y]) > 1e-9:
                assert set(dag.adjustment_set(cause, effect)) in valid


def test_markov_blanket() -> None:
    dag = ist.DAG(list("abcdef"), [("a", "c"), ("b", "c"), ("c", "d"), ("e", "d"), ("d", "f")])
    assert dag.markov_blanket("c") == ("a", "b", "d", "e")
    assert dag.markov_blanket("f") == ("d",)
    with pytest.raises(GraphError, match="same node"):
        dag.adjustment_set("a", "a")


def test_effects_and_their_standard_errors_against_least_squares() -> None:
    rng = np.random.default_rng(4)
    z = rng.normal(size=300)
    x = z + rng.normal(size=300)
    m = 2.0 * x + rng.normal(size=300)
    y = m + 3.0 * z + rng.normal(size=300)
    order = ist.Knowledge(tiers=[["z"], ["x"], ["m"], ["y"]])
    moments = ist.summarise({"z": z, "x": x, "m": m, "y": y})
    solution = ist.learn(moments, knowledge=order)
    found = solution.effect("x", "y")
    assert found.adjustment == ("z",)
    design = np.column_stack([x, z, np.ones(300)])
    weights, rss = np.linalg.lstsq(design, y, rcond=None)[:2]
    error = np.sqrt(rss[0] / 297 * np.linalg.inv(design.T @ design)[0, 0])
    assert found.value == pytest.approx(weights[0])
    assert found.standard_error == pytest.approx(error)
    assert found.degrees == 297
    assert found.identified
    low, high = found.interval()
    assert low < 2.0 < high
    assert "adjusted for z" in str(found)
    assert solution.effect("y", "x").value == 0.0


def simulated_effect(network: GaussianNetwork, cause: str, effect: str) -> float:
    """Set the cause to 0 and to 1 in a simulation, with the same noise."""
    means = []
    for value in (0.0, 1.0):
        intercepts = dict(network.intercepts) | {cause: value}
        coefficients = dict(network.coefficients)
        coefficients[cause] = dict.fromkeys(coefficients[cause], 0.0)
        variances = dict(network.variances) | {cause: 0.0}
        changed = GaussianNetwork(network.dag, intercepts, coefficients, variances)
        means.append(changed.sample(100, seed=2)[effect].mean())
    return float(means[1] - means[0])


@pytest.mark.long
def test_intervals_of_effects_cover_simulated_interventions() -> None:
    from scipy.stats import binom

    dag = ist.DAG(list("abcd"), [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("b", "c")])
    known = ist.Knowledge(tiers=[[v] for v in "abcd"])
    trials, covered, naive = 200, 0, 0
    for seed in range(trials):
        network = gaussian(dag, np.random.default_rng(seed))
        table = network.sample(300, seed=seed)
        truth = simulated_effect(network, "b", "d")
        low, high = ist.learn(table, knowledge=known).effect("b", "d").interval()
        covered += low < truth < high
        # Without the common cause a, the regression is wrong, and this test would notice.
        slope = np.cov(table["b"], table["d"])[0, 1] / table["b"].var()
        naive += low < slope < high
    least, most = (binom.ppf(share, trials, 0.95) for share in (0.0005, 0.9995))
    assert least <= covered <= most
    assert naive < trials / 2


def test_an_effect_that_the_data_do_not_determine() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    solution = ist.learn({"a": a, "b": a + rng.normal(size=500)})
    found = solution.effect("a", "b")
    assert len(found.possible) == 2
    assert found.possible[0] == 0.0
    assert "do not determine" in str(found)


def test_effects_that_cannot_be_estimated() -> None:
    rng = np.random.default_rng(0)
    discrete = ist.learn({"a": rng.choice(["u", "v"], 50), "b": rng.choice(["u", "v"], 50)})
    with pytest.raises(MismatchError, match="complete rows"):
        pickle.loads(pickle.dumps(discrete)).effect("a", "b")  # noqa: S301 - our own bytes
    known = ist.Knowledge(required=[("a", "b")])
    with pytest.warns(ist.errors.DataWarning):
        few = ist.learn({"a": [1.5, 2.0], "b": [1.5, 3.0]}, knowledge=known)
    with pytest.raises(DataError, match="rows"):
        few.effect("a", "b")


def test_cross_validation_with_missing_values() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60)
    y[::10] = np.nan
    dropped = ist.cross_validate({"x": x, "y": y}, folds=3, missing=ist.DropRows())
    kept = ~np.isnan(y)
    assert dropped == ist.cross_validate({"x": x[kept], "y": y[kept]}, folds=3)
    lazy = pytest.importorskip("polars").DataFrame({"x": x, "y": y}, nan_to_null=True).lazy()
    with pytest.raises(MismatchError, match="needs rows"):
        ist.cross_validate(lazy, folds=3, missing=ist.ExpectationMaximisation())
    with pytest.raises(ist.errors.MissingValuesError):
        ist.cross_validate({"x": x, "y": y}, folds=3)
