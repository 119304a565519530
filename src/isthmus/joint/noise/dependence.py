"""Tests of independence for tables with noise.

A test compares a table with the one that is expected if two variables are independent, or depend on
each other only through others. The squared difference in each cell is divided by its variance: the
expected count, as without noise, and the variance of the noise. Cells that noise drowns say little,
and the other ones count in full. Where tables without noise would be counted within each stratum of
the other variables, tests here are of sums over the strata, as the noise of rare ones is too large.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np

from isthmus.joint.noise.interactions import Interactions, Positions
from isthmus.types import Floats

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
