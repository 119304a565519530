"""Random streams: one seed from the user, one independent stream for each purpose."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from isthmus.errors import DataError


class Purpose(IntEnum):
    """What a stream is for; the numbers are part of what a seed means and never change."""

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
    """Give the generator of one purpose.

    The same seed may be used for the graph, the weights and the noise: the purpose keeps the
    streams apart, so that nothing in the data echoes a number that shaped the graph.

    Parameters
    ----------
    seed
        A non-negative integer.
    purpose
        What the numbers are for.
    path
        Further keys, such as the index of a node.
    """
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if not whole or seed < 0:
        raise DataError(f"seed must be a non-negative integer, not {seed!r}.")
    return np.random.default_rng([int(seed), int(purpose), *path])
