"""The estimator reads the column to predict as `learn` does, and can be told otherwise."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.errors import SchemaError
from isthmus.networks import MixedNetwork

pytestmark = pytest.mark.skipif(
    find_spec("pandas") is None or find_spec("sklearn") is None,
    reason="pandas or sklearn is not installed",
)

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(300, 3))
A = NUMBERS[:, 0]
Y = np.round(500 + 100 * A + 50 * NUMBERS[:, 1] + 10 * RNG.normal(size=300))


@pytest.fixture(name="X")
def _predictors() -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(NUMBERS, columns=list("abc"))


@pytest.mark.parametrize("dtype", [int, float])
def test_whole_numbers_are_a_regression(X: Any, dtype: Any) -> None:
    from sklearn.base import is_classifier, is_regressor

    from isthmus.sklearn import BayesianNetwork

    model = BayesianNetwork().fit(X[:200], Y[:200].astype(dtype))
    assert not hasattr(model, "classes_")
    assert is_regressor(model)
    assert not is_classifier(model)
    assert model.score(X[200:], Y[200:]) > 0.95


CLASSES: dict[str, Any] = {
    "text": np.where(A > 0, "up", "down"),
    "Booleans": A > 0,
    "four whole numbers": np.clip(np.round(A), -1, 2).astype(int),
    "four digits as text": np.clip(np.round(A), -1, 2).astype(int).astype(str),
}


@pytest.mark.parametrize("name", CLASSES)
def test_few_values_and_text_are_classes(X: Any, name: str) -> None:
    from sklearn.base import is_classifier, is_regressor

    from isthmus.sklearn import BayesianNetwork

    model = BayesianNetwork().fit(X, CLASSES[name])
    assert model.classes_.tolist() == sorted(set(CLASSES[name].tolist()))
    assert is_classifier(model)
    assert not is_regressor(model)
    assert model.score(X, CLASSES[name]) > 0.5


def test_a_note_says_that_five_to_twenty_whole_numbers_are_no_classes(X: Any) -> None:
    from sklearn.base import is_classifier, is_regressor

    from isthmus.sklearn import BayesianNetwork

    y = np.clip(np.round(2 * X["a"]), -3, 3).astype(int)
    with noted("'a_' has whole numbers.*kinds={'a_': 'discrete'}"):
        model = BayesianNetwork().fit(X, y.rename("a_"))
    assert is_regressor(model)
    assert is_classifier(BayesianNetwork(kinds={"a_": "discrete"}).fit(X, y.rename("a_")))


# clipped values make curved effects
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_the_kind_can_be_chosen_before_fit(X: Any) -> None:
    from sklearn.base import is_classifier, is_regressor
    from sklearn.model_selection import cross_val_score

    from isthmus.sklearn import BayesianNetwork

    y = np.clip(np.round(2 * X["a"]), -3, 3).astype(int)
    classifier, regressor = (BayesianNetwork(target_kind=k) for k in ("discrete", "continuous"))
    assert is_classifier(classifier)
    assert is_regressor(regressor)
    assert not is_classifier(BayesianNetwork())
    assert not is_regressor(BayesianNetwork())
    assert len(classifier.fit(X, y).classes_) == 7
    assert regressor.fit(X, y).score(X, y) > 0.8
    assert cross_val_score(regressor, X, y, cv=3).min() > 0.8
    named = BayesianNetwork(target="a", target_kind=ist.Kind.DISCRETE).fit(X.assign(a=y))
    assert is_classifier(named)
    with pytest.raises(SchemaError, match="kind of the target"):
        BayesianNetwork(target_kind="classes").fit(X, y)


def test_a_second_fit_forgets_the_classes(X: Any) -> None:
    from isthmus.sklearn import BayesianNetwork

    model = BayesianNetwork().fit(X, CLASSES["text"])
    assert model.fit(X, Y).score(X, Y) > 0.95
    assert not hasattr(model, "classes_")


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_numbers_as_text_and_ordered_categories_can_be_predicted_from(X: Any) -> None:
    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    cuts = [-np.inf, -1, -0.5, 0, 0.5, 1, np.inf]
    table = pd.DataFrame(
        {
            "a": [f"{v:.2f}".replace(".", ",") for v in X["a"]],
            "b": pd.cut(X["b"], cuts, labels=list("zyxwvu"), ordered=True),
        }
    )
    with noted("ordered categories"):
        model = BayesianNetwork().fit(table, Y)
    assert model.solution_.reading["b"].read_as == "continuous"
    assert model.score(table, Y) > 0.9


@pytest.mark.parametrize("text", ["{:.1f}", "{:.0f}"])
def test_text_numbers_are_a_regression(X: Any, text: str) -> None:
    from sklearn.base import is_classifier, is_regressor

    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    y = np.array([text.format(v).replace(".", ",") for v in Y + X["a"]])
    model = BayesianNetwork().fit(X, y)
    assert is_regressor(model)
    assert model.score(X, y) > 0.95
    declared = pd.Series(np.round(X["a"]).clip(-3, 3).astype(int).astype(str), dtype="category")
    assert is_classifier(BayesianNetwork().fit(X, declared))


def test_numbers_are_read_as_they_were_written_in_fit(X: Any) -> None:
    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": [f"{v:.2f}".replace(".", ",") for v in X["a"]]})
    model = BayesianNetwork().fit(table, X["a"] + 0.1 * X["b"])
    short, long = (model.predict(pd.DataFrame({"a": [t]})) for t in ("1,00", "1,000"))
    assert short == long
    assert model.predict(pd.DataFrame({"a": [1.0]})) == short
    assert np.isfinite(model.score(table.assign(), X["a"]))
    for wrong in ("1.25", "1 kg", "one"):
        with pytest.raises(SchemaError, match="fit has not read"):
            model.predict(pd.DataFrame({"a": [wrong]}))


def test_dates_get_the_usual_advice(X: Any) -> None:
    from isthmus.sklearn import BayesianNetwork

    pd = pytest.importorskip("pandas")
    table = X.assign(d=pd.date_range("2024-01-01", periods=300))
    with pytest.raises(SchemaError, match=r"'d' .*datetime64"):
        BayesianNetwork().fit(table, Y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_the_checks_of_scikit_learn(kind: str) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    from isthmus.sklearn import BayesianNetwork

    results = check_estimator(BayesianNetwork(target_kind=kind), on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


def _in_two_units(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Return an outcome with a cause, and a number that some clinics write in another unit."""
    pulse = rng.normal(size=n)
    y = (pulse + rng.normal(size=n) > 0.5).astype(int) + (rng.random(n) < 0.2)
    protein = rng.normal(7.0, 1.0, n) * np.where((y != 1) & (rng.random(n) < 0.4), 9.0, 1.0)
    wide = {f"w{i}": y * (i < 2) + rng.normal(size=n) for i in range(8)}
    return {"pulse": pulse, "protein": protein, **wide, "y": np.array(list("abc"))[y]}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_probabilities_are_better_than_shares_if_numbers_are_far_from_normal(share: float) -> None:
    pd = pytest.importorskip("pandas")
    from sklearn.metrics import log_loss

    from isthmus.sklearn import BayesianNetwork

    rng = np.random.default_rng(1)
    table = pd.DataFrame(_in_two_units(rng, 700))
    X, y = table.drop(columns="y"), table["y"]
    X = X.mask(pd.DataFrame(rng.random(X.shape) < share, columns=X.columns))
    # The rows of the clinics tell nothing else, so that the number is a child of the outcome.
    knowledge = ist.Knowledge(tiers=[["pulse"], ["y"], ["protein", *(f"w{i}" for i in range(8))]])
    missing = ist.ExpectationMaximisation() if share else None
    model = BayesianNetwork(missing=missing, knowledge=knowledge).fit(X[:300], y[:300])
    assert "protein" in model.network_.dag.children("y")
    assert not model.predictor_.dag.children("y")
    shares = y[:300].value_counts(normalize=True).sort_index().to_numpy()
    constant = log_loss(y[300:], np.tile(shares, (400, 1)), labels=model.classes_)
    loss = log_loss(y[300:], model.predict_proba(X[300:]), labels=model.classes_)
    assert isinstance(model.network_, MixedNetwork)
    before = model.network_.predict_probabilities(X[300:], "y")
    assert loss < 0.95 * constant
    assert loss < log_loss(y[300:], np.asarray(before), labels=model.classes_)


