"""What a score says, computed once: single scores, and rows of the extensions that gain.

A hash table maps a child with a set of parents to its score and, once somebody asked, to the
list of the variables that would gain as one parent more. Extensions that do not gain are never
wanted exactly, so a score may leave them out. Keys are 64 random-looking bits; two sets with the
same key would be taken for each other, which at a million sets has odds of one in thirty million.

When the table or the lists are full a kernel says so by its return code and is called again with
more room: whatever was computed stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics import abi
from isthmus.numerics.jit import inner
from isthmus.numerics.xges_graph import ONE, ZERO, has, lowest

DONE = 0
NEEDS_ROOM = 1
SCORE_FAILED = 2

TOLERANCE = 1e-6
"""What a change must gain at least: below lies rounding."""

USED, LISTED, EVALUATIONS, CLASSES, RENEWALS = 0, 1, 2, 3, 4


class Known(NamedTuple):
    """Scores and rows computed so far."""

    keys: NDArray[np.uint64]  # 0: free; open addressing, size a power of two
    value: NDArray[np.float64]
    start: NDArray[np.int64]  # of the row among the lists; -1: not asked for yet
    length: NDArray[np.int64]
    variable: NDArray[np.int32]
    gain: NDArray[np.float64]
    used: NDArray[np.int64]  # slots and list entries in use; evaluations, classes, renewals made


class Asking(NamedTuple):
    """Room for a question to a score."""

    parents: NDArray[np.int64]
    candidates: NDArray[np.int64]
    values: NDArray[np.float64]


class Rules(NamedTuple):
    """What the user demands, laid out for the kernels."""

    open: NDArray[np.uint8]  # [a, b]: the two may be adjacent
    never: NDArray[np.uint8]  # [from, to]
    must: NDArray[np.uint8]  # [from, to]
    max_parents: int
    any: bool


def new_known(slots: int, entries: int) -> Known:
    """Make an empty table; ``slots`` is a power of two."""
    return Known(
        keys=np.zeros(slots, np.uint64),
        value=np.zeros(slots),
        start=np.full(slots, -1, np.int64),
        length=np.zeros(slots, np.int64),
        variable=np.zeros(entries, np.int32),
        gain=np.zeros(entries),
        used=np.zeros(5, np.int64),
    )


def enlarge(known: Known) -> Known:
    """Return the same knowledge with twice the room."""
    wider = new_known(2 * len(known.keys), 2 * len(known.gain))
    taken = np.nonzero(known.keys)[0]
    keys = known.keys[taken]
    slot = (keys >> np.uint64(20)) % np.uint64(len(wider.keys))
    waiting = np.arange(len(taken))
    while len(waiting):
        # Of those that want the same free slot the first gets it; the rest look one further.
        free = waiting[wider.keys[slot[waiting]] == ZERO]
        first = free[np.unique(slot[free], return_index=True)[1]]
        for name in ("keys", "value", "start", "length"):
            getattr(wider, name)[slot[first]] = getattr(known, name)[taken[first]]
        waiting = np.setdiff1d(waiting, first)
        slot[waiting] = (slot[waiting] + ONE) % np.uint64(len(wider.keys))
    for name in ("variable", "gain"):
        old = getattr(known, name)
        getattr(wider, name)[: len(old)] = old
    wider.used[:] = known.used
    return wider


def new_asking(d: int) -> Asking:
    """Make room for questions about ``d`` variables."""
    return Asking(np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(d + 1))


def new_rules(
    required: NDArray[np.bool_], forbidden: NDArray[np.bool_], max_parents: int | None
) -> Rules:
    """Lay out demands given as matrices indexed [from, to]."""
    apart = forbidden & forbidden.T
    alone = np.eye(len(required), dtype=np.bool_)
    return Rules(
        open=np.ascontiguousarray(~apart, dtype=np.uint8),
        never=np.ascontiguousarray(forbidden, dtype=np.uint8),
        must=np.ascontiguousarray(required, dtype=np.uint8),
        max_parents=len(required) if max_parents is None else max_parents,
        any=bool(required.any() or (forbidden & ~alone).any()),
    )


@inner
def mix(value):  # type: ignore[no-untyped-def]
    """Spread the bits of a number (the finaliser of SplitMix64)."""
    z = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def key_of(child, bits, parents):  # type: ignore[no-untyped-def]
    """Key of a child with a set of parents, given by its row."""
    key = mix(np.uint64(child) | (ONE << np.uint64(40)))
    for w in range(bits.shape[1]):
        rest = bits[parents, w]
        while rest != ZERO:
            key ^= mix(np.uint64((w << 6) + lowest(rest)))
            rest &= rest - ONE
    return key | ONE


@inner
def find(known, key):  # type: ignore[no-untyped-def]
    """Slot of a key, or the free slot where it belongs."""
    mask = np.uint64(known.keys.size - 1)
    slot = (key >> np.uint64(20)) & mask
    while known.keys[slot] != key and known.keys[slot] != ZERO:
        slot = (slot + ONE) & mask
    return np.int64(slot)


@inner
def is_full(known):  # type: ignore[no-untyped-def]
    """Whether there is no room for one more key."""
    return 2 * known.used[USED] >= known.keys.size


@inner
def note(known, slot, key, value):  # type: ignore[no-untyped-def]
    """Enter a score at the slot of its key."""
    if known.keys[slot] == ZERO:
        known.keys[slot] = key
        known.start[slot] = -1
        known.used[USED] += 1
    known.value[slot] = value


@inner
def _ask(score, known, asking, rules, child, bits, parents, wide):  # type: ignore[no-untyped-def]
    """Ask for the score of a set, and of all its extensions if ``wide``; their number, or -1."""
    k = 0
    for w in range(bits.shape[1]):
        rest = bits[parents, w]
        while rest != ZERO:
            asking.parents[k] = (w << 6) + lowest(rest)
            rest &= rest - ONE
            k += 1
    m = 0
    if wide and k < rules.max_parents:
        for x in range(rules.open.shape[0]):
            if rules.open[child, x] and not has(bits, parents, x):
                asking.candidates[m] = x
                m += 1
    known.used[EVALUATIONS] += m + 1
    status = abi.evaluate(score, child, asking.parents, k, asking.candidates, m, asking.values)
    return m if status == 0 else -1


@inner
def score_of(score, known, asking, rules, child, bits, parents):  # type: ignore[no-untyped-def]
    """Score one set of parents: a code and the value."""
    key = key_of(child, bits, parents)
    slot = find(known, key)
    if known.keys[slot] == key:
        return DONE, known.value[slot]
    if is_full(known):
        return NEEDS_ROOM, 0.0
    if _ask(score, known, asking, rules, child, bits, parents, False) < 0:
        return SCORE_FAILED, 0.0
    note(known, slot, key, asking.values[0])
    return DONE, asking.values[0]


@inner
def row_of(score, known, asking, rules, child, bits, parents):  # type: ignore[no-untyped-def]
    """Find or make the row of a child with a set of parents: a code and its slot."""
    key = key_of(child, bits, parents)
    slot = find(known, key)
    if known.keys[slot] == key and known.start[slot] >= 0:
        return DONE, slot
    if is_full(known) or known.used[LISTED] + rules.open.shape[0] > known.gain.size:
        return NEEDS_ROOM, slot
    m = _ask(score, known, asking, rules, child, bits, parents, True)
    if m < 0:
        return SCORE_FAILED, slot
    base = asking.values[0]
    note(known, slot, key, base)
    end = known.used[LISTED]
    known.start[slot] = end
    for j in range(m):
        gain = asking.values[1 + j] - base
        if gain > TOLERANCE:
            known.variable[end] = asking.candidates[j]
            known.gain[end] = gain
            end += 1
    known.length[slot] = end - known.start[slot]
    known.used[LISTED] = end
    return DONE, slot
