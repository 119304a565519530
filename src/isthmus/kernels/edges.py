"""Matrices of edges as the compiled core takes them."""

from __future__ import annotations

import numpy as np

from isthmus.types import Bools


def edge_flags(edges: Bools | None, size: int) -> Bools:
    """Return a contiguous matrix [from, to]; None means no edges."""
    if edges is None:
        return np.zeros((size, size), np.bool_)
    return np.ascontiguousarray(edges, dtype=np.bool_)
