"""Effects of discrete causes: by hand, against fitted networks, and their coverage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, SchemaError
from isthmus.fitting.standardised import _shares, _Variables, standardised_effect
from isthmus.results import EffectComparison, EffectEstimate, PossibleEffect
from isthmus.statistics import Kind, Schema, Variable

TIERS = ist.Knowledge(tiers=[["z"], ["x"], ["y"]])


def confounded(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = rng.random(n) < np.array([0.2, 0.5, 0.8])[z]
    y = rng.random(n) < np.array([0.1, 0.4, 0.6])[z] + x * np.array([0.3, 0.1, 0.2])[z]
    return {"z": np.array(list("abc"))[z], "x": np.where(x, "yes", "no"), "y": np.where(y, 1, 0)}


TRUTH = 0.5 * 0.3 + 0.3 * 0.1 + 0.2 * 0.2


def test_standardisation_by_hand_and_over_the_fitted_network() -> None:
    table = confounded(4000, 1)
    solution = ist.learn(table, knowledge=TIERS)
    estimate = solution.effect("x", "y")
    by_hand = 0.0
    for level in "abc":
        here = table["z"] == level
        means = [table["y"][here & (table["x"] == x)].mean() for x in ("no", "yes")]
        by_hand += here.mean() * (means[1] - means[0])
    assert estimate.value == pytest.approx(by_hand)
    assert estimate.adjustment == ("z",)
    network: Any = solution.fit(pseudo_count=0)
    risks = [network.query("y", do={"x": level})[1] for level in ("no", "yes")]
    assert estimate.alternatives[0].averages == pytest.approx(risks)
    assert str(estimate).startswith("x (no → yes) → P(y = 1): 0.2")
    low, high = estimate.interval()
    assert low < TRUTH < high
    back = solution.effect("x", "y", change=("yes", "no"), outcome=0)
    assert back.value == pytest.approx(estimate.value)


def test_regressions_are_doubly_robust() -> None:
    rng = np.random.default_rng(2)
    n = 20_000
    z = rng.normal(size=n)
    x = rng.random(n) < 1 / (1 + np.exp(1 - 1.5 * z))
    y = np.exp(0.7 * z) + x + rng.normal(size=n)  # no straight line
    table = {"z": z, "x": np.where(x, "yes", "no"), "y": y}
    estimate = ist.learn(table, knowledge=TIERS).effect("x", "y")
    assert estimate.value == pytest.approx(1.0, abs=4 * estimate.standard_error)
    assert estimate.standard_error < 0.04
    design = np.column_stack([np.ones(n), z, x])
    assert abs(np.linalg.lstsq(design, y, rcond=None)[0][2] - 1.0) > 0.03  # of one regression


def estimates(kind: str, seed: int) -> tuple[float, float, float]:
    """Return an estimate, its error and the truth, for one simulated table."""
    rng = np.random.default_rng(seed)
    if kind == "strata":
        table = confounded(300, seed)
        columns = [table["x"] == "yes", table["y"], np.searchsorted(list("abc"), table["z"])]
        levels: Any = (("no", "yes"), (0, 1), ("a", "b", "c"))
        truth = TRUTH
    else:
        z = rng.normal(size=300)
        x = rng.random(300) < 1 / (1 + np.exp(0.5 - z))
        y = rng.random(300) < 1 / (1 + np.exp(1 - z - x))
        columns, levels = [x, y, z], (("no", "yes"), (0, 1), ())
        points, weights = np.polynomial.hermite_e.hermegauss(60)
        lift = 1 / (1 + np.exp(-points)) - 1 / (1 + np.exp(1 - points))
        truth = float(weights @ lift / weights.sum())
    schema = Schema(
        tuple(
            Variable(v, Kind.DISCRETE if own else Kind.CONTINUOUS, own)
            for v, own in zip("xyz", levels, strict=True)
        )
    )
    rows = np.column_stack(columns).astype(np.float64)
    value, error, *_ = standardised_effect(schema, rows, (0, 1), 1)
    return value, error, truth


@pytest.mark.long
@pytest.mark.parametrize("kind", ["strata", "regressions"])
def test_intervals_cover(kind: str) -> None:
    from scipy.stats import binom

    trials = 250 if kind == "strata" else 80
    inside = 0
    for seed in range(trials):
        value, error, truth = estimates(kind, seed)
        inside += abs(value - truth) < 1.968 * error
    least, most = (binom.ppf(share, trials, 0.95) for share in (0.0005, 0.9995))
    assert least <= inside <= most


def sparse(seed: int) -> tuple[Schema, Any, float]:
    """Return rows of random tables with rare combinations of two variables, and the true effect."""
    rng = np.random.default_rng(seed)
    shares, chance = rng.dirichlet(np.full(8, 0.4)), rng.uniform(0.1, 0.9, 8)
    risk = rng.uniform(0.1, 0.9, (8, 2))
    cell = rng.choice(8, 300, p=shares)
    x = (rng.random(300) < chance[cell]).astype(int)
    y = rng.random(300) < risk[cell, x]
    columns = ("x", 2), ("y", 2), ("v", 4), ("w", 2)
    schema = Schema(tuple(Variable(v, Kind.DISCRETE, tuple(range(k))) for v, k in columns))
    rows = np.column_stack([x, y, cell // 2, cell % 2]).astype(np.float64)
    return schema, rows, float(shares @ (risk[:, 1] - risk[:, 0]))


def test_rare_combinations_have_a_prior() -> None:
    schema, rows, _ = sparse(0)
    value, error, *_ = estimate = standardised_effect(schema, rows, (0, 1), 1)
    averages = estimate.averages
    assert averages is not None
    x, y, given = rows[:, 0], rows[:, 1], rows[:, 2:]
    data = _Variables(x.astype(np.intp), 2, y, given, (4, 2))
    cells, place = np.unique(given, axis=0, return_inverse=True)
    place = place.ravel()
    counts = [np.bincount(place[x == a], minlength=len(cells)) for a in (0, 1)]
    assert min(map(min, counts)) < 5  # otherwise this tests something else
    rng, drawn = np.random.default_rng(1), []
    weights = rng.dirichlet(np.bincount(place), 4000)
    for a in (0, 1):
        prior = _shares(y.astype(np.intp), 2, data, x == a)[:, 1]
        prior = np.array([prior[place == k][0] for k in range(len(cells))])
        events = np.bincount(place[x == a], y[x == a], len(cells))
        alpha = events + prior
        risks = rng.beta(alpha, counts[a] + 1.0 - alpha, (4000, len(cells)))
        drawn.append((weights * risks).sum(axis=1))
        assert averages[a] == pytest.approx(drawn[-1].mean(), abs=0.005)
    spread = (drawn[1] - drawn[0]).std()
    assert 0.97 * spread < error < 1.4 * spread  # with the doubt about the prior means
    assert value == pytest.approx(averages[1] - averages[0])


@pytest.mark.long
def test_intervals_cover_with_rare_combinations() -> None:
    from scipy.stats import binom, t

    trials, inside = 0, 0
    for seed in range(90):
        schema, rows, truth = sparse(seed)
        try:
            value, error, degrees, *_ = standardised_effect(schema, rows, (0, 1), 1)
        except DataError:
            continue  # a combination of many rows lacks a level
        trials += 1
        inside += abs(value - truth) < t.ppf(0.975, degrees) * error
    assert trials >= 60
    assert inside >= binom.ppf(0.001, trials, 0.93)


def test_an_effect_that_is_not_identified_leads_with_it() -> None:
    table = confounded(2000, 3)
    del table["z"]
    estimate = ist.learn(table).effect("x", "y")
    assert not estimate.identified
    assert str(estimate).startswith("x (no → yes) → P(y = 1): not identified")
    crude = table["y"][table["x"] == "yes"].mean() - table["y"][table["x"] == "no"].mean()
    assert estimate.possible == pytest.approx((0.0, crude))
    assert math.isnan(estimate.value)
    assert math.isnan(estimate.e_value())


def test_which_levels_are_compared() -> None:
    table = confounded(500, 4)
    solution = ist.learn(table, knowledge=TIERS)
    with pytest.raises(ArgumentError, match=r"has 3 levels.*change=\('a', 'c'\)"):
        solution.effect("z", "y")
    estimate = solution.effect("z", "y", change=("a", "c"))
    assert estimate.comparison == EffectComparison(("a", "c"), 1)
    with pytest.raises(SchemaError, match="not one of the levels of 'z'"):
        solution.effect("z", "y", change=("a", "d"))
    with pytest.raises(ArgumentError, match="two different levels"):
        solution.effect("z", "y", change=("a", "a"))
    with pytest.raises(SchemaError, match="not one of the levels of 'y'"):
        solution.effect("x", "y", outcome=2)
    order = ist.Knowledge(tiers=[["x"], ["z"]])
    three = ist.learn({"x": table["x"], "z": table["z"]}, knowledge=order)
    with pytest.raises(ArgumentError, match="outcome='c'"):
        three.effect("x", "z")
    numbers = {"x": table["x"], "y": np.random.default_rng(0).normal(size=500)}
    with pytest.raises(ArgumentError, match="Leave out outcome"):
        ist.learn(numbers).effect("x", "y", outcome=1)
    with pytest.raises(ArgumentError, match="per unit"):
        ist.learn(numbers).effect("y", "x", change=(0.0, 1.0))
    schema = Schema((Variable("x", Kind.DISCRETE, ("no", "yes")), Variable("y", Kind.CONTINUOUS)))
    rows = np.column_stack([np.repeat([1.0, 0.0], [2, 48]), numbers["y"][:50]])
    with pytest.raises(DataError, match="Only 2 rows have x = 'yes'"):
        standardised_effect(schema, rows, (0, 1), None)


def test_slopes_adjusted_for_categories() -> None:
    rng = np.random.default_rng(5)
    g = rng.choice(list("uvw"), 400)
    shift = np.array([0.0, 2.0, -1.0])[np.searchsorted(list("uvw"), g)]
    x = shift + rng.normal(size=400)
    table = {"z": g, "x": x, "y": 0.5 * x + 3 * shift + rng.normal(size=400)}
    estimate = ist.learn(table, knowledge=TIERS).effect("x", "y")
    design = np.column_stack([x, np.ones(400), g == "v", g == "w"]).astype(float)
    expected = np.linalg.lstsq(design, table["y"], rcond=None)[0][0]
    assert estimate.value == pytest.approx(expected)
    assert estimate.robust
    assert estimate.interval()[0] < 0.5 < estimate.interval()[1]


def test_how_strong_a_hidden_cause_must_be() -> None:
    # The first example of VanderWeele and Ding (2017): a risk ratio of 3.9 has the E-value 7.26.
    levels = EffectComparison(("n", "y"), "y")
    risks = PossibleEffect((), (), 0.29, 0.02, 100, averages=(0.1, 0.39))
    estimate = EffectEstimate(
        "a",
        "b",
        identified=True,
        alternatives=(risks,),
        comparison=levels,
    )
    assert estimate.e_value() == pytest.approx(7.26, abs=0.005)
    assert 1.0 < estimate.e_value(0.95) < 7.26
    nothing = PossibleEffect((), (), 0.02, 0.02, 100, averages=(0.1, 0.12))
    assert EffectEstimate(
        "a",
        "b",
        identified=True,
        alternatives=(nothing,),
        comparison=levels,
    ).e_value(0.95) == pytest.approx(1.0)
    # A hidden variable with this partial R² with both makes the estimate zero: omitted variables.
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    y = 0.4 * x + rng.normal(size=500)
    line = ist.learn({"x": x, "y": y}, knowledge=ist.Knowledge(tiers=[["x"], ["y"]]))
    found = line.effect("x", "y")
    value = found.robustness_value
    r = np.corrcoef(x, y)[0, 1]
    bias = value / math.sqrt(1 - value) * math.sqrt(y.var() * (1 - r**2) / x.var())
    assert bias == pytest.approx(abs(found.value))
    assert math.isnan(found.e_value())
