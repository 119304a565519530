"""NOTEARS from the front door: warnings that teach, and the standardised refit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus import simulate
from isthmus.errors import MismatchError


def raw(seed: int = 1, d: int = 12) -> simulate.Simulation:
    return simulate.linear(simulate.erdos_renyi(d, 2 * d, seed=seed), 1000, seed=seed)


def test_scales_that_give_the_order_away_are_named() -> None:
    data = raw()
    assert simulate.varsortability(data) > 0.9
    with noted("standardised_refit"):
        solution = ist.learn(data.data, search=ist.Notears())
    (note,) = solution.notes
    assert note.startswith("Unless all columns have one common unit")
    assert f"of {len(data.dag.edges)} edges" in note
    assert solution.dag == data.dag
    assert not solution.equivalent


def test_edges_that_do_not_rest_on_units_are_not_noted() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1000))
    collider = {"a": a, "b": b, "c": a + b + rng.normal(size=1000)}
    solution = ist.learn(collider, search=ist.Notears())
    assert set(solution.dag.edges) == {("a", "c"), ("b", "c")}
    assert solution.notes == ()


def test_a_likelihood_does_not_warn_about_scales() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = ist.learn(raw().data, score=ist.LinearLikelihood(), search=ist.Notears())
    assert solution.equivalent
    assert solution.notes == ()


def test_the_standardised_refit_names_the_edges_that_disagree() -> None:
    data = raw()
    with noted():
        solution = ist.learn(data.data, search=ist.Notears())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the user knows that these columns are standardised
        refit = solution.standardised_refit()
    assert refit.turned or refit.gone
    both = [*refit.kept, *refit.turned, *refit.gone]
    assert sorted(both) == sorted(solution.dag.edges)
    there = refit.standardised.dag.edges
    assert sorted([*refit.kept, *((b, a) for a, b in refit.turned), *refit.new]) == sorted(there)
    with noted("one common unit"):
        direct = ist.learn(data.standardised().data, search=ist.Notears())
    # On standardised columns some directions are exact ties, so the value is compared.
    assert direct.score == pytest.approx(refit.standardised.score, rel=1e-10)
    assert "point the other way" in str(refit)


def test_a_likelihood_has_nothing_to_disagree_about() -> None:
    solution = ist.learn(raw().data, score=ist.LinearLikelihood(), search=ist.Notears())
    refit = solution.standardised_refit()
    assert refit.kept == solution.dag.edges
    assert refit.new == refit.turned == refit.gone == ()


def test_counts_cannot_be_standardised() -> None:
    codes = np.random.default_rng(0).integers(0, 2, size=(100, 2))
    solution = ist.learn({"a": codes[:, 0], "b": codes[:, 1]})
    with pytest.raises(MismatchError, match="counts"):
        solution.standardised_refit()
