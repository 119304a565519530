"""Trends, random walks and seasons in time series are noted; stationary series are not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.verbs.notes_rows import unchecked_series, unsteady_series


def notes(x: Floats) -> tuple[str, ...]:
    return unsteady_series(ist.Series(x, lags=1))


def autoregressive(coefficient: float, n: int, rng: np.random.Generator) -> Floats:
    x = rng.normal(size=(n, 5))
    for t in range(1, n):
        x[t] += coefficient * x[t - 1]
    return x


@pytest.mark.parametrize("coefficient", [0.0, 0.8, -0.9])
def test_stationary_series_have_no_note(coefficient: float) -> None:
    for seed in range(20):
        assert not notes(autoregressive(coefficient, 300, np.random.default_rng(seed)))


def test_drifts_and_seasons_are_noted() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noise, time = rng.normal(size=(300, 5)), np.arange(300)[:, None]
        assert "random walks" in notes(noise.cumsum(axis=0))[0]
        assert "'x0@1' and 'x1@1'" in notes(noise + time / 30)[0]
        season = 2.0 * np.sin(2.0 * np.pi * time / 12 + np.arange(5))
        assert "about every 12 steps" in notes(noise + season)[0]
        assert not notes(np.diff(noise.cumsum(axis=0), axis=0))
        one = noise.copy()
        one[:, 2] += time[:, 0]
        assert not notes(one)  # a single drift has nothing to be confused with


def test_learn_gives_the_note_and_short_series_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    walks = rng.normal(size=(300, 4)).cumsum(axis=0)
    with noted("Learn from the differences"):
        solution = ist.learn(ist.Series(walks, lags=1))
    assert any("change over time" in note for note in solution.notes)
    assert not notes(walks[:50])
    realisations = [rng.normal(size=(30, 3)).cumsum(axis=0) for _ in range(5)]
    assert not unsteady_series(ist.Series(realisations, lags=1))


@pytest.mark.parametrize(("steps", "realisations"), [(100, 10), (45, 8)])
def test_all_realisations_are_looked_at(steps: int, realisations: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        many = [autoregressive(0.8, steps, rng) for _ in range(realisations)]
        assert not unsteady_series(ist.Series(many, lags=1))
        many = [rng.normal(size=(steps, 5)).cumsum(axis=0) for _ in range(realisations)]
        assert "change over time" in unsteady_series(ist.Series(many, lags=1))[0]


def test_a_note_says_that_drifts_were_not_looked_for() -> None:
    walks = np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0)
    long, short = ist.Series(walks, lags=1), ist.Series(walks[:60], lags=1)
    assert not unchecked_series(long)
    assert not unchecked_series(ist.Series(walks[:60, :1], lags=1))
    sites = [ist.Series(part, lags=1) for part in np.split(walks, 3)]
    for data in (short, long.moments(), ist.Federation.simulate(sites)):
        found = [note for note in ist.learn(data).notes if "were not looked for" in note]
        assert len(found) == 1
        assert "differences of successive rows" in found[0]
    steps = np.diff(walks, axis=0)
    assert not any("looked for" in note for note in ist.learn(steps).notes)
