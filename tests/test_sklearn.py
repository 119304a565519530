"""The estimator of scikit-learn: its own checks, pipelines, grids and clones."""

from __future__ import annotations

import pickle
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataWarning, MissingExtraError, SchemaError

pytestmark = pytest.mark.skipif(
    find_spec("pandas") is None or find_spec("sklearn") is None,
    reason="pandas or sklearn is not installed",
)


@pytest.fixture(scope="module")
def clinic() -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(dict(ist.datasets.asia(rows=1500)))


@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn() -> None:
    from sklearn.utils.estimator_checks import check_estimator

    from isthmus.sklearn import BayesianNetwork

    results = check_estimator(BayesianNetwork(), on_fail=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert failed == []
    assert sum(r["status"] == "passed" for r in results) > 30


def test_predictions_are_those_of_the_network(clinic: Any) -> None:
    from sklearn.model_selection import cross_val_score

    from isthmus.sklearn import BayesianNetwork

    X, y = clinic.drop(columns="dysp"), clinic["dysp"]
    model = BayesianNetwork().fit(X, y)
    assert model.target_ == "dysp"
    assert model.classes_.tolist() == ["no", "yes"]
    network = ist.learn(clinic, kinds={"dysp": "discrete"}).fit()
    assert not isinstance(network, ist.networks.GaussianNetwork)
    expected = network.predict_probabilities(dict(X), "dysp")
    np.testing.assert_allclose(model.predict_proba(X), expected)
    assert model.score(X, y) == pytest.approx((model.predict(X) == y).mean())
    assert model.score(X, y) > 0.8
    assert model.dag_ == model.solution_.dag
    areas = cross_val_score(BayesianNetwork(), X, y, cv=3, scoring="roc_auc")
    assert areas.min() > 0.8


def test_a_target_among_the_columns(clinic: Any) -> None:
    from isthmus.sklearn import BayesianNetwork

    model = BayesianNetwork(target="dysp").fit(clinic)
    without = model.predict(clinic.drop(columns="dysp"))
    assert (without == model.predict(clinic)).all()
    per_row = ist.log_likelihood(model.network_, clinic) / len(clinic)
    assert model.score(clinic) == pytest.approx(per_row)
    with pytest.raises(ArgumentError, match="columns are"):
        BayesianNetwork(target="unknown").fit(clinic)
    with pytest.raises(ArgumentError, match="no variable to predict"):
        BayesianNetwork().fit(clinic).predict(clinic)


def test_continuous_targets_in_a_pipeline_and_a_grid() -> None:
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from isthmus.sklearn import BayesianNetwork

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -2.0, 0.0] + rng.normal(size=200)
    pipeline = Pipeline([("scale", StandardScaler()), ("network", BayesianNetwork())])
    assert pipeline.fit(X, y).score(X, y) > 0.7
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.6
    scores = [ist.GaussianBIC(), ist.GaussianBIC(penalty_discount=1000.0)]
    grid = GridSearchCV(BayesianNetwork(), {"score_function": scores}, cv=3).fit(X, y)
    assert grid.best_params_ == {"score_function": scores[0]}
    with pytest.raises(AttributeError, match="has no attribute"):
        BayesianNetwork().fit(X, y).predict_proba(X)
    with pytest.raises(ArgumentError, match="give y"):
        BayesianNetwork().fit(X, y).score(X)


def test_mixed_columns_clones_pickles_and_samples(clinic: Any) -> None:
    from sklearn.base import clone

    from isthmus.sklearn import BayesianNetwork

    table = clinic.assign(age=np.random.default_rng(0).normal(50, 9, len(clinic)))
    model = BayesianNetwork(pseudo_count=2.0, kinds={"age": "continuous"})
    twin = clone(model).fit(table)
    assert twin.pseudo_count == 2.0
    rows = twin.sample(7, random_state=1)
    assert set(rows) == set(table.columns)
    assert all(len(column) == 7 for column in rows.values())
    again = pickle.loads(pickle.dumps(twin))  # noqa: S301 - our own bytes
    assert again.score(table) == twin.score(table)
    assert np.isfinite(twin.score(table))


def test_the_name_of_the_target_does_not_clash() -> None:
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import KBinsDiscretizer

    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"target": rng.normal(size=30), "b": rng.normal(size=30)})
    model = BayesianNetwork().fit(table, rng.normal(size=30))
    assert model.target_ == "target_"
    bins = KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf")
    steps = Pipeline([("bins", bins), ("network", BayesianNetwork())])
    y = np.where(table["b"] > 0, "up", "down")
    assert set(steps.fit(table, y).predict(table)) <= {"up", "down"}


def test_without_scikit_learn_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from isthmus import sklearn as module
    from isthmus.sklearn import BayesianNetwork

    monkeypatch.setattr(module, "BaseEstimator", object)
    with pytest.raises(MissingExtraError, match="sklearn"):
        BayesianNetwork()