@pytest.mark.filterwarnings("ignore")
def test_normal_children_of_the_target_stay_in_the_network() -> None:
    pd = pytest.importorskip("pandas")
    from isthmus.sklearn import BayesianNetwork

    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 200)
        table = pd.DataFrame({"x": y + rng.normal(size=200), "w": rng.normal(size=200) - y})
        model = BayesianNetwork(target_kind="discrete").fit(table, y)
        assert model.predictor_ is model.network_


@pytest.mark.filterwarnings("ignore")
def test_a_number_far_outside_the_rows_of_fit_makes_no_level_impossible() -> None:
    pd = pytest.importorskip("pandas")
    from isthmus.sklearn import BayesianNetwork

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    table = pd.DataFrame({"x": (1 + 2 * y) * rng.normal(size=200)})
    model = BayesianNetwork(target_kind="discrete").fit(table, y)
    ends = [table["x"].min(), table["x"].max()]
    probabilities = model.predict_proba(pd.DataFrame({"x": [*ends, ends[0] - 1e3, ends[1] + 1e3]}))
    np.testing.assert_array_equal(probabilities[:2], probabilities[2:])
    share = (y == 0).mean()
    assert probabilities.min() >= share / 201
    assert isinstance(model.network_, MixedNetwork)
    stated = model.network_.predict_probabilities({"x": ends}, "target")
    np.testing.assert_allclose(probabilities[:2, 0], (200 * stated[:, 0] + share) / 201)
