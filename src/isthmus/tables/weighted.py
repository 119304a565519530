"""A table in memory whose rows have weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, DataError, MismatchError, SchemaError, counted
from isthmus.results.reading import Disclosure, Reading
from isthmus.statistics import CountPlan, Counts, Expansion, Moments, Schema
from isthmus.statistics.accumulator import Accumulator
from isthmus.tables.base import Source, countable
from isthmus.tables.frame import Frame
from isthmus.tables.kinds import AsGiven
from isthmus.tables.missing import Missing, MissingAsLevel

_FEW = 2
"""Least effective number of rows."""


@final
class Weighted(Source):
    """A table whose rows count more or less than one, such as those of a survey.

    Weights of a survey, or inverse probabilities of selection, say how many persons of the
    population a row stands for. Means and covariances are then those of the population, and scores,
    tests and intervals count an effective number of rows; see `effective_rows`. Frequencies say how
    often a row occurred, and everything is as if it were repeated.

    Only sums are formed with weights, so methods that need rows (curves, bootstrap, networks of
    mixed columns) are refused, and so are tables of categories unless weights are frequencies.

    Parameters
    ----------
    table
        A table in memory, as for `Frame`.
    weights
        Name of the column of weights, which is then no variable, or one number per row. Rows with
        weight zero are left out.
    frequencies
        Whether weights say how often a row occurred. They must be whole numbers.
    kinds
        How to read some columns, as for `Frame`.
    missing
        `MissingAsLevel`, or None to refuse missing values. Drop incomplete rows beforehand.

    Examples
    --------
    >>> import isthmus as ist
    >>> table = {"x": [1.5, 2.0, 4.0], "y": [0.5, 3.0, 2.0], "often": [2, 1, 3]}
    >>> moments = ist.summarise(ist.Weighted(table, "often", frequencies=True))
    >>> moments.n, moments.mean().round(2)
    (6, array([2.83, 1.67]))
    """

    timed: ClassVar[bool] = True

    def __init__(
        self,
        table: object,
        weights: object,
        *,
        frequencies: bool = False,
        kinds: Mapping[str, AsGiven | str] | None = None,
        missing: Missing | None = None,
    ) -> None:
        if missing is not None and not isinstance(missing, MissingAsLevel):
            raise MismatchError(
                f"{missing!r} is not offered for rows with weights. Drop incomplete rows before, "
                "or use MissingAsLevel() for categories."
            )
        columns = Frame(table).raw_columns()
        if isinstance(weights, str):
            if weights not in columns:
                raise SchemaError(
                    f"The table has no column {weights!r} of weights. It has: {list(columns)[:20]}."
                )
            given: Any = columns.pop(weights)
        else:
            given = weights
        values = _checked(given, frequencies=frequencies)
        kept = np.flatnonzero(values > 0)
        self._frame = Frame(
            {name: _chosen(name, column, kept, len(values)) for name, column in columns.items()},
            kinds=kinds,
            missing=missing,
        )
        self._frequencies = frequencies
        self._weights = values[kept]
        self.missing = missing

    @cached_property
    def effective_rows(self) -> float:
        """Number of rows that scores, tests and intervals count.

        Of a survey, the number of rows with equal weights whose mean would be as uncertain, for the
        column for which it is smallest: at most that of Kish, ``(Σ w)² / Σ w²``, and fewer if rows
        with large weights have unusual values.
        """
        weights, total = self._weights, float(self._weights.sum())
        if self._frequencies:
            return total
        rows = total**2 / float(np.square(weights).sum())
        for variable, column in zip(
            self.schema().variables, self._frame.all_columns(), strict=True
        ):
            values = np.asarray(column, np.float64)[None]
            if variable.levels:
                values = (column[None] == np.arange(len(variable.levels))[:, None]).astype(float)
            squares = np.square(values - (values @ weights / total)[:, None])
            used = squares @ np.square(weights)
            own = total * (squares @ weights)[used > 0] / used[used > 0]
            rows = min(rows, float(own.min(initial=np.inf)))
        return rows

    def schema(self) -> Schema:
        return self._frame.schema()

    def reading(self) -> Reading:
        """Return how each column was read, and why."""
        return self._frame.reading()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        schema, columns = self.schema(), self._frame.all_columns()
        if names is not None:
            columns = [columns[i] for i in schema.indices(names)]
            schema = schema.subset(names)
        n = int(self.effective_rows)
        if n < _FEW:
            raise DataError(
                f"One row has nearly all the weight: the rows count as {self.effective_rows:.1f}. "
                "Trim the largest weights."
            )
        accumulator = Accumulator(schema)
        # The sums are n times their expectation in the population.
        accumulator.update(columns, self._weights * (n / self._weights.sum()))
        found = accumulator.finish()
        return Moments(schema, n, found.shift, found.sums, found.gram)

    def counts(self, plan: CountPlan) -> Counts:
        schema = countable(self.schema(), plan)
        if not self._frequencies:
            raise MismatchError(
                "Tables of categories count rows, and weights that are no frequencies are shares.",
                "Use a score of moments, such as DegenerateGaussian(), or "
                "Weighted(..., frequencies=True) if weights say how often a row occurred.",
            )
        columns = self._frame.all_columns()
        pairs = zip(self.schema().variables, columns, strict=True)
        codes = np.stack([np.asarray(x, np.int64) for v, x in pairs if v.levels])
        return Counts.from_codes(schema, codes, self._weights.astype(np.int64), plan=plan)

    def rows(self) -> NDArray[np.float64]:
        raise MismatchError(
            "This needs rows that count as one, and these have weights.",
            "Use a score of moments or counts, or leave the weights out.",
        )

    def with_features(self, expansion: Expansion) -> Source:
        """Refuse basis functions, whose number is chosen by rows that count as one."""
        raise MismatchError(
            f"{expansion.basis!r} is for rows that count as one, and these have weights.",
            "Use a score of linear effects, such as GaussianBIC() or DegenerateGaussian().",
        )

    def disclosure(self) -> Disclosure:
        """Return an empty disclosure: the table is in this process."""
        return Disclosure.none()

    def notes(self) -> tuple[str, ...]:
        """Return how many rows the weights leave."""
        if self._frequencies:
            return ()
        rows = counted(len(self._weights), "row")
        text = (
            f"{rows} with weights count as {self.effective_rows:,.0f}. Answers are about the "
            "population that the weights stand for, if selection depended on nothing else."
        )
        return (text,)

    def __repr__(self) -> str:
        return f"Weighted({self._frame!r}, {counted(len(self._weights), 'row')})"


def _checked(given: Any, *, frequencies: bool) -> Floats:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any():
        raise ArgumentError(
            "weights must be one number per row, none of them missing or below zero; or the name "
            "of such a column."
        )
    if not values.any():
        raise DataError("All weights are zero, so no row is left.")
    if frequencies and (values != np.rint(values)).any():
        raise ArgumentError(
            "Frequencies are whole numbers. For weights of a survey, leave out frequencies=True."
        )
    return values


def _chosen(name: str, column: Any, kept: NDArray[np.intp], rows: int) -> Any:
    """Return the rows of a column that have a weight."""
    if len(column) != rows:
        raise SchemaError(f"There are {rows} weights, and the column {name!r} has {len(column)}.")
    if len(kept) == rows:
        return column
    import narwhals as nw

    if isinstance(column, nw.Series):
        return column[kept.tolist()]
    return np.asarray(column)[kept]
