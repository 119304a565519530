"""Checks of rows: outliers, copies, repeated measurements of one unit, order in time.

They need the rows, except `copied_cells`. Rates of false alarms and power:
``benchmarks/results/assumptions.md``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.statistics import Kind, Summary
from isthmus.tables.base import CompleteColumns, Source

# --- Rows of a table in memory, for the checks that need them -----------------------------------

FEWEST_ROWS = 20
"""With fewer rows, no check of rows could be sure."""
MOST_ROWS = 1_000
"""Rows in the sample for checks of shapes: the error of a correlation is then about 0.03."""
MOST_COLUMNS = 200
"""Columns in the checks of pairs. With more, evenly spaced ones are looked at."""
_SHOWN = 3
"""Number of names in a note."""


@final
class RowTable(CompleteColumns):
    """Columns of a table in memory, without rows that lack a value, as the checks need them."""

    @classmethod
    def of(cls, source: Source) -> RowTable | None:
        """Return the rows behind a source; None if they are not in memory, or are too few."""
        found = source.complete_columns()
        if found is None or len(found.columns[0]) < FEWEST_ROWS:
            return None
        return cls(found.schema, found.columns, found.positions, found.dropped, found.groups)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.columns[0])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.schema.names

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """Positions of the continuous columns that are not constant."""
        return tuple(
            j
            for j, v in enumerate(self.schema.variables)
            if v.kind is Kind.CONTINUOUS and _varies(self.columns[j])
        )

    @cached_property
    def pairwise(self) -> tuple[int, ...]:
        """The continuous columns whose pairs are checked."""
        return tuple(self.numeric[i] for i in spaced(len(self.numeric), MOST_COLUMNS))

    def numbers(self, j: int, rows: slice | NDArray[np.intp] | None = None) -> Floats:
        """Return a column as numbers: a discrete one as the indicator of its most common level."""
        column = self.columns[j] if rows is None else self.columns[j][rows]
        if self.schema.variables[j].kind is Kind.DISCRETE:
            column = column == np.bincount(column).argmax()
        numbers: Floats = np.array(column, dtype=np.float64)
        return numbers

    def sample(self) -> NDArray[np.intp]:
        """Return evenly spaced rows, or all."""
        return spaced(self.n, MOST_ROWS)

    def select(self, names: Sequence[str]) -> RowTable:
        """Return some of the columns."""
        columns = [self.columns[i] for i in self.schema.indices(names)]
        schema = self.schema.subset(names)
        return RowTable(schema, columns, self.positions, self.dropped, self.groups)

    def without(self, rows: NDArray[np.intp]) -> RowTable:
        """Return the table without some rows."""
        if not len(rows):
            return self
        groups = None if self.groups is None else np.delete(self.groups, rows)
        columns = [np.delete(column, rows) for column in self.columns]
        return RowTable(self.schema, columns, groups=groups)

    def listed(self, columns: Sequence[int]) -> str:
        """Return the names of columns for a note, at most a few of them."""
        return listed([self.names[j] for j in columns])


def listed(names: Sequence[str], most: int = _SHOWN) -> str:
    """Return names for a note: all of a few, or the first and how many there are more."""
    quoted = [repr(name) for name in names[:most]]
    more = len(names) - most
    if more > 0:
        return f"{', '.join(quoted)} and {more} more"
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def spaced(length: int, most: int) -> NDArray[np.intp]:
    """Return all positions, or evenly spaced ones."""
    return np.linspace(0, length - 1, min(length, most)).astype(np.intp)


def _varies(column: NDArray[Any]) -> bool:
    return bool(column[0] != column[-1]) or bool((column != column[0]).any())


def standardised(values: Floats) -> Floats:
    """Return a column with mean zero and variance one; zeros if it is constant."""
    centred: Floats = values - values.mean()
    deviation = float(np.sqrt(np.mean(centred**2)))
    return centred / deviation if deviation > 0.0 else centred


# --- Checks of rows: outliers, copies, repeated measurements, order in time ----------------------

_SHARE = 0.3
"""Share of the variance of a column above which a few rows are named."""
_MOST_OUTLIERS = 10
"""Rows that are named at most, and at most one row in fifty."""
_FAR = 10.0
"""Distance of an outlier from the mean of the other rows, in their standard deviations."""
_APART = 3.0
"""Distance of an outlier from the mean, per distance of the farthest of the other rows."""
_HEAVY = 5.0
"""Excess kurtosis of the other rows above which the tails are heavy, and the rows no outliers."""
_COPIED_ROWS = 0.05
"""Share of copies above which they are noted."""
_ROWS_HASHED = 5_000
"""About this many rows are compared with each other. All copies of a row are among them."""
_HASHED_AT_ONCE = 2**16
"""Rows whose hashes are in memory at a time."""
_COLUMNS_HASHED = 4
"""Columns with the most different values, which are compared first."""
_FEWEST_DISTINCT = 20
"""With fewer distinct rows, values may be the settings of an experiment."""
_COMMON_DIVISOR = 14.0
"""By chance, the frequencies of k distinct rows have the common divisor g in about one of g^k
tables. This is the smallest k log g that is noted."""
_FEWEST_UNITS = 20
_ROWS_OF_UNITS = 20_000
_OTHERS = 10
"""Columns that are compared with an identifier."""
_SAME_UNIT = 0.5
"""Intraclass correlation above which the rows of one unit are alike."""
_ALIKE = 0.3
"""Autocorrelation above which neighbouring rows are alike."""
_CERTAIN = 5.0
"""Standard errors that any such correlation must exceed; with thousands of columns still rare."""
_BLOCKS, _DRIFT, _CERTAIN_DRIFT = 20, 0.05, 8.0
"""Blocks of consecutive rows whose means are compared, the intraclass correlation above which they
drift, and standard errors that it must exceed: sums of squares of few blocks have long tails."""
_STRETCHES, _STRETCH = 4, 250
"""Consecutive rows that are compared, if there are more."""
_UNSORTED = 0.02
"""Share of steps down in a column by which the rows were sorted, within the blocks of another."""


class Outliers(NamedTuple):
    """What was found, and the rows that other checks leave out."""

    notes: tuple[str, ...]
    rows: NDArray[np.intp]


def outlying_rows(table: RowTable) -> Outliers:
    """Find a few rows that make up much of the variance of a column.

    The others must lie far from them and close together, so that heavy tails do not count. Cost:
    the extremes of each column and the quartiles of a sample, about 2 ms per million cells.
    """
    most = min(_MOST_OUTLIERS, max(1, table.n // 50))
    sample = table.sample()
    quartiles = [len(sample) // 4, len(sample) // 2, 3 * len(sample) // 4]
    named: list[int] = []
    rows: set[int] = set()
    largest = 0.0
    for j in table.numeric:
        column = np.ascontiguousarray(table.columns[j])
        low, centre, high = np.partition(column[sample], quartiles)[quartiles].tolist()
        scale = (high - low) / 1.35
        farthest = max(float(column.max()) - centre, centre - float(column.min()))
        # Half of what is asked below, because quartiles of a sample are not exact.
        if farthest < 0.5 * scale * max(_FAR, math.sqrt(_SHARE * table.n / most)):
            continue
        found, share = _outliers(column.astype(np.float64), most)
        if len(found):
            named.append(j)
            rows.update(found.tolist())
            largest = max(largest, share)
    if not rows or len(rows) > most:
        return Outliers((), np.empty(0, dtype=np.intp))
    at = np.array(sorted(rows), dtype=np.intp)
    shown = at if table.positions is None else table.positions[at]
    numbers = ", ".join(map(str, shown.tolist()))
    counting = "counted from 0" + (" without dropped rows" if table.dropped else "")
    what, makes = ("Row", "makes") if len(at) == 1 else ("Rows", "make")
    note = (
        f"Check {what.lower()} {numbers} ({counting}): {'it' if len(at) == 1 else 'they'} {makes} "
        f"up {largest:.0%} of the variance of {table.listed(named)}. Such values create and hide "
        "edges. Correct them, or remove the rows."
    )
    return Outliers((note,), at)


def _outliers(column: Floats, most: int) -> tuple[NDArray[np.intp], float]:
    """Return the rows far from all others, and their share of the variance."""
    top = np.argpartition(np.abs(column - np.median(column)), -most)[-most:]
    rest = np.delete(column, top)
    mean, deviation = float(rest.mean()), float(rest.std())
    none = np.empty(0, dtype=np.intp)
    if deviation == 0.0:  # a count that is almost always zero, for instance
        return none, 0.0
    distance = np.abs(column - mean)
    far = top[distance[top] > _FAR * deviation]
    if not len(far) or distance[far].min() < _APART * np.delete(distance, far).max():
        return none, 0.0
    kept = np.delete(column, far)
    if float(np.mean(standardised(kept) ** 4)) - 3.0 > _HEAVY:
        return none, 0.0
    scatter = len(column) * float(column.var())
    share = 1.0 - len(kept) * float(kept.var()) / scatter
    return (far, share) if share >= _SHARE else (none, 0.0)


def dependent_rows(table: RowTable) -> tuple[str, ...]:
    """Say that rows depend on each other, which makes every standard error too small.

    Such rows make all later tests too certain, so the first note is the only one.
    """
    return copied_rows(table) or repeated_units(table) or alike_neighbours(table)


def notes_on_answers(source: Source | None, names: Collection[str]) -> tuple[str, ...]:
    """Say which rows decide answers about some columns of a table, or depend on each other.

    Nothing if the rows are not at hand, or if answers are those within groups.
    """
    table = None if source is None else RowTable.of(source)
    if table is None or table.groups is not None:
        return ()
    table = table.select([v for v in table.names if v in names])
    outliers = outlying_rows(table)
    return (*outliers.notes, *dependent_rows(table.without(outliers.rows)))


def copied_rows(table: RowTable) -> tuple[str, ...]:
    """Find rows that occur more often than chance explains.

    Two rows are equal by chance at most as often as their values in one column are, so copies are
    found if some column has hardly any equal values in different rows. The most frequent value of
    that column does not count: people who use nothing have the same zeros. In a table of few
    levels, only copies of the whole table are found: all frequencies have a common divisor. Cost:
    about 2 ms per 10,000 rows and 10 columns, and not more for more rows than that.
    """
    probe = table.sample()
    variety = np.array([len(np.unique(column[probe])) for column in table.columns])
    if (variety > 1).sum() < 2:  # no edge is possible
        return ()
    varied = np.argsort(variety)[::-1][:_COLUMNS_HASHED].tolist()
    rows, hashes = _thinned(table, varied)
    n = len(rows)
    if n < FEWEST_ROWS or n - len(np.unique(hashes)) < _COPIED_ROWS * n:
        return ()
    _, first, frequency = np.unique(
        _hashes(table, range(len(table.columns)), rows), return_index=True, return_counts=True
    )
    if n - len(frequency) < _COPIED_ROWS * n:
        return ()
    levels = [len(np.unique(column[rows[first]])) for column in table.columns]
    divisor = _common_divisor(frequency, math.prod(levels))
    if divisor > 1:
        return (_copies_note(1.0 - 1.0 / divisor, divisor),)
    own = table.columns[varied[0]][rows]
    values, often = np.unique(own, return_counts=True)
    others = frequency[own[first] != values[often.argmax()]]
    kept = int(others.sum())
    repeats = (kept - len(others)) / n
    if len(others) < _FEWEST_DISTINCT or repeats < _COPIED_ROWS:
        return ()
    pairs = float((others * (others - 1) / 2.0).sum())
    by_chance = min(_coincidence(c[rows], c[rows[first]]) for c in table.columns)
    if pairs <= 10.0 * (1.0 + by_chance * kept * (kept - 1) / 2.0):
        return ()
    return (_copies_note(repeats, divisor),)


def copied_cells(statistics: Summary) -> tuple[str, ...]:
    """Find copies of a whole table of discrete columns from its counts, without rows."""
    joint = statistics.joint
    if joint is None or joint.weights is None:
        return ()
    cells = math.prod(statistics.schema.cardinalities.tolist())
    divisor = _common_divisor(joint.weights[joint.weights > 0], cells)
    return (_copies_note(1.0 - 1.0 / divisor, divisor),) if divisor > 1 else ()


def _common_divisor(frequency: Integers, cells: int) -> int:
    """Return the common divisor of frequencies; 1 if it may be a coincidence or a design."""
    if not 0 < len(frequency) < cells:  # an experiment with all combinations, equally often
        return 1
    divisor = int(np.gcd.reduce(frequency))
    return divisor if len(frequency) * math.log(divisor) >= _COMMON_DIVISOR else 1


def _copies_note(share: float, divisor: int) -> str:
    seen = f"{share:.0%} of the rows repeat others"
    if divisor > 1:
        seen = f"every row occurs {divisor} times or a multiple of it"
    return (
        f"If rows were copied by mistake, remove the copies: {seen}. Copies count as further "
        "evidence, which leads to false edges and to intervals that are too narrow. If they are "
        "separate observations that happen to be equal, keep them."
    )


def _thinned(
    table: RowTable, columns: Iterable[int]
) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Return rows that are all chosen if they are equal, or none of them, and their hashes."""
    thinning = table.n // _ROWS_HASHED
    rows, hashes = [], []
    for start in range(0, table.n, _HASHED_AT_ONCE):  # all hashes need more memory than codes
        part = np.arange(start, min(start + _HASHED_AT_ONCE, table.n))
        own = _hashes(table, columns, part)
        chosen = slice(None) if thinning < 2 else own % np.uint64(thinning) == 0
        rows.append(part[chosen])
        hashes.append(own[chosen])
    return np.concatenate(rows), np.concatenate(hashes)


