"""Counting of many tables from batches of coded rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, MissingValuesError
from isthmus.kernels.counting import add_tables
from isthmus.statistics.base import (
    Gatherable,
    Positions,
    Statistic,
    overflow,
    refuse_empty,
    refuse_infinite,
    refuse_underflow,
)
from isthmus.statistics.schema import Kind, Schema

if TYPE_CHECKING:
    from isthmus.graphs import DAG


@final
class TableCounter:
    """Adds up the tables of sets of variables, batch by batch of rows.

    Parameters
    ----------
    sets
        Positions of the variables of each table.
    """

    def __init__(self, cardinalities: Integers, sets: Sequence[Positions]) -> None:
        self._sizes = np.ascontiguousarray(cardinalities, dtype=np.int64)
        self._sets = list(sets)
        self._type = np.uint8 if self._sizes.max(initial=1) <= 2**8 else np.uint16
        self._room = np.empty(0, dtype=self._type)
        self.n = 0
        self._places: dict[int, list[int]] = {}
        for i, members in enumerate(self._sets):
            self._places.setdefault(len(members), []).append(i)
        self._rows: dict[int, Integers] = {}
        self._values: dict[int, Integers] = {}
        for size, places in self._places.items():
            # Sets that share all but the last variable stand together.
            places.sort(key=self._sets.__getitem__)
            self._rows[size] = np.array([self._sets[i] for i in places], np.int64)
            cells = sum(math.prod(self._shape(i)) for i in places)
            self._values[size] = np.zeros(cells, np.int64)

    def _shape(self, i: int) -> tuple[int, ...]:
        return tuple(int(self._sizes[v]) for v in self._sets[i])

    def room(self, rows: int) -> NDArray[Any]:
        """Return the array for the codes of the next rows, one row per variable.

        It is the same memory each time, with what was there before.
        """
        cells = len(self._sizes) * rows
        if len(self._room) < cells:
            self._room = np.empty(cells, dtype=self._type)
        return self._room[:cells].reshape(-1, rows)

    def update(self, codes: NDArray[Any]) -> None:
        """Add rows, each of which counts once."""
        self.n += codes.shape[1]
        for size, rows in self._rows.items():
            add_tables(codes, self._sizes, rows, self._values[size])

    def finish(self) -> list[Integers]:
        """Return the tables in the order of the sets."""
        tables: dict[int, Integers] = {}
        for size, places in self._places.items():
            start = 0
            for i in places:
                shape = self._shape(i)
                end = start + math.prod(shape)
                tables[i] = self._values[size][start:end].reshape(shape)
                start = end
        return [tables[i] for i in range(len(self._sets))]


# --- In how many rows both of two columns have a value, and what that allows to be learned ------

FEWEST = 5
"""Two columns with fewer common rows are refused: see tests/verbs/test_missing_pairs.py.

