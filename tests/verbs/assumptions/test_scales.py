"""Losses that depend on scale say so when the scale was removed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus import simulate


def standardised() -> simulate.Simulation:
    dag = simulate.erdos_renyi(10, 20, seed=0)
    return simulate.linear(dag, 1000, seed=0).standardised()


@pytest.mark.parametrize(
    ("search", "advice"),
    [
        (ist.Notears(), r"LinearLikelihood\(\)"),
        (ist.NotearsAdditive(), "equal_variances=False"),
    ],
)
def test_standardised_columns_are_noted_by_searches_that_depend_on_scale(
    search: ist.searches.Search,  # type: ignore[type-arg]
    advice: str,
) -> None:
    with noted(advice):
        solution = ist.learn(standardised().data, search=search)
    (note,) = (n for n in solution.notes if "standardised" in n)
    assert "leave out the search" in note


@pytest.mark.long
def test_nothing_is_noted_where_scale_does_not_matter() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not ist.learn(standardised().data).notes
        assert not ist.learn(
            standardised().data, score=ist.LinearLikelihood(), search=ist.Notears(starts=2)
        ).notes
        assert not ist.learn(
            standardised().data,
            score=ist.AdditiveLeastSquares(equal_variances=False),
            search=ist.NotearsAdditive(),
        ).notes


def test_columns_that_keep_their_scale_are_not_noted() -> None:
    rng = np.random.default_rng(0)
    noise = {name: rng.normal(size=500) for name in "abc"}
    assert not any("standardised" in n for n in ist.learn(noise, search=ist.Notears()).notes)
