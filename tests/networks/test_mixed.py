"""Networks of mixed variables: densities by hand, parameters that come back, what is refused."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, FormatError, MismatchError, SchemaError
from isthmus.fitting import fit_gaussian, fit_mixed, fit_tables
from isthmus.io import from_json, to_json
from isthmus.networks import (
    ConditionalGaussian,
    DiscreteNetwork,
    MixedNetwork,
    MultinomialLogit,
    ProbabilityTable,
)
from isthmus.statistics import Rows

DAG = ist.DAG(
    ["sex", "drug", "dose", "effect", "cured"],
    [
        ("sex", "drug"),
        ("sex", "effect"),
        ("drug", "effect"),
        ("dose", "effect"),
        ("effect", "cured"),
        ("drug", "cured"),
    ],
)
NETWORK = MixedNetwork(
    DAG,
    {
        "sex": ProbabilityTable(("f", "m"), (), np.array([0.4, 0.6])),
        "drug": ProbabilityTable(
            ("a", "b", "c"), ("sex",), np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
        ),
        "dose": ConditionalGaussian((), (), np.array(10.0), np.zeros(0), np.array(4.0)),
        "effect": ConditionalGaussian(
            ("sex", "drug"),
            ("dose",),
            np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
            np.array([[0.1, 0.2, 0.3], [-0.1, -0.2, -0.3]])[:, :, None],
            np.array([[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]]),
        ),
        "cured": MultinomialLogit(
            ("no", "partly", "yes"),
            ("drug",),
            ("effect",),
            np.array([0.0, 0.5, -0.5]),
            (np.array([[0, 0, 0], [0, 1.0, 0.5], [0, -1.0, 0.5]]),),
            np.array([[0.0, 0.3, -0.4]]),
        ),
    },
)


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    return NETWORK.sample(60_000, seed=1)


EFFECTS = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, -1.0, 0.5]]


def density(row: dict[str, Any]) -> float:
    """The density of a row, written out."""
    s, d = "fm".index(row["sex"]), "abc".index(row["drug"])
    c = ("no", "partly", "yes").index(row["cured"])

    def normal(x: float, mean: float, variance: float) -> float:
        return math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)

    mean = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]][s][d] + [[0.1, 0.2, 0.3], [-0.1, -0.2, -0.3]][s][
        d
    ] * row["dose"]
    odds = [
        math.exp([0, 0.5, -0.5][k] + EFFECTS[d][k] + [0, 0.3, -0.4][k] * row["effect"])
        for k in range(3)
    ]
    return (
        [0.4, 0.6][s]
        * [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]][s][d]
        * normal(row["dose"], 10, 4)
        * normal(row["effect"], mean, [[0.5, 1, 1.5], [2, 2.5, 3]][s][d])
        * odds[c]
        / sum(odds)
    )


def test_densities_by_hand(table: dict[str, Any]) -> None:
    rows = {name: column[:40] for name, column in table.items()}
    found = NETWORK.log_densities(rows)
    for i in range(40):
        assert found[i] == pytest.approx(math.log(density({k: v[i] for k, v in rows.items()})))
    assert NETWORK.log_likelihood(rows) == pytest.approx(found.sum())


def test_the_density_integrates_to_one() -> None:
    dose, effect = np.linspace(0, 20, 81), np.linspace(-16, 20, 181)
    grid = np.array(list(itertools.product(dose, effect)))
    total = 0.0
    for s, d, c in itertools.product("fm", "abc", ("no", "partly", "yes")):
        n = len(grid)
        rows: dict[str, Any] = {
            "sex": [s] * n,
            "drug": [d] * n,
            "cured": [c] * n,
            "dose": grid[:, 0],
            "effect": grid[:, 1],
        }
        total += float(np.exp(NETWORK.log_densities(rows)).sum())
    cell = (dose[1] - dose[0]) * (effect[1] - effect[0])
    assert total * cell == pytest.approx(1.0, abs=1e-3)


def test_parameters_come_back(table: dict[str, Any]) -> None:
    rows = Rows.gather(ist.Frame(table), DAG)
    fitted = fit_mixed(rows, DAG)
    for name in ("sex", "drug"):
        own, truth = fitted.conditionals[name], NETWORK.conditionals[name]
        assert isinstance(own, ProbabilityTable)
        assert isinstance(truth, ProbabilityTable)
        np.testing.assert_allclose(own.probabilities, truth.probabilities, atol=0.02)
        assert own.counts is not None
        assert own.counts.sum() == 60_000
    own, truth = fitted.conditionals["effect"], NETWORK.conditionals["effect"]
    assert isinstance(own, ConditionalGaussian)
    assert isinstance(truth, ConditionalGaussian)
    np.testing.assert_allclose(own.coefficients, truth.coefficients, atol=0.05)
    np.testing.assert_allclose(own.variances, truth.variances, rtol=0.1)
    logit, expected = fitted.conditionals["cured"], NETWORK.conditionals["cured"]
    assert isinstance(logit, MultinomialLogit)
    assert isinstance(expected, MultinomialLogit)
    np.testing.assert_allclose(logit.slopes, expected.slopes, atol=0.05)
    np.testing.assert_allclose(logit.intercepts, expected.intercepts, atol=0.15)
    np.testing.assert_allclose(logit.effects[0], expected.effects[0], atol=0.15)
    assert fitted.log_likelihood(table) > NETWORK.log_likelihood(table) - 30


def test_regressions_by_least_squares_within_each_configuration() -> None:
    rng = np.random.default_rng(0)
    group, x = rng.integers(0, 3, 200), 1e6 + rng.normal(size=200)
    y = group * x + rng.normal(size=200)
    data: dict[str, Any] = {"g": group.astype(str), "x": x, "y": y}
    dag = ist.DAG(["g", "x", "y"], [("g", "y"), ("x", "y")])
    own = fit_mixed(Rows.gather(ist.Frame(data), dag), dag, pseudo_count=0).conditionals["y"]
    assert isinstance(own, ConditionalGaussian)
    for g in range(3):
        part = group == g
        slope, intercept = np.polyfit(x[part] - 1e6, y[part], 1)
        assert own.coefficients[g, 0] == pytest.approx(slope)
        assert own.intercepts[g] + own.coefficients[g, 0] * 1e6 == pytest.approx(intercept)
        residual = y[part] - intercept - slope * (x[part] - 1e6)
        assert own.variances[g] == pytest.approx(np.mean(residual**2), rel=1e-6)


def test_logistic_regression_against_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(5, 3, 300), rng.exponential(size=300)])
    level = (x @ [0.5, -1.0] + rng.logistic(size=300) > 1).astype(int) + (x[:, 0] > 7)
    data: dict[str, Any] = {"a": x[:, 0], "b": x[:, 1], "y": level.astype(str)}
    dag = ist.DAG(["a", "b", "y"], [("a", "y"), ("b", "y")])
    rows = Rows.gather(ist.Frame(data), dag)
    own = fit_mixed(rows, dag, pseudo_count=0, curves=False).conditionals["y"]
    assert isinstance(own, MultinomialLogit)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    model = linear_model.LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(z, level)
    ours = np.exp(own.log_probabilities({"a": x[:, 0], "b": x[:, 1]}, 300))
    np.testing.assert_allclose(ours, model.predict_proba(z), atol=2e-3)


def test_a_solution_of_a_mixed_table_fits_and_survives(
    tmp_path: Any, table: dict[str, Any]
) -> None:
    small = {name: column[:2000] for name, column in table.items()}
    solution = ist.learn(small)
    network = solution.fit()
    assert isinstance(network, MixedNetwork)
    direct = fit_mixed(Rows.gather(ist.Frame(small), solution.dag), solution.dag)
    assert network.log_likelihood(small) == direct.log_likelihood(small)
    again = pickle.loads(pickle.dumps(network))  # noqa: S301 - our own bytes
    assert again.log_likelihood(small) == network.log_likelihood(small)
    read = from_json(to_json(network))
    assert isinstance(read, MixedNetwork)
    assert read.log_likelihood(small) == network.log_likelihood(small)
    if importlib.util.find_spec("fast_sugiyama") is not None:  # which draws the picture
        solution.report(tmp_path / "report.html")
        assert "log-odds" in (tmp_path / "report.html").read_text()
    learned = network.reorder(network.dag.nodes[::-1])
    assert learned.sample(5).keys() == set(small)
    forgetful = copy.deepcopy(solution)
    with pytest.raises(MismatchError, match=r"solution.fit\(data\)"):
        forgetful.fit()
    refit = forgetful.fit(small)
    assert isinstance(refit, MixedNetwork)
    assert refit.log_likelihood(small) == network.log_likelihood(small)


def test_other_tables_go_to_the_other_networks() -> None:
    rng = np.random.default_rng(2)
    discrete: dict[str, Any] = {
        "a": rng.integers(0, 2, 50).astype(str),
        "b": rng.integers(0, 2, 50).astype(str),
    }
    solution = ist.learn(discrete, score=ist.DegenerateGaussian())
    network = solution.fit(pseudo_count=0.0)
    counts = ist.Frame(discrete).counts(ist.CountPlan.everything())
    assert network == fit_tables(counts, solution.dag, pseudo_count=0.0)
    numeric: dict[str, Any] = {"a": rng.normal(size=50), "b": rng.normal(size=50)}
    other: dict[str, Any] = {"a": rng.normal(size=40), "b": rng.normal(size=40)}
    solution = ist.learn(numeric)
    assert solution.fit(other) == fit_gaussian(ist.Frame(other).moments(), solution.dag)


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_smoothing_and_what_was_never_seen() -> None:
    table = {"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"], "c": ["0", "1", "0", "1"]}
    solution = ist.learn(
        table,
        score=ist.BIC(),
        search=ist.HillClimb(),
        knowledge=ist.Knowledge(required=[("a", "c"), ("b", "c")]),
    )
    network = solution.fit(pseudo_count=8.0)
    assert isinstance(network, DiscreteNetwork)
    assert network.unseen("c") == (("x", "v"), ("y", "u"))
    np.testing.assert_allclose(network.tables["c"][0, 1], [0.5, 0.5])
    np.testing.assert_allclose(network.tables["a"].sum(axis=-1), 1.0)
    sharp = solution.fit(pseudo_count=0.0)
    assert isinstance(sharp, DiscreteNetwork)
    assert sharp.counts is not None
    assert sharp.counts["c"].sum() == 4
    turned = sharp.reorder(["c", "b", "a"])
    assert set(turned.unseen("c")) == {("v", "x"), ("u", "y")}
    assert from_json(to_json(sharp)).unseen("c") == sharp.unseen("c")  # type: ignore[union-attr]
    with pytest.raises(ArgumentError, match="pseudo_count"):
        solution.fit(pseudo_count=-1.0)
    with pytest.raises(MismatchError, match="no counts"):
        DiscreteNetwork(sharp.dag, sharp.levels, sharp.tables).unseen("c")
    wrong: Any = dict.fromkeys("abc", np.ones(3))
    with pytest.raises(DataError, match="counts"):
        DiscreteNetwork(sharp.dag, sharp.levels, sharp.tables, wrong)


def test_configurations_without_rows_have_the_regression_of_all() -> None:
    rng = np.random.default_rng(0)
    data: dict[str, Any] = {
        "g": ["a", "b"] * 10,
        "h": ["u"] * 19 + ["v"],
        "y": rng.normal(3, 1, 20),
    }
    dag = ist.DAG(["g", "h", "y"], [("g", "y"), ("h", "y")])
    rows = Rows.gather(ist.Frame(data), dag)
    for pseudo in (0.0, 1.0):
        own = fit_mixed(rows, dag, pseudo_count=pseudo).conditionals["y"]
        assert isinstance(own, ConditionalGaussian)
        assert own.counts is not None
        assert own.counts.tolist() == [[10, 0], [9, 1]]
        assert own.intercepts[0, 1] == pytest.approx(np.mean(data["y"]))
        assert own.variances[0, 1] == pytest.approx(np.var(data["y"]))
        assert (own.variances[1, 1] > 0) == (pseudo > 0)
    lonely = fit_mixed(rows, dag, pseudo_count=0.0)
    with pytest.raises(DataError, match="variance zero"):
        lonely.log_likelihood(data)


def test_separation_and_single_levels_end_in_finite_numbers() -> None:
    x = np.linspace(-1, 1, 30)
    data: dict[str, Any] = {"x": x, "y": np.where(x > 0, "up", "down"), "one": ["k"] * 30}
    dag = ist.DAG(["x", "y", "one"], [("x", "y"), ("x", "one")])
    for pseudo in (0.0, 1.0):
        fitted = fit_mixed(Rows.gather(ist.Frame(data), dag), dag, pseudo_count=pseudo)
        assert math.isfinite(fitted.log_likelihood(data))
        assert set(fitted.sample(20)["one"]) == {"k"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"sex": ("f", "x")}, SchemaError),
        ({"dose": ["much", "little"]}, DataError),
        ({"sex": ["f"]}, DataError),
    ],
)
def test_wrong_rows(change: dict[str, Any], error: type[Exception]) -> None:
    rows: dict[str, Any] = {k: v[:2] for k, v in NETWORK.sample(2).items()}
    with pytest.raises(error):
        NETWORK.log_likelihood(rows | change)
    with pytest.raises(SchemaError, match="lacks"):
        NETWORK.log_likelihood({"sex": ["f"]})


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(SchemaError, match="parents"):
        MixedNetwork(ist.DAG(["sex"]), {"sex": NETWORK.conditionals["drug"]})
    with pytest.raises(SchemaError, match="shape"):
        ProbabilityTable(("a", "b"), ("p",), np.array([0.5, 0.5]))
    with pytest.raises(DataError, match="sum to one"):
        ProbabilityTable(("a", "b"), (), np.array([0.5, 0.6]))
    with pytest.raises(SchemaError, match="shape"):
        ConditionalGaussian(("g",), (), np.zeros(2), np.zeros((2, 1)), np.ones(2))
    with pytest.raises(DataError, match="negative"):
        ConditionalGaussian((), (), np.array(0.0), np.zeros(0), np.array(-1.0))
    with pytest.raises(DataError, match="finite"):
        MultinomialLogit(("a", "b"), (), ("x",), np.zeros(2), (), np.array([[0.0, np.nan]]))
    with pytest.raises(FormatError, match="valid"):
        from_json(to_json(NETWORK).replace('"logit"', '"probit"'))
