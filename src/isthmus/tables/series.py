"""Time series, one or many, as a table of each step with the steps before it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from numbers import Integral, Real
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import DataError, MissingValuesError, SchemaError, counted
from isthmus.results.reading import ColumnReading, Disclosure, ReadAs, Reading
from isthmus.statistics import CountPlan, Counts, Expansion, Kind, Moments, Schema
from isthmus.statistics.base import with_advice
from isthmus.statistics.resampling import different_levels
from isthmus.tables.base import Source
from isthmus.tables.frame import Frame
from isthmus.tables.kinds import AsGiven
from isthmus.tables.names import as_narwhals

# --- Read a column of time, and find the step and the gaps in it --------------------------------

_NEAR = 0.5
"""Two rows are one step apart if their difference is nearer to one step than this, in steps."""
_MAX_SPREAD = 0.25
"""Largest standard deviation, in steps, of the differences that are called a step. With normal
jitter, one step in twenty is then mistaken for a gap; see tests/tables/test_steps_of_time.py."""
_EXACT = 1e-3
"""Deviations below this share of a step are rounding of the stamps, not jitter."""
_MIN_SHARE = 0.1
"""Minimum share of differences that equal the shortest one, for it to be the step."""
_COMPACT = re.compile(r"\s*\d{8}\s*")
"""Dates without separators, such as 20240131."""
_UNITS = (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0), ("second", 1.0))


@final
@dataclass(frozen=True)
class Steps:
    """The steps between rows of a column of time.

    Attributes
    ----------
    gaps
        Which differences are not one step.
    text
        A sentence about differences that were rounded to one step; empty if all are equal.
    taken
        For each difference, the number of steps that it is nearest to.
    """

    gaps: NDArray[np.bool_]
    text: str
    taken: NDArray[np.int64]


def refuse_missing_keys(column: NDArray[Any], name: str, role: str) -> None:
    """Raise an error if a column that orders or groups rows has missing values."""
    if column.dtype.kind in "fc":
        missing = np.isnan(column)
    elif column.dtype.kind in "mM":
        missing = np.isnat(column)
    elif column.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in column.tolist()], dtype=np.bool_)
    else:
        return
    if missing.any():
        raise MissingValuesError(
            f"The column {name!r} ({role}=) is missing in {int(missing.sum()):,} of "
            f"{len(column):,} rows, for instance in row {int(np.flatnonzero(missing)[0])}. It "
            "must be known for each row: fill it in, or drop these rows."
        )


def _is_missing(value: object) -> bool:
    # Only NaN, NaT and pandas.NA differ from themselves; the last one refuses to be a Boolean.
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value)


def as_times(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a column of time as numbers, or as ``datetime64`` or ``timedelta64`` of NumPy.

    Numbers and ISO 8601 dates may also be text, and dates may be objects of Python. Text of eight
    digits is dates if each row has a valid one.
    """
    refuse_missing_keys(column, name, "time")
    kind = column.dtype.kind
    if kind in "iuf":
        if not np.isfinite(column).all():
            raise DataError(f"The column of time {name!r} has infinite values. Correct them.")
        return column
    if kind in "mM":
        return column
    values = column.tolist()
    # Month ends would be gaps in '20240131' as a number, so that dates come first.
    compact = all(isinstance(v, str) and _COMPACT.fullmatch(v) for v in values)
    for read in (_dates, _numbers) if compact else (_numbers, _dates):
        try:
            times = read(values)
        except OverflowError:
            raise DataError(
                f"The column of time {name!r} has whole numbers that 64 bits do not hold (beyond "
                "about 9.2e18). Subtract the first one from all, or use a larger unit of time."
            ) from None
        if times is not None and not _has_missing(times):
            return times
    shown = ", ".join(map(repr, values[:3]))
    raise DataError(
        f"The column of time {name!r} has values such as {shown}. Numbers, dates, and text with "
        "numbers or ISO 8601 dates ('2026-03-01 12:30') are allowed. Convert the column, for "
        "instance with pandas.to_datetime."
    )


