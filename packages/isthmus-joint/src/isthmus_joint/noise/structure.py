"""A graph from tables with noise: which pairs are adjacent, and which way edges point.

Noise hides dependence, so that tests that find none say little. An edge is therefore only kept if
the dependence is visible and no path through other variables explains it, and colliders need
evidence, too. Everything else is left out. The steps are those of the PC algorithm (Spirtes and
Glymour 1991), with rules of their own for tests with little power. Rules and constants were found
on asia, child and sachs, and the one for two others on insurance and alarm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import combinations
from typing import TypeAlias, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.graphs import BoundKnowledge
from isthmus.objectives.local import PythonLocalScore
from isthmus.searches import XGES
from isthmus.statistics import CountPlan, Schema
from isthmus.watch import Watch

# --- Tables of counts as interactions, which need less noise than the tables themselves ---------
#
# A row is in one cell of each table. What this cell tells beyond the margins of the table is
# shorter than one: half as long for two binary variables. So each level becomes a point in
# orthonormal contrasts, and a set of variables the products of their points, summed over rows:
# its interaction. A table follows from the interactions of all subsets of its variables, and
# tables that share variables agree. This is the mechanism of ResidualPlanner (Xiao, He, Zhang and
# Kifer 2023), on integers.

Positions: TypeAlias = tuple[int, ...]

FINE = 2**8
"""The integer that stands for one, in the number of rows and in each contrast. Noise on this grid
is so wide that a sum of discrete Gaussians is a discrete Gaussian for all purposes."""

MOST_VARIABLES = 3
"""Largest number of variables of a table that is asked for."""

PAIRS, TABLES = 0, 1
"""The two requests: for all pairs, and for the tables that these ask for."""


@lru_cache(maxsize=256)
def contrasts(levels: int) -> Integers:
    """Return a point for each level, in units of 1 / `FINE`: orthonormal contrasts, rounded."""
    points = np.zeros((levels, levels - 1))
    for k in range(1, levels):
        points[:k, k - 1] = 1.0
        points[k, k - 1] = -k
        points[:, k - 1] /= math.sqrt(k * (k + 1))
    return np.asarray(np.rint(FINE * points), dtype=np.int64)


@lru_cache(maxsize=256)
def _from_coordinates(levels: int) -> Floats:
    """Return the map from a sum and coordinates to the cells of one variable."""
    forward = np.column_stack([np.ones(levels), contrasts(levels) / FINE])
    return np.asarray(np.linalg.inv(forward.T), dtype=np.float64)


def _along(tensor: Floats | Integers, matrix: Floats | Integers, axis: int) -> Floats | Integers:
    """Return a tensor with a matrix applied to one axis."""
    return np.moveaxis(np.tensordot(tensor, matrix, axes=(axis, 1)), -1, axis)


@final
@dataclass(frozen=True)
class ContrastLayout:
    """The order of the numbers in a sum: one interaction after the other.

    Attributes
    ----------
    sets
        Sets of variables whose interactions are summed; the empty one is the number of rows.
    """

    sizes: tuple[int, ...]
    sets: tuple[Positions, ...]

    @classmethod
    def of(cls, sizes: Iterable[int], tables: Iterable[Positions], least: int) -> ContrastLayout:
        """Lay out the number of rows, and all interactions of tables of at least a size."""
        found = {
            subset
            for table in tables
            for size in range(least, len(table) + 1)
            for subset in combinations(table, size)
        }
        return cls(tuple(sizes), ((), *sorted(found, key=lambda s: (len(s), s))))

    def shape(self, positions: Positions) -> tuple[int, ...]:
        """Return the shape of an interaction."""
        return tuple(self.sizes[i] - 1 for i in positions)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many numbers each interaction has."""
        return tuple(math.prod(self.shape(s)) for s in self.sets)

    @cached_property
    def spread(self) -> Floats:
        """Standard deviation of the noise of each number, in units of that of the number of rows.

        A product of contrasts is as many times finer as it has factors.
        """
        each = [float(FINE ** max(len(s) - 1, 0)) for s in self.sets]
        return np.repeat(each, self.lengths)

    @cached_property
    def sensitivity(self) -> float:
        """The largest norm of the integers of one row, each divided by its spread."""
        longest = [int((contrasts(k) ** 2).sum(axis=1).max(initial=0)) for k in self.sizes]
        square = 0.0
        for positions in self.sets:
            length = math.prod(longest[i] / FINE**2 for i in positions)
            square += FINE**2 * length
        return math.sqrt(square)

    def integers(self, codes: Integers) -> Integers:
        """Return the sums over rows; `codes` has a column for each variable."""
        parts, columns = [], np.ascontiguousarray(codes.T)
        for positions in self.sets:
            if not positions:
                parts.append(np.array([FINE * len(codes)], dtype=np.int64))
                continue
            shape = tuple(self.sizes[i] for i in positions)
            cells = np.ravel_multi_index([columns[i] for i in positions], shape)
            table = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
            for axis, i in enumerate(positions):
                table = np.asarray(_along(table, contrasts(self.sizes[i]).T, axis), dtype=np.int64)
            parts.append(table.reshape(-1))
        return np.concatenate(parts)


