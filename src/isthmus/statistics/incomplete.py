"""Coded rows with missing values, for scores of families on the rows complete for them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.statistics.base import Gatherable, Resampler, Statistic, Summary, refuse_empty
from isthmus.statistics.coded import CodedRows, as_codes, histogram
from isthmus.statistics.counts import Counts
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Kind, Schema
from isthmus.statistics.tally import PairCounts, PatternRows, Standardised

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.networks import DiscreteNetwork

_ROWS_AT_ONCE = 4096


@final
@dataclass(frozen=True, eq=False)
class IncompleteCounts(Statistic):
    """Coded rows of discrete variables in which values may be missing.

    Parameters
    ----------
    schema
        The variables, all discrete.
    codes
        Shape (d, m): positions among the levels; the number of levels stands for a missing value.
    weights
        How often each of these rows occurs; None if every row counts once.
    """

    schema: Schema
    codes: NDArray[np.uint16]
    weights: Integers | None = None
    described: ClassVar[str] = "counts of incomplete rows"

    def __post_init__(self) -> None:
        self.schema.require(Kind.DISCRETE, "Counts of incomplete rows need")
        codes = np.ascontiguousarray(self.codes, dtype=np.uint16)
        refuse_empty(codes.shape[1])
        codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)
        n = codes.shape[1] if self.weights is None else int(self.weights.sum())
        object.__setattr__(self, "n", n)

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> IncompleteCounts:
        """Ask a table for its coded rows; refuse variables that are never observed together."""
        incomplete: IncompleteCounts = source.incomplete()
        if dag is not None:
            incomplete = incomplete.select(dag.nodes)
        incomplete.pair_counts().refuse_apart()
        return incomplete

    def select(self, names: Sequence[str]) -> IncompleteCounts:
        """The rows of some of the variables."""
        chosen = self.schema.indices(names)
        return IncompleteCounts(self.schema.subset(names), self.codes[list(chosen)], self.weights)

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Which values are there, of shape (d, n)."""
        observed: NDArray[np.bool_] = self.codes < self.schema.cardinalities[:, None]
        return observed

    @property
    def has_missing(self) -> bool:
        """Whether any value is missing."""
        return not bool(self.observed.all())

    def rows_about(self, names: Sequence[str]) -> int:
        """Number of rows that are complete for these variables."""
        complete = self.observed[list(self.schema.indices(names))].all(axis=0)
        return int(complete.sum() if self.weights is None else complete @ self.weights)

    def pair_counts(self) -> PairCounts:
        """In how many rows both of two variables have a value."""
        there = self.observed.astype(np.float64)
        often = there if self.weights is None else there * self.weights
        return PairCounts(self.schema.names, often @ there.T, self.n)

    def level_starts(self) -> Integers:
        """Where the levels of each variable begin among the levels of all variables."""
        sizes = self.schema.cardinalities
        starts: Integers = np.cumsum(sizes) - sizes
        return starts

    def level_pairs(self) -> Floats:
        """Count for each pair of levels, of all variables, the rows that have both."""
        starts, width = self.level_starts(), int(self.schema.cardinalities.sum())
        counts = np.zeros((width, width))
        for start in range(0, self.codes.shape[1], _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            variable, row = np.nonzero(self.observed[:, rows])
            indicators = np.zeros((width, len(self.codes[0, rows])))
            indicators[starts[variable] + self.codes[:, rows][variable, row], row] = 1.0
            often = indicators if self.weights is None else indicators * self.weights[rows]
            counts += often @ indicators.T
        return counts

    def complete(self) -> Counts:
        """Counts of the rows without missing values."""
        return Counts.from_rows(self.schema, self._rows(self.schema.names))

    def table(self, names: Sequence[str]) -> Integers:
        """Count the rows that are complete for these variables."""
        sizes = self.schema.cardinalities[list(self.schema.indices(names))]
        return histogram(self._rows(names), sizes).reshape(sizes)

    def _rows(self, names: Sequence[str]) -> CodedRows:
        """The rows that are complete for these variables."""
        chosen = list(self.schema.indices(names))
        kept = self.observed[chosen].all(axis=0)
        codes = as_codes(self.codes[chosen][:, kept], self.schema.cardinalities[chosen])
        return CodedRows(codes, None if self.weights is None else self.weights[kept])

    def constants(self) -> tuple[str, ...]:
        """Names of the variables of which no two different values occur."""
        pairs = zip(self.schema.names, self.codes, self.observed, strict=True)
        return tuple(name for name, x, there in pairs if len(np.unique(x[there])) < 2)

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def cells(self) -> Sequence[Integers]:
        return ()

    def without_rows(self) -> IncompleteCounts:
        return self

    def fit(self, dag: DAG, pseudo_count: float) -> DiscreteNetwork:
        """Estimate each table from the rows that are complete for its family."""
        from isthmus.statistics.fitting import fit_families

        return fit_families(self, dag, pseudo_count)

    def resampler(self, source: Gatherable) -> Resampler:
        """Return what draws these rows, without asking the source."""
        del source
        return Resampler(self.redrawn)

    def redrawn(self, rng: np.random.Generator) -> IncompleteCounts:
        """Return as many rows, drawn with replacement."""
        n, weights = self.n, self.weights
        if weights is None:
            return IncompleteCounts(self.schema, self.codes[:, np.sort(rng.integers(n, size=n))])
        often = rng.multinomial(n, weights / n)
        return IncompleteCounts(self.schema, self.codes[:, often > 0], often[often > 0])


# --- Moments from incomplete rows, by expectation-maximisation ----------------------------------

RIDGE = 1e-9
"""Added to standardised variances before they are inverted: columns may be collinear."""
_NUMBERS = 2**20
"""Size of the matrices that are inverted at once: steps take some milliseconds."""


class Estimated(NamedTuple):
    """Moments, the number of iterations, whether they have converged, and the rows behind them."""

    moments: Moments
    iterations: int
    converged: bool
    pairs: PairCounts

    def remarks(self) -> tuple[str, ...]:
        """Notes for the user if few rows count, or if the moments have not converged."""
        remark = (
            f"The moments of the incomplete columns were still changing after {self.iterations} "
            "iterations of expectation-maximisation. Allow more iterations or time."
        )
        return (*self.pairs.remarks(), *(() if self.converged else (remark,)))


class Expected(NamedTuple):
    """Expected sums and products of standardised rows, given the values that are there."""

    n: int
    sums: Floats
    products: Floats


def estimate_moments(
    patterns: PatternRows,
    *,
    max_iterations: int,
    tolerance: float,
    until: float = math.inf,
    together: bool = True,
) -> Estimated:
    """Maximise the likelihood of means and covariances by expectation-maximisation.

    Indicators of levels are treated as if they were normal, as in `DegenerateGaussian`.

    The moments know how many rows speak about each pair of columns: no pair gets more evidence
    than it has.

    Parameters
    ----------
    patterns
        The rows, summed up by pattern.
    max_iterations, tolerance
        When to stop; the tolerance concerns standardised columns.
    until
        Stop at this time of ``time.monotonic()``, with the moments of the last whole iteration.
    together
        Whether columns with (nearly) no rows in common are refused; not if rows were drawn from
        others that have enough. No edge is then found between them.

    Raises
    ------
    MissingValuesError
        Two columns have (nearly) no rows in common.
    """
    pairs = patterns.pair_counts()
    step = ExpectationStep(patterns, patterns.standardised())
    if together:
        pairs.refuse_apart()  # after columns without any value
    iteration = Maximisation(patterns.schema.width)
    while not iteration.converged(tolerance) and iteration.steps < max_iterations:
        limit = until if iteration.steps else math.inf
        expected = step.expected(iteration.mean, iteration.covariance, limit)
        if expected is None:
            break
        iteration.advance(expected)
    values, *_, centre, scale = step.rows
    scale = scale * (values != 0.0).any(axis=0)  # constant columns are exactly constant
    moments = iteration.moments(patterns.schema, pairs, centre, scale)
    return Estimated(moments, iteration.steps, iteration.converged(tolerance), pairs)


@final
class Maximisation:
    """The parameters of expectation-maximisation, step by step.

    They follow from the expected sums alone. The first ones are those of independent standardised
    columns; each step takes those that maximise the expected likelihood.

    Parameters
    ----------
    d
        Number of columns.

    Attributes
    ----------
    mean, covariance
        The parameters for the next expected sums.
    steps
        Number of steps.
    change
        The largest change of a parameter by the last step.

    Notes
    -----
    Steps are not extrapolated: with many missing values, Anderson acceleration took fewer steps,
    and left covariances with eigenvalues that were far too small.
    """

    def __init__(self, d: int) -> None:
        self.mean: Floats = np.zeros(d)
        self.covariance: Floats = np.eye(d)
        self.steps = 0
        self.change = math.inf

    def converged(self, tolerance: float) -> bool:
        """Whether the last step changed no parameter by more than the tolerance."""
        return self.change <= tolerance

    def advance(self, expected: Expected) -> None:
        """Take the expected sums at `mean` and `covariance`, and compute the next parameters."""
        n, sums, products = expected
        mean = sums / n
        covariance = products / n - np.outer(mean, mean)
        covariance = (covariance + covariance.T) / 2
        moved = np.abs(mean - self.mean).max(), np.abs(covariance - self.covariance).max()
        self.steps += 1
        self.change = float(max(moved))
        self.mean, self.covariance = mean, covariance

    def moments(self, schema: Schema, pairs: PairCounts, centre: Floats, scale: Floats) -> Moments:
        """Return the moments that the last step has estimated.

        Parameters
        ----------
        pairs
            In how many rows both of two variables have a value.
        centre, scale
            Centres and scales by which the columns were standardised.
        """
        n = pairs.effective_rows()
        gram = n * self.covariance * np.outer(scale, scale)
        return Moments(
            schema,
            n,
            centre + scale * self.mean,
            np.zeros(len(scale)),
            gram,
            pair_rows=pairs.effective(),
        )


class _Group(NamedTuple):
    """Patterns with the same number of missing values, and their rows.

    Attributes
    ----------
    rows
        Positions of the rows.
    pattern_of
        The pattern of each of these rows, among those of the group.
    hidden
        Positions of the missing values of each pattern, of shape (patterns, missing).
    sizes
        Number of rows of the table in each pattern.
    """

    rows: NDArray[np.intp]
    pattern_of: NDArray[np.intp]
    hidden: NDArray[np.intp]
    sizes: Floats


@final
class ExpectationStep:
    """Computes the expected sums and products of rows with missing values.

    Parameters
    ----------
    patterns
        The rows, summed up by pattern.
    rows
        The same rows in units of the spread of each column.
    """

    def __init__(self, patterns: PatternRows, rows: Standardised) -> None:
        self.rows = rows
        self._n = patterns.n
        self._groups = _groups(patterns)

    def expected(
        self, mean: Floats, covariance: Floats, until: float = math.inf
    ) -> Expected | None:
        """Expected sums and products given the values that are there; None if the time is over.

        Given the others, the missing values of a row have the inverse of their block of the
        precision matrix as covariance. Blocks of m missing values take O(m^3) instead of O(d^3).
        """
        d = len(mean)
        precision = np.linalg.inv(covariance + RIDGE * np.eye(d))
        unit, complete = self.rows.unit, self.rows.rows.copy()
        spread = np.zeros(d * d)
        for rows, pattern_of, hidden, sizes in self._groups:
            if time.monotonic() >= until:
                return None
            own = np.linalg.inv(precision[hidden[:, :, None], hidden[:, None, :]])
            cells = d * hidden[:, :, None] + hidden[:, None, :]
            spread += np.bincount(
                cells.ravel(), (sizes[:, None, None] * own).ravel(), minlength=d * d
            )
            at = (np.arange(len(rows))[:, None], hidden[pattern_of])
            deviation = complete[rows] - unit[rows, None] * mean
            deviation[at] = 0.0
            pull = (deviation @ precision)[at]
            guess = unit[rows, None] * mean[at[1]]
            guess -= np.einsum("rij,rj->ri", own[pattern_of], pull)
            complete[rows[:, None], at[1]] = guess
        products = complete.T @ complete + spread.reshape(d, d)
        return Expected(self._n, unit @ complete, products)


def _groups(patterns: PatternRows) -> list[_Group]:
    """Group the patterns by their number of missing values, some at once."""
    absent = ~patterns.observed
    order = np.argsort(patterns.which, kind="stable")
    starts = np.searchsorted(patterns.which[order], np.arange(len(absent) + 1))
    missing_of = absent.sum(axis=1)
    groups = []
    for missing in np.unique(missing_of[missing_of > 0]).tolist():
        own = np.flatnonzero(missing_of == missing)
        step = max(1, _NUMBERS // (missing * absent.shape[1]))
        for start in range(0, len(own), step):
            part = own[start : start + step]
            rows = np.concatenate([order[starts[k] : starts[k + 1]] for k in part])
            pattern_of = np.repeat(np.arange(len(part)), starts[part + 1] - starts[part])
            hidden = np.nonzero(absent[part])[1].reshape(len(part), missing)
            sizes = patterns.sizes[part].astype(np.float64)
            groups.append(_Group(rows, pattern_of, hidden, sizes))
    return groups


# --- Expected counts of incomplete rows, given a network ----------------------------------------


@final
@dataclass(frozen=True, eq=False)
class ExpectedCounts(Summary):
    """Expected counts of incomplete rows: missing values follow their distribution in a network.

    Attributes
    ----------
    incomplete
        The rows with missing values.
    completed
        The rows, each `draws` times, with missing values drawn from their distribution given the
        observed ones.
    draws
        How many times each row was completed.
    families
        Exact expected counts of the families of the network, by node, with one axis per parent
        and a last one for the node.
    """

    incomplete: IncompleteCounts
    completed: CodedRows
    draws: int
    families: Mapping[tuple[str, ...], Floats]
    described: ClassVar[str] = "expected counts of incomplete rows"

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", self.incomplete.schema)
        object.__setattr__(self, "n", self.incomplete.n)

    def table(self, names: Sequence[str]) -> Integers:
        """Count the rows that are complete for these variables."""
        return self.incomplete.table(names)

    def rows_about(self, names: Sequence[str]) -> int:
        return self.incomplete.rows_about(names)

    def expected(self, names: Sequence[str]) -> Floats:
        """Expected number of rows in each cell of the table of these variables."""
        if tuple(names) in self.families:
            return self.families[tuple(names)]
        chosen = self.schema.indices(names)
        sizes = self.schema.cardinalities[list(chosen)]
        table: Floats = histogram(self.completed.take(chosen), sizes).reshape(sizes) / self.draws
        return table

    def fit(self, dag: DAG, pseudo_count: float) -> DiscreteNetwork:
        """Estimate each table from its expected counts."""
        from isthmus.statistics.fitting import fit_families

        return fit_families(self, dag, pseudo_count, self.expected)

    def constants(self) -> tuple[str, ...]:
        return self.incomplete.constants()

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def cells(self) -> Sequence[Integers]:
        return ()

    def without_rows(self) -> ExpectedCounts:
        return self
