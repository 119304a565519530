"""Random discrete data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def dependent_codes(seed: int, cards: Sequence[int], m: int, dtype: Any) -> NDArray[Any]:
    """Each variable is often a function of the one before, so many configurations are unseen."""
    rng = np.random.default_rng(seed)
    codes = np.empty((len(cards), m), dtype)
    for v, r in enumerate(cards):
        codes[v] = rng.integers(0, r, m)
        if v:
            copied = rng.random(m) < 0.7
            codes[v, copied] = codes[v - 1, copied] % r
    return codes
