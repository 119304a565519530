"""Counting by bitmaps: one bit a row for each level of each variable, AND and population count.

A cell of a table is the number of rows that are in all its levels, so 64 rows cost one AND and
one population count. The last level of a variable needs no bitmap: its cells follow from the
table without that variable by subtraction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

LANES = 8
"""Words in one vector operation; the length of a bitmap is a multiple of it."""

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, LANES)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _vector_load(builder: Any, pointer: Any, index: Any) -> Any:
    address = builder.bitcast(builder.gep(pointer, [index]), _VECTOR.as_pointer())
    return builder.load(address, align=8)


def _vector_sum(builder: Any, vector: Any) -> Any:
    total = _WORD(0)
    for lane in range(LANES):
        total = builder.add(total, builder.extract_element(vector, ir.IntType(32)(lane)))
    return total


def _counting_loop(builder: Any, words: Any, body: Any) -> Any:
    """Emit a loop over vectors that sums the population counts of what `body` returns.

    Written as explicit vectors because the automatic ones stop at half the register width.
    """
    counts = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0] * LANES))
    popcount = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.ctpop.v{LANES}i64"
    )
    vectors = builder.udiv(words, _WORD(LANES))
    with cgutils.for_range(builder, vectors) as loop:
        value = body(builder.mul(loop.index, _WORD(LANES)))
        counts_now = builder.add(builder.load(counts), builder.call(popcount, [value]))
        builder.store(counts_now, counts)
    return _vector_sum(builder, builder.load(counts))


@intrinsic
def pack(typing: Any, codes: Any, start: Any, level: Any) -> Any:
    """64 rows of codes from `start`: a word with a bit for each row that equals `level`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        element = context.get_data_type(array_type.dtype)
        lanes = ir.VectorType(element, 64)
        pointer = _pointer(context, builder, array_type, args[0], args[1])
        rows = builder.load(builder.bitcast(pointer, lanes.as_pointer()), align=1)
        wanted = builder.trunc(args[2], element)
        single = builder.insert_element(ir.Constant(lanes, ir.Undefined), wanted, _WORD(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        splat = builder.shuffle_vector(single, ir.Constant(lanes, ir.Undefined), zeros)
        return builder.bitcast(builder.icmp_unsigned("==", rows, splat), _WORD)

    return types.uint64(codes, types.int64, types.int64), generate


@intrinsic
def count(typing: Any, maps: Any, first: Any, words: Any) -> Any:
    """Bits set in one bitmap."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = _pointer(context, builder, signature.args[0], args[0], args[1])
        return _counting_loop(builder, args[2], lambda i: _vector_load(builder, one, i))

    return types.int64(maps, types.int64, types.int64), generate


@intrinsic
def count_and(typing: Any, maps: Any, first: Any, second: Any, words: Any) -> Any:
    """Bits set in both of two bitmaps."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = _pointer(context, builder, signature.args[0], args[0], args[1])
        two = _pointer(context, builder, signature.args[0], args[0], args[2])
        return _counting_loop(
            builder,
            args[3],
            lambda i: builder.and_(_vector_load(builder, one, i), _vector_load(builder, two, i)),
        )

    return types.int64(maps, types.int64, types.int64, types.int64), generate


@intrinsic
def store_and(typing: Any, maps: Any, first: Any, second: Any, target: Any, words: Any) -> Any:
    """Write the AND of two bitmaps to a third and return how many bits it has."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = _pointer(context, builder, signature.args[0], args[0], args[1])
        two = _pointer(context, builder, signature.args[0], args[0], args[2])
        out = _pointer(context, builder, signature.args[0], args[0], args[3])

        def body(i: Any) -> Any:
            value = builder.and_(_vector_load(builder, one, i), _vector_load(builder, two, i))
            address = builder.bitcast(builder.gep(out, [i]), _VECTOR.as_pointer())
            builder.store(value, address, align=8)
            return value

        return _counting_loop(builder, args[4], body)

    arguments = (maps, types.int64, types.int64, types.int64, types.int64)
    return types.int64(*arguments), generate


@njit(cache=True, nogil=True)
def _fill(
    codes: NDArray[Any],
    m: int,
    start: int,
    rows: int,
    used: NDArray[np.int64],
    first: NDArray[np.int64],
    cardinalities: NDArray[np.int64],
    words: int,
    maps: NDArray[np.uint64],
) -> None:
    """Write the bitmaps of `rows` rows from `start`; bits beyond them are zero."""
    full = rows // 64
    for v in used:
        base = v * m + start
        for level in range(cardinalities[v] - 1):
            target = (first[v] + level) * words
            for word in range(full):
                maps[target + word] = pack(codes, base + 64 * word, level)
            for word in range(full, words):
                maps[target + word] = 0
            for i in range(64 * full, rows):
                if codes[base + i] == level:
                    maps[target + full] |= np.uint64(1) << np.uint64(i - 64 * full)


@njit(cache=True, nogil=True)
def count_runs(
    codes: NDArray[Any],
    m: int,
    cardinalities: NDArray[np.int64],
    used: NDArray[np.int64],
    first: NDArray[np.int64],
    sets: NDArray[np.int64],
    runs: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    whole: int,
    words: int,
    maps: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Add the counts of many tables to `out`, block by block of rows.

    Parameters
    ----------
    codes, m
        The codes as one flat array, and the rows of one variable in it.
    used, first
        The variables that occur, and the number of each variable's first bitmap.
    sets, runs
        One set of variables a line; the lines from ``runs[i]`` to ``runs[i + 1]`` differ in
        their last variable only, so that the AND of the others is computed once.
    chosen
        Which lines to count.
    whole
        1: the slot of a variable's last level gets the rows of *any* level (`subtract` turns
        them into the last level's). 0: these slots are left alone.
    words
        The length of a bitmap, a multiple of `LANES`; `maps` has room for one bitmap a level
        and one a depth.
    """
    size = sets.shape[1]
    spare = maps.size // words - size
    levels = np.zeros(size, np.int64)
    source = np.empty(size, np.int64)
    counts = np.empty(size, np.int64)
    cell = np.zeros(size, np.int64)
    source[0] = -1
    for start in range(0, m, 64 * words):
        rows = min(64 * words, m - start)
        _fill(codes, m, start, rows, used, first, cardinalities, words, maps)
        counts[0] = rows
        for run in range(runs.size - 1):
            begin, end = runs[run], runs[run + 1]
            for t in range(size - 1):
                levels[t] = 0
            t = 0
            if size > 1 and whole == 0 and _has_single(sets[begin], cardinalities, size - 1):
                continue
            while True:
                while t < size - 1:
                    v, a = sets[begin, t], levels[t]
                    cell[t + 1] = cell[t] * cardinalities[v] + a
                    if a == cardinalities[v] - 1:
                        source[t + 1] = source[t]
                        counts[t + 1] = counts[t]
                    elif source[t] < 0:
                        source[t + 1] = (first[v] + a) * words
                        counts[t + 1] = count(maps, source[t + 1], words)
                    else:
                        target = (spare + t) * words
                        bitmap = (first[v] + a) * words
                        counts[t + 1] = store_and(maps, source[t], bitmap, target, words)
                        source[t + 1] = target
                    t += 1
                prefix = source[size - 1]
                if counts[size - 1] > 0:
                    for q in range(begin, end):
                        if not chosen[q]:
                            continue
                        v = sets[q, size - 1]
                        r = cardinalities[v]
                        o = offsets[q] + cell[size - 1] * r
                        bitmap = first[v] * words
                        for c in range(r - 1):
                            if prefix < 0:
                                out[o + c] += count(maps, bitmap, words)
                            else:
                                out[o + c] += count_and(maps, prefix, bitmap, words)
                            bitmap += words
                        if whole == 1:
                            out[o + r - 1] += counts[size - 1]
                # The next combination of levels of all variables but the last.
                t = size - 2
                while t >= 0:
                    levels[t] += 1
                    if levels[t] < cardinalities[sets[begin, t]] - 1 + whole:
                        break
                    levels[t] = 0
                    t -= 1
                if t < 0:
                    break


@njit(cache=True, nogil=True)
def _has_single(variables: NDArray[np.int64], cardinalities: NDArray[np.int64], size: int) -> bool:
    """Whether one of the first `size` variables has one level only (no bitmap at all)."""
    for t in range(size):
        if cardinalities[variables[t]] == 1:
            return True
    return False


@njit(cache=True, nogil=True)
def subtract(
    sets: NDArray[np.int64],
    cardinalities: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Turn slots that hold the rows of any level into those of the last level, axis by axis."""
    size = sets.shape[1]
    for q in range(sets.shape[0]):
        if not chosen[q]:
            continue
        inner = 1
        for t in range(size - 1, -1, -1):
            r = cardinalities[sets[q, t]]
            cells = offsets[q + 1] - offsets[q]
            for outer in range(cells // (r * inner)):
                begin = offsets[q] + outer * r * inner
                for i in range(inner):
                    rest = out[begin + (r - 1) * inner + i]
                    for c in range(r - 1):
                        rest -= out[begin + c * inner + i]
                    out[begin + (r - 1) * inner + i] = rest
            inner *= r


@njit(cache=True, nogil=True)
def _rank(members: NDArray[np.int64], size: int, binomial: NDArray[np.int64], d: int) -> int:
    """Place of an ascending set among all sets of its size in lexicographic order."""
    total: int = binomial[d, size]
    for t in range(size):
        total -= binomial[d - 1 - members[t], size - t]
    return total - 1


@njit(cache=True, nogil=True)
def complete(
    sets: NDArray[np.int64],
    cardinalities: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    lower_offsets: NDArray[np.int64],
    lower: NDArray[np.int64],
    binomial: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Fill the cells of last levels from the tables of all sets that are smaller by one."""
    size = sets.shape[1]
    d = cardinalities.size
    members = np.empty(size, np.int64)
    for q in range(sets.shape[0]):
        if not chosen[q]:
            continue
        # Axis t: the axes before it are complete, the axes after it lack their last level; we
        # may fill those too, since what is wrong there is overwritten when its axis comes.
        cells = offsets[q + 1] - offsets[q]
        inner = cells
        for t in range(size):
            r = cardinalities[sets[q, t]]
            inner //= r
            k = 0
            for s in range(size):
                if s != t:
                    members[k] = sets[q, s]
                    k += 1
            margin = lower_offsets[_rank(members, size - 1, binomial, d)]
            for outer in range(cells // (r * inner)):
                begin = offsets[q] + outer * r * inner
                for i in range(inner):
                    rest = lower[margin + outer * inner + i]
                    for c in range(r - 1):
                        rest -= out[begin + c * inner + i]
                    out[begin + (r - 1) * inner + i] = rest
