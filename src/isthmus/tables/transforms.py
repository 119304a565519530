"""Steps before a graph is learned: normal scores of numbers, and numbers cut into levels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import ArgumentError, DataError, MismatchError, SchemaError
from isthmus.networks.column_maps import ColumnMap, ColumnMaps
from isthmus.options import require_instance, require_integer
from isthmus.statistics import Counts, Kind
from isthmus.tables.frame import Frame
from isthmus.tables.kinds import AsGiven, CellType, cell_type_of
from isthmus.tables.missing import KeepMissing
from isthmus.tables.names import as_narwhals

if TYPE_CHECKING:
    import narwhals as nw

Quantile = Callable[[Sequence[float]], Mapping[str, Floats]]
"""Returns quantiles of all columns that are transformed, for these probabilities."""


class Transform(ABC):
    """A step that replaces the numbers of some columns, for ``learn(data, transform=...)``."""

    columns: Sequence[str] | None

    @abstractmethod
    def maps(self, quantiles: Quantile, table: Frame | None) -> ColumnMaps:
        """Return the map of each column.

        Parameters
        ----------
        quantiles
            Computes quantiles of the columns.
        table
            The table if it is in memory.
        """


@final
@dataclass(frozen=True)
class NormalScores(Transform):
    """Replace numbers by the quantiles of a normal distribution that belong to their ranks.

    Gaussian scores then see the order of the values only, so that heavy tails, skew and outliers
    add no false edges (the nonparanormal of Liu, Lafferty and Wasserman 2009). Dependences that
    are monotone stay. Edge weights and effects are in units of scores.

    Parameters
    ----------
    knots
        The quantiles of so many equal parts are mapped to normal scores, linearly between them.
        Values beyond the outermost ones get their scores, as in the truncated estimator of the
        reference. Only quantiles are needed, so engines can compute them.
    columns
        Columns to transform; by default all that are continuous.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> incomes = {f"income {i}": np.exp(2 * rng.normal(size=300)) for i in range(20)}
    >>> ist.learn(incomes, transform=ist.NormalScores()).dag.edges
    ()
    """

    knots: int = 64
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_integer(self, "knots", least=3)

    def maps(self, quantiles: Quantile, table: Frame | None) -> ColumnMaps:
        del table
        shares = [(k + 0.5) / self.knots for k in range(self.knots)]
        return {name: _curve(own) for name, own in quantiles(shares).items()}

    @staticmethod
    def from_counts(counts: Counts, cuts: Mapping[str, Sequence[float]]) -> dict[str, ColumnMap]:
        """Return the maps that belong to counts of values between cut points.

        Sites of a federation can cut their columns with `FixedBins`, and only the sums of the
        counts are needed. Each site then replaces its columns with `transformed`.

        Parameters
        ----------
        counts
            Counts of the levels of `FixedBins`.
        cuts
            The cut points of each column.
        """
        maps = {}
        for name, own in cuts.items():
            present = dict(zip(counts.schema[name].levels, counts.table([name]), strict=True))
            cut = ColumnMap(tuple(float(x) for x in own))
            total = np.cumsum([float(present.get(level, 0)) for level in cut.levels])
            shares = total[:-1] / total[-1]
            used = (shares > 0.0) & (shares < 1.0)
            if not used.any():
                raise DataError(f"All values of {name!r} lie between two cut points. Use others.")
            scores = tuple(NormalDist().inv_cdf(share) for share in shares[used].tolist())
            maps[name] = ColumnMap(tuple(np.array(cut.at)[used].tolist()), scores)
        return maps


def _curve(values: Floats) -> ColumnMap:
    """Scores of the quantiles of equal parts; equal values share the mean rank."""
    at, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place.ravel())
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    scores = tuple(NormalDist().inv_cdf(share) for share in middle.tolist())
    return ColumnMap(tuple(at.tolist()), scores)


@final
@dataclass(frozen=True)
class QuantileBins(Transform):
    """Cut numbers into levels with about as many rows each.

    Parameters
    ----------
    bins
        Number of levels. Columns with many equal values may get fewer.
    columns
        Columns to cut; by default all that are continuous.

    Examples
    --------
    >>> import isthmus as ist
    >>> table = {"age": [i + 0.5 for i in range(90)]}
    >>> ist.learn(table, transform=ist.QuantileBins(bins=3)).reading["age"].reason
    'numbers, cut at 30.1667, 59.8333'
    """

    bins: int = 3
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_integer(self, "bins", least=2)

    def maps(self, quantiles: Quantile, table: Frame | None) -> ColumnMaps:
        del table
        shares = [k / self.bins for k in range(1, self.bins)]
        told = quantiles([*shares, 1.0])
        return {
            name: ColumnMap(tuple(np.unique(own[:-1][own[:-1] < own[-1]]).tolist()))
            for name, own in told.items()
        }


@final
@dataclass(frozen=True)
class FixedBins(Transform):
    """Cut numbers into levels at given values.

    Parameters
    ----------
    cuts
        For each column the values at which it is cut. A cut point belongs to the lower level.

    Examples
    --------
    >>> import isthmus as ist
    >>> table = {"age": [i + 0.5 for i in range(90)]}
    >>> solution = ist.learn(table, transform=ist.FixedBins({"age": [18, 65]}))
    >>> solution.reading.maps["age"].levels
    ('1: up to 18', '2: 18 to 65', '3: above 65')
    """

    cuts: Mapping[str, Sequence[float]]

    def __post_init__(self) -> None:
        require_instance(self, "cuts", Mapping, "{'age': [18, 65]}")
        for name, own in self.cuts.items():
            if not len(own) or sorted(set(own)) != list(own):
                raise ArgumentError(f"The cut points of {name!r} must increase; {own!r} do not.")

    @property
    def columns(self) -> Sequence[str]:  # type: ignore[override]
        """The columns that are cut."""
        return tuple(self.cuts)

    def maps(self, quantiles: Quantile, table: Frame | None) -> ColumnMaps:
        del quantiles, table
        return {name: ColumnMap(tuple(float(x) for x in own)) for name, own in self.cuts.items()}


@final
@dataclass(frozen=True)
class MDLBins(Transform):
    """Cut numbers where they tell most about a discrete column, by minimum description length.

    Each cut must pay for itself (Fayyad and Irani 1993); columns that tell nothing about the
    target are cut at their median. Tables in memory only.

    Parameters
    ----------
    target
        A discrete column.
    columns
        Columns to cut; by default all that are continuous.
    """

    target: str
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_instance(self, "target", str, "'outcome'")

    def maps(self, quantiles: Quantile, table: Frame | None) -> ColumnMaps:
        if table is None:
            raise MismatchError(
                "MDLBins needs the rows, and they are with an engine. Use QuantileBins() or "
                "FixedBins(), or collect the table first."
            )
        schema, rows = table.schema(), table.rows_with_holes()
        if schema[self.target].kind is not Kind.DISCRETE:
            raise SchemaError(
                f"The target {self.target!r} is continuous, and MDLBins needs a discrete one. Say "
                f"kinds={{{self.target!r}: 'discrete'}}, or use QuantileBins()."
            )
        codes, sizes = rows[:, schema.index(self.target)], len(schema[self.target].levels)
        medians = quantiles([0.5, 1.0])
        found = {}
        for name, (middle, largest) in medians.items():
            x = rows[:, schema.index(name)]
            there = ~np.isnan(x) & ~np.isnan(codes)
            order = np.argsort(x[there], kind="stable")
            cuts = _mdl_cuts(x[there][order], codes[there][order].astype(np.int64), sizes)
            if not cuts and middle < largest:
                cuts = [float(middle)]
            found[name] = ColumnMap(tuple(sorted(cuts)))
        return found


def _mdl_cuts(x: Floats, classes: Integers, sizes: int) -> list[float]:
    """Cut points of sorted values by the criterion of Fayyad and Irani."""
    n = len(x)
    if n < 2:
        return []
    indicators = np.eye(sizes)[classes]
    left = np.cumsum(indicators, axis=0)[:-1]
    whole = left[-1] + indicators[-1]
    possible = np.flatnonzero(np.diff(x) > 0)
    if not len(possible):
        return []
    below, above = left[possible], whole - left[possible]
    first, second = possible + 1.0, n - 1.0 - possible
    mixed = (first * _entropy(below) + second * _entropy(above)) / n
    best = int(mixed.argmin())
    start = float(_entropy(whole[None])[0])
    parts = [whole, below[best], above[best]]
    kinds = [int((part > 0).sum()) for part in parts]
    entropies = [float(_entropy(part[None])[0]) for part in parts]
    price = np.log2(3.0 ** kinds[0] - 2.0) - sum(
        sign * k * e for sign, k, e in zip((1, -1, -1), kinds, entropies, strict=True)
    )
    if start - mixed[best] <= (np.log2(n - 1.0) + price) / n:
        return []
    at = int(possible[best]) + 1
    middle = float((x[at - 1] + x[at]) / 2)
    return [
        *_mdl_cuts(x[:at], classes[:at], sizes),
        middle,
        *_mdl_cuts(x[at:], classes[at:], sizes),
    ]


def _entropy(counts: Floats) -> Floats:
    """Entropy in bits of each row of counts."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    entropies: Floats = -(shares * logs).sum(axis=1)
    return entropies


