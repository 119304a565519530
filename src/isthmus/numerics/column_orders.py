"""Compiled kernels that solve lassos along an order of the variables, and move variables in it."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.columns import column, newton
from isthmus.numerics.jit import inner, kernel

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


_STALE = -1
_DEPENDENT = -2
_FACTORS = 1 << 26
"""At most so many numbers are kept of Cholesky factors: half a gigabyte."""


class Factors(NamedTuple):
    """Cholesky factors of the moments of each column's parents, kept until its weights change.

    ``parents[j, :size[j]]`` are the parents; the rows of the factor lie one after the other from
    ``packed[start[j]]``. ``used`` is where the next one goes: when the room ends, all are stale.
    """

    packed: Floats
    parents: NDArray[np.int32]
    start: Integers
    size: Integers
    used: Integers


class Ordered(NamedTuple):
    """Weights along an order: column j has weights from its predecessors only.

    ``product[j]`` is ``S w_j``; ``value[j]`` is the minimum of column j less ``c S_jj / 2``.
    """

    order: Integers
    place: Integers
    incoming: Floats
    product: Floats
    value: Floats
    factors: Factors


def new_ordered(order: Integers, incoming: Floats) -> Ordered:
    """Start from an order and any weights; `settle` makes them the minimum along it."""
    d = len(order)
    place = np.empty(d, np.int64)
    place[order] = np.arange(d)
    factors = Factors(
        # One always fits; memory that is never written to is never taken.
        packed=np.empty(max(min(d * d * (d + 1) // 2, _FACTORS), d * (d + 1) // 2)),
        parents=np.empty((d, d), np.int32),
        start=np.zeros(d, np.int64),
        size=np.full(d, _STALE),
        used=np.zeros(1, np.int64),
    )
    return Ordered(order.copy(), place, incoming.copy(), np.zeros((d, d)), np.zeros(d), factors)


@inner(error_model="numpy")
def _settle_one(problem, state, child, tolerance, room):  # type: ignore[no-untyped-def]
    weights = state.incoming[child]
    for i in range(len(weights)):
        room.free[i] = problem.open[child, i] and state.place[i] < state.place[child]
        if not room.free[i]:
            weights[i] = 0.0
    state.value[child] = column(
        problem.moments, child, problem.scale[child], problem.penalty[child],
        room.free, 0.0, tolerance, weights, state.product[child], room,
    )  # fmt: skip
    state.factors.size[child] = _STALE


@kernel(error_model="numpy")
def settle(problem, state, start, stop, tolerance, room):  # type: ignore[no-untyped-def]
    """Solve columns ``start`` to ``stop`` exactly along the order."""
    for child in range(start, stop):
        _settle_one(problem, state, child, tolerance, room)


@inner(error_model="numpy")
def _wants(problem, state, child, parent, tolerance):  # type: ignore[no-untyped-def]
    """Whether a weight from ``parent``, now zero, would lower the value of ``child``."""
    if not problem.open[child, parent]:
        return False
    slope = problem.scale[child] * (problem.moments[child, parent] - state.product[child, parent])
    return abs(slope) - problem.penalty[child, parent] > tolerance


@inner(error_model="numpy")
def _value_with(problem, state, child, upto, mover, tolerance, room):  # type: ignore[no-untyped-def]
    """Minimum of ``child`` after the first ``upto`` of the others, and ``mover`` if not -1."""
    weights = room.weights
    room.free[:] = False
    for i in range(len(weights)):
        weights[i] = state.incoming[child, i]
    for p in range(upto):
        room.free[room.others[p]] = problem.open[child, room.others[p]]
    if mover >= 0:
        room.free[mover] = True
    for i in range(len(weights)):
        if not room.free[i]:
            weights[i] = 0.0
    return column(
        problem.moments, child, problem.scale[child], problem.penalty[child],
        room.free, 0.0, tolerance, weights, room.product, room,
    )  # fmt: skip


@inner(error_model="numpy")
def _factorised(problem, state, child, room):  # type: ignore[no-untyped-def]
    """See that the factor of the moments of the parents of ``child`` is kept; return its size."""
    factors = state.factors
    if factors.size[child] != _STALE:
        return factors.size[child]
    k = 0
    for i in range(len(state.order)):
        if state.incoming[child, i] != 0.0:
            line = room.hessian[k]
            for b in range(k):
                line[b] = problem.moments[i, factors.parents[child, b]]
            line[k] = problem.moments[i, i]
            factors.parents[child, k] = i
            room.step[k] = 0.0
            k += 1
    if not newton(room.hessian, room.step, k):
        factors.size[child] = _DEPENDENT
        return factors.size[child]
    if factors.used[0] + k * (k + 1) // 2 > len(factors.packed):
        factors.used[0] = 0
        factors.size[:] = _STALE
    at = factors.used[0]
    factors.start[child], factors.size[child] = at, k
    for a in range(k):
        for b in range(a + 1):
            factors.packed[at] = room.hessian[a, b]
            at += 1
    factors.used[0] = at
    return factors.size[child]


@inner(error_model="numpy", fastmath={"reassoc", "contract"})
def _promises(problem, state, child, mover, worth, room):  # type: ignore[no-untyped-def]
    """Whether ``child`` would gain more than ``worth`` by the mover beside the parents it has.

    A test of one weight, without the penalty: much cheaper than to solve the column again.
    """
    factors = state.factors
    k = _factorised(problem, state, child, room)
    if k == _DEPENDENT:
        return True
    c = problem.scale[child]
    slope = c * (problem.moments[child, mover] - state.product[child, mover])
    left = problem.moments[mover, mover]
    floor = 1e-10 * left
    at = factors.start[child]
    for a in range(k):
        s = problem.moments[mover, factors.parents[child, a]]
        for b in range(a):
            s -= factors.packed[at + b] * room.step[b]
        at += a
        room.step[a] = s / factors.packed[at]
        at += 1
        left -= room.step[a] * room.step[a]
    return slope * slope > 2.0 * worth * c * max(left, floor)


@inner(error_model="numpy", fastmath={"reassoc", "contract"})
def _about(problem, state, child, mover, room):  # type: ignore[no-untyped-def]
    """Estimate what ``child`` loses without the mover.

    Exact if its other parents stay, none turns its sign and none is added.
    """
    factors = state.factors
    k = _factorised(problem, state, child, room)
    at, which = factors.start[child], 0
    if k == _DEPENDENT:
        return math.inf
    while factors.parents[child, which] != mover:
        which += 1
    # The diagonal entry of the inverse: the squared norm of a column of the factor's inverse.
    norm = 0.0
    for a in range(which, k):
        row = at + a * (a + 1) // 2
        s = 1.0 if a == which else 0.0
        for b in range(which, a):
            s -= factors.packed[row + b] * room.step[b]
        room.step[a] = s / factors.packed[row + a]
        norm += room.step[a] * room.step[a]
    weight = state.incoming[child, mover]
    return 0.5 * problem.scale[child] * weight * weight / norm


@inner(error_model="numpy")
def _own(problem, mover, tolerance, room):  # type: ignore[no-untyped-def]
    """Minimum of the mover on the predecessors in ``room.own_free``, from where it was."""
    return column(
        problem.moments, mover, problem.scale[mover], problem.penalty[mover],
        room.own_free, 0.0, tolerance, room.own_weights, room.own_product, room,
    )  # fmt: skip


@inner(error_model="numpy")
def _start_own(problem, state, mover, room):  # type: ignore[no-untyped-def]
    for i in range(len(state.order)):
        room.own_free[i] = problem.open[mover, i] and state.place[i] < state.place[mover]
        room.own_weights[i] = state.incoming[mover, i]
        room.own_product[i] = state.product[mover, i]


@inner(error_model="numpy")
def _look_earlier(problem, state, mover, low, tolerance, least, worth, room):  # type: ignore[no-untyped-def]
    """Find the best earlier place and what it gains.

    Others gain by the mover as a new predecessor, the mover loses its own. Its loss grows along the
    way, so beyond what all others together could gain there is nothing to find.
    """
    here, value = state.place[mover], state.value[mover]
    hope = 0.0
    for m in range(low, here):
        v = room.others[m]
        room.gain[m] = 0.0
        if _wants(problem, state, v, mover, tolerance) and (
            worth == 0.0 or _promises(problem, state, v, mover, worth, room)
        ):
            with_it = _value_with(problem, state, v, m, mover, tolerance, room)
            room.gain[m] = state.value[v] - with_it
            hope += room.gain[m]
    best, most = here, least
    if hope <= least:
        return best, 0.0
    _start_own(problem, state, mover, room)
    own, gained, stale = value, 0.0, False
    for m in range(here - 1, low - 1, -1):
        v = room.others[m]
        room.own_free[v] = False
        if room.own_weights[v] != 0.0:
            room.own_weights[v] = 0.0
            stale = True
        # Only a place just before one that gains can be the best.
        if room.gain[m] <= 0.0:
            continue
        gained += room.gain[m]
        if stale:
            own = _own(problem, mover, tolerance, room)
            stale = False
        if gained - (own - value) > most:
            best, most = m, gained - (own - value)
        if own - value >= hope:
            break
    return best, most if best != here else 0.0


@inner(error_model="numpy")
def _look_later(problem, state, mover, high, tolerance, least, worth, room):  # type: ignore[no-untyped-def]
    """Find the best later place and what it gains.

    The mover gains new predecessors, its children lose it. Their loss grows along the way, so
    beyond what all predecessors together would give there is nothing to find.
    """
    here, value = state.place[mover], state.value[mover]
    best, most = here, least
    wanted = False
    for m in range(here, high):
        v = room.others[m]
        room.open[m] = problem.open[mover, v]
        if worth == 0.0:
            wanted = wanted or _wants(problem, state, mover, v, tolerance)
        elif room.open[m]:
            room.open[m] = _wants(problem, state, mover, v, tolerance) and _promises(
                problem, state, mover, v, worth, room
            )
            wanted = wanted or room.open[m]
    if not wanted:
        return best, 0.0
    _start_own(problem, state, mover, room)
    for m in range(here, high):
        room.own_free[room.others[m]] = room.open[m]
    hope = value - _own(problem, mover, tolerance, room)
    if hope <= least:
        return best, 0.0
    _start_own(problem, state, mover, room)
    own, lost, stale = value, 0.0, False
    c = problem.scale[mover]
    for m in range(here, high + 1):
        # Only a place just before a child, or the last one, can be the best.
        child = m < high and state.incoming[room.others[m], mover] != 0.0
        if child or m == high:
            if stale:
                own = _own(problem, mover, tolerance, room)
                stale = False
            if value - own - lost > most:
                best, most = m, value - own - lost
        if m == high:
            break
        v = room.others[m]
        if child:
            loss = _about(problem, state, v, mover, room) if worth > 0.0 else math.inf
            if loss > 0.1 * worth:
                loss = _value_with(problem, state, v, m, -1, tolerance, room) - state.value[v]
            lost += loss
            if lost >= hope:
                break
        if room.open[m]:
            room.own_free[v] = True
            slope = c * (problem.moments[mover, v] - room.own_product[v])
            if abs(slope) - problem.penalty[mover, v] > tolerance:
                stale = True
    return best, most if best != here else 0.0


@kernel(error_model="numpy")
def improve(problem, state, mover, tolerance, least, worth, room):  # type: ignore[no-untyped-def]
    """Move one variable to its best place in the order; return by how much the sum falls.

    Only columns that gain or lose the mover as a predecessor and care about it are solved again.
    The sum must fall by more than ``least``. A gain of less than ``worth`` in one column is not
    looked for, and a loss of less than a tenth of it is estimated.
    """
    d = len(state.order)
    here = state.place[mover]
    low, high, m = 0, d - 1, 0
    for p in range(d):
        v = state.order[p]
        if v == mover:
            continue
        room.others[m] = v
        if problem.required[mover, v]:
            low = m + 1
        if problem.required[v, mover]:
            high = min(high, m)
        m += 1
    best, gain = _look_earlier(problem, state, mover, low, tolerance, least, worth, room)
    other, _ = _look_later(problem, state, mover, high, tolerance, max(least, gain), worth, room)
    if other != here:
        best = other
    if best == here:
        return 0.0
    for p in range(best):
        state.order[p] = room.others[p]
    state.order[best] = mover
    for p in range(best, d - 1):
        state.order[p + 1] = room.others[p]
    for p in range(d):
        state.place[state.order[p]] = p
    fell = state.value[mover]
    _settle_one(problem, state, mover, tolerance, room)
    fell -= state.value[mover]
    for p in range(min(here, best), max(here, best) + 1):
        v = state.order[p]
        if v == mover:
            continue
        if best < here:
            again = _wants(problem, state, v, mover, tolerance)
        else:
            again = state.incoming[v, mover] != 0.0
        if again:
            fell += state.value[v]
            _settle_one(problem, state, v, tolerance, room)
            fell -= state.value[v]
    return fell