def _hashes(table: RowTable, columns: Iterable[int], rows: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Return a number for each row that is the same for equal rows."""
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for j in columns:
        cells = table.columns[j][rows].astype(np.float64)
        cells += 0.0  # both zeros are equal
        hashes ^= cells.view(np.uint64)
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _coincidence(column: NDArray[Any], distinct: NDArray[Any]) -> float:
    """Return the share of pairs of rows that have equal values in a column by chance.

    It is taken from the distinct rows, unless they have far fewer equal values than rounding to
    multiples of one number gives. Then the other columns follow from this one, and rows are
    distinct because its values are.
    """
    among = _equal_pairs(distinct)
    values = np.unique(distinct).astype(np.float64)
    if len(values) < 2:
        return 1.0
    steps = (values[-1] - values[0]) / float(np.diff(values).min())
    pairs = len(distinct) * (len(distinct) - 1) / 2.0
    if pairs >= 10.0 * steps and among < 0.5 / steps:
        return max(among, _equal_pairs(column))
    return among


def _equal_pairs(column: NDArray[Any]) -> float:
    """Return the share of equal pairs of values."""
    n = len(column)
    if n < 2:
        return 1.0
    counts = np.unique(column, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1.0)).sum()) / (n * (n - 1.0))


def repeated_units(table: RowTable) -> tuple[str, ...]:
    """Find a column of identifiers, each of several rows, whose rows are alike.

    It has whole numbers, or equally frequent levels, that explain much of at least two other
    columns, and far more than a cubic does. Cost: at most the first 20,000 rows and ten other
    columns are looked at, about 1 ms per column of whole numbers.
    """
    rows = slice(0, _ROWS_OF_UNITS)
    n = min(table.n, _ROWS_OF_UNITS)
    for j, variable in enumerate(table.schema.variables):
        column = table.columns[j][rows]
        is_number = variable.kind is Kind.CONTINUOUS
        if is_number and not (_whole(column[:100]) and _whole(column)):
            continue
        if not is_number and len(variable.levels) < _FEWEST_UNITS:
            continue
        _, unit, sizes = np.unique(column, return_inverse=True, return_counts=True)
        if not _FEWEST_UNITS <= len(sizes) <= n / 2 or (not is_number and np.ptp(sizes)):
            continue
        alike, typical = _alike_within(table, j, unit.ravel(), sizes, is_number=is_number)
        if len(alike) < 2:
            continue
        note = (
            f"Average the rows of each {variable.name!r}, or keep one of them: rows with the same "
            f"value are not independent ({typical:.0%} of the variance of {table.listed(alike)} "
            "lies between values). Otherwise they count as further evidence, which leads to "
            f"false edges. Do not use {variable.name!r} itself as a variable."
        )
        return (note,)
    return ()


def _alike_within(
    table: RowTable, key: int, unit: Integers, sizes: Integers, *, is_number: bool
) -> tuple[list[int], float]:
    """Return the columns whose values are alike within units, and their intraclass correlation."""
    n, units = len(unit), len(sizes)
    size = (n - float((sizes.astype(np.float64) ** 2).sum()) / n) / (units - 1)
    error = math.sqrt(2.0 / (size * max(size - 1.0, 0.1) * units))
    threshold = max(_SAME_UNIT, _CERTAIN * error)
    others = [j for j in range(len(table.columns)) if j != key]
    others = [others[i] for i in spaced(len(others), _OTHERS)]
    alike, values = [], []
    for j in others:
        column = standardised(table.numbers(j, slice(0, n)))
        value = _intraclass(column, unit, sizes, size)
        if value >= threshold and is_number:
            smooth = _cubic(table.numbers(key, slice(0, n)))
            value = _intraclass(column - smooth @ (smooth.T @ column), unit, sizes, size, total=n)
        if value >= threshold:
            alike.append(j)
            values.append(value)
    return alike, float(np.median(values)) if values else 0.0


def _intraclass(
    column: Floats, unit: Integers, sizes: Integers, size: float, total: float | None = None
) -> float:
    """Return the share of the variance between units; relative to `total` squares if given."""
    squares = float(column @ column)
    if squares == 0.0:
        return 0.0
    sums = np.bincount(unit, weights=column)
    between = float((sums**2 / sizes).sum()) - float(column.sum()) ** 2 / len(column)
    within = max(squares - between, 0.0) / (len(column) - len(sizes))
    component = max(between / (len(sizes) - 1) - within, 0.0) / size
    whole = component + within if total is None else total / len(column)
    return component / whole if whole > 0.0 else 0.0


def _cubic(values: Floats) -> Floats:
    """Return orthonormal columns that span the cubics of a column."""
    z = standardised(values)
    return np.linalg.qr(np.vander(z / max(float(np.abs(z).max()), 1.0), 4))[0]


def _whole(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iub" or bool((values == np.floor(values)).all())


def alike_neighbours(table: RowTable) -> tuple[str, ...]:
    """Find rows that depend on the rows before them: time series, trends, batches.

    Rows that were sorted by one of the columns are not meant: columns are compared within
    narrow ranges of it. Cost: at most 1,000 rows are looked at, about 0.02 ms per column.
    """
    rows = _stretches(table.n)
    between = np.diff(rows) == 1
    columns = {j: standardised(table.numbers(j, rows)) for j in range(len(table.columns))}
    alike = [j for j, z in columns.items() if _likeness(z, between)]
    if len(alike) < 2:
        return ()
    keys = [j for j in alike if _is_sorted(table.columns[j])]
    values = {j: columns[j] for j in alike if j not in keys}
    if keys:
        group = _ranges(table, keys, rows)
        size = np.bincount(group)
        values = {j: z - (np.bincount(group, weights=z) / size)[group] for j, z in values.items()}
    found = {j: r for j, z in values.items() if (r := _likeness(z, between))}
    if len(found) < 2:
        return ()
    typical = float(np.median(list(found.values())))
    note = (
        "If the rows are a time series, use Series(table), or the differences of successive rows: "
        f"neighbouring rows are alike (autocorrelation {typical:.2f} of "
        f"{listed([table.names[j] for j in found])}), and trends and random walks lead to false "
        "edges and to intervals that are too narrow. If the rows were only sorted, ignore this "
        "note."
    )
    return (note,)


def _stretches(n: int) -> NDArray[np.intp]:
    """Return all rows, or some stretches of consecutive ones."""
    if n <= _STRETCHES * _STRETCH:
        return np.arange(n)
    starts = np.linspace(0, n - _STRETCH, _STRETCHES).astype(np.intp)
    return (starts[:, None] + np.arange(_STRETCH)).ravel()


def _likeness(z: Floats, between: NDArray[np.bool_]) -> float:
    """Return the correlation of neighbouring rows, or of rows of one block; 0 if it is small."""
    n = len(z)
    correlation = _autocorrelation(z, between)
    if correlation > max(_ALIKE, _CERTAIN / math.sqrt(n)):
        return correlation
    blocks = min(_BLOCKS, n // 5)
    block = np.arange(n) * blocks // n
    sizes = np.bincount(block)
    size = n / blocks
    drift = _intraclass(z - z.mean(), block, sizes, size)
    error = math.sqrt(2.0 / (size * (size - 1.0) * blocks))
    return drift if drift > max(_DRIFT, _CERTAIN_DRIFT * error) else 0.0


def _autocorrelation(z: Floats, between: NDArray[np.bool_]) -> float:
    squares = float(z @ z)
    if squares <= 1e-9 * len(z):
        return 0.0
    return float((z[1:] * z[:-1])[between].sum()) / squares * len(z) / max(int(between.sum()), 1)


def _is_sorted(column: NDArray[Any]) -> bool:
    """Whether rows were sorted by a column, perhaps after they were sorted by another."""
    up = float(np.mean(column[1:] > column[:-1]))
    down = float(np.mean(column[1:] < column[:-1]))
    return min(up, down) <= _UNSORTED


def _ranges(table: RowTable, keys: list[int], rows: NDArray[np.intp]) -> Integers:
    """Number the rows by narrow ranges of the columns that they were sorted by."""
    group = np.zeros(len(rows), dtype=np.int64)
    for j in keys:
        _, place = np.unique(table.columns[j][rows], return_inverse=True)
        place = place.ravel()
        if place.max() >= len(rows) // 5:
            place = np.argsort(np.argsort(place, kind="stable")) * min(20, len(rows) // 25)
            place = place // len(rows)
        group = np.unique(group * (int(place.max()) + 1) + place, return_inverse=True)[1].ravel()
    return group


# --- Check of time series: levels that drift, and seasons ---------------------------------------
#
# Rates of false alarms and power: ``benchmarks/results/assumptions.md``.

_FEWEST_STEPS, _LONG, _MANY = 40, 90, 250
"""Rows of a realisation that is looked at. One of these must have 90 rows, or all together 250:
in fewer, series with a coefficient of 0.8 look like random walks (``results/assumptions.md``)."""
_FEWEST_FOR_SEASONS = 60
_QUARTERS = 4
_SERIES_DRIFT, _MOST_DRIFT, _DRIFT_STEPS = 0.35, 0.6, 100.0
"""Share of the variance between the quarters of a series that is a drift: at least, at most, and as
a number of steps per length of the series. The share of an autoregressive series with coefficient
0.8 is about 36 divided by its length; that of a random walk is 0.75, of any length."""
_SEASON, _SEASON_STEPS = 0.35, 60.0
"""The same for the share of the variance at one frequency, with its neighbour."""
_CALENDAR_PERIODS, _FEWEST_CYCLES = (4, 7, 12, 24), 10
_SLOWEST, _FASTEST = 7, 0.4
"""Cycles per series, and per step, of a season: slower ones are drifts, and faster ones alternate
from step to step, as autoregressive series with negative coefficients do."""


def unsteady_series(source: Source) -> tuple[str, ...]:
    """Find at least two variables of a time series that drift or have a common season.

    Drifts are trends, random walks and changes of level. They are looked for in all realisations
    together, and seasons in the longest one. Cost: one Fourier transform per variable, about
    0.2 ms for 1,000 steps.
    """
    names = _present(source)
    realisations = _long_realisations(source)
    if len(names) < 2 or not realisations:
        return ()
    columns = list(source.schema().indices(names))
    rows = source.rows()
    return drifts_or_seasons(names, [rows[at][:, columns] for at in realisations])


def unchecked_series(source: Source) -> tuple[str, ...]:
    """Say that drifts could not be looked for: there are no rows, or too few of them."""
    schema = source.schema()
    lagged = any(v.lag is not None for v in schema.variables)
    if not lagged or len(_present(source)) < 2 or _long_realisations(source):
        return ()
    note = (
        "Trends and random walks were not looked for: this needs the rows of a series with at "
        f"least {_LONG} steps, or of several with {_FEWEST_STEPS} each and {_MANY} in all. If "
        "levels may drift, learn from the differences of successive rows."
    )
    return (note,)


def _present(source: Source) -> list[str]:
    """Names of the numbers now."""
    variables = source.schema().variables
    return [v.name for v in variables if v.lag is None and v.kind is Kind.CONTINUOUS]


def _long_realisations(source: Source) -> list[Integers]:
    """Return the rows of each realisation that is long enough, or nothing if these are few."""
    owners = source.realisation_of_rows()
    if owners is None:
        return []
    order = np.argsort(owners, kind="stable")
    each = np.split(order, np.flatnonzero(np.diff(owners[order])) + 1)
    long = [at for at in each if len(at) >= _FEWEST_STEPS]
    lengths = [len(at) for at in long]
    return long if max(lengths, default=0) >= _LONG or sum(lengths) >= _MANY else []


def drifts_or_seasons(names: list[str], realisations: list[Floats]) -> tuple[str, ...]:
    """Return a note on realisations: tables of consecutive steps, of shape (steps, variables)."""
    centred = [steps.T - steps.mean(axis=0)[:, None] for steps in realisations]
    longest = max(centred, key=lambda series: series.shape[1])
    return _drifts(names, centred) or _seasons(names, longest)


def _drifts(names: list[str], realisations: list[Floats]) -> tuple[str, ...]:
    shares = _between_quarters(realisations)
    length = float(np.mean([series.shape[1] for series in realisations]))
    least = max(_SERIES_DRIFT, min(_MOST_DRIFT, _DRIFT_STEPS / length))
    found = [k for k, share in enumerate(shares) if share > least]
    if len(found) < 2:
        return ()
    note = (
        "Learn from the differences of successive rows: the levels of "
        f"{listed([names[k] for k in found])} change over time, as trends and random walks do "
        f"({np.median(shares[found]):.0%} of the variance lies between quarters of the series). "
        f"Common drifts lead to false edges, above all between earlier values such as "
        f"'{names[found[0]]}@1' and '{names[found[1]]}@1'."
    )
    return (note,)


def _between_quarters(realisations: list[Floats]) -> Floats:
    """Return the share of each variable's variance that lies between quarters of realisations."""
    squares = np.zeros(len(realisations[0]))
    between = np.zeros(len(squares))
    for series in realisations:
        squares += np.einsum("ij,ij->i", series, series)
        for part in np.array_split(series, _QUARTERS, axis=1):
            between += part.sum(axis=1) ** 2 / part.shape[1]
    return np.asarray(between / np.where(squares > 0.0, squares, 1.0))


def _by_the_calendar(series: Floats) -> tuple[float, Floats]:
    """Return the season of quarters, weekdays, months or hours that most variables share.

    A season of any shape, such as quiet Sundays, has power at many frequencies. The second value
    is the share of the variance between its phases, or zero where that is small.
    """
    best, shares = 0, np.zeros(len(series))
    for period in _CALENDAR_PERIODS if series.shape[1] >= _LONG else ():
        cycles = series.shape[1] // period
        if cycles < _FEWEST_CYCLES:
            break
        whole = series[:, : cycles * period]
        means = whole.reshape(len(series), cycles, period).mean(axis=1)
        squares = np.square(whole).sum(axis=1)
        share = cycles * np.square(means).sum(axis=1) / np.where(squares > 0.0, squares, 1.0)
        share[share <= _SEASON + (period - 1) / series.shape[1]] = 0.0
        if (share > 0.0).sum() > max(1, (shares > 0.0).sum()):
            best, shares = period, share
    return best, shares


def _seasons(names: list[str], series: Floats) -> tuple[str, ...]:
    period, shares = _by_the_calendar(series)
    had = "the means of its phases have"
    if not period:
        period, shares = _by_frequency(series)
        had = "one frequency has"
    found = np.flatnonzero(shares)
    if len(found) < 2:
        return ()
    note = (
        "Subtract the season with Series(..., season=), or learn from the differences of rows one "
        f"season apart: {listed([names[k] for k in found])} repeat about every {period:.3g} steps "
        f"({had} {shares[found].mean():.0%} of the variance). Common seasons lead to false edges."
    )
    return (note,)


def _by_frequency(series: Floats) -> tuple[float, Floats]:
    """Return the season of one frequency, whatever its length, in the same form."""
    n = series.shape[1]
    if n < _FEWEST_FOR_SEASONS:
        return 0.0, np.zeros(len(series))
    # Without a linear trend, which has some of every frequency.
    time = np.linspace(-1.0, 1.0, n)
    power = np.abs(np.fft.rfft(series - np.outer(series @ time, time / (time @ time)))) ** 2
    power[:, 0] = 0.0
    squares = power.sum(axis=1, keepdims=True)
    power /= np.where(squares > 0.0, squares, 1.0)
    pairs = (power[:, :-1] + power[:, 1:])[:, _SLOWEST : int(_FASTEST * n)]
    shares = pairs.max(axis=1, initial=0.0)
    shares[shares <= max(_SEASON, _SEASON_STEPS / n)] = 0.0
    if not shares.any():
        return 0.0, shares
    # Between the two frequencies, the weighted mean is closer than either.
    first = int(shares.argmax())
    low = int(pairs[first].argmax()) + _SLOWEST
    share = power[first, low : low + 2]
    return float(n / (low + share[1] / share.sum())), shares
