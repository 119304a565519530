"""A graph from tables with noise: which pairs are adjacent, and which way edges point.

Noise hides dependence, so that tests that find none say little. An edge is therefore only kept if
the dependence is visible and no path through other variables explains it, and colliders need
evidence, too. Everything else is left out. The steps are those of the PC algorithm (Spirtes and
Glymour 1991), with rules of their own for tests with little power. Rules and constants were found
on asia, child and sachs, and the one for two others on insurance and alarm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from typing import TypeAlias

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.joint.noise.dependence import Dependence, pair
from isthmus.joint.noise.interactions import Positions
from isthmus.objectives.local import PythonLocalScore
from isthmus.runs import Watch
from isthmus.searches import XGES

Skeleton: TypeAlias = frozenset[Positions]

FALSE_PAIRS = 0.01
"""Expected number of false pairs per variable, divided by the number of variables: the level of the
tests is this over the number of variables."""

EARLY_EXPLAINED = 0.02
"""In the first round a dependence counts as explained if the rest would be larger with this
probability. Pairs that are left are asked about again."""

MARGIN = 10.0
"""By how much the statistic of a test must be smaller without a common neighbour than with it, for
the two edges to point at the neighbour. Twice the log-likelihood ratio, in the units of BIC."""

TOLERANCE = 0.5
"""How much stronger than a pair on a path the ends of the path may seem to depend on each other, in
standard deviations of the noise."""

CLEARLY = 2.0
"""How much more two variables must tell together than the ends of a path tell of each other, in the
same unit."""

MOST_PARENTS = 3
MOST_CELLS = 2**16
"""Largest table that is asked for."""

EDGE, NO_EDGE = 1e6, -1e9
CLEAR = 1e3
"""Evidence for or against a collider counts up to this."""


Explanation: TypeAlias = tuple[float, Positions, Positions]
"""A dependence that goes through other variables: how much of it is left, in standard deviations,
the two variables, and those between them."""


def first_skeleton(seen: Dependence) -> Skeleton:
    """Return the pairs that the tables of pairs leave."""
    visible = _visible(seen)
    return _explained(seen, visible, visible, EARLY_EXPLAINED, (1,))


def last_skeleton(seen: Dependence, first: Skeleton) -> Skeleton:
    """Return the pairs of the first skeleton that all tables leave."""
    visible = _visible(seen)
    return _explained(seen, visible, visible & first, seen.level, (1, 2))


def _visible(seen: Dependence) -> Skeleton:
    return frozenset(p for p, excess in seen.marginal.items() if excess > 0.0)


def _explained(
    seen: Dependence, visible: Skeleton, pairs: Skeleton, level: float, orders: tuple[int, ...]
) -> Skeleton:
    """Remove pairs whose dependence others explain, the best explanations first."""
    left, used = set(pairs), set[Positions]()
    for order in orders:
        found = [e for p in left for e in _explanations(seen, p, visible, left, level, order)]
        for _, ends, others in sorted(found):
            triangles = {tuple(sorted((*ends, k))) for k in others}
            if ends not in left or used & triangles:
                continue  # in a triangle, one edge at most is explained by the other two
            if all(any(pair(end, k) in left for end in ends) for k in others):
                left.discard(ends)
                used |= triangles
    return frozenset(left)


def _explanations(
    seen: Dependence,
    ends: Positions,
    visible: Skeleton,
    left: set[Positions],
    level: float,
    order: int,
) -> Iterator[Explanation]:
    a, b = ends
    candidates = [k for k in range(len(seen.sizes)) if k not in ends]
    degrees = max(seen.degrees(a, b), 1)
    # From the quantile at the level of the tests to that of explanations.
    allowed = seen.quantile(a, b, level) - seen.quantile(a, b, seen.level)
    for others in combinations(candidates, order):
        if order == 1:
            possible = all(pair(end, others[0]) in visible for end in ends)
        else:
            possible = any(all(pair(end, k) in left for k in others) for end in ends)
        if not (possible and is_between(seen, ends, others)):
            continue
        excess = seen.given(a, b, others)
        if excess is not None and excess <= allowed:
            statistic = excess + seen.quantile(a, b, seen.level)
            yield (statistic - degrees) / math.sqrt(2.0 * degrees), ends, others


def is_between(seen: Dependence, ends: Positions, others: Positions) -> bool:
    """Return whether both ends depend more on the others than on each other.

    Dependence gets weaker along a path. Two others may tell more together than each of them. That
    must be clear: if a variable is a function of two others, they tell as much as it does.
    """
    own, error = seen.strength(ends[0], ends[1:])

    def upper(end: int, by: Positions, errors: float) -> float:
        strength, e = seen.strength(end, by)
        return strength + errors * math.hypot(error, e)

    return all(
        max(upper(end, others, -CLEARLY), *(upper(end, (k,), TOLERANCE) for k in others)) > own
        for end in ends
    )


def wanted_tables(seen: Dependence, skeleton: Skeleton) -> list[Positions]:
    """Return the tables that the last skeleton and the directions need.

    These are the pairs of the skeleton, its paths of three variables, and what may explain a pair
    by two neighbours of one of its ends.
    """
    near = neighbours(seen, skeleton)
    visible, wanted = _visible(seen), set[Positions]()
    for v, beside in near.items():
        wanted |= {tuple(sorted((v, a, b))) for a, b in combinations(sorted(beside), 2)}
    for a, b in [*skeleton, *((b, a) for a, b in skeleton)]:
        around = sorted(k for k in near[b] if k != a and pair(a, k) in visible)
        wanted |= {
            tuple(sorted((a, *others)))
            for others in combinations(around, 2)
            if is_between(seen, pair(a, b), others)
        }
    fitting = [t for t in wanted if math.prod(seen.sizes[i] for i in t) <= MOST_CELLS]
    return sorted([*skeleton, *fitting])


def neighbours(seen: Dependence, skeleton: Iterable[Positions]) -> dict[int, set[int]]:
    """Return the neighbours of each variable."""
    near: dict[int, set[int]] = {v: set() for v in range(len(seen.sizes))}
    for a, b in skeleton:
        near[a].add(b)
        near[b].add(a)
    return near


def directed(seen: Dependence, skeleton: Skeleton) -> list[tuple[int, ...]]:
    """Return the parents of each variable: the graph with most evidence for its colliders.

    All graphs have the edges of the skeleton, and the same evidence if they are equivalent.
    """
    near = neighbours(seen, skeleton)

    @cache
    def evidence(a: int, v: int, b: int) -> float:
        return 0.0 if (a, b) in skeleton else collider_evidence(seen, near, a, v, b)

    def score(child: int, parents: tuple[int, ...]) -> float:
        cells = seen.sizes[child] * math.prod(seen.sizes[p] for p in parents)
        if cells > MOST_CELLS or not near[child].issuperset(parents):
            return NO_EDGE * len(parents)
        return EDGE * len(parents) + sum(evidence(a, child, b) for a, b in combinations(parents, 2))

    size = len(seen.sizes)
    forbidden = np.ones((size, size), dtype=bool)
    for a, b in skeleton:
        forbidden[a, b] = forbidden[b, a] = False
    known = BoundKnowledge(np.zeros((size, size), dtype=bool), forbidden)
    objective = PythonLocalScore([str(i) for i in range(size)], score, equivalent=True)
    xges = XGES(max_parents=MOST_PARENTS)
    return list(xges.search(objective, known, np.random.default_rng(0), Watch()).parents)


def collider_evidence(seen: Dependence, near: dict[int, set[int]], a: int, v: int, b: int) -> float:
    """Return how much better two edges fit if they point at the common neighbour of two variables.

    Otherwise the two would depend on each other through the neighbour, besides what separates them.
    """
    around = sorted((near[a] | near[b]) - {a, b})
    others = [k for k in range(len(seen.sizes)) if k not in (a, b)]
    single: list[Positions] = [(k,) for k in around]
    for sets in ([()], single, list(combinations(others, 2))):
        tests = {s: test for s in sets if (test := _separated(seen, a, b, s)) is not None}
        if not any(test <= 0.0 for test in tests.values()):
            continue
        if () in tests:
            tests[(v,)] = _separated(seen, a, b, (v,)) or 0.0
        apart, best = min(((t, s) for s, t in tests.items() if v not in s), default=(CLEAR, ()))
        through = min((t for s, t in tests.items() if v in s), default=CLEAR)
        evidence = through - apart
        if best and apart <= 0.0:
            evidence = min(evidence, seen.added(a, v, b, best))
            opened = seen.opened(a, v, b, best[0]) if len(best) == 1 else None
            if opened is not None and opened < 0.0:  # a collider would not help to separate them
                evidence = min(evidence, 0.0)
        return float(np.clip(evidence - MARGIN, -CLEAR, CLEAR))
    return 0.0


def _separated(seen: Dependence, a: int, b: int, others: Positions) -> float | None:
    test = seen.given(a, b, others)
    within = seen.within(a, b, others[0]) if len(others) == 1 else None
    return test if test is None or within is None else max(test, within)