def layout_of(schema: Schema, plan: CountPlan, number: int) -> ContrastLayout:
    """Return the interactions of a request: of single variables in the first one only."""
    sizes = [int(k) for k in schema.cardinalities]
    return ContrastLayout.of(sizes, plan.maximal(schema.names), 1 if number == PAIRS else 2)


@final
@dataclass(eq=False)
class Interactions:
    """Interactions that were estimated from sums with noise.

    Attributes
    ----------
    values, variances
        The estimate of each interaction, and the variance of its noise, in each coordinate.
    """

    sizes: tuple[int, ...]
    values: dict[Positions, Floats] = field(default_factory=dict)
    variances: dict[Positions, float] = field(default_factory=dict)

    def add(self, layout: ContrastLayout, total: Sequence[int], scale: float) -> None:
        """Take a sum whose noise has this standard deviation, in the number of rows."""
        at, variance = 0, (scale / FINE) ** 2
        for positions, length in zip(layout.sets, layout.lengths, strict=True):
            unit = float(FINE ** max(len(positions), 1))
            own = np.array([v / unit for v in total[at : at + length]])
            own, at = own.reshape(layout.shape(positions)), at + length
            self.values[positions], self.variances[positions] = self._averaged(
                positions, own, variance
            )

    def _averaged(self, positions: Positions, own: Floats, variance: float) -> tuple[Floats, float]:
        """Return the average of a new estimate and the one before, weighted by their variances."""
        if positions not in self.values:
            return own, variance
        before = self.variances[positions]
        if before + variance == 0.0:
            return own, 0.0
        weight = before / (before + variance)
        return weight * own + (1.0 - weight) * self.values[positions], weight * variance

    @property
    def n(self) -> float:
        """Number of rows."""
        return max(float(self.values[()]), 1.0)

    def table(self, positions: Positions) -> Floats:
        """Return the table of some variables; interactions that are not known are taken as zero."""
        tensor = np.zeros([self.sizes[i] for i in positions])
        for size in range(len(positions) + 1):
            for axes in combinations(range(len(positions)), size):
                own = self.values.get(tuple(positions[a] for a in axes))
                if own is not None:
                    place = tuple(slice(1, None) if a in axes else 0 for a in range(len(positions)))
                    tensor[place] = own
        for axis, i in enumerate(positions):
            tensor = np.asarray(_along(tensor, _from_coordinates(self.sizes[i]), axis))
        return tensor


# --- Tests of independence for tables with noise ------------------------------------------------
#
# A test compares a table with the one that is expected if two variables are independent, or
# depend on each other only through others. The squared difference in each cell is divided by its
# variance: the expected count, as without noise, and the variance of the noise. Cells that noise
# drowns say little, and the other ones count in full. Where tables without noise would be counted
# within each stratum of the other variables, tests here are of sums over the strata, as the noise
# of rare ones is too large.

LEAST_SHARE = 1e-9
"""Counts are at least this, so that conditional shares exist."""


def pair(a: int, b: int) -> tuple[int, int]:
    """Return two variables in ascending order."""
    return (a, b) if a < b else (b, a)


