"""Group lassos against the Numba kernel that they replace, to the last bit. Goes when that goes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.kernels.moments import random_moments

from isthmus.kernels.continuous import GroupDescent
from isthmus.numerics import group_descent


@pytest.mark.parametrize("seed", range(40))
def test_group_lassos_are_equal_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, int(rng.integers(1, 30)))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    p = int(starts[-1])
    features = random_moments(p, int(rng.integers(2, 80)), seed)
    steeps = np.array(
        [np.linalg.norm(features[a:b, a:b], 2) if b > a else 0.0
         for a, b in pairwise(starts)]
    )  # fmt: skip
    cross = rng.normal(size=p)
    penalties = rng.uniform(0.0, 1.0, len(sizes))
    causes = rng.permutation(len(sizes))[: int(rng.integers(0, len(sizes) + 1))].astype(np.int64)
    start = rng.normal(size=p) * (rng.random(p) < 0.5)
    limit = int(rng.choice([0, 1, 7, 500]))
    expected = start.copy()
    sweeps = group_descent.descend(
        features, cross, starts, steeps, penalties, causes, expected, 1e-7, limit
    )
    for seconds in (0.0, 3600.0):
        descent = GroupDescent(features, starts=starts, steeps=steeps)
        descent.begin(
            start, cross=cross, penalties=penalties, causes=causes, tolerance=1e-7, limit=limit
        )
        while not descent.step(seconds):
            pass
        np.testing.assert_array_equal(descent.coefficients(), expected)
        assert descent.sweeps == sweeps