def _has_missing(times: NDArray[Any]) -> bool:
    lacking = np.isnat(times) if times.dtype.kind in "mM" else ~np.isfinite(times)
    return bool(lacking.any())


def _numbers(values: Sequence[Any]) -> NDArray[Any] | None:
    if any(isinstance(v, bool) or not isinstance(v, Real | str) for v in values):
        return None
    try:
        # Whole numbers stay so: as floats, neighbouring nanoseconds since 1970 are equal.
        if all(isinstance(v, Integral | str) for v in values):
            return np.array([int(v) for v in values], dtype=np.int64)
    except ValueError:  # text with fractions
        pass
    try:
        return np.array([float(v) for v in values], dtype=np.float64)
    except ValueError:
        return None


def _dates(values: Sequence[Any]) -> NDArray[Any] | None:
    try:
        if all(isinstance(v, str) for v in values):
            values = [datetime.fromisoformat(v.strip()) for v in values]
        if all(isinstance(v, date) for v in values):
            return np.array([_naive(v) for v in values], dtype="M8[us]")
    except ValueError:
        pass
    return None


def _naive(moment: date) -> date:
    """Return a moment with a time zone as one of UTC, without a zone, as NumPy has it."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def differences(times: NDArray[Any]) -> Floats:
    """Return the differences of consecutive times, those of dates in seconds.

    Times ascend within a realisation; where the next one begins, differences have no meaning.
    """
    kind = times.dtype.kind
    if kind in "iu":
        # Before they are floats: nanoseconds since 1970 have more digits than these. Without a
        # sign, the difference of any two integers in ascending order fits.
        whole = times.astype(np.int64).view(np.uint64) if kind == "i" else times.astype(np.uint64)
        return np.diff(whole).astype(np.float64)
    if kind not in "mM":
        return np.diff(times.astype(np.float64))
    if np.datetime_data(times.dtype)[0] in ("Y", "M"):
        times = times.astype("M8[D]")  # months have different lengths in seconds
    return np.asarray(np.diff(times) / np.timedelta64(1, "s"), dtype=np.float64)


def find_steps(lengths: Floats, within: NDArray[np.bool_], name: str, *, dates: bool) -> Steps:
    """Tell steps from gaps.

    Parameters
    ----------
    lengths
        Differences of time between consecutive rows; those of dates in seconds.
    within
        Whether both rows belong to one realisation; other differences mean nothing.
    name
        Name of the column of time.
    dates
        Whether the column holds dates, or durations.

    Raises
    ------
    DataError
        If the differences vary so much that no length of a step can be told.
    """
    inside = lengths[within]
    if not len(inside):
        return Steps(np.zeros(len(lengths), dtype=np.bool_), "", np.ones(len(lengths), np.int64))
    step = _step(inside)
    ratios = inside / step
    near = ratios[ratios < 1.0 + _NEAR]
    spread = float(np.sqrt(np.mean(np.square(near - 1.0))))
    shown = _length(step, dates=dates)
    if spread > _MAX_SPREAD:
        raise DataError(
            f"The times in {name!r} are too irregular to tell steps from gaps: the median "
            f"difference is {shown}, and differences near it vary by {spread:.0%}. Bring the rows "
            "to a regular grid first, for instance with resample of pandas; or leave out time= if "
            "each row is one step after the row before it."
        )
    far = np.abs(lengths / step - 1.0) >= _NEAR
    joined = ratios[np.abs(ratios - 1.0) < _NEAR]
    text = ""
    if len(joined) and max(joined.max() - 1.0, 1.0 - joined.min()) > _EXACT:
        ends = [_length(step * float(end), dates=dates) for end in (joined.min(), joined.max())]
        text = f"Differences from {ends[0]} to {ends[1]} in {name!r} count as one step."
    taken = np.rint(np.where(within, lengths / step, 1.0)).astype(np.int64)
    return Steps(within & far, text, np.maximum(taken, 1))


def _step(lengths: Floats) -> float:
    """The length of a step: the shortest difference if all are multiples of it, else the median.

    Rows of a regular grid from which many were dropped are mostly further apart than a step.
    """
    shortest = float(lengths.min())
    ratios = lengths / shortest
    on_grid = bool((np.abs(ratios - np.rint(ratios)) <= _EXACT * ratios).all())
    if on_grid and np.mean(ratios < 1.0 + _NEAR) >= _MIN_SHARE:
        return shortest
    # Half of the differences of a series in pairs are gaps; the mean of both would be neither.
    return float(np.quantile(lengths, 0.5, method="lower"))


def _length(step: float, *, dates: bool) -> str:
    if not dates:
        return f"{step:.4g}"
    unit, seconds = next((u for u in _UNITS if step >= u[1]), _UNITS[-1])
    value = f"{step / seconds:.4g}"
    return f"{value} {unit}" if value == "1" else f"{value} {unit}s"


# --- Time series, one or many, as a table of each step with the steps before it -----------------

Columns = dict[str, NDArray[Any]]
_SHOWN = 5
"""Number of variables that a note names."""
_GAPS = (
    "Fill them before; or drop these rows and name the column of time (time=...), so that no lag "
    "reaches across a gap; or give the stretches without gaps as a list of tables; or leave the "
    "columns out."
)
"""What to do about missing values in a series."""
_CALENDAR = {"weekday": ("M8[D]", 7), "month": ("M8[M]", 12), "hour": ("M8[h]", 24)}
"""Unit of time, and the number of units after which a season repeats."""
_FEWEST_PER_PHASE = 5
"""Subtracting means of fewer rows would take a fifth or more of the variance away."""


@final
class Series(Source):
    """Time series, with each variable now and at earlier time steps.

    A row is one time step together with the ``lags`` steps before it. Rows never combine steps of
    two realisations, nor steps across a gap in time. The value of ``x`` one step earlier is a
    variable of its own, printed as ``x@1``. The schema records this, so that no method adds an edge
    from a later to an earlier step.

    Parameters
    ----------
    data
        One table in memory, or a sequence of tables, one for each realisation.
    lags
        Number of earlier time steps to include.
    by
        Column that identifies the realisation; without it, each table is one realisation.
    time
        Column to sort by: numbers or dates, also as text (eight digits such as ``20240131`` are
        dates if that is valid in each row). The time step is the shortest difference
        if all others are multiples of it, and otherwise their median. Differences between 0.5 and
        1.5 steps count as one step, and others are gaps. Without this column, rows are taken to be
        in order and without gaps.
    centre
        Whether to subtract the mean of each realisation from its numbers, if their levels differ.
    season
        Number of steps after which a season repeats, counted from the first row of each
        realisation; or ``"weekday"``, ``"month"`` or ``"hour"`` (of the day), read from the dates
        in `time`. The mean of each phase of the season is subtracted from all numbers, and their
        mean over all phases added.
    kinds
        How to read some columns, as for `Frame`. By default text and categories are discrete, and
        all numbers and Booleans are continuous.

    Attributes
    ----------
    lags
        Number of earlier time steps.
    realisations
        Number of stretches without a gap: of realisations, if there are no gaps.
    owners
        The realisation that each row belongs to, as an index.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> now, before = simulate.erdos_renyi(4, 4, seed=0), simulate.lagged_graph(4, lags=1, seed=0)
    >>> series = simulate.autoregressive(now, before, 300, seed=0).arrays()
    >>> solution = ist.learn(ist.Series(series, lags=1), search=ist.Dynotears())
    >>> len(solution.dag.edges) > 0
    True
    """

    def __init__(
        self,
        data: object,
        *,
        lags: int,
        by: str | None = None,
        time: str | None = None,
        centre: bool = False,
        season: int | str | None = None,
        kinds: Mapping[str, AsGiven | str] | None = None,
    ) -> None:
        if lags < 1:
            raise DataError(f"lags must be at least 1; {lags} was given.")
        _check_season(season)
        tables = list(data) if isinstance(data, (list, tuple)) else [data]
        if not tables:
            raise DataError("There is no series: an empty sequence of tables was given.")
        columns = [numpy_columns(table) for table in tables]
        frame = _frame(columns, [key for key in (by, time) if key is not None], kinds)
        try:
            now = frame.schema()
            values = frame.selected(now.names)
        except MissingValuesError as error:
            raise with_advice(error, _GAPS) from None
        ends = np.cumsum([len(next(iter(own.values()), ())) for own in columns])
        parts = [
            _sorted(own, part, by, time)
            for own, part in zip(columns, np.split(values, ends[:-1]), strict=True)
        ]
        parts = [part for part in parts if len(part.values)] or parts[:1]
        values = np.concatenate([part.values for part in parts])
        owners = _numbered([part.owners for part in parts])
        breaks, self._steps, taken = _breaks(parts, owners, time)
        numbers = [i for i, v in enumerate(now.variables) if v.kind is Kind.CONTINUOUS]
        if centre:
            values[:, numbers] = _centred(values[:, numbers], owners)
        if season is not None:
            phases = _phases(parts, owners, taken, season)
            level = values[:, numbers].mean(axis=0)
            values[:, numbers] = _centred(values[:, numbers], phases) + level
        starts = np.flatnonzero(breaks) + 1
        pieces = np.split(values, starts)
        rows = [_stacked(piece, lags) for piece in pieces]
        lengths = [len(r) for r in rows]
        self.lags = lags
        self.realisations = len(pieces)
        self.owners: NDArray[np.int64] = np.repeat(
            owners[np.concatenate([[0], starts])] if len(owners) else owners, lengths
        )
        self._given, self._centred = len(values), centre
        if not sum(lengths):
            longest = max(len(p) for p in pieces)
            raise DataError(
                f"No stretch has more than {lags} steps without a gap (the longest has {longest}). "
                "Use fewer lags, or check the column of time."
            )
        self._now = {column.name: column for column in frame.reading()}
        self._booleans = {n for n in now.names if columns[0][n].dtype.kind == "b"}
        schema = now.with_lags(lags)
        self._numbers = tuple(n for n in schema.names if schema[n].kind is Kind.CONTINUOUS)
        self._frame = Frame(_with_levels(schema, np.concatenate(rows)), schema=schema)

    def schema(self) -> Schema:
        """Return the variables now, then one step earlier, and so on."""
        return self._frame.schema()

    def reading(self) -> Reading:
        """Return how each column was read: numbers as continuous, whatever their values are."""
        columns = []
        for name, lag in self.schema().lag_of.items():
            if name in self._numbers:
                what = "Booleans as 0 and 1" if lag.variable in self._booleans else "numbers"
                reason = f"{what}; all numbers of a Series are continuous"
                columns.append(ColumnReading(name, ReadAs.CONTINUOUS, reason))
            else:
                columns.append(replace(self._now[lag.variable], name=name, caution=None))
        return Reading(tuple(columns))

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        return self._frame.moments(names)

    def counts(self, plan: CountPlan) -> Counts:
        return self._frame.counts(plan)

    def rows(self) -> Floats:
        return self._frame.rows()

    def with_features(self, expansion: Expansion) -> Frame:
        return self._frame.with_features(expansion)

    def disclosure(self) -> Disclosure:
        """Return an empty disclosure: the series are in this process."""
        return Disclosure.none()

    def realisation_of_rows(self) -> NDArray[np.int64]:
        """Return the realisation that each row belongs to, as an index."""
        return self.owners

    def notes(self) -> tuple[str, ...]:
        """Return how many rows are used and why others are not, and whether levels differ."""
        return (self._rows_used(), *self._different_levels)

    def _rows_used(self) -> str:
        used, given = len(self.owners), self._given
        first = "the first row has" if self.lags == 1 else f"the first {self.lags} rows have"
        text = f"{used:,} of {given:,} rows are used; "
        if self.realisations > 1:
            text += f"in each of the {self.realisations:,} stretches without a gap, "
        text += f"{first} no complete past"
        return f"{text}. {self._steps}".rstrip()

    @cached_property
    def _different_levels(self) -> tuple[str, ...]:
        """A note if realisations differ in the level of a number, unless they were centred."""
        if self._centred or not self._numbers:
            return ()
        rows = self._frame.selected(self._numbers)
        different = different_levels(rows, len(self._numbers) // (self.lags + 1), self.owners)
        if not different:
            return ()
        shown = [self._numbers[v] for v in different]
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        note = (
            f"The realisations differ in the level of {', '.join(map(repr, shown[:_SHOWN]))}{more} "
            "by more than their fluctuations explain. Their rows are not comparable then, and "
            "edges may be false. Use Series(..., centre=True)."
        )
        return (note,)

    def __repr__(self) -> str:
        return (
            f"Series({counted(len(self._now), 'variable')}, lags={self.lags}, "
            f"{self.realisations} "
            f"{'stretch' if self.realisations == 1 else 'stretches'} without a gap)"
        )


@final
@dataclass(frozen=True, eq=False)
class _Sorted:
    """A table whose rows are sorted by realisation and time."""

    values: Floats
    owners: NDArray[np.int64]
    times: NDArray[Any] | None


def _frame(
    tables: Sequence[Columns], keys: Sequence[str], kinds: Mapping[str, AsGiven | str] | None
) -> Frame:
    """All rows of all tables, without the columns of realisations and times."""
    names = list(tables[0])
    lacking = [k for k in keys if k not in names]
    if lacking:
        raise SchemaError(f"There is no column {lacking}. There are: {names[:20]}.")
    for table in tables:
        if list(table) != names:
            raise SchemaError(f"The series have different columns: {names} and {list(table)}.")
    columns = {n: np.concatenate([t[n] for t in tables]) for n in names if n not in keys}
    numbers = {n: Kind.CONTINUOUS for n, x in columns.items() if x.dtype.kind in "biuf"}
    return Frame(columns, kinds={**numbers, **(kinds or {})}, keep=None)


def _with_levels(schema: Schema, values: Floats) -> Columns:
    """The columns of values in which levels are codes."""
    columns: Columns = {}
    for name, column in zip(schema.names, values.T, strict=True):
        levels = schema[name].levels
        if levels:
            column = np.array(levels, dtype=object)[column.astype(np.intp)]
        columns[name] = column
    return columns


def _sorted(columns: Columns, values: Floats, by: str | None, time: str | None) -> _Sorted:
    owners = np.zeros(len(values), dtype=np.int64) if by is None else _identified(columns[by], by)
    if time is None:
        order = np.argsort(owners, kind="stable")
        return _Sorted(values[order], owners[order], None)
    times = as_times(columns[time], time)
    order = np.lexsort((times, owners))
    return _Sorted(values[order], owners[order], times[order])


def _identified(column: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Number the realisations of the rows."""
    refuse_missing_keys(column, name, "by")
    try:
        numbers = np.unique(column, return_inverse=True)[1]
    except TypeError as error:
        raise DataError(
            f"The column {name!r} (by=) mixes types that cannot be compared: {error}. Convert it "
            "to text or to numbers."
        ) from error
    return numbers.reshape(len(column)).astype(np.int64)