class TransformedTable(NamedTuple):
    """A table with replaced columns, the kinds of these columns, and what was done to them."""

    table: Any
    kinds: dict[str, AsGiven | str]
    maps: ColumnMaps


def transformed(
    data: object,
    transform: Transform | ColumnMaps,
    *,
    kinds: Mapping[str, AsGiven | str] | None = None,
    integers: Kind | str | None = None,
) -> TransformedTable:
    """Replace the columns that a transform concerns, in memory or in an engine.

    Parameters
    ----------
    data
        A table.
    transform
        A transform, or maps of columns that were computed before.
    kinds, integers
        How to read columns, as for `Frame`.
    """
    from isthmus.tables.engines.find import is_lazy

    given = dict(kinds or {})
    if not isinstance(transform, Transform):
        given |= dict.fromkeys(transform, Kind.CONTINUOUS)  # few rows need not look like it
    if not isinstance(data, (np.ndarray, Mapping)) and is_lazy(data):
        table, maps = _in_engine(data, transform, given, integers)
    else:
        table, maps = _in_memory(data, transform, given, integers)
    for name, own in maps.items():
        given[name] = Kind.DISCRETE if own.scores is None else Kind.CONTINUOUS
    return TransformedTable(table, given, maps)


def _in_memory(
    data: object,
    transform: Transform | ColumnMaps,
    kinds: Mapping[str, AsGiven | str],
    integers: Kind | str | None,
) -> tuple[dict[str, Any], ColumnMaps]:
    keep, only = _asked(transform) or (), None if isinstance(transform, Transform) else transform
    frame = Frame(
        data,
        kinds=kinds or None,
        integers=integers,
        keep=keep,
        columns=only,
        missing=KeepMissing(),
    )
    schema, rows = frame.schema(), frame.rows_with_holes()
    numbers = [v.name for v in schema.variables if v.kind is Kind.CONTINUOUS and not v.time_unit]
    chosen = _chosen(transform, numbers, schema.names)

    def quantiles(shares: Sequence[float]) -> Mapping[str, Floats]:
        columns = {name: rows[:, schema.index(name)] for name in chosen}
        return {n: np.nanquantile(x, shares) for n, x in columns.items()}

    maps = transform.maps(quantiles, frame) if isinstance(transform, Transform) else transform
    replaced = {name: own.apply(rows[:, schema.index(name)]) for name, own in maps.items()}
    return Frame(data).raw_columns() | replaced, maps


