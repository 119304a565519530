"""Curves and interactions in fitted networks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import FormatError
from isthmus.io.json_text import from_json, to_json
from isthmus.networks import CurvedGaussian, GaussianNetwork, Hurdle, MixedNetwork

RNG = np.random.default_rng(3)
N = 1500
X, Z, E = RNG.normal(size=(3, N))


def fitted(table: dict[str, Any], *edges: tuple[str, str], curves: bool = True) -> Any:
    return ist.fit(table, ist.DAG(list(table), edges), curves=curves)


def test_lines_stay_a_gaussian_network() -> None:
    spread = np.exp(X)
    for y in (X + Z + E, X + Z + spread * E):
        network = fitted({"x": X, "z": Z, "y": y}, ("x", "y"), ("z", "y"))
        assert isinstance(network, GaussianNetwork)


def test_curve_interaction_and_lines_on_request() -> None:
    network: Any
    table = {"x": X, "z": Z, "y": X**2 + E, "w": X * Z + E}
    edges = [("x", "y"), ("x", "w"), ("z", "w")]
    network = fitted(table, *edges)
    assert isinstance(network, MixedNetwork)
    answer: Any
    for x in (-1.5, 0.5, 2.0):
        answer = network.query("y", do={"x": x})
        low, high = answer.confidence_interval()
        assert low[0] < x**2 < high[0]
        assert answer.mean[0] == pytest.approx(x**2, abs=0.25)
        at = {"x": x, "z": -1.0}
        answer = network.query("w", evidence=at)
        assert answer.mean[0] == pytest.approx(-x, abs=0.25)
        assert network.predict({v: [u] for v, u in at.items()}, "w")[0] == pytest.approx(
            -x, abs=0.25
        )
    assert isinstance(fitted(table, *edges, curves=False), GaussianNetwork)


def test_cause_of_a_curved_effect_is_predicted_from_it() -> None:
    """Bayes' theorem by quadrature in `predict`, by simulation in `query`."""
    network = fitted({"x": X, "y": np.tanh(2 * X) + 0.3 * E}, ("x", "y"))
    seen = {"y": 0.5}
    answer = network.query("x", evidence=seen)
    predicted = network.predict({"y": [0.5]}, "x")[0]
    assert abs(answer.mean[0] - predicted) < 4 * answer.error[0]


def test_effects_that_differ_between_levels() -> None:
    g = np.where(RNG.random(N) < 0.5, "a", "b")
    y = np.where(g == "a", X**2, -X) + E
    network = fitted({"g": g, "x": X, "y": y}, ("g", "y"), ("x", "y"))
    assert isinstance(network.conditionals["y"], CurvedGaussian)
    for level, expected in (("a", 2.25), ("b", -1.5)):
        answer = network.query("y", evidence={"g": level, "x": 1.5})
        assert answer.mean[0] == pytest.approx(expected, abs=0.3)


@pytest.mark.long
def test_hurdle_with_a_curve() -> None:
    y = np.where(RNG.random(N) < 0.5, 0.0, np.exp(1 + X**2 / 4 + E / 3))
    network = fitted({"g": np.where(Z > 0, "p", "q"), "x": X, "y": y}, ("x", "y"))
    own = network.conditionals["y"]
    assert isinstance(own, Hurdle)
    assert isinstance(own.rest, CurvedGaussian)
    assert network.query("y", do={"x": 1.0}).confidence_interval() is not None


def test_files_and_reports_have_the_curves(tmp_path: Path) -> None:
    solution = ist.learn({"x": X, "y": X + X**2 + E, "z": Z})
    network: Any = solution.fit()
    assert ("x", "y") in solution.dag.edges
    question: dict[str, Any] = {"targets": "y", "do": {"x": 1.0}}
    expected = network.query(**question).mean[0]
    copied: Any = from_json(to_json(network))
    assert copied.query(**question).mean[0] == expected
    solution.save(tmp_path / "s.isthmus", parameters=True)
    loaded: Any = ist.Solution.load(tmp_path / "s.isthmus").fit()
    assert loaded.query(**question).mean[0] == expected
    solution.report(tmp_path / "r.html")
    assert "T2(x)" in (tmp_path / "r.html").read_text()
    with pytest.raises(FormatError):
        from_json(to_json(network).replace('"0"', '"1"', 1))
