"""Compiled kernels that learn a weighted graph column by column from a second-moment matrix.

Weights are kept as ``incoming[j, i]``, the weight of the edge from i to j, so that what enters a
node is contiguous. The problem of one column, all others held fixed, is

``c/2 (w'Sw - 2 S_j'w) + Σ λ_i |w_i| - t log(1 - Σ g_i w_i²)``

which is convex. The last term is exact: ``-log det(s I - W ∘ W)`` depends on column j through
``Σ g_i w_i²`` alone, with ``g`` the row j of the inverse divided by s times its diagonal entry, as
column j enters the determinant by a matrix of rank one. It is solved by Newton steps on the
non-zero weights within their signs; with ``t = 0`` it is a lasso, and the steps are exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.jit import inner, kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

_STEPS = 1000
_AT_ONCE = 8
"""How many weights may leave zero together."""


class Problem(NamedTuple):
    """What does not change while a graph is learned.

    ``moments`` is S; ``scale[j]`` is c; ``penalty[j, i]`` is λ; ``open[j, i]`` says whether i may
    be a parent of j, ``required[j, i]`` whether it must come before j.
    """

    moments: Floats
    scale: Floats
    penalty: Floats
    open: Truths
    required: Truths


class Room(NamedTuple):
    """Scratch of the kernels."""

    hessian: Floats
    step: Floats
    along: Floats
    active: Integers
    sign: Floats
    curb: Floats
    free: Truths
    weights: Floats
    product: Floats
    change: Floats
    gain: Floats
    others: Integers
    open: Truths
    own_free: Truths
    own_weights: Floats
    own_product: Floats


def new_room(d: int) -> Room:
    """Make scratch for ``d`` variables."""
    return Room(
        hessian=np.empty((d, d)),
        step=np.empty(d),
        along=np.empty(d),
        active=np.empty(d, np.int64),
        sign=np.empty(d),
        curb=np.zeros(d),
        free=np.zeros(d, np.bool_),
        weights=np.zeros(d),
        product=np.zeros(d),
        change=np.zeros(d),
        gain=np.zeros(d),
        others=np.zeros(d, np.int64),
        open=np.zeros(d, np.bool_),
        own_free=np.zeros(d, np.bool_),
        own_weights=np.zeros(d),
        own_product=np.zeros(d),
    )


@inner(error_model="numpy", fastmath={"reassoc", "contract"})
def newton(hessian, step, k):  # type: ignore[no-untyped-def]
    """Solve for ``step`` in place by a Cholesky factor that overwrites ``hessian``.

    Returns whether it could: not where columns depend on each other.
    """
    for i in range(k):
        row = hessian[i]
        floor = 1e-10 * row[i] + 1e-300
        for j in range(i):
            other = hessian[j]
            s = row[j]
            for m in range(j):
                s -= row[m] * other[m]
            row[j] = s / other[j]
        s = row[i]
        for m in range(i):
            s -= row[m] * row[m]
        if not s > floor:
            return False
        row[i] = math.sqrt(s)
    for i in range(k):
        row = hessian[i]
        s = step[i]
        for m in range(i):
            s -= row[m] * step[m]
        step[i] = s / row[i]
    for i in range(k - 1, -1, -1):
        s = step[i]
        for m in range(i + 1, k):
            s -= hessian[m, i] * step[m]
        step[i] = s / hessian[i, i]
    return True


@inner(error_model="numpy")
def _enter(moments, child, c, penalty, free, weights, product, room, k, tolerance):  # type: ignore[no-untyped-def]
    """Let the zero weights whose slope exceeds their penalty most become active.

    Their right-hand sides are set too. Returns the number of active weights and the worst excess.
    """
    d = len(weights)
    target = moments[child]
    worst = 0.0
    for i in range(d):
        if free[i] and weights[i] == 0.0:
            worst = max(worst, abs(c * (product[i] - target[i])) - penalty[i])
    if worst <= tolerance:
        return k, worst
    room_left = _AT_ONCE
    for i in range(d):
        if free[i] and weights[i] == 0.0 and room_left > 0:
            slope = c * (product[i] - target[i])
            excess = abs(slope) - penalty[i]
            if excess >= 0.5 * worst:
                room.active[k] = i
                room.sign[k] = -1.0 if slope > 0.0 else 1.0
                room.step[k] = room.sign[k] * excess
                k += 1
                room_left -= 1
    return k, worst


@inner(error_model="numpy")
def _direction(moments, c, weights, room, k, t, left):  # type: ignore[no-untyped-def]
    """Replace the negative slopes in ``room.step`` by the Newton direction.

    Where columns depend on each other a ridge is added: then the direction is long where the loss
    does not change, and ends where the first weight becomes zero.
    """
    active, curb = room.active, room.curb
    ridge = 0.0
    while True:
        for a in range(k):
            row, line = moments[active[a]], room.hessian[a]
            if t > 0.0:
                pull = 4.0 * t * curb[active[a]] * weights[active[a]] / (left * left)
                for b in range(a + 1):
                    line[b] = c * row[active[b]] + pull * curb[active[b]] * weights[active[b]]
                line[a] += 2.0 * t * curb[active[a]] / left
            else:
                for b in range(a + 1):
                    line[b] = c * row[active[b]]
            # A constant has no slope and needs no step.
            line[a] = (1.0 + ridge) * line[a] if line[a] > 0.0 else 1.0
        if newton(room.hessian, room.step, k) or ridge > 1.0:
            return
        ridge = max(1e-8, 100.0 * ridge)


@inner(error_model="numpy")
def _within_signs(weights, room, k):  # type: ignore[no-untyped-def]
    """Drop newcomers that head the wrong way; find where the first weight reaches zero.

    Returns the number of active weights, the longest step, and which weight it brings to zero.
    """
    active, sign, step = room.active, room.sign, room.step
    longest, hit, a = 1.0, -1, 0
    while a < k:
        w = weights[active[a]]
        if step[a] * sign[a] <= 0.0:
            if w == 0.0:
                k -= 1
                active[a], sign[a], step[a] = active[k], sign[k], step[k]
                if hit == k:
                    hit = a
                continue
            if step[a] != 0.0 and -w / step[a] < longest:
                longest, hit = -w / step[a], a
        a += 1
    return k, longest, hit


@inner(error_model="numpy")
def column(moments, child, c, penalty, free, t, tolerance, weights, product, room):  # type: ignore[no-untyped-def]
    """Minimise over the weights into ``child`` in place; ``product`` becomes ``S w``.

    ``room.curb`` holds g where ``t > 0``. Returns the minimum, less the constant ``c S_jj / 2``.
    """
    d = len(weights)
    target = moments[child]
    active, sign, step, along, curb = room.active, room.sign, room.step, room.along, room.curb
    k, used = 0, 0.0
    product[:] = 0.0
    for i in range(d):
        w = weights[i]
        if w != 0.0:
            active[k] = i
            sign[k] = 1.0 if w > 0.0 else -1.0
            k += 1
            if t > 0.0:
                used += curb[i] * w * w
            row = moments[i]
            for m in range(d):
                product[m] += row[m] * w
    value = 0.0
    for a in range(k):
        i = active[a]
        value += c * weights[i] * (0.5 * product[i] - target[i]) + penalty[i] * abs(weights[i])
    if t > 0.0:
        value -= t * math.log(1.0 - used)
    for _ in range(_STEPS):
        left = 1.0 - used
        worst = 0.0
        for a in range(k):
            i = active[a]
            slope = c * (product[i] - target[i]) + penalty[i] * sign[a]
            if t > 0.0:
                slope += 2.0 * t * curb[i] * weights[i] / left
            step[a] = -slope
            worst = max(worst, abs(slope))
        if worst <= tolerance:
            k, excess = _enter(
                moments, child, c, penalty, free, weights, product, room, k, tolerance
            )
            if excess <= tolerance:
                break
        _direction(moments, c, weights, room, k, t, left)
        k, longest, hit = _within_signs(weights, room, k)
        along[:] = 0.0
        for a in range(k):
            row, s = moments[active[a]], step[a]
            for m in range(d):
                along[m] += row[m] * s
        linear, square, slope = 0.0, 0.0, 0.0
        for a in range(k):
            i = active[a]
            linear += step[a] * (c * (product[i] - target[i]) + penalty[i] * sign[a])
            square += step[a] * c * along[i]
            if t > 0.0:
                slope += 2.0 * t * curb[i] * weights[i] * step[a] / left
        slope += linear
        if k == 0 or not slope < 0.0:
            break
        length, fallen, taken = longest, value, False
        for _ in range(60):
            within = 0.0
            if t > 0.0:
                for a in range(k):
                    w = weights[active[a]] + length * step[a]
                    within += curb[active[a]] * w * w
            if within < 1.0:
                fallen = value + length * linear + 0.5 * length * length * square
                if t > 0.0:
                    fallen -= t * (math.log(1.0 - within) - math.log(left))
                if fallen <= value + 1e-4 * length * slope:
                    taken = True
                    break
            length *= 0.5
        if not taken:
            break
        for a in range(k):
            weights[active[a]] += length * step[a]
        for m in range(d):
            product[m] += length * along[m]
        if hit >= 0 and length == longest:
            weights[active[hit]] = 0.0
            k -= 1
            active[hit], sign[hit] = active[k], sign[k]
        still = value - fallen <= 1e-15 * (abs(value) + c * target[child]) and hit < 0
        used, value = within, fallen
        if still:
            # Slopes are rounded in proportion to the variances: less is not to be had.
            break
    return value


@kernel(error_model="numpy")
def sweep(problem, incoming, inverse, columns, t, radius, tolerance, room):  # type: ignore[no-untyped-def]
    """Minimise column after column at barrier weight ``t``; return the largest change of a weight.

    ``inverse`` is ``(radius I - W ∘ W)^-1`` and is kept so by updates of rank one.
    """
    d = len(incoming)
    biggest = 0.0
    before, change = room.weights, room.change
    for child in columns:
        weights = incoming[child]
        row = inverse[child]
        whole = row[child] * radius
        for i in range(d):
            room.curb[i] = max(row[i] / whole, 0.0)
            before[i] = weights[i]
        column(
            problem.moments, child, problem.scale[child], problem.penalty[child],
            problem.open[child], t, tolerance, weights, room.product, room,
        )  # fmt: skip
        count, dot = 0, 0.0
        for i in range(d):
            if weights[i] != before[i]:
                biggest = max(biggest, abs(weights[i] - before[i]))
                room.active[count] = i
                change[count] = weights[i] * weights[i] - before[i] * before[i]
                dot += row[i] * change[count]
                count += 1
        if count == 0:
            continue
        shrink = 1.0 / (1.0 - dot)
        for i in range(d):
            room.along[i] = row[i]
        for i in range(d):
            line = inverse[i]
            s = 0.0
            for a in range(count):
                s += line[room.active[a]] * change[a]
            if s != 0.0:
                s *= shrink
                for m in range(d):
                    line[m] += s * room.along[m]
    return biggest


@kernel(error_model="numpy")
def regression(moments, child, parents, tolerance):  # type: ignore[no-untyped-def]
    """Share of the variance of ``child`` that a regression on ``parents`` leaves, and its weights.

    A parent that those before it determine has the weight zero.
    """
    k = len(parents)
    lower = np.empty((k, k))
    own = np.empty(k)
    total = moments[child, child]
    if total <= 0.0:
        return 1.0, np.zeros(k)
    share = 1.0
    for a in range(k):
        i = parents[a]
        for b in range(a):
            s = moments[i, parents[b]]
            for m in range(b):
                s -= lower[a, m] * lower[b, m]
            lower[a, b] = s / lower[b, b]
        s = moments[i, i]
        for m in range(a):
            s -= lower[a, m] * lower[a, m]
        # A column that those before determine explains nothing more.
        lower[a, a] = math.sqrt(s) if s > tolerance * moments[i, i] else math.inf
        s = moments[i, child]
        for m in range(a):
            s -= lower[a, m] * own[m]
        own[a] = s / lower[a, a]
        share -= own[a] * own[a] / total
    for a in range(k - 1, -1, -1):
        for m in range(a + 1, k):
            own[a] -= lower[m, a] * own[m]
        own[a] /= lower[a, a]
    return max(share, tolerance), own