def _numbered(owners: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Number the realisations of all tables; those of different tables are different."""
    sizes = [int(part.max(initial=-1)) + 1 for part in owners]
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.concatenate([p + offset for p, offset in zip(owners, offsets, strict=True)])


def _breaks(
    parts: Sequence[_Sorted], owners: NDArray[np.int64], name: str | None
) -> tuple[NDArray[np.bool_], str, NDArray[np.int64]]:
    """Where a realisation ends or has a gap, a sentence about the steps, and their numbers."""
    ends = np.diff(owners) != 0
    columns = [part.times for part in parts if part.times is not None]
    if name is None or not columns:
        return ends, "", np.ones(len(ends), dtype=np.int64)
    if len({times.dtype.kind in "mM" for times in columns}) > 1:
        raise SchemaError(f"The column {name!r} has numbers in some tables and dates in others.")
    # The difference between the last row of a table and the first of the next has no meaning.
    lengths = [np.append(differences(times), np.nan) for times in columns]
    between = np.concatenate(lengths)[:-1]
    _refuse_repeated(columns, (between == 0) & ~ends, name)
    steps = find_steps(between, ~ends, name, dates=columns[0].dtype.kind in "mM")
    return ends | steps.gaps, steps.text, steps.taken


def _check_season(season: object) -> None:
    """Refuse what is neither a number of steps nor the name of a part of the calendar."""
    if season is None or (isinstance(season, str) and season in _CALENDAR):
        return
    if isinstance(season, str) or not isinstance(season, Integral) or season < 2:
        raise DataError(
            f"season is the number of steps after which it repeats (at least 2), or one of "
            f"{list(_CALENDAR)}; {season!r} was given."
        )


def _phases(
    parts: Sequence[_Sorted],
    owners: NDArray[np.int64],
    taken: NDArray[np.int64],
    season: int | str,
) -> NDArray[np.int64]:
    """Number the phase of the season that each row belongs to."""
    if isinstance(season, str):
        times = [part.times for part in parts if part.times is not None]
        if not times or any(t.dtype.kind != "M" for t in times):
            raise DataError(
                f"season={season!r} is read from dates: name their column with time=, or give the "
                "number of steps after which the season repeats."
            )
        unit, length = _CALENDAR[season]
        whole = np.concatenate([t.astype(unit) for t in times]).astype(np.int64)
        phases: NDArray[np.int64] = whole % length
    else:
        counted_steps = np.concatenate([[0], np.cumsum(taken)])
        starts = np.concatenate([[0], np.flatnonzero(np.diff(owners)) + 1])
        at = np.searchsorted(starts, np.arange(len(owners)), side="right") - 1
        phases, length = (counted_steps - counted_steps[starts[at]]) % season, season
    fewest = int(np.bincount(phases, minlength=length).min())
    if fewest < _FEWEST_PER_PHASE:
        raise DataError(
            f"A phase of season={season!r} has {counted(fewest, 'row')}, and its mean needs at "
            f"least {_FEWEST_PER_PHASE}. Give a longer series or a shorter season, or learn from "
            "the differences of rows one season apart."
        )
    return phases


def _refuse_repeated(
    columns: Sequence[NDArray[Any]], repeated: NDArray[np.bool_], name: str
) -> None:
    """Refuse two rows of one time in one realisation."""
    if repeated.any():
        times = [time for column in columns for time in map(str, column)]
        shown = [times[i + 1] for i in np.flatnonzero(repeated)[:3]]
        raise DataError(
            f"{int(repeated.sum())} rows have the same {name!r} as another row of their "
            f"realisation, for instance {shown}. Name the column that tells realisations apart "
            "with by=, or combine these rows."
        )


def _centred(values: Floats, owners: NDArray[np.int64]) -> Floats:
    """Subtract the mean of each group of rows: of a realisation, or of a phase of the season."""
    sizes = np.bincount(owners)
    sums = np.stack([np.bincount(owners, column) for column in values.T], axis=1)
    means = sums / np.maximum(sizes, 1)[:, None]
    centred: Floats = values - means[owners]
    return centred


def numpy_columns(table: object) -> Columns:
    """Columns by name."""
    if isinstance(table, Mapping):
        return {str(n): np.asarray(x) for n, x in table.items()}
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise SchemaError(
                f"The array has the shape {table.shape}; (steps, variables) is needed."
            )
        return {f"x{i}": table[:, i] for i in range(table.shape[1])}
    import narwhals as nw

    frame = as_narwhals(table)
    if not isinstance(frame, nw.DataFrame):
        raise DataError(
            f"A {type(table).__name__} is not a table in memory. Let its engine add the columns "
            "x@1, x@2 … (lag(x, 1) over (partition by … order by …)) and give it as "
            "Lazy(table, schema=Schema.continuous(['x', …]).with_lags(2)); or collect it first."
        )
    return {c: np.asarray(frame.get_column(c).to_numpy()) for c in frame.columns}


def _stacked(values: Floats, lags: int) -> Floats:
    """Each step with the steps before it, side by side."""
    steps = len(values)
    if steps <= lags:
        return np.empty((0, values.shape[1] * (lags + 1)))
    return np.concatenate([values[lags - k : steps - k] for k in range(lags + 1)], axis=1)
