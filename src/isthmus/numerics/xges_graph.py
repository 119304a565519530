"""Equivalence classes of graphs as bits, compiled: paths, cliques, and essential graphs.

A class is held as its essential graph: parents, children, neighbours (undirected edges) and all
adjacent nodes, a few words of bits a node. All sets live in one array of words, a set a row:
first the layers, one row a node (row ``layer * d + node``), then some single sets and a list of
cliques. Rows are passed by number: views would take long to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from isthmus.numerics.jit import inner

PARENTS, CHILDREN, NEIGHBOURS, ADJACENT = 0, 1, 2, 3
CHOSEN = 4  # three layers: the set of the best operator of each kind
WORK, FRESH, LEFT, DAG, COMPELLED, SAVED, LAYERS = 7, 11, 15, 19, 20, 21, 28
SINGLE_SETS = 8
MOST_CLIQUES = 512
"""Cliques looked at for one node, smaller ones first: keeps very dense graphs within bounds."""

ORDER, PLACE, STACK, WAITING, FAMILY, AGE, ASKED, INTS = 0, 1, 2, 3, 4, 5, 6, 7
"""Lines of the room for integers."""

ZERO = np.uint64(0)
ONE = np.uint64(1)


def new_bits(d: int) -> NDArray[np.uint64]:
    """Make all sets, empty."""
    rows = LAYERS * d + SINGLE_SETS + 2 * MOST_CLIQUES
    return np.zeros((rows, (d + 63) // 64), np.uint64)


@intrinsic
def lowest(typing_context: Any, word: Any) -> Any:
    """Place of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), generate


