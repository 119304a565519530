"""What a count is worth: the functions of discrete local scores, looked up in tables.

``f`` and ``g`` of ``numerics.discrete`` are ``n log n`` for BIC and AIC and
``lgamma(n + s) - lgamma(s)`` for BDeu and K2. A table is made for each ``s`` when first wanted; its
key is ``s`` for K2, and ``q r`` or ``q`` for BDeu, where ``s = ess / key``.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.jit import inner


class Form(IntEnum):
    """Which ``f`` and ``g``; the parameter is the penalty, the sample size, or nothing.

    ``SUPPORT`` is no score: ``f`` is 1 and ``g`` is 0, so it counts the combinations seen.
    """

    LIKELIHOOD = 0
    BDEU = 1
    K2 = 2
    SUPPORT = 3


SLOTS = 256
"""Length of the index of tables: a power of two, and more than there can be tables."""

_LIKELIHOOD, _BDEU, _SUPPORT = int(Form.LIKELIHOOD), int(Form.BDEU), int(Form.SUPPORT)


class Memo(NamedTuple):
    """Tables made so far."""

    form: int
    parameter: float
    keys: NDArray[np.float64]  # open addressing; negative: free
    numbers: NDArray[np.int64]  # which table a key has
    filled: NDArray[np.int64]  # [0] tables in use
    tables: NDArray[np.float64]  # (tables, length)


@inner
def _direct(form, n, shift):  # type: ignore[no-untyped-def]
    if n == 0:
        return 0.0
    if form == _LIKELIHOOD:
        return n * math.log(n)
    if form == _SUPPORT:
        return 1.0 if shift == 1.0 else 0.0
    return math.lgamma(n + shift) - math.lgamma(shift)


@numba.njit(inline="always")
def value(form, table, n, shift):  # type: ignore[no-untyped-def]
    """Look up the value of a count; counts beyond the table are computed."""
    return table[n] if n < table.size else _direct(form, n, shift)


@inner
def lookup(memo, key):  # type: ignore[no-untyped-def]
    """Find or make the table of a key, and its shift; empty when there is no room for another."""
    shift = memo.parameter / key if memo.form == _BDEU else key
    keys = memo.keys
    mask = np.uint64(SLOTS - 1)
    slot = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40) & mask
    while keys[slot] != key and keys[slot] >= 0.0:
        slot = (slot + np.uint64(1)) & mask
    if keys[slot] != key:
        number = memo.filled[0]
        if number == memo.tables.shape[0]:
            return memo.tables[0, :0], shift
        memo.filled[0] += 1
        keys[slot] = key
        memo.numbers[slot] = number
        for n in range(memo.tables.shape[1]):
            memo.tables[number, n] = _direct(memo.form, n, shift)
    return memo.tables[memo.numbers[slot]], shift


@inner
def f_key(form, r, q):  # type: ignore[no-untyped-def]
    """Key of the function of the cells, for ``r`` levels and ``q`` configurations."""
    return q * r if form == _BDEU else 1.0


@inner
def g_key(form, r, q):  # type: ignore[no-untyped-def]
    """Key of the function of the configurations."""
    if form == _LIKELIHOOD:
        return 1.0
    if form == _SUPPORT:
        return 2.0
    return q if form == _BDEU else float(r)


@inner
def penalty(memo, r, q):  # type: ignore[no-untyped-def]
    """What the free parameters cost."""
    return memo.parameter * (r - 1) * q if memo.form == _LIKELIHOOD else 0.0