def _in_engine(
    data: object,
    transform: Transform | ColumnMaps,
    kinds: Mapping[str, AsGiven | str],
    integers: Kind | str | None,
) -> tuple[Any, ColumnMaps]:
    import narwhals as nw

    from isthmus.tables.lazy import Lazy

    keep, only = _asked(transform) or (), None if isinstance(transform, Transform) else transform
    numbers = Lazy(data, kinds=kinds or None, integers=integers, keep=keep, columns=only).numbers()
    frame: nw.LazyFrame[Any] = as_narwhals(data)
    types = frame.collect_schema()
    chosen = _chosen(transform, numbers, types.names())
    present = {name: _present(nw.col(name), cell_type_of(name, types[name])) for name in chosen}

    def quantiles(shares: Sequence[float]) -> Mapping[str, Floats]:
        if frame.implementation.is_duckdb():
            return _quantiles_of_duckdb(frame.to_native(), chosen, shares)
        if frame.implementation.is_polars():  # it would sort the column for each quantile
            columns = ((n, frame.select(column).collect()) for n, column in present.items())
            values = ((n, table.get_column(table.columns[0])) for n, table in columns)
            return {n: np.quantile(x.drop_nulls().to_numpy(), shares) for n, x in values}
        asked = [
            column.quantile(share, interpolation="linear").alias(f"q{i}_{k}")
            for i, column in enumerate(present.values())
            for k, share in enumerate(shares)
        ]
        told = frame.select(*asked).collect()
        numbers = [float(told.get_column(name).to_list()[0]) for name in told.columns]
        return dict(zip(present, np.array(numbers).reshape(len(present), -1), strict=True))

    maps = transform.maps(quantiles, None) if isinstance(transform, Transform) else transform
    wanted = [_expression(present[name], own).alias(name) for name, own in maps.items()]
    return frame.with_columns(*wanted).to_native(), maps