@intrinsic
def uncounted(typing_context: Any, array: Any) -> Any:
    """Give the same array without its reference count, for the time that somebody else holds it.

    Counting is atomic, and at every call of a small function it would take half the time.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = context.make_array(signature.args[0])(context, builder, args[0])
        value.meminfo = ir.Constant(value.meminfo.type, None)
        value.parent = ir.Constant(value.parent.type, None)
        return value._getvalue()  # noqa: SLF001 - there is no other way

    return array(array), generate


@inner
def has(bits, row, node):  # type: ignore[no-untyped-def]
    """Whether a node is in a set."""
    # Unsigned places need no test for counting from the end.
    return (bits[np.uint64(row), np.uint64(node >> 6)] >> np.uint64(node & 63)) & ONE != ZERO


@inner
def put(bits, row, node):  # type: ignore[no-untyped-def]
    """Add a node to a set."""
    bits[np.uint64(row), np.uint64(node >> 6)] |= ONE << np.uint64(node & 63)


@inner
def drop(bits, row, node):  # type: ignore[no-untyped-def]
    """Take a node from a set."""
    bits[np.uint64(row), np.uint64(node >> 6)] &= ~(ONE << np.uint64(node & 63))


@inner
def copy_rows(bits, source, target, count):  # type: ignore[no-untyped-def]
    """Copy some sets."""
    for r in range(count):
        for w in range(bits.shape[1]):
            bits[target + r, w] = bits[source + r, w]


@inner
def listed(bits, row, out, line):  # type: ignore[no-untyped-def]
    """Write the elements of a set to a line, in ascending order; return how many."""
    count = 0
    for w in range(bits.shape[1]):
        rest = bits[row, w]
        while rest != ZERO:
            out[line, count] = (w << 6) + lowest(rest)
            rest &= rest - ONE
            count += 1
    return count


@inner
def list_cliques(bits, d, within):  # type: ignore[no-untyped-def]
    """List the cliques among the nodes of a set, the empty one first; return how many.

    Returns also the row of the first; the others follow.
    """
    words = bits.shape[1]
    cliques = LAYERS * d + SINGLE_SETS
    more = cliques + MOST_CLIQUES  # what may join each clique
    for w in range(words):
        bits[cliques, w] = ZERO
        bits[more, w] = bits[within, w]
    count, here = 1, 0
    while here < count:
        for w in range(words):
            rest = bits[more + here, w]
            while rest != ZERO:
                if count == MOST_CLIQUES:
                    return count, cliques
                bit = rest & (~rest + ONE)
                node = (w << 6) + lowest(rest)
                rest ^= bit
                adjacent = ADJACENT * d + node
                for v in range(words):
                    bits[cliques + count, v] = bits[cliques + here, v]
                    # Only what comes later may join, so that no clique is listed twice.
                    later = ZERO if v < w else (rest if v == w else bits[more + here, v])
                    bits[more + count, v] = later & bits[adjacent, v]
                bits[cliques + count, w] |= bit
                count += 1
        here += 1
    return count, cliques


@inner
def reach(bits, ints, d, way, start, frontier, barred, found):  # type: ignore[no-untyped-def]
    """Fill the set ``found`` with all that semi-directed paths from ``frontier`` get to.

    They go to CHILDREN or, backwards, to PARENTS: that is ``way``. They enter neither ``barred``
    nor the node ``start``; ``frontier`` is used up.
    """
    words = bits.shape[1]
    closed, open_ = np.uint64(barred), np.uint64(found)
    for w in range(words):
        bits[frontier, w] &= ~bits[closed, w]
        bits[open_, w] = bits[frontier, w]
    top = listed(bits, frontier, ints, STACK)
    if start >= 0:
        put(bits, found, start)  # as if it had been seen, so that nothing goes there
    while top > 0:
        top -= 1
        node = ints[STACK, np.uint64(top)]
        on, across = np.uint64(way * d + node), np.uint64(NEIGHBOURS * d + node)
        for w in range(words):
            fresh = (bits[on, w] | bits[across, w]) & ~(bits[closed, w] | bits[open_, w])
            bits[open_, w] |= fresh
            while fresh != ZERO:
                ints[STACK, np.uint64(top)] = (w << 6) + lowest(fresh)
                fresh &= fresh - ONE
                top += 1
    if start >= 0:
        drop(bits, found, start)


@inner
def connects(bits, ints, d, within, frontier, target):  # type: ignore[no-untyped-def]
    """Whether undirected paths inside ``within`` join two sets; ``frontier`` is used up."""
    top = listed(bits, frontier, ints, STACK)
    while top > 0:
        top -= 1
        node = ints[STACK, top]
        for w in range(bits.shape[1]):
            fresh = bits[NEIGHBOURS * d + node, w] & bits[within, w] & ~bits[frontier, w]
            if fresh & bits[target, w] != ZERO:
                return True
            bits[frontier, w] |= fresh
            while fresh != ZERO:
                ints[STACK, top] = (w << 6) + lowest(fresh)
                fresh &= fresh - ONE
                top += 1
    return False


@inner
def orient(bits, d, graph, a, b):  # type: ignore[no-untyped-def]
    """Make the edge between two nodes a -> b; ``graph`` is the first layer of a graph."""
    drop(bits, (graph + NEIGHBOURS) * d + a, b)
    drop(bits, (graph + NEIGHBOURS) * d + b, a)
    drop(bits, (graph + PARENTS) * d + a, b)
    drop(bits, (graph + CHILDREN) * d + b, a)
    put(bits, (graph + PARENTS) * d + b, a)
    put(bits, (graph + CHILDREN) * d + a, b)


@inner
def _is_sink(bits, d, x):  # type: ignore[no-untyped-def]
    """Whether x has no children and its neighbours are next to all that is next to x."""
    words = bits.shape[1]
    near = (LEFT + ADJACENT) * d
    for w in range(words):
        if bits[(LEFT + CHILDREN) * d + x, w] != ZERO:
            return False
    for w in range(words):
        rest = bits[(LEFT + NEIGHBOURS) * d + x, w]
        while rest != ZERO:
            y = (w << 6) + lowest(rest)
            rest &= rest - ONE
            for v in range(words):
                apart = bits[near + x, v] & ~bits[near + y, v]
                if y >> 6 == v:
                    apart &= ~(ONE << np.uint64(y & 63))
                if apart != ZERO:
                    return False
    return True


@inner
def extend(bits, ints, d, graph):  # type: ignore[no-untyped-def]
    """Orient all undirected edges without a cycle or a new v-structure; False: impossible.

    Sinks are taken away one by one (Dor and Tarsi, 1992). The parents are in the layer DAG and
    an order that fits in the line ORDER.
    """
    words = bits.shape[1]
    copy_rows(bits, graph * d, LEFT * d, 4 * d)
    for x in range(d):
        ints[STACK, x] = d - 1 - x
        ints[WAITING, x] = 1
    top, remaining = d, d
    while top > 0:
        top -= 1
        x = ints[STACK, top]
        ints[WAITING, x] = 0
        if not _is_sink(bits, d, x):
            continue
        remaining -= 1
        ints[ORDER, remaining] = x
        ints[WAITING, x] = 2
        for w in range(words):
            inward = bits[(LEFT + NEIGHBOURS) * d + x, w]
            bits[DAG * d + x, w] = bits[(graph + PARENTS) * d + x, w] | inward
            rest = bits[(LEFT + ADJACENT) * d + x, w]
            while rest != ZERO:
                y = (w << 6) + lowest(rest)
                rest &= rest - ONE
                drop(bits, (LEFT + ADJACENT) * d + y, x)
                drop(bits, (LEFT + CHILDREN) * d + y, x)
                drop(bits, (LEFT + NEIGHBOURS) * d + y, x)
                # Only those next to x can have become free.
                if ints[WAITING, y] == 0:
                    ints[WAITING, y] = 1
                    ints[STACK, top] = y
                    top += 1
    return remaining == 0


@inner
def label(bits, ints, d):  # type: ignore[no-untyped-def]
    """Fill the layer COMPELLED with the parents that all graphs equivalent to DAG share.

    Chickering's labelling (1995): of the parents of a node the last in the order settles which of
    them are compelled.
    """
    words = bits.shape[1]
    for j in range(d):
        ints[PLACE, ints[ORDER, j]] = j
    for j in range(d):
        y = ints[ORDER, j]
        count = listed(bits, DAG * d + y, ints, FAMILY)
        x = -1
        for i in range(count):
            if x < 0 or ints[PLACE, ints[FAMILY, i]] > ints[PLACE, x]:
                x = ints[FAMILY, i]
        all_of_them = False
        if x >= 0:
            for w in range(words):
                own = bits[DAG * d + y, w]
                apart = own & ~bits[DAG * d + x, w]
                if x >> 6 == w:
                    apart &= ~(ONE << np.uint64(x & 63))
                if apart != ZERO or bits[COMPELLED * d + x, w] & ~own != ZERO:
                    all_of_them = True
        for w in range(words):
            if x < 0:
                bits[COMPELLED * d + y, w] = ZERO
            elif all_of_them:
                bits[COMPELLED * d + y, w] = bits[DAG * d + y, w]
            else:
                bits[COMPELLED * d + y, w] = bits[COMPELLED * d + x, w]


@inner
def write_essential(bits, d):  # type: ignore[no-untyped-def]
    """Turn the layers DAG and COMPELLED into the essential graph FRESH."""
    for r in range(FRESH * d, (FRESH + 4) * d):
        for w in range(bits.shape[1]):
            bits[r, w] = ZERO
    for y in range(d):
        for w in range(bits.shape[1]):
            compelled = bits[COMPELLED * d + y, w]
            bits[(FRESH + PARENTS) * d + y, w] = compelled
            bits[(FRESH + NEIGHBOURS) * d + y, w] |= bits[DAG * d + y, w] & ~compelled
            bits[(FRESH + ADJACENT) * d + y, w] |= bits[DAG * d + y, w]
            rest = bits[DAG * d + y, w]
            while rest != ZERO:
                x = (w << 6) + lowest(rest)
                bit = rest & (~rest + ONE)
                rest ^= bit
                put(bits, (FRESH + ADJACENT) * d + x, y)
                way = NEIGHBOURS if compelled & bit == ZERO else CHILDREN
                put(bits, (FRESH + way) * d + x, y)


@inner
def lay_down(bits, d, rules):  # type: ignore[no-untyped-def]
    """Copy FRESH to WORK and orient what is known; False: it contradicts what is compelled."""
    copy_rows(bits, FRESH * d, WORK * d, 4 * d)
    for a in range(d):
        for b in range(d):
            joined = has(bits, (FRESH + ADJACENT) * d + a, b)
            if rules.must[a, b] and not joined:
                return False
            if not joined or not (rules.must[a, b] or rules.never[b, a]):
                continue
            # The other direction is barred: this one must be possible, and not barred too.
            if has(bits, (FRESH + PARENTS) * d + a, b) or rules.never[a, b]:
                return False
            orient(bits, d, WORK, a, b)
    return True
