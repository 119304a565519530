"""Moments of many regimes are those of all rows minus the rows of the targets."""

from __future__ import annotations

import numpy as np

import isthmus as ist
from isthmus.statistics import Moments


def test_the_difference_is_the_sum_of_the_other_rows() -> None:
    rng = np.random.default_rng(0)
    names = [f"g{i}" for i in range(12)]
    regime = np.concatenate([np.full(40, 12), np.repeat(np.arange(12), 20)])
    rows = rng.normal(5.0, 2.0, size=(len(regime), 12))
    rows[regime == 3, 3] = 1e9  # nearly all of the sum of squares: counted again
    rows[regime != 5, 5] = 7.0  # constant where it was free
    table = {n: rows[:, i] for i, n in enumerate(names)} | {"guide": regime.astype(str)}
    targets = {str(k): [names[k]] for k in range(12)} | {"12": list[str]()}
    found = ist.Interventions(table, targets, column="guide").regimes(Moments)
    for i, name in enumerate(names):
        part = found.parts[found.part_of[i]]
        assert isinstance(part, Moments)
        kept = rows[regime != i]
        assert part.n == len(kept)
        np.testing.assert_allclose(part.mean(), kept.mean(axis=0), rtol=1e-12)
        centred = kept - kept.mean(axis=0)
        expected = centred.T @ centred
        scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        gap = np.abs(part.scatter() - expected)
        assert (gap[scale > 0] / scale[scale > 0]).max() < 1e-9
        assert part.constants() == (("g5",) if name == "g5" else ())
