"""Curves and interactions in logistic regressions of discrete nodes."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.fitting.curved_logit import _LogitSearch
from isthmus.fitting.families import ParentRows, fit_levels
from isthmus.fitting.logit import distinct, fit_counts, tally
from isthmus.io.json_text import from_json, to_json
from isthmus.networks import CurvedLogit, MixedNetwork, MultinomialLogit

DAG = ist.DAG(["x", "w", "g", "y"], [("x", "y"), ("w", "y"), ("g", "y")])
Table = dict[str, np.ndarray]


def logistic(u: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-u)))


def simulated(seed: int, n: int, shape: str) -> tuple[Table, np.ndarray]:
    """Return a table, and the true probability of "yes" in each row."""
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(2, n))
    g = rng.integers(0, 3, n)
    odds = {
        "line": x + 0.5 * w + g - 1.0,
        "curve": 1.5 * x**2 - 1.5 + w + g - 1.0,
        "wave": 2.0 * np.sin(2.0 * x) + w,
        "product": 1.5 * x * w + g - 1.0,
        "slope": (g - 1.0) * 1.5 * x + w,
    }[shape]
    chance = logistic(odds)
    y = np.where(rng.random(n) < chance, "yes", "no")
    return {"x": x, "w": w, "g": np.array(list("abc"))[g], "y": y}, chance


def fitted(table: Table, *, curves: bool = True) -> MixedNetwork:
    network = ist.fit(table, DAG, curves=curves)
    assert isinstance(network, MixedNetwork)
    return network


@pytest.mark.long
def test_lines_stay_lines() -> None:
    curved = 0
    for seed in range(40):
        table, _ = simulated(seed, 500 if seed % 2 else 2000, "line")
        curved += isinstance(fitted(table).conditionals["y"], CurvedLogit)
    assert curved <= 1


@pytest.mark.parametrize("shape", ["curve", "wave", "product", "slope"])
def test_probabilities_follow_curves_and_interactions(shape: str) -> None:
    table, _ = simulated(0, 3000, shape)
    new, chance = simulated(1, 3000, shape)
    losses = {}
    for curves in (True, False):
        own = fitted(table, curves=curves).conditionals["y"]
        assert isinstance(own, CurvedLogit if curves else MultinomialLogit)
        columns = new | {"g": np.searchsorted(list("abc"), new["g"])}
        found = np.exp(own.log_probabilities(columns, 3000))[:, 1]
        # Expected log loss beyond that of the true probabilities.
        losses[curves] = float(
            np.mean(
                chance * np.log(chance / found) + (1 - chance) * np.log((1 - chance) / (1 - found))
            )
        )
    assert losses[True] < 0.01
    assert losses[False] > 5 * losses[True]


def test_curves_of_three_levels() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=4000)
    odds = np.stack([np.zeros(4000), 2 * x**2 - 2, -x], axis=1)
    chance = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    y = np.array(list("pqr"))[(rng.random((4000, 1)) > chance.cumsum(axis=1)[:, :-1]).sum(axis=1)]
    network = ist.fit({"x": x, "y": y}, ist.DAG(["x", "y"], [("x", "y")]))
    assert isinstance(network, MixedNetwork)
    for value in (-1.5, 0.0, 1.5):
        answer = network.query("y", evidence={"x": value})
        at = np.exp([0.0, 2 * value**2 - 2, -value])
        assert np.asarray(answer).ravel() == pytest.approx(at / at.sum(), abs=0.06)


def test_promised_gains_are_score_tests() -> None:
    table, _ = simulated(3, 400, "curve")
    numbers = np.stack([table["x"], table["w"]], axis=1)
    codes = np.searchsorted(list("abc"), table["g"])
    family = ParentRows(("g",), (3,), (codes,), ("x", "w"), (*numbers.T,), 400)
    own = (table["y"] == "yes").astype(np.intp)
    plain = fit_levels(own, ("no", "yes"), family, 1e-9)
    assert isinstance(plain, MultinomialLogit)
    search = _LogitSearch(own, family, plain, 1.0)
    chances = np.exp(plain.log_probabilities(family.columns(), 400)).T
    chance = chances[1]
    design = np.column_stack([np.ones(400), numbers, codes == 1, codes == 2])
    for (i, length), gain in search._tested(chances).items():
        terms = search.values[i][:, :length]
        noise = (chance * (1 - chance))[:, None]
        inner, cross = terms.T @ (noise * terms), terms.T @ (noise * design)
        information = inner - cross @ np.linalg.solve(design.T @ (noise * design), cross.T)
        score = terms.T @ (own - chance)
        assert gain == pytest.approx(0.5 * score @ np.linalg.solve(information, score), rel=1e-4)


def test_networks_with_curved_levels_answer_and_are_saved() -> None:
    table, _ = simulated(4, 2000, "curve")
    network = fitted(table)
    guess = np.asarray(network.predict({k: table[k] for k in "xwg"}, "y"))
    straight = np.asarray(fitted(table, curves=False).predict({k: table[k] for k in "xwg"}, "y"))
    assert np.mean(guess == table["y"]) > np.mean(straight == table["y"]) + 0.03
    drawn = network.sample(2000, seed=1)
    assert set(drawn["y"]) == {"no", "yes"}
    again = from_json(to_json(network))
    assert isinstance(again, MixedNetwork)
    given: dict[str, str | float] = {"x": 1.0, "g": "a"}
    before, after = (one.query("y", evidence=given) for one in (network, again))
    assert np.asarray(before) == pytest.approx(np.asarray(after))
    assert isinstance(again.conditionals["y"], CurvedLogit)


def test_a_row_of_which_there_are_many_counts_as_often() -> None:
    """The same fit from one row of each combination as from all, and with a start elsewhere."""
    rng = np.random.default_rng(5)
    x, g = rng.integers(0, 9, 3000) / 2.0, rng.integers(0, 3, 3000)
    own = rng.binomial(2, logistic(np.sin(x) + g - 1.0)).astype(np.intp)
    noisy = x + 1e-9 * rng.normal(size=3000)
    plain, *others = (
        fit_levels(own, (0, 1, 2), ParentRows(("g",), (3,), (g,), ("x",), (v,), 3000), 1.0)
        for v in (x, noisy)
    )
    first, place = distinct([g, x], 3000)
    assert len(first) == 27
    assert len(distinct([g, noisy], 3000)[0]) == 3000
    seen, k = tally(own, place, 3), rng.normal(size=(1, 3))
    assert seen.sum() == 3000
    start = MultinomialLogit((0, 1, 2), ("g",), ("x",), k[0], (rng.normal(size=(3, 3)),), k)
    given = (g[first],), (3,), ("x",), x[first, None]
    fitted = fit_counts((0, 1, 2), seen, ("g",), *given, 1.0, start)
    columns = {"g": g, "x": x}
    expected = plain.log_probabilities(columns, 3000)
    for model in (*others, fitted.model):
        assert model.log_probabilities(columns, 3000) == pytest.approx(expected, abs=1e-7)
    assert fitted.score == pytest.approx(float(expected[np.arange(3000), own].sum()))
    np.testing.assert_allclose(fitted.chances[:, place].T, np.exp(expected), atol=1e-7)