def _quantiles_of_duckdb(
    relation: Any, names: Sequence[str], shares: Sequence[float]
) -> dict[str, Floats]:
    """All quantiles of a column from one sort."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    asked = ", ".join(
        f"quantile_cont(CASE WHEN NOT isnan({c}::DOUBLE) THEN {c}::DOUBLE END, {list(shares)})"
        for c in quoted
    )
    told = relation.aggregate(asked).fetchall()[0]
    return {name: np.array(own, dtype=np.float64) for name, own in zip(names, told, strict=True)}


def _present(column: nw.Expr, cells: CellType) -> nw.Expr:
    """The values of a column as floats, with null for NaN."""
    import narwhals as nw

    numbers = column.cast(nw.Float64)
    return nw.when(~numbers.is_nan()).then(numbers) if cells is CellType.FLOAT else numbers


def _expression(column: nw.Expr, own: ColumnMap) -> nw.Expr:
    """A map as an expression of an engine, by bisection among the knots or cut points."""
    import narwhals as nw

    at, scores = own.at, own.scores

    def segment(low: int, high: int) -> nw.Expr:
        """The value between these positions, of which position k begins at ``at[k - 1]``."""
        if high - low > 1:
            middle = (low + high) // 2
            below = column <= at[middle - 1]
            return nw.when(below).then(segment(low, middle)).otherwise(segment(middle, high))
        if scores is None:
            return nw.lit(own.levels[low])
        if low in (0, len(at)):
            return nw.lit(scores[0 if low == 0 else -1])
        slope = (scores[low] - scores[low - 1]) / (at[low] - at[low - 1])
        return (column - at[low - 1]) * slope + scores[low - 1]

    return nw.when(~column.is_null()).then(segment(0, len(at) + 1))


def _asked(transform: Transform | ColumnMaps) -> Sequence[str] | None:
    """The columns that a transform names; None for all that are continuous."""
    return transform.columns if isinstance(transform, Transform) else tuple(transform)


def _chosen(
    transform: Transform | ColumnMaps, numbers: Sequence[str], names: Sequence[str]
) -> list[str]:
    """The columns to replace; refuses columns that are not numbers."""
    asked = _asked(transform)
    if asked is None:
        if not numbers:
            raise MismatchError(f"{transform!r} needs a continuous column, and there is none.")
        return list(numbers)
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise SchemaError(f"The table has no column {unknown}. It has: {list(names)[:20]}.")
    wrong = [name for name in asked if name not in numbers]
    if wrong:
        raise SchemaError(
            f"{wrong[:10]} are not continuous, and only numbers can be transformed. Leave them out "
            f"of the transform, or say kinds={{{wrong[0]!r}: 'continuous'}}."
        )
    return list(asked)