@pytest.mark.filterwarnings("ignore:X ")  # scikit-learn warns that names differ
def test_rows_without_names_are_read_in_the_order_of_fit() -> None:
    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = X["a"] - 2 * X["b"] + 0.1 * rng.normal(size=60)
    named, unnamed = BayesianNetwork().fit(X, y), BayesianNetwork().fit(X.to_numpy(), y)
    expected = named.predict(X)
    np.testing.assert_allclose(named.predict(X.to_numpy()), expected)
    np.testing.assert_allclose(unnamed.predict(X), expected)
    assert named.score(X.to_numpy(), y) == pytest.approx(named.score(X, y))


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_a_prediction_for_each_row_if_all_columns_were_left_out() -> None:
    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"id": [f"p{i}" for i in range(40)]})
    model = BayesianNetwork().fit(X, np.array(["yes", "no", "yes", "yes"] * 10))
    assert model.predict(X).tolist() == ["yes"] * 40
    assert model.predict_proba(X).shape == (40, 2)


def test_predictions_average_over_missing_cells(clinic: Any) -> None:
    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    X, y = clinic.drop(columns="dysp").astype(object), clinic["dysp"]
    X.loc[::3, ["smoke", "bronc"]] = np.nan
    model = BayesianNetwork(missing=ist.DropRows()).fit(X, y)
    row = {v: x for v, x in X.iloc[0].items() if x == x}
    assert "bronc" not in row
    answer = model.network_.query("dysp", row)
    np.testing.assert_allclose(model.predict_proba(X)[0], np.asarray(answer))
    assert model.score(X, y) > 0.7
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    total = numbers["a"] - 2 * numbers["b"] + rng.normal(size=200)
    regression = BayesianNetwork(missing=ist.DropRows()).fit(numbers, total)
    numbers.loc[0] = [np.nan, 1.0]
    assert isinstance(regression.network_, ist.networks.GaussianNetwork)
    expected = regression.network_.query("target", {"b": 1.0}).mean[0]
    assert regression.predict(numbers)[0] == pytest.approx(expected)
    assert regression.predict(numbers.astype(object))[0] == pytest.approx(expected)


def test_missing_values_are_a_level_or_the_message_says_what_to_do(clinic: Any) -> None:
    from sklearn.model_selection import cross_val_score

    from isthmus.sklearn import BayesianNetwork

    X, y = clinic.drop(columns="dysp").astype(object), clinic["dysp"]
    X.loc[::3, "smoke"] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*missing=DropRows\(\)"):
        BayesianNetwork().fit(X, y)
    with pytest.raises(ValueError, match="must be complete"):
        BayesianNetwork().fit(clinic.drop(columns="dysp"), y).predict(X)
    with pytest.raises(ValueError, match="score by their likelihood must be complete"):
        BayesianNetwork(missing=ist.DropRows(), target="smoke").fit(X).score(X)
    model = BayesianNetwork(missing=ist.MissingAsLevel("unknown"))
    assert np.isfinite(cross_val_score(model, X, y, cv=3)).all()
    nullable = X.astype("string")  # missing is pandas.NA
    assert (model.fit(nullable, y).predict(nullable) == model.fit(X, y).predict(X)).all()
    filled = X.fillna("unknown")
    assert (model.fit(X, y).predict(X) == model.predict(filled)).all()
    with pytest.raises(ValueError, match="y contains missing values"):
        BayesianNetwork().fit(clinic[["smoke"]], y.astype(object).where(y == "yes", None))


def test_errors_name_the_parameters_of_the_estimator(clinic: Any) -> None:
    from isthmus.sklearn import BayesianNetwork

    with pytest.raises(ArgumentError, match=r"score_function must be .* score_function=BIC\(\)"):
        BayesianNetwork(score_function="bic").fit(clinic)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="random_state must be an integer"):
        BayesianNetwork(random_state=-1).fit(clinic)
    with pytest.raises(ArgumentError, match="random_state must be an integer"):
        BayesianNetwork().fit(clinic).sample(random_state=-1)


def test_levels_that_fit_has_not_seen_are_unknown_cells() -> None:
    from sklearn.model_selection import cross_val_score

    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("xyz"), 60), "b": rng.choice(list("pq"), 60)})
    y = np.where((X["a"] == "x") ^ (rng.random(60) < 0.05), "up", "down")
    X.loc[0, "a"] = "rare"
    model = BayesianNetwork().fit(X[1:], y[1:])
    for call in (model.predict, model.predict_proba, BayesianNetwork().fit(X[1:]).score):
        with pytest.warns(DataWarning, match="1 row of 60 has .*'rare' in 'a'") as said:
            call(X)
        assert len(said) == 1
        assert said[0].filename == __file__
    with pytest.warns(DataWarning, match="'rare'"):
        scores = cross_val_score(BayesianNetwork(), X, y, cv=3)
    assert np.isfinite(scores).all()
    strict = BayesianNetwork(unseen="error").fit(X[1:], y[1:])
    with pytest.raises(SchemaError, match="'rare', which is not one of its levels"):
        strict.predict(X)
    with pytest.raises(ArgumentError, match="unseen is 'ignore'; it can be 'missing' or 'error'"):
        BayesianNetwork(unseen="ignore").fit(X)  # type: ignore[arg-type]
