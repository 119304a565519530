"""Gaussian scores against slow versions, by hand, and by their laws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import tests.scores.slow as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.notes import noted

import isthmus as ist
from isthmus.errors import MismatchError
from isthmus.objectives import LocalScore
from isthmus.scores import BGe, DegenerateGaussian, GaussianBIC, GaussianEBIC, PriorMean, PriorScale
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Moments, Schema, Variable
from isthmus.testing import enumerate_dags

Floats = NDArray[np.float64]
NAMES = ("a", "b", "c", "d", "e")


def table(seed: int, n: int, d: int = 5, offset: float = 3.0) -> Floats:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * rng.uniform(0.01, 50, d)
    return x + offset * rng.normal(size=d)


def moments(x: Floats) -> Moments:
    return Moments.from_array(Schema.continuous(NAMES[: x.shape[1]]), x)


def every_family(d: int) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (child, parents)
        for child in range(d)
        for size in range(d)
        for parents in itertools.combinations([v for v in range(d) if v != child], size)
    ]


@pytest.mark.parametrize("n", [8, 30, 10_000])
@pytest.mark.parametrize("penalty", [1.0, 2.0])
def test_bic_equals_slow_version(n: int, penalty: float) -> None:
    x = table(n, n)
    local = GaussianBIC(penalty).bind(moments(x))
    for child, parents in every_family(5):
        expected = slow.gaussian_bic(x, child, parents, penalty)
        assert local.local(child, parents) == pytest.approx(expected, rel=1e-9)


def test_bic_by_hand() -> None:
    # y = 2 x + residuals (1, -1, -1, 1) for x = 0, 1, 2, 3: the least squares are exact.
    x = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 3.0], [3.0, 7.0]])
    local = GaussianBIC().bind(moments(x))
    fit = -2.0 * (math.log(2 * math.pi * 1.0) + 1)
    assert local.local(1, (0,)) == pytest.approx(fit - 1.5 * math.log(4))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_ebic_is_bic_with_a_price_for_each_edge(gamma: float) -> None:
    x = table(1, 60)
    local = GaussianEBIC(gamma, small_sample=False).bind(moments(x))
    for child, parents in every_family(5):
        expected = slow.gaussian_bic(x, child, parents) - 2 * gamma * math.log(5) * len(parents)
        assert local.local(child, parents) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 3, 30, 10_000])
@pytest.mark.parametrize("mean", list(PriorMean))
@pytest.mark.parametrize("scale", list(PriorScale))
@pytest.mark.parametrize(("alpha_mu", "alpha_w"), [(1.0, None), (0.3, 9.5)])
def test_bge_equals_slow_version(
    n: int, mean: PriorMean, scale: PriorScale, alpha_mu: float, alpha_w: float | None
) -> None:
    x = table(n, n)
    local = BGe(alpha_mu, alpha_w, mean, scale).bind(moments(x))
    if scale is PriorScale.SAMPLE and n > 1:
        x = x / x.std(axis=0)
    at = x.mean(axis=0) if mean is PriorMean.SAMPLE else np.zeros(5)
    for child, parents in every_family(5):
        expected = slow.bge(x, child, parents, alpha_mu, alpha_w or 7.0, at)
        assert local.local(child, parents) == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_bge_refuses_an_improper_prior() -> None:
    with pytest.raises(MismatchError, match="alpha_w > 6"):
        BGe(alpha_w=6.0).bind(moments(table(0, 10)))


def mixed(seed: int, n: int) -> tuple[Moments, list[Floats]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = rng.integers(0, 3, n)
    z = np.clip((x > 0).astype(int) + (y == 2) + (rng.random(n) < 0.2), 0, 3)
    w = x - y + 0.3 * rng.normal(size=n)
    schema = Schema(
        (
            Variable("x", Kind.CONTINUOUS),
            Variable("y", Kind.DISCRETE, (0, 1, 2)),
            Variable("z", Kind.DISCRETE, (0, 1, 2, 3)),
            Variable("w", Kind.CONTINUOUS),
        )
    )
    blocks = [x[:, None], np.eye(3)[y][:, 1:], np.eye(4)[z][:, 1:], w[:, None]]
    return Moments.from_array(schema, np.column_stack([x, y, z, w])), blocks


def test_degenerate_gaussian_equals_slow_version() -> None:
    statistics, blocks = mixed(3, 500)
    local = DegenerateGaussian().bind(statistics)
    for child, parents in every_family(4):
        expected = slow.degenerate_gaussian(blocks, child, parents)
        assert local.local(child, parents) == pytest.approx(expected, rel=1e-9)


def test_degenerate_gaussian_is_gaussian_bic_on_continuous_tables() -> None:
    statistics = moments(table(2, 50))
    one, other = DegenerateGaussian().bind(statistics), GaussianBIC().bind(statistics)
    for child, parents in every_family(5):
        assert one.local(child, parents) == pytest.approx(other.local(child, parents), rel=1e-10)


SCORES: dict[str, Callable[[], LocalScore]] = {
    "bic": lambda: GaussianBIC().bind(moments(table(5, 80, 4))),
    "ebic": lambda: GaussianEBIC().bind(moments(table(5, 80, 4))),
    "bge": lambda: BGe().bind(moments(table(5, 80, 4))),
    "bge zero": lambda: BGe(prior_mean=PriorMean.ZERO).bind(moments(table(5, 80, 4))),
    "mixed": lambda: DegenerateGaussian().bind(mixed(5, 80)[0]),
}


@pytest.mark.parametrize("name", SCORES)
def test_markov_equivalent_graphs_score_the_same(name: str) -> None:
    local = SCORES[name]()
    assert local.equivalent
    totals: dict[object, float] = {}
    for dag in enumerate_dags(local.nodes):
        value = local.total(dag)
        assert totals.setdefault(dag.cpdag(), value) == pytest.approx(value, rel=1e-9)
    assert len(totals) == 185
    assert len({round(v, 6) for v in totals.values()}) > 150


@pytest.mark.parametrize("name", SCORES)
def test_extensions_are_local_scores(name: str) -> None:
    local = SCORES[name]()
    together = local.extensions(2, (0,), (1, 3))
    alone = [local.local(2, p) for p in [(0,), (0, 1), (0, 3)]]
    assert together == pytest.approx(alone, rel=1e-10)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 200))
@settings(max_examples=30, deadline=None)
def test_order_of_parents_does_not_matter(seed: int, n: int) -> None:
    local = BGe().bind(moments(table(seed, n)))
    values = [local.local(0, p) for p in itertools.permutations((1, 2, 3))]
    assert values == pytest.approx([values[0]] * 6, rel=1e-9)


@pytest.mark.parametrize("score", [GaussianBIC(), GaussianEBIC(), DegenerateGaussian()])
def test_scale_and_place_do_not_change_differences(score: Score[Moments, LocalScore]) -> None:
    x = table(7, 100)
    one = score.bind(moments(x))
    other = score.bind(moments(x * np.array([1e-6, 1.0, 1e3, 0.1, 7.0]) + 100.0))
    for child, parents in every_family(5):
        gain = one.local(child, parents) - one.local(child, ())
        same = other.local(child, parents) - other.local(child, ())
        assert gain == pytest.approx(same, abs=1e-5)


def test_a_constant_is_nobodys_parent_and_a_copy_adds_nothing() -> None:
    x = table(9, 40, 4)
    x[:, 1] = 5.0
    x[:, 3] = 2.0 * x[:, 0] - 1.0
    local = GaussianBIC().bind(moments(x))
    price = 0.5 * math.log(40)
    assert local.local(1, (0, 2)) == pytest.approx(local.local(1, ()) - 2 * price)
    assert local.local(2, (0, 1)) == pytest.approx(local.local(2, (0,)) - price)
    assert local.local(2, (0, 3)) == pytest.approx(local.local(2, (0,)) - price, abs=1e-6)
    # The two correlations have the eigenvalues 2 and 0, which counts as 1e-12.
    assert local.local(3, (0,)) - local.local(3, ()) == pytest.approx(20 * math.log(5e11) - price)
    assert np.isfinite(local.extensions(3, (0, 1), (2,))).all()


def test_fewer_rows_than_variables() -> None:
    x = table(4, 3)
    local = GaussianBIC().bind(moments(x))
    assert all(math.isfinite(local.local(c, p)) for c, p in every_family(5))


def test_one_row() -> None:
    local = GaussianBIC().bind(moments(table(4, 1)))
    assert all(math.isfinite(local.local(c, p)) for c, p in every_family(5))


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e-9])
@pytest.mark.parametrize("prior_mean", list(ist.PriorMean))
def test_bge_gives_a_constant_no_edges_in_any_unit(unit: float, prior_mean: ist.PriorMean) -> None:
    rng = np.random.default_rng(0)
    x, y = unit * rng.normal(size=(2, 300))
    table = {"x": x, "y": y, "c": np.full(300, 0.1)}
    with noted("Constant"):
        solution = ist.learn(table, score=ist.BGe(prior_mean=prior_mean), search=ist.HillClimb())
    assert all("c" not in edge for edge in solution.dag.edges)


def test_parents_of_a_column_of_which_little_is_left() -> None:
    """As in dense graphs with strong effects: 5e-12 is not nothing."""
    x = np.random.default_rng(3).normal(size=(1000, 5))
    x[:, 4] = x[:, :3] @ [1e6, -7e5, 2.0] + 3.0 * x[:, 4]
    local = GaussianBIC().bind(moments(x))
    best = local.local(4, (0, 1, 2))
    assert best > local.local(4, (0, 1)) + 100
    assert local.local(4, (0, 1, 2, 3)) < best
