"""Second moments of simulated data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def random_moments(d: int, n: int, seed: int, edges_per_node: float = 2.0) -> Floats:
    """Draw linear data with noise of equal variance; give their second moments."""
    rng = np.random.default_rng([d, n, seed])
    x = rng.normal(size=(n, d))
    order = rng.permutation(d)
    for place in range(1, d):
        count = min(place, int(rng.poisson(edges_per_node)))
        for parent in rng.choice(order[:place], count, replace=False):
            weight = rng.uniform(0.5, 2.0) * rng.choice([-1.0, 1.0])
            x[:, order[place]] += weight * x[:, parent]
    x -= x.mean(axis=0)
    moments: Floats = x.T @ x / n
    return moments
