"""Synthetic rows of one table, with differential privacy.

The tables of all pairs of columns are measured once, as the sites of a study measure them
(`structure.py`), with the noise of one site. Rows are made from these measurements alone: they
first follow the tree of the clearest dependences, and are then adjusted to all pairs. Neither this
nor the report on the rows costs anything more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import ArgumentError
from isthmus.statistics import Kind, Schema, Variable
from isthmus.statistics.schema import Level
from isthmus_joint.agreement.study import require_bounds
from isthmus_joint.extracts.reading import read_rows
from isthmus_joint.noise.accounting import DifferentialPrivacy, cost, epsilon_of, scale_for
from isthmus_joint.noise.answers import confirmed_epsilon, drawn_noise, usable
from isthmus_joint.noise.statistics import MOST_ROWS, made_rows, onto_simplex
from isthmus_joint.noise.structure import (
    FALSE_PAIRS,
    ContrastLayout,
    Dependence,
    Interactions,
    Positions,
)

MOST_BINS = 256

SWEEPS = 20
"""How often rows are adjusted to each pair; ever smaller shares of what is wrong are corrected."""

COPIES = 0.5
"""Share of changed rows that become copies of others: these keep all columns together."""

Pair = tuple[str, str]


@final
@dataclass(frozen=True)
class Binning:
    """The bins of one variable: a level each, or equal parts of the range of a number.

    Attributes
    ----------
    variable
        The variable as the table has it.
    low, high
        Bounds of a number.
    size
        How many bins there are.
    whole
        Whether the number is a whole one.
    """

    variable: Variable
    low: float
    high: float
    size: int
    whole: bool

    @classmethod
    def of(cls, variable: Variable, bounds: tuple[float, float] | None, bins: int) -> Binning:
        """Divide the range of a variable; whole bounds mean whole numbers."""
        if bounds is None:
            return cls(variable, 0.0, 0.0, len(variable.levels), whole=False)
        low, high = bounds
        whole = isinstance(low, int) and isinstance(high, int)
        return cls(variable, low, high, min(bins, int(high - low) + 1) if whole else bins, whole)

    @property
    def values(self) -> int:
        """How many whole numbers are within the bounds."""
        return int(self.high - self.low) + 1

    def codes(self, column: Floats) -> Integers:
        """Return the bin of each value; values outside of the bounds count as the bounds."""
        if self.variable.kind is Kind.DISCRETE:
            return column.astype(np.int64)
        inside = np.clip(column, self.low, self.high) - self.low
        if self.whole:
            return np.asarray(np.rint(inside).astype(np.int64) * self.size // self.values)
        bins = np.floor(inside / (self.high - self.low) * self.size).astype(np.int64)
        return np.asarray(np.minimum(bins, self.size - 1))

    def drawn(self, codes: Integers, rng: np.random.Generator) -> NDArray[Any]:
        """Return a value for each bin: its level, or a number that is uniform within it."""
        if self.variable.kind is Kind.DISCRETE:
            levels = self.variable.levels
            mixed = len({type(level) for level in levels}) > 1
            return np.array(levels, dtype=object if mixed else None)[codes]
        if self.whole:
            edges = -(-np.arange(self.size + 1) * self.values // self.size)  # rounded up
            return np.asarray(int(self.low) + rng.integers(edges[codes], edges[codes + 1]))
        width = (self.high - self.low) / self.size
        return np.asarray(
            np.minimum(self.low + width * (codes + rng.random(len(codes))), self.high)
        )


@final
@dataclass(frozen=True, eq=False)
class Synthesis:
    """Synthetic rows, and what may be said of them.

    All but the result of `errors` is computed from counts with noise, and may be published.

    Attributes
    ----------
    columns
        The rows: an array for each column.
    epsilon, delta
        What the rows and all that is said of them cost together.
    rows_measured
        The estimated number of rows of the table.
    fidelity
        For each pair of columns, the distance between the table of the synthetic rows and the one
        that was measured, and the distance that noise alone is expected to make between the latter
        and the truth. Distances are of total variation: half the sum of the absolute differences
        of shares.
    """

    columns: dict[str, NDArray[Any]]
    epsilon: float
    delta: float
    rows_measured: int
    fidelity: Mapping[Pair, tuple[float, float]]
    _binnings: tuple[Binning, ...]

    @property
    def guess(self) -> float:
        """The largest chance of telling whether a person is in the table.

        This is of somebody who knows all other rows and everything about the person, and for whom
        both were equally likely before.
        """
        return min(1.0, (math.exp(self.epsilon) + self.delta) / (math.exp(self.epsilon) + 1.0))

    def errors(self, table: object) -> dict[Pair, float]:
        """Return the distance to a table for each pair of columns.

        With the original table, this has no noise: it is for the owner's eyes only.
        """
        names, sizes = list(self.columns), [b.size for b in self._binnings]
        own, other = (codes_of(each, self._binnings) for each in (self.columns, table))
        return {
            (names[a], names[b]): distance_of(
                shares_of(own, (a, b), sizes), shares_of(other, (a, b), sizes)
            )
            for a, b in combinations(range(len(names)), 2)
        }

    def __str__(self) -> str:
        """Return what a reader of the rows should know."""
        made = len(next(iter(self.columns.values())))
        text = (
            f"{made:,} synthetic rows, from about {self.rows_measured:,} measured, with "
            f"ε = {self.epsilon:.3g} at δ = {self.delta:g}.\n"
            "Whoever knows everything else, and thinks it as likely as not that a person is in "
            f"the table, is right about it with a probability of at most {self.guess:.3g}."
        )
        if self.fidelity:
            apart, noise = np.array(list(self.fidelity.values())).T
            worst = max(self.fidelity, key=lambda p: self.fidelity[p][0])
            text += (
                f"\nTables of two columns: the rows are {apart.mean():.3g} from what was measured "
                f"on average and {apart.max():.3g} at worst ({' and '.join(worst)}); noise is "
                f"expected to put what was measured {noise.mean():.3g} from the truth."
            )
        return text


def synthesise(
    table: object,
    epsilon: float,
    *,
    delta: float = 1e-6,
    levels: Mapping[str, Sequence[Level]] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    rows: int | None = None,
    bins: int = 16,
) -> Synthesis:
    """Make synthetic rows with differential privacy.

    One row is one person: the promise is for a row more or less. Rows with a missing value or a
    level that is not listed are left out. The noise comes from the system's random numbers, so
    that every call gives other rows, and costs ε again.

    Parameters
    ----------
    table
        The table, of any library that `learn` reads.
    epsilon, delta
        What the synthetic rows may cost.
    levels
        The columns with categories, with all their levels.
    bounds
        The columns with numbers, with the lowest and the highest value. If both are `int`, the
        numbers are whole. Levels and bounds must be known without looking at the data.
    rows
        How many rows to make; by default about as many as the table has, at most 2²⁰.
    bins
        Into how many equal parts the range of a number is divided.

    Returns
    -------
    Synthesis
        The rows, in the columns that `levels` and `bounds` name.

    Raises
    ------
    ArgumentError
        Levels, bounds, rows or bins cannot be used.
    """
    privacy = DifferentialPrivacy(epsilon, delta)
    binnings = binnings_of(levels or {}, bounds or {}, bins)
    if rows is not None and not 1 <= rows <= MOST_ROWS:
        raise ArgumentError(f"rows is {rows}; it must be at least 1, at most {MOST_ROWS:,}.")
    codes = codes_of(table, binnings)
    names, sizes = [b.variable.name for b in binnings], tuple(b.size for b in binnings)
    pairs = list(combinations(range(len(names)), 2))
    layout = ContrastLayout.of(sizes, [*pairs, *((i,) for i in range(len(names)))], 1)
    count = sum(layout.lengths)
    scale = scale_for(privacy.rho, layout.sensitivity, 1, count)
    found = Interactions(sizes)
    total = layout.integers(codes) + drawn_noise(layout.spread, scale)
    found.add(layout, total.tolist(), scale)
    measured: dict[Positions, Floats] = {
        p: onto_simplex(found.table(p), found.n) / found.n for p in pairs
    }
    number = rows or max(1, min(round(found.n), MOST_ROWS))
    made = made_rows(found, _tree(found), number).T
    rng = np.random.default_rng(0)  # what is private is decided: any numbers will do
    _adjust(made, measured, rng)
    drawn = [b.drawn(made[:, i], rng) for i, b in enumerate(binnings)]
    report = {
        (names[a], names[b]): (
            distance_of(shares_of(made, (a, b), sizes), measured[a, b]),
            _noise(found, a, b),
        )
        for a, b in pairs
    }
    spent = cost(layout.sensitivity, scale, 1, count)
    epsilon = max(epsilon_of(spent, delta), confirmed_epsilon(spent, delta))
    columns = dict(zip(names, drawn, strict=True))
    return Synthesis(columns, epsilon, delta, round(found.n), report, binnings)


def _tree(found: Interactions) -> list[tuple[int, ...]]:
    """Return parents that form a forest: the pairs whose dependence is clearest."""
    seen = Dependence(found, FALSE_PAIRS / len(found.sizes))
    near: dict[int, set[int]] = {v: set() for v in range(len(found.sizes))}
    part = list(near)
    for (a, b), excess in sorted(seen.marginal.items(), key=lambda each: -each[1]):
        if excess > 0.0 and part[a] != part[b]:
            near[a].add(b)
            near[b].add(a)
            part = [part[a] if p == part[b] else p for p in part]
    parents: list[tuple[int, ...]] = [()] * len(near)
    waiting = [(root, root) for root in sorted(set(part))]  # a part is named after one in it
    for v, above in waiting:
        parents[v] = (above,) if v != above else ()
        waiting += [(child, v) for child in sorted(near[v] - {above})]
    return parents


def _adjust(rows: Integers, measured: Mapping[Positions, Floats], rng: np.random.Generator) -> None:
    """Change rows step by step until all tables of two columns are near those measured.

    In each step, rows are taken out of the cells of one table that have too many, and become
    copies of rows in the cells that have too few; if there is none, only the two values change.
    This is the gradual update of PrivSyn (Zhang, Wang, Li et al. 2021).
    """
    pairs = list(measured)
    for sweep in range(SWEEPS):
        share = 1.0 - sweep / SWEEPS
        for at in rng.permutation(len(pairs)):
            pair, target = pairs[at], measured[pairs[at]]
            cells = np.ravel_multi_index([rows[:, i] for i in pair], target.shape)
            lacking = target.reshape(-1) * len(rows) - np.bincount(cells, minlength=target.size)
            wanted = np.repeat(np.arange(target.size), _about(np.maximum(lacking, 0) * share, rng))
            order = rng.permutation(len(rows))
            order = order[np.argsort(cells[order], kind="stable")]
            starts = np.searchsorted(cells[order], np.arange(target.size + 1))
            rank = np.arange(len(rows)) - starts[cells[order]]
            spare = order[rank < _about(np.maximum(-lacking, 0) * share, rng)[cells[order]]]
            moved = min(len(wanted), len(spare))
            wanted, spare = rng.permutation(wanted)[:moved], rng.permutation(spare)[:moved]
            size = np.diff(starts)[wanted]
            copies = (size > 0) & (rng.random(moved) < COPIES)
            chosen = starts[wanted] + np.floor(rng.random(moved) * size).astype(np.int64)
            rows[spare[copies]] = rows[order[chosen[copies]]]
            rows[np.ix_(spare[~copies], pair)] = np.column_stack(
                np.unravel_index(wanted[~copies], target.shape)
            )


def _about(numbers: Floats, rng: np.random.Generator) -> Integers:
    """Round up or down at random, so that small parts count on average."""
    return np.asarray(np.floor(numbers + rng.random(numbers.shape)), dtype=np.int64)


def binnings_of(
    levels: Mapping[str, Sequence[Level]], bounds: Mapping[str, tuple[float, float]], bins: int
) -> tuple[Binning, ...]:
    """Return the bins of all columns."""
    if not levels and not bounds:
        raise ArgumentError(
            "State the columns: levels={name: [level, ...]} of categories, and bounds={name: (low, "
            "high)} of numbers, from what they mean and not from the data."
        )
    if not 2 <= bins <= MOST_BINS:
        raise ArgumentError(f"bins is {bins}; it must be at least 2, at most {MOST_BINS}.")
    variables = [
        *(Variable(n, Kind.DISCRETE, tuple(own)) for n, own in levels.items()),
        *(Variable(n, Kind.CONTINUOUS) for n in bounds),
    ]
    require_bounds(Schema(tuple(variables)), bounds)
    return tuple(Binning.of(v, bounds.get(v.name), bins) for v in variables)


def codes_of(table: object, binnings: Sequence[Binning]) -> Integers:
    """Return the bin of each value, in a column for each variable; of rows without a hole."""
    schema = Schema(tuple(b.variable for b in binnings))
    values = read_rows(table, schema, "")[0]
    values = values[usable(schema, values)]
    return np.column_stack([b.codes(values[:, i]) for i, b in enumerate(binnings)])


def shares_of(codes: Integers, pair: Positions, sizes: Sequence[int]) -> Floats:
    """Return the table of two variables, as shares of all rows."""
    shape = tuple(sizes[i] for i in pair)
    cells = np.ravel_multi_index([codes[:, i] for i in pair], shape)
    counts = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    return np.asarray(counts / max(len(codes), 1))


def distance_of(one: Floats, two: Floats) -> float:
    """Return the distance of two tables of shares, in total variation."""
    return float(np.abs(one - two).sum() / 2.0)


def _noise(found: Interactions, a: int, b: int) -> float:
    """Return how far noise is expected to put the measured table of a pair from the truth."""
    k, m = found.sizes[a], found.sizes[b]
    own, variance = (1.0 - 1.0 / k, 1.0 - 1.0 / m), found.variances
    cell = (
        variance[a, b] * own[0] * own[1]
        + variance[(a,)] * own[0] / m**2
        + variance[(b,)] * own[1] / k**2
        + variance[()] / (k * m) ** 2
    )
    return min(1.0, math.sqrt(2.0 * cell / math.pi) * k * m / 2.0 / found.n)
