"""A local score minus a price that depends on the number of parents; see ``numerics.abi``."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from isthmus.numerics import abi


@numba.cfunc(abi.SCORE_SIGNATURE, cache=True)
def penalised_score(data, child, parents_at, k, candidates_at, m, out_at):  # type: ignore[no-untyped-def]
    """Call the inner score and subtract the price; ``data`` as laid out by `pack_penalised`."""
    head = abi.ints_at(data, 4)
    status = abi.call_score(head[0], head[1], child, parents_at, k, candidates_at, m, out_at)
    if status == 0:
        prices = abi.floats_at(head[2], (head[3],))
        out = abi.floats_at(out_at, (m + 1,))
        out[0] -= prices[k]
        for j in range(m):
            out[1 + j] -= prices[k + 1]
    return status


def pack_penalised(
    inner: tuple[int, int], prices: NDArray[np.float64]
) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """Lay out the address of the inner score, of its data, and the prices."""
    kept = np.ascontiguousarray(prices, dtype=np.float64)
    return np.array([*inner, kept.ctypes.data, len(kept)], dtype=np.int64), (kept,)
