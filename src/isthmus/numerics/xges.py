"""Greedy search over equivalence classes: deletions before turns before insertions, compiled.

Nazaret and Blei, "Extremely greedy equivalence search", UAI 2024. For every node as the target
the best operator of each kind is kept, and found again only when something near the node changed.
"""

from __future__ import annotations

from isthmus.numerics.jit import inner, kernel
from isthmus.numerics.xges_graph import (
    AGE,
    CHILDREN,
    CHOSEN,
    COMPELLED,
    FAMILY,
    FRESH,
    LAYERS,
    NEIGHBOURS,
    PARENTS,
    WORK,
    ZERO,
    copy_rows,
    extend,
    has,
    label,
    lay_down,
    listed,
    put,
    reach,
    uncounted,
    write_essential,
)
from isthmus.numerics.xges_operators import (
    BLOCKED,
    DELETE,
    FORCED,
    INSERT,
    STALE,
    STAMP,
    STEPS,
    TURN,
    Place,
    refusal,
    renew_deletions,
    renew_moves,
    write_change,
)
from isthmus.numerics.xges_rows import (
    CLASSES,
    DONE,
    EVALUATIONS,
    NEEDS_ROOM,
    TOLERANCE,
    Asking,
    Known,
    Rules,
    find,
    is_full,
    note,
)

OPTIMUM = 3
REFUSED = 4
BROKEN = 5


@inner
def _is_near(place, v, kind, x, y):  # type: ignore[no-untyped-def]
    """Whether a change of x with y matters to a target with the same edges as before.

    1 if it does; 2 if for turns and insertions only. It matters which neighbours of a target are
    adjacent to each other, and to the x of its own operators.
    """
    bits, d = place.bits, place.gain.shape[1]
    one, two = has(bits, NEIGHBOURS * d + v, x), has(bits, NEIGHBOURS * d + v, y)
    if kind == TURN or not (one or two):
        return 0
    if one and two:
        return 1
    end = y if one else x
    if kind == DELETE:
        return 0 if has(bits, PARENTS * d + v, end) else 2
    # One edge more leaves fewer operators with this end: only the one kept may be lost.
    return 2 if place.other[TURN, v] == end or place.other[INSERT, v] == end else 0


@inner
def _mark(place, kind, x, y, always):  # type: ignore[no-untyped-def]
    """Take over the new graph and mark the targets whose operators may have changed.

    What a path blocked may be free when the path has lost a step: when the target got to the
    start of a step that is there no more. ``always`` marks all that is blocked.
    """
    bits, flags, d = place.bits, place.flags, place.gain.shape[1]
    starts, nothing, found = LAYERS * d, LAYERS * d + 1, LAYERS * d + 2
    for w in range(bits.shape[1]):
        bits[starts, w] = bits[nothing, w] = ZERO
    for v in range(d):
        changed, lost = False, False
        for w in range(bits.shape[1]):
            before = bits[NEIGHBOURS * d + v, w] | bits[CHILDREN * d + v, w]
            after = bits[(FRESH + NEIGHBOURS) * d + v, w] | bits[(FRESH + CHILDREN) * d + v, w]
            lost |= before & ~after != ZERO
            for layer in (PARENTS, CHILDREN, NEIGHBOURS):
                changed |= bits[layer * d + v, w] != bits[(FRESH + layer) * d + v, w]
        if lost:
            put(bits, starts, v)
        near = 1 if changed else _is_near(place, v, kind, x, y)
        if near > 0:
            flags[STALE + 1, v] = 1
            if near == 1:
                flags[STALE, v] = 1
        if changed:
            # A turn of u -> v also counts what v loses.
            for layer in (PARENTS, FRESH + PARENTS):
                count = listed(bits, layer * d + v, place.ints, FAMILY)
                for i in range(count):
                    flags[STALE + 1, place.ints[FAMILY, i]] = 1
    reach(bits, place.ints, d, PARENTS, -1, starts, nothing, found)
    for v in range(d):
        for i in range(2):
            if flags[BLOCKED + i, v] and (always or has(bits, found, v)):
                flags[STALE + i, v] = 1
    copy_rows(bits, FRESH * d, 0, 4 * d)


@inner
def _essential(place, rules):  # type: ignore[no-untyped-def]
    """Turn the graph WORK into the essential graph FRESH: a code.

    A consistent extension is found and labelled. With knowledge the same is done once more after
    orienting what is known: the outcome obeys, and is in the class if its labels are the same.
    """
    bits, ints, d = place.bits, place.ints, place.gain.shape[1]
    for turn in range(2):
        if not extend(bits, ints, d, WORK):
            return REFUSED if turn else BROKEN
        label(bits, ints, d)
        if turn == 0:
            write_essential(bits, d)
            if not rules.any:
                return DONE
            if not lay_down(bits, d, rules):
                return REFUSED
    for y in range(d):
        for w in range(bits.shape[1]):
            if bits[COMPELLED * d + y, w] != bits[(FRESH + PARENTS) * d + y, w]:
                return REFUSED
    return DONE


