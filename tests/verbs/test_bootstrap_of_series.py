"""Realisations of different level make false edges, which nobody may call stable."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.statistics.resampling import Blocks, WholeRealisations, sampler_of_rows

Realisations = list[dict[str, np.ndarray]]


def realisations(seed: int, *, spread: float, phi: float = 0.0, number: int = 8) -> Realisations:
    """Independent x and y, each with a level of its own in each realisation."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(number):
        part = {}
        for name in "xy":
            noise, x = rng.normal(size=60), np.zeros(60)
            x[0] = noise[0] / np.sqrt(1.0 - phi**2)
            for t in range(1, 60):
                x[t] = phi * x[t - 1] + noise[t]
            part[name] = spread * rng.normal() + x
        parts.append(part)
    return parts


def share(ensemble: ist.Ensemble) -> float:
    """Largest share of an edge between x and y, at any lag."""
    either = ensemble.adjacency_probabilities()
    x, y = ([i for i, n in enumerate(ensemble.nodes) if n.startswith(v)] for v in "xy")
    return float(either[np.ix_(x, y)].max())


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_bootstrap_does_not_call_false_edges_stable(seed: int) -> None:
    series = ist.Series(realisations(seed, spread=4.0), lags=1)
    ensemble = ist.bootstrap(series, search=ist.Boss(), replicates=30, jobs=1)
    assert share(ensemble) < 0.5
    text = str(ensemble)
    assert "centre=True" in text
    assert "draws 8 whole realisations" in text


def test_a_true_edge_between_realisations_of_different_level_stays_stable() -> None:
    parts = realisations(0, spread=4.0)
    for part in parts:
        part["y"][1:] += 0.8 * part["x"][:-1]
    ensemble = ist.bootstrap(ist.Series(parts, lags=1), search=ist.Boss(), replicates=30, jobs=1)
    assert share(ensemble) == 1.0


def test_learn_notes_different_levels_unless_they_were_centred() -> None:
    parts = realisations(1, spread=4.0)
    notes = ist.learn(ist.Series(parts, lags=1)).notes
    assert "level of 'x', 'y'" in notes[1]
    assert "Use Series(..., centre=True)" in notes[1]
    assert len(ist.learn(ist.Series(parts, lags=1, centre=True)).notes) == 1


@pytest.mark.long
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_equal_levels_are_seldom_said_to_differ(phi: float) -> None:
    alarms = sum(
        len(ist.Series(realisations(seed, spread=0.0, phi=phi), lags=1).notes()) > 1
        for seed in range(120)
    )
    assert alarms <= 4  # with a rate of 1 %, more come up in 0.7 % of all cases


def test_even_huge_differences_of_level_are_noticed() -> None:
    for spread in (4.0, 1e3, 1e6):
        series = ist.Series(realisations(2, spread=spread, number=3), lags=1)
        assert len(series.notes()) == 2, spread


def test_few_realisations_are_drawn_in_blocks() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 4))
    owners = np.repeat([0, 1], [50, 40])
    sampler = sampler_of_rows(owners, rows, lags=1)
    assert isinstance(sampler, Blocks)
    assert sampler.length >= 2
    drawn = sampler.draw(rng)
    np.testing.assert_array_equal(owners[drawn], owners)
    inside = np.diff(drawn) % np.where(owners[1:] == 0, 50, 40) == 1
    assert inside.mean() > 0.4


def test_blocks_are_longer_for_persistent_series() -> None:
    parts = [realisations(3, spread=0.0, phi=phi, number=1) for phi in (0.0, 0.9)]
    short, long = (
        sampler_of_rows(s.owners, s.rows(), lags=1) for s in (ist.Series(p, lags=1) for p in parts)
    )
    assert isinstance(short, Blocks)
    assert isinstance(long, Blocks)
    assert long.length > short.length


def test_whole_realisations_are_drawn() -> None:
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(6), [3, 4, 5, 6, 7, 8])
    sampler = sampler_of_rows(owners, rng.normal(size=(33, 2)), lags=1)
    assert isinstance(sampler, WholeRealisations)
    drawn = np.bincount(sampler.draw(rng), minlength=33)
    for owner in range(6):
        assert len(set(drawn[owners == owner])) == 1
    assert len(set(drawn)) > 1
