"""Searches over weights do not depend on units, as far as each claims."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import isthmus as ist
from isthmus import simulate

Table = Mapping[str, NDArray[np.float64]]
FACTORS = (1e-6, 1e-3, 0.01, 7.0, 100.0, 1e6)


def curves() -> Table:
    rng = np.random.default_rng(0)
    a = rng.normal(size=1000)
    b = np.sin(2 * a) + 0.5 * rng.normal(size=1000)
    c = b**2 + 0.5 * rng.normal(size=1000)
    return {"a": a, "b": b, "c": c, "d": rng.normal(size=1000)}


def times(table: Table, factors: list[float]) -> Table:
    return {name: k * x for (name, x), k in zip(table.items(), factors, strict=True)}


@pytest.mark.parametrize("factor", FACTORS)
def test_additive_search_does_not_depend_on_a_common_unit(factor: float) -> None:
    table = curves()
    plain = ist.learn(table, search=ist.NotearsAdditive())
    scaled = ist.learn(times(table, [factor] * 4), search=ist.NotearsAdditive())
    assert set(plain.dag.edges) == {("a", "b"), ("b", "c")}
    assert scaled.dag == plain.dag
    assert scaled.score == pytest.approx(factor**2 * plain.score, rel=1e-6)
    assert scaled.details.weights == pytest.approx(
        factor * np.asarray(plain.details.weights), rel=1e-6
    )


@given(st.lists(st.floats(-6.0, 6.0), min_size=4, max_size=4))
@settings(max_examples=10, deadline=None)
def test_additive_likelihood_does_not_depend_on_the_unit_of_any_column(powers: list[float]) -> None:
    score, search = ist.AdditiveLeastSquares(equal_variances=False), ist.NotearsAdditive()
    table = times(curves(), [10.0**p for p in powers])
    found = ist.learn(table, score=score, search=search)
    assert set(found.dag.edges) == {("a", "b"), ("b", "c")}


@pytest.mark.parametrize("factor", FACTORS)
def test_dynamic_search_does_not_depend_on_a_common_unit(factor: float) -> None:
    dag, lagged = simulate.erdos_renyi(5, 5, seed=0), simulate.lagged_graph(5, lags=1, seed=0)
    series = simulate.autoregressive(dag, lagged, 200, realisations=2, seed=0).arrays()
    plain = ist.learn(ist.Series(series, lags=1), search=ist.Dynotears())
    scaled = ist.learn(ist.Series([factor * x for x in series], lags=1), search=ist.Dynotears())
    assert len(plain.dag.edges) >= 5
    assert scaled.dag == plain.dag
    assert scaled.details.weights == pytest.approx(plain.details.weights, rel=1e-6)


def linear() -> Table:
    dag = simulate.erdos_renyi(6, 6, seed=0)
    return {n: np.asarray(x) for n, x in simulate.linear(dag, 500, seed=0).data.items()}


@pytest.mark.filterwarnings("ignore:The variance:isthmus.errors.DataWarning")
@pytest.mark.parametrize("factor", FACTORS)
def test_linear_search_does_not_depend_on_a_common_unit(factor: float) -> None:
    table = linear()
    plain = ist.learn(table, search=ist.Notears())
    assert len(plain.dag.edges) >= 5
    assert ist.learn(times(table, [factor] * 6), search=ist.Notears()).dag == plain.dag


@given(st.lists(st.floats(-6.0, 6.0), min_size=6, max_size=6))
@settings(max_examples=10, deadline=None)
def test_linear_likelihood_does_not_depend_on_the_unit_of_any_column(powers: list[float]) -> None:
    score, search = ist.LinearLikelihood(), ist.Notears()
    plain = ist.learn(linear(), score=score, search=search)
    scaled = ist.learn(times(linear(), [10.0**p for p in powers]), score=score, search=search)
    assert scaled.cpdag == plain.cpdag


@given(st.lists(st.floats(-6.0, 6.0), min_size=5, max_size=5))
@settings(max_examples=20, deadline=None)
def test_default_posterior_does_not_depend_on_the_unit_of_any_column(powers: list[float]) -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=60)
    b = 0.4 * a + rng.normal(size=60)
    c = 0.5 * a - 0.3 * b + rng.normal(size=60)
    table = {"a": a, "b": b, "c": c, "d": rng.normal(size=60), "e": 0.3 * c + rng.normal(size=60)}
    plain = ist.sample(table, draws=10)
    scaled = ist.sample(times(table, [10.0**p for p in powers]), draws=10)
    assert scaled.edge_probabilities() == pytest.approx(plain.edge_probabilities(), abs=1e-6)
    assert 0.05 < plain.edge_probabilities().max() < 0.99
