"""What to do about cells without a value: strategies for ``learn(data, missing=...)``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, final

import numpy as np

from isthmus.errors import DataError, MissingValuesError
from isthmus.options import require_instance, require_integer, require_number
from isthmus.results.reading import ColumnReading, ReadAs
from isthmus.statistics.base import methods_for, refuse_missing
from isthmus.statistics.incomplete import Estimated, estimate_moments
from isthmus.statistics.tally import PatternRows
from isthmus.tables.columns import TableColumn
from isthmus.tables.kinds import CellType

if TYPE_CHECKING:
    import narwhals as nw


class Adaptable(Protocol):
    """A score, as sources know it: it has versions for data with conditions of their own."""

    def of_incomplete_rows(self, standard_errors: float = 1.0) -> Any:
        """Return the version for discrete variables with missing values."""

    def of_regimes(self) -> Any:
        """Return the version for data of several regimes."""


AdaptableT = TypeVar("AdaptableT", bound=Adaptable)


class Missing:
    """How missing values are treated. By default they are refused.

    Attributes
    ----------
    left_to_score
        Whether missing values of discrete columns stay, and the score handles them.
    completes
        Whether missing values are completed while one graph is learned.
    gives_moments
        Whether moments of incomplete rows can be estimated.
    """

    left_to_score: ClassVar[bool] = False
    completes: ClassVar[bool] = False
    gives_moments: ClassVar[bool] = False

    def adapt(self, score: AdaptableT) -> AdaptableT:
        """Return the version of a score for incomplete rows; by default the score itself."""
        return score

    def moments(
        self, patterns: PatternRows, until: float = math.inf, *, together: bool = True
    ) -> Estimated:
        """Estimate moments from incomplete rows, if `gives_moments`.

        Parameters
        ----------
        patterns
            The rows, summed up by pattern.
        until
            Stop at this time of ``time.monotonic()``, if steps are repeated.
        together
            Whether columns that are hardly ever observed together are refused.
        """
        raise NotImplementedError


@final
@dataclass(frozen=True)
class KeepMissing(Missing):
    """Keep missing values, for sites that freeze their rows or are asked for expected sums.

    Nothing else can be computed from the table then: moments of incomplete rows are refused. If
    the variables are known in advance, levels that are not listed are missing values.
    """


@final
@dataclass(frozen=True)
class DropRows(Missing):
    """Drop every row in which a value is missing; the notes say how many.

    This is right if values are missing completely at random, and harmless if few rows lack one.
    With p columns that each lack 10% of their values, only ``0.9 ** p`` of the rows remain.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> table = {name: list(column) for name, column in data.items()}
    >>> table["lung"][:50] = [None] * 50
    >>> solution = ist.learn(table, missing=ist.DropRows())
    >>> solution.notes[0].split(", which")[0]
    '50 of 1,000 rows (5.0%) lack a value and were dropped'
    """


@final
@dataclass(frozen=True)
class MissingAsLevel(Missing):
    """Make "missing" a level of its own, for discrete columns.

    Use this if the absence of a value is itself an answer ("not asked", "not applicable"). If
    values are missing by chance, the extra level weakens true edges and adds false ones.

    Parameters
    ----------
    level
        Name of the level.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> table = {name: list(column) for name, column in data.items()}
    >>> table["lung"][:50] = [None] * 50
    >>> ist.learn(table, missing=ist.MissingAsLevel()).dag.parents("either")
    ('tub', 'lung')
    """

    level: str = "missing"

    def __post_init__(self) -> None:
        require_instance(self, "level", str, "'missing'")


@final
@dataclass(frozen=True)
class AvailableCases(Missing):
    """Score each family on the rows that are complete for it, for discrete columns.

    This works with `BIC`, `AIC` and `EBIC`. The dependence among a child and its parents is the
    average over the rows that are complete for them, times the number of all rows. Graphs that are
    Markov-equivalent have the same score: which values are missing does not determine directions.

    Values must be missing completely at random; `StructuralEM` needs less than that, is more
    accurate, and takes longer. Tables with continuous columns are refused: correlations from
    different rows contradict each other, which gives false edges. Use `ExpectationMaximisation`.

    Without missing values the score is that of complete data, bit for bit.

    Parameters
    ----------
    standard_errors
        Multiple of ``sqrt(log(n))`` standard errors to subtract for each edge, with n
        rows. Families are compared on different rows, so the gain of an edge has a standard error
        that grows with the number of missing values. With 1, false edges become rarer with more
        rows if values are missing completely at random, and weak edges need more rows; with 0,
        there are more of both.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> table = {name: list(column) for name, column in data.items()}
    >>> table["lung"][:50] = [None] * 50
    >>> ist.learn(table, missing=ist.AvailableCases()).dag.parents("either")
    ('tub', 'lung')
    """

    standard_errors: float = 1.0
    left_to_score: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number(self, "standard_errors", least=0)

    def adapt(self, score: AdaptableT) -> AdaptableT:
        adapted: AdaptableT = score.of_incomplete_rows(self.standard_errors)
        return adapted


@final
@dataclass(frozen=True)
class ExpectationMaximisation(Missing):
    """Estimate the moments of a normal distribution from all observed values.

    For continuous and mixed tables. Every score of moments, search and sampler then works on these
    moments. In a mixed table, a category is represented by indicators of its levels, which are
    treated as if they were normal: the model of `DegenerateGaussian`, the default score. Values may
    be missing at random, that is, depending on other values that are observed.

    Parameters
    ----------
    max_iterations
        Stop after this many iterations.
    tolerance
        Stop when no mean and no covariance of the standardised columns changes by more.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> numbers = {name: column.copy() for name, column in numbers.items()}
    >>> numbers["x0"][:30] = float("nan")
    >>> solution = ist.learn(numbers, missing=ist.ExpectationMaximisation())
    >>> ist.shd(solution.cpdag, dag.cpdag())
    0
    """

    max_iterations: int = 200
    tolerance: float = 1e-4
    gives_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_integer(self, "max_iterations", least=1)
        require_number(self, "tolerance", above=0)

    def moments(
        self, patterns: PatternRows, until: float = math.inf, *, together: bool = True
    ) -> Estimated:
        return estimate_moments(
            patterns,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            until=until,
            together=together,
        )


@final
@dataclass(frozen=True)
class StructuralEM(Missing):
    """Structural expectation-maximisation (Friedman 1997), for discrete columns.

    The method completes the rows with the current graph, learns the next graph from them, and
    repeats. It works with `BIC`, `AIC` and `EBIC`, and starts with the graph of `AvailableCases`.
    Given a graph and its parameters, the distribution of the missing values of a row given its
    observed values is exact, and rows are completed by draws from it. The result is the graph with
    the highest score of the observed values: their log-likelihood minus the penalties. Values may
    be missing at random, that is, depending on other values that are observed. It takes much longer
    than `AvailableCases`.

    Parameters
    ----------
    completions
        Number of times each row is completed. Fewer draws take less time and memory, and add noise.
    max_iterations
        Stop after this many graphs.
    """

    completions: int = 10
    max_iterations: int = 20
    left_to_score: ClassVar[bool] = True
    completes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_integer(self, "completions", least=1)
        require_integer(self, "max_iterations", least=1)

    def adapt(self, score: AdaptableT) -> AdaptableT:
        adapted: AdaptableT = score.of_incomplete_rows()
        return adapted


# --- Apply a strategy for missing values to the columns of a table in memory --------------------

LEFT_TO_SCORES: dict[type[Missing], str] = {
    AvailableCases: "each family is scored on the rows that are complete for it, which is right if "
    "values are missing completely at random",
    StructuralEM: "rows were completed by their distribution given the observed values, which is "
    "right if values are missing at random",
}
"""Strategies for discrete columns that leave missing values to the score, and what they do."""

Read: TypeAlias = tuple[TableColumn, ColumnReading]


def apply_strategy(
    columns: Sequence[Read], missing: Missing | None, rows: int
) -> tuple[list[Read], tuple[str, ...]]:
    """Treat missing cells as the strategy says, or refuse them.

    Returns
    -------
    columns
        The columns. Unless rows are dropped or missing is a level, they still have holes.
    remarks
        Notes for the user.
    """
    holes = {c.name: c.missing for c, _ in columns if c.missing}
    if not holes:
        return list(columns), ()
    counted = f"{sum(holes.values()):,} of {rows * len(columns):,} values are missing"
    if isinstance(missing, DropRows):
        return _dropped(columns, rows)
    if isinstance(missing, MissingAsLevel):
        require_discrete([name for name in _numbers(columns) if name in holes], missing)
        return list(columns), (f"{counted}; they are the level {missing.level!r}.",)
    if isinstance(missing, AvailableCases | StructuralEM):
        require_discrete(_numbers(columns), missing)
        return list(columns), (f"{counted}; {LEFT_TO_SCORES[type(missing)]}.",)
    if isinstance(missing, KeepMissing):
        return list(columns), ()
    if isinstance(missing, ExpectationMaximisation):
        if not _numbers(columns):
            raise refuse_all_discrete(missing)
        return list(columns), (moments_are_estimated(sum(holes.values()), rows * len(columns)),)
    numbers = _numbers(columns)
    methods = methods_for(continuous=bool(numbers), level=holes.keys().isdisjoint(numbers))
    refuse_missing({c.name: c.missing for c, _ in columns}, rows, methods)
    return list(columns), ()


def _numbers(columns: Sequence[Read]) -> list[str]:
    """Names of the columns that are not discrete."""
    return [c.name for c, r in columns if r.read_as is not ReadAs.DISCRETE]


def _dropped(columns: Sequence[Read], rows: int) -> tuple[list[Read], tuple[str, ...]]:
    complete = np.ones(rows, dtype=np.bool_)
    for column, _ in columns:
        if column.absent is not None:
            complete &= ~column.absent
    kept = int(np.count_nonzero(complete))
    return [(c.take(complete), r) for c, r in columns], _remarks(rows, kept)


def complete_rows(
    frame: nw.LazyFrame[Any], cells: Mapping[str, CellType]
) -> tuple[nw.LazyFrame[Any], tuple[str, ...]]:
    """The rows of a table of an engine that have a value in all of these columns."""
    import narwhals as nw

    complete = frame
    for name, own in cells.items():
        present = ~nw.col(name).is_null()
        if own is CellType.FLOAT:
            present &= ~nw.col(name).cast(nw.Float64).is_nan()
        complete = complete.filter(present)
    number = nw.len().cast(nw.Int64).alias("n")
    before, after = (
        int(table.select(number).collect().get_column("n").to_list()[0])
        for table in (frame, complete)
    )
    return complete, _remarks(before, after)


def _remarks(before: int, after: int) -> tuple[str, ...]:
    """Return a note on the number of dropped rows; refuse to drop all."""
    if after == 0 < before:
        raise DataError(
            "No row is complete, so DropRows() leaves nothing. Leave out the columns with the most "
            "missing values, or use ExpectationMaximisation(), or StructuralEM() for categories."
        )
    lost = before - after
    if not lost:
        return ()
    wider = (before / after) ** 0.5
    note = (
        f"{lost:,} of {before:,} rows ({lost / before:.1%}) lack a value and were dropped, which "
        "is right if values are missing completely at random; standard errors are about "
        f"{wider:.2f} times those of a complete table."
    )
    return (note,)


def require_discrete(names: Sequence[str], missing: Missing) -> None:
    """Refuse columns of numbers that a strategy for categories cannot treat."""
    if names:
        raise MissingValuesError(
            f"{missing!r} takes discrete columns, and {list(names[:10])} are not. Use "
            "ExpectationMaximisation() or DropRows(); or leave these columns out."
        )


def refuse_all_discrete(missing: Missing) -> MissingValuesError:
    """The error for a table without numbers if moments were to be estimated."""
    return MissingValuesError(
        f"{missing!r} is for tables with continuous columns, and all columns are discrete. Use "
        "StructuralEM(), AvailableCases() or DropRows()."
    )


def moments_are_estimated(lost: int, cells: int) -> str:
    """Return a note that moments are estimated, with the number of missing values."""
    return (
        f"{lost:,} of {cells:,} values are missing; the moments are estimated from the others, "
        "which is right if values are missing at random."
    )