With none, their dependence is not identified. With four or less, the standard error of a
correlation is at least 0.5, and one row decides.
"""

SHOWN = 5
"""Errors name this many pairs."""


@final
@dataclass(frozen=True, eq=False)
class PairCounts:
    """The number of rows in which both of two columns have a value.

    Attributes
    ----------
    names
        The columns.
    pairs
        Shape (d, d): the number of rows for each pair; on the diagonal, that of each column.
    n
        Number of rows of the table.
    """

    names: tuple[str, ...]
    pairs: Floats
    n: int

    def effective(self) -> Floats:
        """How many rows speak about each pair of columns, shape (d, d), or about one of them.

        Missing values are predicted by regressions on the other columns, which take one degree of
        freedom per column, in proportion to the rows that are predicted. Half of the rows are left
        at least. With two columns, or complete ones, nothing is taken.
        """
        used = (1.0 - self.pairs / self.n) * max(len(self.names) - 2, 0)
        rows: Floats = np.maximum(np.round(np.maximum(self.pairs - used, self.pairs / 2)), 1.0)
        return rows

    def effective_rows(self) -> int:
        """The unit in which likelihoods are stated: rows that speak about most pairs of columns.

        Scores charge each family at its own rows, and their maximum does not depend on this number.
        Probabilities and differences of scores do: it is the smallest number of rows over the pairs
        of the columns that are left when sparse ones are set aside, one after the other, as long as
        the others gain more rows than pairs are lost.
        """
        return self._rows_of(self._core())

    def refuse_apart(self) -> None:
        """Raise `MissingValuesError` if two columns have (nearly) no rows in common.

        Complete columns pass, however few rows there are.
        """
        i, j = np.nonzero(np.triu(self.pairs < min(FEWEST, self.n), 1))
        if not i.size:
            return
        told = [
            f"{self.names[a]!r} and {self.names[b]!r} ({int(self.pairs[a, b])})"
            for a, b in zip(i[:SHOWN].tolist(), j[:SHOWN].tolist(), strict=True)
        ]
        more = f" and {len(i) - SHOWN} more" if len(i) > SHOWN else ""
        out = self._left_out(lambda rows: rows >= min(FEWEST, self.n))
        raise MissingValuesError(
            f"These pairs of columns have values in fewer than {FEWEST} common rows (the number is "
            f"in parentheses), so the data do not tell how they depend on each other: "
            f"{', '.join(told)}{more}. Leave out {_listed(out)}, for example, or learn from "
            "columns that are observed together."
        )

    def remarks(self) -> tuple[str, ...]:
        """A note on sparse columns, and on how few rows count if most columns are sparse."""
        core, rows = self._core(), self.effective_rows()
        sparse = tuple(name for k, name in enumerate(self.names) if k not in core)
        fewest = self._rows_of(list(range(len(self.names))))
        if sparse and 2 * fewest < rows:
            columns, verb = ("column", "has") if len(sparse) == 1 else ("columns", "have")
            note = (
                f"The {columns} {_listed(sparse)} {verb} values in few rows together with others, "
                f"down to {fewest:,} that count, and edges there need much stronger evidence. "
                f"At least {rows:,} of {self.n:,} rows count for each pair of the other columns."
            )
            return (note,)
        if 2 * rows >= self.n:
            return ()
        note = (
            f"Scores and standard errors count {rows:,} of {self.n:,} rows or more for each pair "
            "of columns, because columns have values in few common rows."
        )
        return (note,)

    def _rows_of(self, kept: list[int]) -> int:
        """The smallest number of rows that speak about a pair of these columns."""
        rows = self.effective()[np.ix_(kept, kept)]
        if len(kept) > 1:
            np.fill_diagonal(rows, np.inf)
        return int(rows.min())

    def _core(self) -> list[int]:
        """The columns with the largest product of pairs and rows, if sparse ones are set aside."""
        kept = list(range(len(self.names)))
        best, most = list(kept), 0.0
        while kept:
            between = self._between(kept)
            rows = float(between.min()) * len(kept) ** 2
            if rows > most:
                best, most = list(kept), rows
            if len(kept) < 3 or float(between.min()) >= self.n:
                break
            kept.remove(self._sparser(kept, between))
        return best

    def _sparser(self, kept: list[int], between: Floats) -> int:
        """The sparser column of the pair with the fewest rows; if equal, that of fewer pairs."""
        worst = np.unravel_index(int(between.argmin()), between.shape)
        return min(
            (kept[int(k)] for k in worst),
            key=lambda k: (self.pairs[k, k], self.pairs[k, kept].sum()),
        )

    def _left_out(self, enough: Callable[[float], bool]) -> tuple[str, ...]:
        """Columns without which all pairs have enough rows: the sparser one of each worst pair."""
        kept, out = list(range(len(self.names))), []
        while len(kept) > 1:
            between = self._between(kept)
            if enough(float(between.min())):
                break
            sparser = self._sparser(kept, between)
            kept.remove(sparser)
            out.append(self.names[sparser])
        return tuple(out)

    def _between(self, kept: list[int]) -> Floats:
        """The numbers of rows of the pairs of these columns; of one column, its own."""
        between: Floats = self.pairs[np.ix_(kept, kept)].astype(np.float64)
        if len(kept) > 1:
            np.fill_diagonal(between, np.inf)
        return between


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")


# --- Rows with missing values, summed up by pattern: which values of a row are there ------------

BUFFERED = 2**20
"""Rows are summed up when there are this many numbers."""

LARGEST = 2**28
"""Maximum number of values in memory: 2 GB."""


def with_indicators(schema: Schema, rows: Floats) -> Floats:
    """Return the columns of all variables, with NaN for missing values.

    Parameters
    ----------
    rows
        Shape (n, d): values, or codes of levels, with NaN for missing values.
    """
    if not schema.of_kind(Kind.DISCRETE):
        return rows
    columns = []
    for variable, own in zip(schema.variables, rows.T, strict=True):
        if variable.kind is Kind.CONTINUOUS:
            columns.append(own)
        else:
            levels = range(1, len(variable.levels))
            columns += [np.where(np.isnan(own), np.nan, own == code) for code in levels]
    return np.stack(columns, axis=1)


class Standardised(NamedTuple):
    """Summed-up rows in units of the spread of each column.

    Attributes
    ----------
    rows, unit, which
        As in `PatternRows`, with zeros for missing values.
    centre, scale
        Mean and standard deviation of the values of each column.
    """

    rows: Floats
    unit: Floats
    which: NDArray[np.intp]
    centre: Floats
    scale: Floats


@final
@dataclass(frozen=True, eq=False)
class PatternRows(Statistic):
    """Few rows that have the same sums and products as the rows of a table, within each pattern.

    The expected sums of expectation-maximisation depend on the rows of a pattern only through their
    number, sums and products. Rows of a pattern with k values are therefore replaced by the
    triangular factor of ``[1, x]``, which has k + 1 rows, unless they are fewer already.

    Attributes
    ----------
    schema
        The variables. Their columns are those of `Moments`: a discrete variable has one indicator
        per level except the first, which are missing together.
    observed
        Shape (patterns, p): which values of the p columns are there.
    sizes
        The number of rows of the table in each pattern.
    rows
        Shape (r, p): values minus the shift, with zeros for missing values.
    unit
        Shape (r,): what became of the column of ones.
    which
        Shape (r,): the pattern of each row.
    shift
        Shape (p,): values near the means.
    """

    schema: Schema
    observed: NDArray[np.bool_]
    sizes: Integers
    rows: Floats
    unit: Floats
    which: NDArray[np.intp]
    shift: Floats
    described: ClassVar[str] = "sums of incomplete rows"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", int(self.sizes.sum()))

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Self:
        schema = source.schema() if dag is None else source.schema().subset(dag.nodes)
        rows = source.rows()[:, list(source.schema().indices(schema.names))]
        return cls.of(schema, [with_indicators(schema, rows)])

    @property
    def missing(self) -> Integers:
        """Number of missing values of each variable."""
        missing: Integers = self.sizes @ ~self._by_variable()
        return missing

    def _by_variable(self) -> NDArray[np.bool_]:
        """Which variables have values; one of a single level has no columns, and always does."""
        whole = np.ones((len(self.observed), 1), dtype=np.bool_)
        first = [start if start < stop else -1 for start, stop in self.schema.blocks]
        return np.hstack([self.observed, whole])[:, first]

    def pair_counts(self) -> PairCounts:
        """In how many rows both of two variables have a value."""
        there = self._by_variable().astype(np.float64)
        pairs = (there * self.sizes[:, None]).T @ there
        return PairCounts(self.schema.names, pairs, int(self.sizes.sum()))

    def standardised(
        self, centre: Floats | None = None, scale: Floats | None = None
    ) -> Standardised:
        """Return the rows in units of the spread; by default of these rows themselves."""
        there = self.observed[self.which]
        count: Integers = self.sizes @ self.observed
        names = self.schema.column_names
        if centre is None or scale is None:
            empty = [n for n, c in zip(names, count.tolist(), strict=True) if not c]
            if empty:
                raise DataError(
                    f"The columns {empty[:10]} have no values, so that nothing can be estimated. "
                    "Leave them out."
                )
            with np.errstate(over="ignore", invalid="ignore"):
                about = self.unit @ np.where(there, self.rows, 0.0) / count
                away = np.where(there, self.rows - self.unit[:, None] * about, 0.0)
                squares = np.einsum("ij,ij->j", away, away)
            if not np.isfinite(squares).all():
                raise overflow(names[j] for j in np.flatnonzero(~np.isfinite(squares)))
            refuse_underflow(names, (away != 0.0).sum(axis=0) > 0, squares)
            centre, scale = self.shift + about, np.sqrt(squares / count)
            scale = np.where(scale > 0.0, scale, 1.0)
        away = (self.rows - self.unit[:, None] * (centre - self.shift)) / scale
        return Standardised(np.where(there, away, 0.0), self.unit, self.which, centre, scale)

    def constants(self) -> tuple[str, ...]:
        """Names of the variables of which no two different values occur."""
        still = (self.standardised().rows == 0.0).all(axis=0)
        blocks = zip(self.schema.names, self.schema.blocks, strict=True)
        return tuple(name for name, (start, stop) in blocks if still[start:stop].all())

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def cells(self) -> Sequence[Integers]:
        """The number of rows in each pattern that has values."""
        return (self.sizes[self.observed.any(axis=1)],)

    def without_rows(self) -> PatternRows:
        return self

    @classmethod
    def of(cls, schema: Schema, blocks: Iterable[Floats]) -> Self:
        """Sum up blocks of rows of all columns, with NaN for missing values."""
        builder = PatternBuilder(schema)
        for block in blocks:
            builder.update(block)
        return cls(*builder.finish())


@final
class PatternBuilder:
    """Sums up rows with missing values batch by batch.

    Parameters
    ----------
    shift
        Values near the means; by default the means of the first rows.
    """

    def __init__(self, schema: Schema, shift: Floats | None = None) -> None:
        self._schema = schema
        self._shift = shift
        self._infinite = np.zeros(schema.width, dtype=np.int64)
        self._parts: list[_Part] = []
        self._waiting: list[Floats] = []
        self._buffered = 0

    def update(self, rows: Floats) -> None:
        """Add rows of shape (m, p), with NaN for missing values."""
        self._waiting.append(rows)
        self._buffered += rows.size
        if self._buffered >= BUFFERED:
            self._sum_up()

    def add_sums(self, there: NDArray[np.bool_], size: int, factor: Floats) -> None:
        """Add rows of one pattern that were summed up elsewhere, about the shift.

        Parameters
        ----------
        there
            Which columns have values.
        size
            Number of rows.
        factor
            A factor of ``[1, x]``: one column for the ones, and one per column with values.
        """
        rows = np.zeros((len(factor), self._schema.width))
        rows[:, there] = factor[:, 1:]
        which = np.zeros(len(factor), dtype=np.intp)
        sizes = np.array([size], dtype=np.int64)
        self._parts.append(_Part(there[None, :], sizes, rows, factor[:, 0], which))

    def _sum_up(self) -> None:
        if not self._waiting:
            return
        rows = np.concatenate(self._waiting).astype(np.float64, copy=False)
        self._waiting, self._buffered = [], 0
        if not len(rows):
            return
        there = ~np.isnan(rows)
        infinite = np.isinf(rows)
        self._infinite += infinite.sum(axis=0)
        known = np.where(there & ~infinite, rows, 0.0)
        if self._shift is None:
            self._shift = _middle(known, there)
        observed, which = _patterns(there)
        sizes = np.bincount(which, minlength=len(observed))
        rows = np.where(there, known - self._shift, 0.0)
        self._parts.append(_compressed(_Part(observed, sizes, rows, np.ones(len(rows)), which)))
        if sum(part.rows.size for part in self._parts) > LARGEST:
            self._parts = [_compressed(_joined(self._parts))]
            if self._parts[0].rows.size > LARGEST // 2:
                raise DataError(
                    f"The rows have {len(self._parts[0].observed):,} different patterns of missing "
                    "values, too many to be summed up in memory. Leave out the columns with the "
                    "most missing values, or use DropRows()."
                )

    def finish(
        self,
    ) -> tuple[Schema, NDArray[np.bool_], Integers, Floats, Floats, NDArray[np.intp], Floats]:
        """Return the attributes of `PatternRows`; infinite values raise an error."""
        self._sum_up()
        infinite = zip(self._schema.column_names, self._infinite.tolist(), strict=True)
        refuse_infinite(dict(infinite))
        refuse_empty(sum(int(part.sizes.sum()) for part in self._parts))
        assert self._shift is not None
        whole = _compressed(_joined(self._parts)) if len(self._parts) > 1 else self._parts[0]
        return (self._schema, *whole, self._shift)


class _Part(NamedTuple):
    """The attributes of `PatternRows` that depend on rows."""

    observed: NDArray[np.bool_]
    sizes: Integers
    rows: Floats
    unit: Floats
    which: NDArray[np.intp]


def _middle(known: Floats, there: NDArray[np.bool_]) -> Floats:
    """Return means of the values; dividing first cannot overflow."""
    count = np.maximum(there.sum(axis=0), 1)
    first = known[np.argmax(there, axis=0), np.arange(known.shape[1])]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = first + np.where(there, (known - first) / count, 0.0).sum(axis=0)
    return np.where(np.isfinite(middle), middle, 0.0)


def _patterns(there: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return the distinct rows of a Boolean matrix, and the position of each row among them."""
    bits = np.packbits(there, axis=1)
    keys = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return there[first], which.reshape(-1)


