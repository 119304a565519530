"""Independent random generators for different purposes, derived from one seed."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from isthmus.errors import DataError


class Purpose(IntEnum):
    """Purpose of a random generator. The numbers must never change: results depend on them."""

    GRAPH = 1
    LABELS = 2
    WEIGHTS = 3
    VARIANCES = 4
    NOISE = 5
    MECHANISM = 6
    TABLES = 7
    LAGGED_GRAPH = 8
    LAGGED_WEIGHTS = 9
    CARDINALITIES = 10
    SORTING = 11


def stream(seed: int, purpose: Purpose, *path: int) -> np.random.Generator:
    """Return the random generator for one purpose.

    The same seed can be used for the graph, the weights and the noise: generators of different
    purposes are independent.

    Parameters
    ----------
    seed
        Random seed, a non-negative integer.
    purpose
        Purpose of the random numbers.
    path
        Additional keys, such as the index of a node.
    """
    is_integer = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if not is_integer or seed < 0:
        raise DataError(f"seed must be a non-negative integer, not {seed!r}.")
    return np.random.default_rng([int(seed), int(purpose), *path])
