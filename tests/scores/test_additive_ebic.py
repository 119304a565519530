"""Regressions on curves: against their definition, and against the scores of lines."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.scores.base import small_sample_prices
from isthmus.scores.unequal_spread import spread_ratios
from isthmus.statistics import Moments
from isthmus.testing import check_score

Floats = NDArray[np.float64]


def numbers(n: int = 300, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = a**2 + rng.normal(size=n)
    c = np.tanh(2 * a) + 0.3 * b + rng.normal(size=n)
    return {"a": a, "b": b, "c": c, "d": c + rng.normal(size=n)}


def mixed(n: int = 300, seed: int = 0) -> dict[str, Any]:
    table = numbers(n, seed)
    rng = np.random.default_rng(seed + 1)
    levels = np.digitize(2 * table["a"] + rng.normal(size=n), [-1, 1])
    return table | {"e": np.array(list("xyz"))[levels]}


def wide(table: dict[str, Any]) -> Moments:
    return ist.WithFeatures(table, ist.Chebyshev(6, 3.0)).moments()


def by_definition(table: dict[str, Floats], child: str, parents: list[str], gamma: float) -> float:
    """Regress on lines; add the cubic or the sixth degree that gains most while one pays."""
    n, d = len(table[child]), len(table)
    of_parents = small_sample_prices(n, d, gamma)
    of_columns = small_sample_prices(n, 6 * d, 0.0)

    def functions(name: str, degree: int) -> Floats:
        z = (table[name] - table[name].mean()) / table[name].std()
        u = np.clip(z / 3.0, -1.0, 1.0)
        curves = [np.cos(k * np.arccos(u)) for k in range(2, degree + 1)]
        return np.stack([table[name], *curves], axis=1)

    def value(degrees: dict[str, int]) -> float:
        blocks = [functions(p, degrees[p]) for p in parents]
        design = np.concatenate([np.ones((n, 1)), *blocks], axis=1)
        y = table[child]
        rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        k = design.shape[1] - 1
        price = of_parents[len(parents)] + of_columns[k] - of_columns[len(parents)]
        fit = -0.5 * n * (math.log(2 * math.pi) + 1.0 + math.log(float(rest @ rest) / n))
        return fit - math.log(n) - float(price)

    degrees = dict.fromkeys(parents, 1)
    best = value(degrees)
    while True:
        tried = [degrees | {p: k} for p in parents for k in (3, 6) if k > degrees[p]]
        values = [value(t) for t in tried]
        if not values or max(values) <= best:
            return best
        best = max(values)
        degrees = tried[values.index(best)]


@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_that_of_its_definition(seed: int) -> None:
    table = numbers(seed=seed)
    score = ist.AdditiveEBIC().bind(wide(table))
    names = [*table]
    ratios = spread_ratios(wide(table))
    edge = float(small_sample_prices(300, 4, 0.5)[1])
    for child in names:
        others = [name for name in names if name != child]
        for size in range(4):
            for parents in combinations(others, size):
                places = [names.index(p) for p in parents]
                expected = by_definition(table, child, [*parents], 0.5)
                expected -= edge * float(sum(ratios[names.index(child), p] - 1.0 for p in places))
                found = score.local(names.index(child), places)
                assert found == pytest.approx(expected, rel=1e-9)


def test_without_curves_and_with_equal_spread_it_is_the_score_of_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("isthmus.scores.additive.spread_ratios", lambda m: np.ones((1, 1)))
    for table, lines in (
        (numbers(), ist.GaussianEBIC()),
        (mixed(), ist.DegenerateGaussian(gamma=0.5)),
    ):
        straight = ist.AdditiveEBIC(curved=()).bind(wide(table))
        expected = lines.bind(ist.Frame(table).moments())
        d = len(table)
        for child in range(d):
            others = [v for v in range(d) if v != child]
            for size in range(4):
                for parents in combinations(others, size):
                    assert straight.local(child, parents) == pytest.approx(
                        expected.local(child, parents), rel=1e-10
                    )


def test_conformance_and_the_order_of_parents() -> None:
    score = ist.AdditiveEBIC().bind(wide(mixed()))
    check_score(score)
    assert score.local(2, [0, 1, 3]) == score.local(2, [3, 0, 1])


def test_curves_are_used_where_they_are_allowed_and_pay() -> None:
    table = numbers(2000)
    score = ist.AdditiveEBIC().bind(wide(table))
    assert score.degrees(1, [0]).tolist() == [1]  # a square needs a cubic
    assert score.degrees(3, [2]).tolist() == [0]  # a line needs none
    some = ist.AdditiveEBIC(curved=[("a", "c")]).bind(wide(table))
    assert some.degrees(1, [0]).tolist() == [0]
    assert some.degrees(2, [0]).tolist() == score.degrees(2, [0]).tolist()
    assert some.local(1, [0]) < score.local(1, [0])
    assert score.bend(1, [], 0) == pytest.approx(
        score.local(1, [0]) - some.local(1, [0]) - score.edge_price
    )


def test_units_do_not_matter() -> None:
    table = numbers()
    other = {name: 1000.0 * x - 7.0 for name, x in table.items()}
    dag = ist.DAG([*table], [("a", "b"), ("a", "c"), ("c", "d")])
    empty = ist.DAG([*table], [])
    here, there = (ist.AdditiveEBIC().bind(wide(t)) for t in (table, other))
    assert here.total(dag) - here.total(empty) == pytest.approx(
        there.total(dag) - there.total(empty), rel=1e-8
    )


def test_a_table_without_functions_is_refused() -> None:
    with pytest.raises(ist.errors.MismatchError, match="Chebyshev"):
        ist.AdditiveEBIC().bind(ist.Frame(numbers()).moments())
