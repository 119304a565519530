"""Time series, one or many, as a table of each step with the steps before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.plurals import counted
from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.names import as_narwhals
from isthmus.statistics import Counts, Expansion, Kind, Moments, Plan, Schema
from isthmus.types import Floats

Columns = dict[str, NDArray[Any]]


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
        Column to sort by. If it holds numbers or dates, the shortest difference is the time step,
        and a longer one is a gap. Without it, rows are taken to be in order and without gaps.
    centre
        Whether to subtract the mean of each realisation, if their levels differ.

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
    ) -> None:
        if lags < 1:
            raise DataError(f"lags must be at least 1; {lags} was given.")
        tables = list(data) if isinstance(data, (list, tuple)) else [data]
        if not tables:
            raise DataError("There is no series: an empty sequence of tables was given.")
        pieces: list[Floats] = []
        owners: list[int] = []
        self._names: tuple[str, ...] = ()
        for table in tables:
            names, found, groups = _pieces(table, by, time)
            owners += [max(owners, default=-1) + 1 + g for g in groups]
            if self._names and names != self._names:
                raise SchemaError(
                    f"The series have different columns: {list(self._names)} and {list(names)}."
                )
            self._names = names
            pieces += found
        self.lags = lags
        self.realisations = len(pieces)
        rows = [_stacked(p - p.mean(axis=0) if centre else p, lags) for p in pieces]
        values = np.concatenate(rows)
        self.owners: NDArray[np.int64] = np.repeat(owners, [len(r) for r in rows])
        """The realisation that each row belongs to."""
        if not len(values):
            longest = max(len(p) for p in pieces)
            raise DataError(
                f"No stretch has more than {lags} steps without a gap (the longest has {longest}). "
                "Take fewer lags, or check the column of time."
            )
        schema = Schema.continuous(self._names).with_lags(lags)
        self._frame = Frame(values, names=schema.names, schema=schema)

    def schema(self) -> Schema:
        """Return the variables now, then one step earlier, and so on."""
        return self._frame.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Return the moments of some columns, in the order of `names`; by default of all."""
        return self._frame.moments(names)

    def counts(self, plan: Plan) -> Counts:
        """Raise an error: continuous columns have no counts."""
        return self._frame.counts(plan)

    def rows(self) -> Floats:
        """Return all rows."""
        return self._frame.rows()

    def with_features(self, expansion: Expansion) -> Frame:
        """Return the same rows, with basis functions of the variables of all time steps."""
        return self._frame.with_features(expansion)

    def disclosure(self) -> Disclosure:
        """Return an empty disclosure: the series are in this process."""
        return Disclosure.none()

    def __repr__(self) -> str:
        return (
            f"Series({counted(len(self._names), 'variable')}, lags={self.lags}, "
            f"{self.realisations} "
            f"{'stretch' if self.realisations == 1 else 'stretches'} without a gap)"
        )


def _pieces(
    table: object, by: str | None, time: str | None
) -> tuple[tuple[str, ...], list[Floats], list[int]]:
    """The names of the variables, stretches of consecutive steps, and their realisations."""
    columns = numpy_columns(table)
    keys = [k for k in (by, time) if k is not None]
    lacking = [k for k in keys if k not in columns]
    if lacking:
        raise SchemaError(f"There is no column {lacking}. There are: {list(columns)[:20]}.")
    names = tuple(n for n in columns if n not in keys)
    kinds = dict.fromkeys(names, Kind.CONTINUOUS)
    values = Frame({n: columns[n] for n in names}, kinds=kinds).rows()
    n = len(values)
    group = (
        np.zeros(n, dtype=np.int64)
        if by is None
        else np.unique(columns[by], return_inverse=True)[1].reshape(n)
    )
    order = np.arange(n) if time is None else _sorted_by(columns[time], time)
    order = order[np.argsort(group[order], kind="stable")]
    breaks = np.diff(group[order]) != 0
    if time is not None:
        breaks |= _gaps(columns[time][order], breaks, time)
    starts = np.flatnonzero(breaks) + 1
    owners = group[order][np.concatenate([[0], starts])] if n else group
    return names, np.split(values[order], starts), owners.tolist()


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


def _sorted_by(times: NDArray[Any], name: str) -> NDArray[np.int64]:
    try:
        found: NDArray[np.int64] = np.argsort(times, kind="stable")
    except TypeError as error:
        raise DataError(f"The column of time {name!r} cannot be sorted: {error}.") from error
    return found


def _gaps(times: NDArray[Any], between: NDArray[np.bool_], name: str) -> NDArray[np.bool_]:
    """Where one realisation misses steps; refuses two rows of one time."""
    within = ~between
    same = (times[1:] == times[:-1]) & within
    if same.any():
        shown = times[1:][same][:3].tolist()
        raise DataError(
            f"{int(same.sum())} rows have the same {name!r} as another of their realisation, for "
            f"instance {shown}. Name the column that tells realisations apart by by=, or join them."
        )
    if times.dtype.kind not in "iufmM":
        return np.zeros(len(between), dtype=np.bool_)
    steps = np.diff(times)
    if times.dtype.kind in "mM":
        steps = steps / np.timedelta64(1, "ns")
    steps = steps.astype(np.float64)
    if not within.any():
        return np.zeros(len(between), dtype=np.bool_)
    found: NDArray[np.bool_] = within & (steps > 1.5 * steps[within].min())
    return found


def _stacked(values: Floats, lags: int) -> Floats:
    """Each step with the steps before it, side by side."""
    steps = len(values)
    if steps <= lags:
        return np.empty((0, values.shape[1] * (lags + 1)))
    return np.concatenate([values[lags - k : steps - k] for k in range(lags + 1)], axis=1)
