"""Levels in new rows that a network has not seen count as unknown cells, with one warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataWarning, SchemaError
from isthmus.networks import DiscreteNetwork, MixedNetwork, NormalMixture, Probabilities

ROWS = 300


@pytest.fixture(scope="module", params=["discrete", "mixed"])
def network(request: pytest.FixtureRequest) -> DiscreteNetwork | MixedNetwork:
    rng = np.random.default_rng(0)
    a, c = rng.choice(list("xyz"), ROWS), rng.choice(list("uvw"), ROWS)
    b = np.where(rng.random(ROWS) < np.where(a == "x", 0.9, 0.3), "p", "q")
    d = (a == "x") + 0.7 * (c == "u") + rng.normal(size=ROWS)
    table = {"a": a, "b": b, "c": c, "d": d}
    if request.param == "discrete":
        table["d"] = np.where(d > 0.5, "high", "low")
    dag = ist.DAG(list("abcd"), [("a", "b"), ("a", "d"), ("c", "d")])
    fitted = ist.fit(table, dag)
    assert isinstance(fitted, DiscreteNetwork | MixedNetwork)
    return fitted


def batch(network: DiscreteNetwork | MixedNetwork) -> dict[str, list[Any]]:
    high, low = ("high", "low") if "d" in network.levels else (1.5, -0.5)
    return {
        "a": ["x", "new", "y", "newer"],
        "b": ["p", "q", "p", "q"],
        "c": ["u", "v", "new", "odd"],
        "d": [high, low, high, low],
    }


def without_new(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    known = {"a": set("xyz"), "c": set("uvw")}
    return {v: [x if x in known.get(v, own) else None for x in own] for v, own in rows.items()}


def test_predictions_are_those_without_the_cells(network: DiscreteNetwork | MixedNetwork) -> None:
    rows = batch(network)
    for target in "abcd":
        with pytest.warns(DataWarning, match="count as unknown; unseen='error' refuses") as said:
            predicted = network.predict(rows, target)
        assert len(said) == 1
        assert said[0].filename == __file__
        assert (predicted == network.predict(without_new(rows), target)).all()
    with pytest.warns(DataWarning, match="3 rows of 4 have .*'new' in 'a', 'new' in 'c'"):
        shares = network.predict_probabilities(rows, "b")
    assert (shares == network.predict_probabilities(without_new(rows), "b")).all()


def test_new_levels_of_the_target_are_ignored(network: DiscreteNetwork | MixedNetwork) -> None:
    rows = {"a": ["new", "new"], "b": ["p", "q"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert network.predict(rows, "a")[0] == "x"


def test_they_are_refused_on_request(network: DiscreteNetwork | MixedNetwork) -> None:
    rows = batch(network)
    with pytest.raises(SchemaError, match="Column 'a' contains 'new', which is not one of"):
        network.predict(rows, "b", unseen="error")
    with pytest.raises(SchemaError, match="Column 'a' contains 'new'"):
        ist.log_likelihood(network, rows, unseen="error")
    with pytest.raises(ValueError, match="it can be 'missing' or 'error'"):
        network.predict(rows, "b", unseen="ignore")  # type: ignore[arg-type]


def test_the_likelihood_is_that_of_the_other_cells(
    network: DiscreteNetwork | MixedNetwork,
) -> None:
    from scipy.stats import norm

    rows = batch(network)
    with pytest.warns(DataWarning, match="count as unknown") as said:
        together = ist.log_likelihood(network, rows)
    assert len(said) == 1
    total = 0.0
    for a, b, c, d in zip(*rows.values(), strict=True):
        known = {v: x for v, x in (("a", a), ("b", b), ("c", c)) if "new" not in x and x != "odd"}
        joint = network.query(list(known))
        assert isinstance(joint, Probabilities)
        share = joint[tuple(known.values())]
        answer = network.query("d", evidence=known)
        if isinstance(answer, Probabilities):
            share *= answer[d]
        else:
            assert isinstance(answer, NormalMixture)
            parts = norm.pdf(d, answer.means[:, 0], np.sqrt(answer.covariances[:, 0, 0]))
            share *= answer.weights @ parts
        total += np.log(share)
    assert together == pytest.approx(total)
    with pytest.warns(DataWarning, match="1 row of 1 has"):
        ist.log_likelihood(network, {v: own[1:2] for v, own in rows.items()})