@final
class Dependence:
    """How much variables depend on each other, as far as noise lets it be seen.

    A test returns by how much its statistic exceeds the quantile at `level`: independence does not
    explain a positive one.

    Parameters
    ----------
    found
        The interactions of all pairs, and of some sets of three variables.
    level
        Probability with which a test is positive although there is no dependence.
    """

    def __init__(self, found: Interactions, level: float) -> None:
        self._found = found
        self.level = level
        self.sizes = found.sizes
        self.n = found.n
        self._margins = [self._margin(i) for i in range(len(self.sizes))]
        self._pairs = [s for s in found.variances if len(s) == 2]
        self._tables: dict[Positions, Floats] = {}
        self._strengths: dict[tuple[int, Positions], tuple[float, float]] = {}
        self._known: dict[tuple[int, int, Positions], tuple[Floats, Floats] | None] = {}

    def _margin(self, i: int) -> Floats:
        """Return the counts of one variable. None is below the noise."""
        count = self._found.table((i,))
        least = max(1.0, 0.5 * self._found.variances[(i,)] ** 0.5)
        count = np.maximum(count, least)
        return np.asarray(count * (self.n / count.sum()))

    def table(self, *positions: int) -> Floats:
        """Return the table of two or three variables, with axes in this order."""
        ascending = tuple(sorted(positions))
        if ascending not in self._tables:
            self._tables[ascending] = self._found.table(ascending)
        return np.transpose(self._tables[ascending], [ascending.index(i) for i in positions])

    def joint(self, *positions: int) -> Floats | None:
        """Return the table of two or three variables; ``None`` if it is not known."""
        is_known = tuple(sorted(positions)) in self._found.variances
        return self.table(*positions) if is_known else None

    def noise(self, *positions: int) -> float:
        """Return the variance of the noise in a cell of an interaction."""
        return self._found.variances[tuple(sorted(positions))]

    def degrees(self, a: int, b: int) -> int:
        """Return the degrees of freedom of a test of two variables."""
        return (self.sizes[a] - 1) * (self.sizes[b] - 1)

    def quantile(self, a: int, b: int, level: float, strata: int = 1) -> float:
        """Return the value that the statistic exceeds with this probability."""
        from scipy.special import chdtri

        degrees = self.degrees(a, b) * strata
        return float(chdtri(degrees, level)) if degrees else 0.0

    @cached_property
    def marginal(self) -> dict[Positions, float]:
        """The test of independence of each pair."""
        return {p: self._excess(*p, *self._apart(*p)) for p in self._pairs}

    def strength(self, a: int, others: Positions) -> tuple[float, float]:
        """Return how strongly a variable depends on one or two others, and the error of that.

        Two others count together if the table of the three is known. If not, what each of them
        tells is added up. What is not known counts as no dependence.
        """
        if (a, others) not in self._strengths:
            table = self.joint(a, *others)
            if table is not None:
                strength = self._strength(a, others, table)
            elif len(others) == 2:
                (first, e), (second, f) = (self.strength(a, (k,)) for k in others)
                strength = first + second, math.hypot(e, f)
            else:
                strength = 0.0, 0.0
            self._strengths[a, others] = strength
        return self._strengths[a, others]

    def _strength(self, a: int, others: Positions, table: Floats) -> tuple[float, float]:
        rest = self._margins[others[0]] if len(others) == 1 else self.table(*others)
        expected = np.multiply.outer(self._margins[a], np.maximum(rest, 0.0)) / self.n
        noise = self.noise(a, *others)
        weight = np.maximum(expected, noise**0.5)
        squares = (table - expected) ** 2 / weight
        error = 2.0 * float((squares * noise / weight).sum()) ** 0.5
        return float(squares.sum()) / self.n, error / self.n

    def given(self, a: int, b: int, others: Positions) -> float | None:
        """Test whether two variables depend on each other only through at most two others.

        ``None`` if the tables for it are not known.
        """
        expected = self._expected(*pair(a, b), others)
        return None if expected is None else self._excess(*pair(a, b), *expected)

    def added(self, a: int, v: int, b: int, others: Positions) -> float:
        """Return how much worse a path through `v` fits than none, besides what others explain.

        The path would add to the table what the tables of its two edges imply.
        """
        a, b = pair(a, b)
        known, path = self._expected(a, b, others), self._expected(a, b, (v,))
        if known is None or path is None:
            return 0.0
        implied = path[0] - self._independent(a, b)
        rest, variance = self.table(a, b) - known[0], known[0] + known[1]
        return float(((implied**2 - 2.0 * implied * rest) / variance).sum())

    def opened(self, a: int, v: int, b: int, k: int) -> float | None:
        """Return how much worse two variables are separated by `k` and `v` than by `k` alone.

        Both are compared with the noise of the first; ``None`` if the tables are not known.
        """
        a, b = pair(a, b)
        both, one = self._expected(a, b, pair(k, v)), self._expected(a, b, (k,))
        if both is None or one is None:
            return None
        table, variance = self.table(a, b), both[0] + both[1]
        return float((((table - both[0]) ** 2 - (table - one[0]) ** 2) / variance).sum())

    def _expected(self, a: int, b: int, others: Positions) -> tuple[Floats, Floats] | None:
        """Return the table that is expected, and the variance of the noise in it."""
        if (a, b) not in self._found.variances:
            return None
        if (a, b, others) not in self._known:
            expected = self._through(a, b, others) if others else self._apart(a, b)
            self._known[a, b, others] = expected
        return self._known[a, b, others]

    def _independent(self, a: int, b: int) -> Floats:
        return np.outer(self._margins[a], self._margins[b]) / self.n

    def _apart(self, a: int, b: int) -> tuple[Floats, Floats]:
        """Return the table that is expected of independent variables, and the noise in it."""
        first, second = (self._margins[i] / self.n - 1.0 / self.sizes[i] for i in (a, b))
        # The margins are in the table, too, divided evenly over the levels of the other variable.
        noise = self.noise(a, b) + (
            self.noise(a) * (second**2)[None, :] + self.noise(b) * (first**2)[:, None]
        )
        return self._independent(a, b), noise

    def _excess(self, a: int, b: int, expected: Floats, noise: Floats) -> float:
        statistic = ((self.table(a, b) - expected) ** 2 / (expected + noise)).sum()
        return float(statistic) - self.quantile(a, b, self.level)

    def _through(self, a: int, b: int, others: Positions) -> tuple[Floats, Floats] | None:
        one, two = self.joint(a, *others), self.joint(b, *others)
        if one is None or two is None:
            return None
        first, second = (_shares(t).reshape(len(t), -1) for t in (one, two))
        weight = self._margins[others[0]]
        if len(others) == 2:
            weight = np.maximum(self.table(*others), LEAST_SHARE).reshape(-1)
            weight *= self.n / weight.sum()
        # The noise of the tables that the expected one is computed from adds to its own.
        noise = self.noise(a, b) + (
            self.noise(a, *others) * (second**2).sum(axis=1)[None, :]
            + self.noise(b, *others) * (first**2).sum(axis=1)[:, None]
        )
        return (first * weight) @ second.T, noise

    def within(self, a: int, b: int, k: int) -> float | None:
        """Test whether two variables depend on each other within the strata of a third."""
        table = self.joint(a, b, k)
        if table is None:
            return None
        first, second = _shares(self.table(a, k)), _shares(self.table(b, k))
        expected = first[:, None, :] * second[None, :, :] * self._margins[k]
        noise = self.noise(a, b, k)
        statistic = float(((table - expected) ** 2 / (expected + noise)).sum())
        return statistic - self.quantile(a, b, self.level, self.sizes[k])

    def visible(self) -> float:
        """Return the share of what pairs tell that noise leaves: of the median pair."""
        shares = []
        for p in self._pairs:
            expected = self._independent(*p)
            shares.append(float((expected / (expected + self.noise(*p))).mean()))
        return float(np.median(shares)) if shares else 1.0


def _shares(table: Floats) -> Floats:
    """Return the distribution of the first variable given the others."""
    counts = np.maximum(table, 0.0) + LEAST_SHARE
    return np.asarray(counts / counts.sum(axis=0))


# --- A graph from tables with noise --------------------------------------------------------------

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