@inner
def _apply(place, known, rules, kind, y):  # type: ignore[no-untyped-def]
    """Make the operator kept for a target; REFUSED if no member of the new class obeys."""
    d, numbers = place.gain.shape[1], place.numbers
    x, chosen = place.other[kind, y], (CHOSEN + kind) * d + y
    write_change(place.bits, d, kind, x, y, chosen)
    code = _essential(place, rules)
    if code == REFUSED:
        key = refusal(place, kind, x, y, chosen)
        note(known, find(known, key), key, 0.0)
        place.flags[STALE + min(kind, 1), y] = 1
    if code == DONE:
        place.total[0] += place.gain[kind, y]
        known.used[CLASSES] += 1
        numbers[0, STEPS] += 1
        numbers[0, STAMP] = known.used[CLASSES]
        _mark(place, kind, x, y, rules.any)
    return code


@inner
def _best_target(place, kind):  # type: ignore[no-untyped-def]
    best = 0
    for y in range(1, place.gain.shape[1]):
        if place.gain[kind, y] > place.gain[kind, best]:
            best = y
    return best


@inner
def _choose(place):  # type: ignore[no-untyped-def]
    """Find the operator to make: its kind (-1: none, -2: look again) and its target."""
    forced = place.numbers[0, FORCED]
    if forced >= 0:
        place.numbers[0, FORCED] = -1
        return DELETE, forced
    for kind in (DELETE, TURN, INSERT):
        y = _best_target(place, kind)
        if place.gain[kind, y] > TOLERANCE:
            if kind == DELETE or place.ints[AGE, y] == place.numbers[0, STAMP]:
                return kind, y
            # What was valid when it was found need not be now.
            place.flags[STALE + 1, y] = 1
            return -2, y
    return -1, 0


@inner
def _held(place, asking, known, rules):  # type: ignore[no-untyped-def]
    """Give the same arrays without counting of references: the caller holds them."""
    return (
        Place(
            uncounted(place.bits),
            uncounted(place.ints),
            uncounted(place.gain),
            uncounted(place.other),
            uncounted(place.flags),
            uncounted(place.numbers),
            uncounted(place.total),
            uncounted(place.rest),
            uncounted(place.trials),
            uncounted(place.worth),
            uncounted(place.sets),
        ),
        Asking(uncounted(asking.parents), uncounted(asking.candidates), uncounted(asking.values)),
        Known(
            uncounted(known.keys),
            uncounted(known.value),
            uncounted(known.start),
            uncounted(known.length),
            uncounted(known.variable),
            uncounted(known.gain),
            uncounted(known.used),
        ),
        Rules(
            uncounted(rules.open),
            uncounted(rules.never),
            uncounted(rules.must),
            rules.max_parents,
            rules.any,
        ),
    )


@kernel
def climb(score, place, asking, known, rules, most_steps, most_evaluations):  # type: ignore[no-untyped-def]
    """Make operators that gain, after a forced deletion if there is one; return a code.

    OPTIMUM means that none is left; DONE that so many steps or evaluations were made that the
    caller should look; REFUSED that the forced deletion is impossible.
    """
    place, asking, known, rules = _held(place, asking, known, rules)
    d = place.gain.shape[1]
    numbers, flags = place.numbers, place.flags
    steps = numbers[0, STEPS] + most_steps
    evaluations = known.used[EVALUATIONS] + most_evaluations
    while numbers[0, STEPS] < steps:
        forced = numbers[0, FORCED] >= 0
        gains = forced
        if not forced:
            for y in range(d):
                if flags[STALE, y]:
                    code = renew_deletions(score, place, asking, known, rules, y)
                    if code != DONE:
                        return code
                gains |= place.gain[DELETE, y] > TOLERANCE
        if not gains:
            for y in range(d):
                if flags[STALE + 1, y]:
                    if known.used[EVALUATIONS] >= evaluations:
                        return DONE
                    code = renew_moves(score, place, asking, known, rules, y)
                    if code != DONE:
                        return code
        if rules.any and is_full(known):
            return NEEDS_ROOM
        kind, y = _choose(place)
        if kind == -1:
            return OPTIMUM
        if kind >= 0:
            code = _apply(place, known, rules, kind, y)
            if code == BROKEN or (code == REFUSED and forced):
                return code
    return DONE
