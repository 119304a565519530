"""A logistic regression does not depend on the order of levels, nor on their names."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.fitting import logit
from isthmus.networks import MixedNetwork
from isthmus.verbs.fit import fit

DAG = ist.DAG(["g", "x", "y"], [("g", "y"), ("x", "y")])


def table(names: str, groups: str, n: int = 30) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x, g = rng.normal(3.0, 2.0, size=n), rng.integers(0, 3, n)
    y = (x + g + rng.logistic(size=n) > 4).astype(int) + (x > 4.5)
    return {"g": np.array(list(groups))[g], "x": x, "y": np.array(list(names))[y]}


def probabilities(names: str, groups: str, pseudo_count: float) -> np.ndarray:
    """The probabilities of the levels for each row, in the order of ``names``."""
    data = table(names, groups)
    network = fit(data, DAG, pseudo_count=pseudo_count)
    assert isinstance(network, MixedNetwork)
    columns: np.ndarray = network.predict_probabilities(data, "y")
    return columns[:, [network.levels["y"].index(name) for name in names]]


@pytest.mark.parametrize("pseudo_count", [0.1, 1.0, 10.0])
def test_probabilities_do_not_depend_on_the_order_of_levels(pseudo_count: float) -> None:
    plain = probabilities("abc", "uvw", pseudo_count)
    for names in itertools.permutations("abc"):
        found = probabilities("".join(names), "uvw", pseudo_count)
        np.testing.assert_allclose(found, plain, atol=1e-9)
    for groups in itertools.permutations("uvw"):
        found = probabilities("abc", "".join(groups), pseudo_count)
        np.testing.assert_allclose(found, plain, atol=1e-9)


def test_neither_do_those_of_many_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = probabilities("abc", "uvw", 1.0)
    monkeypatch.setattr(logit, "_PARAMETERS", 0)
    np.testing.assert_allclose(probabilities("cab", "wvu", 1.0), expected, atol=1e-4)


def test_it_is_the_posterior_mode() -> None:
    data = table("abc", "uvw")
    network = fit(data, DAG, pseudo_count=2.0)
    assert isinstance(network, MixedNetwork)
    z = (data["x"] - data["x"].mean()) / data["x"].std()
    groups = (data["g"][:, None] == np.array(list("uvw"))).astype(float)
    own = (data["y"][:, None] == np.array(list("abc"))).astype(float)

    def loss(flat: np.ndarray) -> float:
        """The definition: all levels of the node and of its parent have the same penalty."""
        intercept, slope, effect = flat[:3], flat[3:6], flat[6:].reshape(3, 3)
        logits = intercept + np.outer(z, slope) + groups @ effect
        middle = intercept + groups.mean(axis=0) @ effect
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        prior = 2.0 * (middle - np.log(np.exp(middle).sum())).mean()
        return float(-(own * logs).sum() - prior + (slope @ slope + (effect**2).sum()))

    from scipy.optimize import minimize

    best = minimize(loss, np.zeros(15), options={"gtol": 1e-8}).x
    logits = best[:3] + np.outer(z, best[3:6]) + groups @ best[6:].reshape(3, 3)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(network.predict_probabilities(data, "y"), expected, atol=1e-5)


def test_stages_end_with_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = probabilities("abc", "uvw", 1.0)
    monkeypatch.setattr(logit, "_FIRST_ROWS", 5)
    monkeypatch.setattr(logit, "_OF_EACH", 2)
    np.testing.assert_allclose(probabilities("abc", "uvw", 1.0), expected, atol=1e-9)