def _joined(parts: list[_Part]) -> _Part:
    """Join parts whose patterns may be the same."""
    observed, position = _patterns(np.concatenate([part.observed for part in parts]))
    sizes = np.zeros(len(observed), dtype=np.int64)
    np.add.at(sizes, position, np.concatenate([part.sizes for part in parts]))
    starts = np.cumsum([0, *(len(part.observed) for part in parts)])
    which = [position[part.which + start] for part, start in zip(parts, starts, strict=False)]
    rows = np.concatenate([part.rows for part in parts])
    unit = np.concatenate([part.unit for part in parts])
    return _Part(observed, sizes, rows, unit, np.concatenate(which))


def _compressed(part: _Part) -> _Part:
    """Replace the rows of each pattern by a factor of them where that has fewer rows."""
    observed, sizes, rows, unit, which = part
    number = np.bincount(which, minlength=len(observed))
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(number)
    many = np.flatnonzero(number > observed.sum(axis=1) + 1)
    new_rows, new_unit, new_which = [], [], []
    for k in many.tolist():
        own, there = order[ends[k] - number[k] : ends[k]], observed[k]
        design = np.column_stack([unit[own], rows[np.ix_(own, there)]])
        factor: Floats = np.asarray(np.linalg.qr(design, mode="r"))
        wide = np.zeros((len(factor), len(there)))
        wide[:, there] = factor[:, 1:]
        new_rows.append(wide)
        new_unit.append(factor[:, 0])
        new_which.append(np.full(len(factor), k, dtype=np.intp))
    few = ~np.isin(which, many)
    return _Part(
        observed,
        sizes,
        np.concatenate([rows[few], *new_rows]),
        np.concatenate([unit[few], *new_unit]),
        np.concatenate([which[few], *new_which]),
    )
