"""Trends, random walks and seasons in time series are noted; stationary series are not."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.compose.assumptions.series import unsteady_series
from isthmus.errors import DataWarning
from isthmus.types import Floats


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
    with pytest.warns(DataWarning, match="Learn from the differences"):
        solution = ist.learn(ist.Series(walks, lags=1))
    assert any("change over time" in note for note in solution.notes)
    assert not notes(walks[:50])
    realisations = [rng.normal(size=(40, 3)).cumsum(axis=0) for _ in range(5)]
    assert not unsteady_series(ist.Series(realisations, lags=1))
