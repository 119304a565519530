"""Compiled kernels of Gaussian local scores, called through ``numerics.abi``.

Every Gaussian score here has the form

``a[k] - b[k] * log v(child | parents) - c[k] * log det R[parents, parents]``

with ``v`` the conditional variance under a positive semi-definite matrix ``R`` and ``k`` the
number of parents (of parent columns in the block version): BIC, EBIC, AIC and BGe differ in
the tables only. ``R`` is passed as a correlation matrix and its log scales. Least squares has
``- e[child] * v`` besides, in units of the child's variance, and no logarithm.

A pivot below ``tolerance`` is a column that the others determine: it is given the value
``tolerance``, so a duplicate is worth as much as any other near-perfect predictor and adds nothing
as a second parent.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from isthmus.numerics import abi
from isthmus.numerics.jit import inner

_CHUNK = 256


@inner
def _factor_rows(lower, correlation, columns, first, last, tolerance):  # type: ignore[no-untyped-def]
    """Extend a Cholesky factor of ``correlation[columns, columns]`` by rows ``first`` to ``last``.

    Returns the log determinant of what is added: the conditional covariance of the added columns
    given the earlier ones.
    """
    log_det = 0.0
    for i in range(first, last):
        row = correlation[columns[i]]
        for j in range(i):
            s = row[columns[j]]
            for t in range(j):
                s -= lower[i, t] * lower[j, t]
            lower[i, j] = s / lower[j, j]
        s = 1.0
        for t in range(i):
            s -= lower[i, t] * lower[i, t]
        if s <= tolerance:
            # A determined column: its pivot is the tolerance and it explains nothing.
            lower[i, i] = math.inf
            log_det += math.log(tolerance)
        else:
            lower[i, i] = math.sqrt(s)
            log_det += math.log(s)
    return log_det


@inner
def _gather(row, candidates, start, target, width):  # type: ignore[no-untyped-def]
    for j in range(width):
        # Unsigned, so that the compiler need not think of negative indices.
        target[j] = row[np.uint64(candidates[start + j])]


@inner
def _log(values, exponent, mantissa, width):  # type: ignore[no-untyped-def]
    """Replace positive normal ``values[:width]`` by their logarithms.

    The library's logarithm is called one by one and would take most of the time here; these loops
    become vector instructions. They agree with the library to 2 units in the last place. The two
    arrays are room to work in; the compiler must see that they are not ``values``.
    """
    bits = values.view(np.int64)
    mantissa_bits = mantissa.view(np.int64)
    for j in range(width):
        # x = 2^e m with m in [sqrt(1/2), sqrt(2))
        e = (bits[j] - 0x3FE6A09E667F3BCD) >> 52
        exponent[j] = e
        mantissa_bits[j] = bits[j] - (e << 52)
    for j in range(width):
        # log m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172
        s = (mantissa[j] - 1.0) / (mantissa[j] + 1.0)
        z = s * s
        series = 1.0 / 21.0
        series = series * z + 1.0 / 19.0
        series = series * z + 1.0 / 17.0
        series = series * z + 1.0 / 15.0
        series = series * z + 1.0 / 13.0
        series = series * z + 1.0 / 11.0
        series = series * z + 1.0 / 9.0
        series = series * z + 1.0 / 7.0
        series = series * z + 1.0 / 5.0
        series = series * z + 1.0 / 3.0
        values[j] = exponent[j] * 0.6931471805599453 + (2.0 * s + 2.0 * s * z * series)


@numba.cfunc(abi.SCORE_SIGNATURE, cache=True)
def scalar_score(data, child, parents_at, k, candidates_at, m, out_at):  # type: ignore[no-untyped-def]
    """Score variables of one column each; ``data`` as laid out by :func:`pack_scalar`."""
    head = abi.ints_at(data, 8)
    d = head[1]
    correlation = abi.floats_at(head[0], (d, d))
    log_scale = abi.floats_at(head[2], (d,))
    table_a = abi.floats_at(head[3], (d + 1,))
    table_b = abi.floats_at(head[4], (d + 1,))
    table_c = abi.floats_at(head[5], (d + 1,))
    tolerance = abi.floats_at(head[6], (1,))[0]
    squares = abi.floats_at(head[7], (d,))[child]
    parents = abi.ints_at(parents_at, (k,))
    candidates = abi.ints_at(candidates_at, (m,))
    out = abi.floats_at(out_at, (m + 1,))

    lower = np.empty((k, k))
    log_det = _factor_rows(lower, correlation, parents, 0, k, tolerance)
    own = np.empty(k)
    variance = 1.0
    for i in range(k):
        s = correlation[child, parents[i]]
        for t in range(i):
            s -= lower[i, t] * own[t]
        own[i] = s / lower[i, i]
        variance -= own[i] * own[i]
        log_det += log_scale[parents[i]]
    if variance < tolerance:
        variance = tolerance
    log_v = math.log(variance) + log_scale[child]
    out[0] = table_a[k] - table_b[k] * log_v - table_c[k] * log_det - squares * variance
    if m == 0:
        return 0

    # Forward substitution for many candidates at once, the inner loops over candidates.
    z = np.empty((k, _CHUNK))
    pivot = np.empty(_CHUNK)
    shared = np.empty(_CHUNK)
    left = np.empty(_CHUNK)
    room = np.empty((2, _CHUNK))
    a, b, c = table_a[k + 1], table_b[k + 1], table_c[k + 1]
    for start in range(0, m, _CHUNK):
        width = min(_CHUNK, m - start)
        _gather(correlation[child], candidates, start, shared, width)
        for j in range(width):
            pivot[j] = 1.0
        for i in range(k):
            z_i = z[i]
            _gather(correlation[parents[i]], candidates, start, z_i, width)
            for t in range(i):
                factor = lower[i, t]
                z_t = z[t]
                for j in range(width):
                    z_i[j] -= factor * z_t[j]
            inverse = 1.0 / lower[i, i]
            own_i = own[i]
            for j in range(width):
                z_ij = z_i[j] * inverse
                z_i[j] = z_ij
                pivot[j] -= z_ij * z_ij
                shared[j] -= z_ij * own_i
        for j in range(width):
            p = pivot[j]
            free = p > tolerance
            p = p if free else tolerance
            rest = variance - (shared[j] if free else 0.0) * shared[j] / p
            pivot[j] = p
            left[j] = rest if rest > tolerance else tolerance
            out[1 + start + j] = a - squares * left[j]
        if b != 0.0:
            _log(left, room[0], room[1], width)
            for j in range(width):
                out[1 + start + j] -= b * (left[j] + log_scale[child])
        if c != 0.0:
            _log(pivot, room[0], room[1], width)
            _gather(log_scale, candidates, start, shared, width)
            for j in range(width):
                out[1 + start + j] -= c * (log_det + pivot[j] + shared[j])
    return 0


def pack_scalar(
    correlation: NDArray[np.float64],
    log_scale: NDArray[np.float64],
    tables: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    tolerance: float,
    squares: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """Lay out the data of :func:`scalar_score`; the second item must outlive the first."""
    matrix = np.ascontiguousarray(correlation, dtype=np.float64)
    scale = np.ascontiguousarray(log_scale, dtype=np.float64)
    a, b, c = (np.ascontiguousarray(table, dtype=np.float64) for table in tables)
    limit = np.array([tolerance])
    linear = np.zeros(len(matrix)) if squares is None else np.array(squares, dtype=np.float64)
    arrays = (matrix, scale, a, b, c, limit, linear)
    head = np.array(
        [matrix.ctypes.data, matrix.shape[0], *(array.ctypes.data for array in arrays[1:])],
        dtype=np.int64,
    )
    return head, arrays


@inner
def _append_columns(columns, count, block_start, variable):  # type: ignore[no-untyped-def]
    for column in range(block_start[variable], block_start[variable + 1]):
        columns[count] = column
        count += 1
    return count


@numba.cfunc(abi.SCORE_SIGNATURE, cache=True)
def block_score(data, child, parents_at, k, candidates_at, m, out_at):  # type: ignore[no-untyped-def]
    """Score variables that are blocks of columns; ``data`` as laid out by :func:`pack_block`."""
    head = abi.ints_at(data, 6)
    d = head[1]
    width = head[2]
    correlation = abi.floats_at(head[0], (width, width))
    block_start = abi.ints_at(head[3], (d + 1,))
    base = abi.floats_at(head[4], (d,))
    settings = abi.floats_at(head[5], (3,))
    half_n, penalty, tolerance = settings[0], settings[1], settings[2]
    parents = abi.ints_at(parents_at, (k,))
    candidates = abi.ints_at(candidates_at, (m,))
    out = abi.floats_at(out_at, (m + 1,))

    # Room for the columns of the parents, of the widest candidate, and of the child.
    size = block_start[child + 1] - block_start[child]
    widest = 0
    for j in range(m):
        c = candidates[j]
        widest = max(widest, block_start[c + 1] - block_start[c])
    room = size + widest
    for i in range(k):
        room += block_start[parents[i] + 1] - block_start[parents[i]]
    columns = np.empty(room, dtype=np.int64)
    lower = np.empty((room, room))
    known = 0
    for i in range(k):
        known = _append_columns(columns, known, block_start, parents[i])
    _factor_rows(lower, correlation, columns, 0, known, tolerance)
    for j in range(m + 1):
        count = known
        if j > 0:
            count = _append_columns(columns, known, block_start, candidates[j - 1])
            _factor_rows(lower, correlation, columns, known, count, tolerance)
        total = _append_columns(columns, count, block_start, child)
        log_det = _factor_rows(lower, correlation, columns, count, total, tolerance)
        out[j] = base[child] - penalty * count * size - half_n * log_det
    return 0


def pack_block(
    correlation: NDArray[np.float64],
    block_start: NDArray[np.int64],
    base: NDArray[np.float64],
    half_n: float,
    penalty_per_coefficient: float,
    tolerance: float,
) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """Lay out the data of :func:`block_score`; the second item must outlive the first."""
    matrix = np.ascontiguousarray(correlation, dtype=np.float64)
    starts = np.ascontiguousarray(block_start, dtype=np.int64)
    offsets = np.ascontiguousarray(base, dtype=np.float64)
    settings = np.array([half_n, penalty_per_coefficient, tolerance])
    head = np.array(
        [
            matrix.ctypes.data,
            len(starts) - 1,
            matrix.shape[0],
            starts.ctypes.data,
            offsets.ctypes.data,
            settings.ctypes.data,
        ],
        dtype=np.int64,
    )
    return head, (matrix, starts, offsets, settings)
