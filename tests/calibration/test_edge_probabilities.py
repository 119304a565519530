"""Data from the prior itself: edges are there as often as the posterior says."""

from __future__ import annotations

import os

import numpy as np
import pytest
from benchmarks.posterior.calibration import graphs, pairs

# Tables that are drawn from the prior are small, and may be constant or copied.
pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")

TRUTHS = 800 if "ISTHMUS_LONG" in os.environ else 400


@pytest.mark.parametrize(("rows", "seed"), [(3, 0), (20, 1), (200, 2)])
def test_probabilities_are_calibrated(rows: int, seed: int) -> None:
    p, y = pairs(5, rows, TRUTHS, seed=seed)
    assert 0.2 < y.mean() < 0.5  # uniform over graphs
    tested = 0
    for low, high in ((0.0, 1.01), (0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.01)):
        # Edges of one truth depend on each other, truths do not.
        inside = (p >= low) & (p < high)
        if inside.sum() < 100:
            continue
        tested += 1
        excess = ((y - p) * inside).sum(axis=1)
        assert abs(excess.sum()) < 4 * np.sqrt(np.square(excess).sum())
    assert tested >= 4


def test_data_tell_something() -> None:
    p, y = pairs(5, 200, 100)
    assert np.square(y - p).mean() < 0.85 * np.square(y - y.mean()).mean()


def test_truths_are_uniform() -> None:
    drawn = graphs(3, 5000, 0)
    counts = np.unique([hash(g) for g in drawn], return_counts=True)[1]
    assert len(counts) == 25
    assert np.abs(counts - 200).max() < 5 * np.sqrt(200)
