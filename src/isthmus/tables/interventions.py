"""Tables from several regimes: which rows were perturbed, and at which variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import (
    DataError,
    MismatchError,
    MissingValuesError,
    SchemaError,
    counted,
)
from isthmus.networks.columns import is_absent
from isthmus.results.reading import Disclosure, Reading
from isthmus.statistics import CountPlan, Counts, Expansion, Kind, Moments, Schema, Statistic
from isthmus.statistics.regimes import Regimes, Whole
from isthmus.tables.annotated import AnnotatedTable, is_annotated
from isthmus.tables.base import Source, countable
from isthmus.tables.frame import Frame, coded_rows
from isthmus.tables.kinds import AsGiven
from isthmus.tables.missing import AdaptableT, Missing
from isthmus.tables.series import numpy_columns

if TYPE_CHECKING:
    from isthmus.graphs import DAG

Columns = dict[str, NDArray[Any]]

_FEW_PARTS = 2
"""With more sets of free rows, moments are those of all rows minus those of the targets."""


@final
class Interventions(Source):
    """Data from several regimes, in some of which variables were set by an intervention.

    Each family is scored on the rows in which its child was not a target, because an intervention
    cuts the child off from its parents. As parents, targets are treated like any other variable.
    This is valid for interventions that replace the mechanism of their target, such as a knock-out.

    Parameters
    ----------
    data
        One table with a column that names the regime; or a list of tables, one for each regime.
    targets
        The targets of each regime: a mapping from the values of `column` to names of variables, or
        one collection of names per table. A regime without targets is observational.
    column
        Name of the column that states the regime of each row, if `data` is a single table.
    kinds
        How to read some columns, as for `Frame`.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> seen = {"x": rng.normal(size=300)}
    >>> seen["y"] = seen["x"] + 0.5 * rng.normal(size=300)
    >>> done = {"x": rng.normal(3, 1, 300)}
    >>> done["y"] = done["x"] + 0.5 * rng.normal(size=300)
    >>> data = ist.Interventions([seen, done], targets=[[], ["x"]])
    >>> ist.learn(data, score=ist.GaussianBIC()).cpdag.directed
    (('x', 'y'),)
    """

    def __init__(
        self,
        data: object,
        targets: Mapping[Any, Iterable[str]] | Sequence[Iterable[str]],
        *,
        column: str | None = None,
        kinds: Mapping[str, AsGiven | str] | None = None,
    ) -> None:
        if column is None:
            columns, regime, sets = _of_tables(data, targets)
        else:
            columns, regime, sets = _of_column(data, targets, column)
        self._columns, self._regime = columns, regime
        self._pooled = complete_frame(columns, kinds)
        self._targets = tuple(sets)
        unknown = sorted(set().union(*sets).difference(self._pooled.schema().names))
        if unknown:
            raise SchemaError(
                f"The targets {unknown[:10]} are not among the variables "
                f"{list(self._pooled.schema().names)[:20]}."
            )

    def schema(self) -> Schema:
        return self._pooled.schema()

    def reading(self) -> Reading:
        """Return how each column was read, and why."""
        return self._pooled.reading()

    def regimes(self, needs: type[Statistic]) -> Regimes:
        """Statistics of the rows in which each variable was free."""
        schema = self.schema()
        free = np.array([[v not in t for t in self._targets] for v in schema.names])
        patterns, part_of = np.unique(free, axis=0, return_inverse=True)
        parts: list[Statistic] = []
        whole = Frame(self._columns, schema=schema)
        columns = whole.all_columns()  # read once, and not again in each part
        total: Whole | None = None
        if len(patterns) > _FEW_PARTS and needs is Moments and not schema.of_kind(Kind.DISCRETE):
            total = Whole(whole.moments())
        for pattern in patterns:
            rows = pattern[self._regime]
            if not rows.any():
                names = [v for v, own in zip(schema.names, free, strict=True) if not own.any()]
                raise DataError(
                    f"The variables {names} were targets in all rows, so nothing tells what they "
                    "depend on. Add rows of another regime, or leave these columns out."
                )
            rest: Statistic | None = None
            if total is not None:
                rest = total.without(columns, np.flatnonzero(~rows))
            if rest is None:
                rest = _gathered(needs, schema, columns, np.flatnonzero(rows))
            parts.append(rest)
        return Regimes(
            schema, len(self._regime), tuple(parts), tuple(part_of.ravel().tolist()), self._targets
        )

    def adapt(self, score: AdaptableT) -> AdaptableT:
        """Return a score in which each child is scored on the rows where it was not a target."""
        adapted: AdaptableT = score.of_regimes()
        return adapted

    def gather(self, needs: type[Statistic], dag: DAG | None = None) -> Regimes:
        """Return the statistics of the rows in which each variable was free, of all variables."""
        return self.regimes(needs)

    def with_missing(self, missing: Missing) -> Source:
        """Return the same data: there are no missing values."""
        return self

    def moments(self, names: Sequence[str] | None = None) -> NoReturn:
        raise self._refused()

    def counts(self, plan: CountPlan) -> NoReturn:
        raise self._refused()

    def rows(self) -> NoReturn:
        raise self._refused()

    def with_features(self, expansion: Expansion) -> NoReturn:
        raise self._refused()

    def _refused(self) -> MismatchError:
        return MismatchError(
            "Data of several regimes have statistics of their own for each child. Only learn, "
            "sample, score and parent_sets take them, with a score of counts or moments, such as "
            "BIC() or GaussianBIC(). To fit a network, call solution.fit() without data, or give a "
            "table in which no variable was a target."
        )

    def disclosure(self) -> Disclosure:
        """Return an empty disclosure: the tables are in this process."""
        return Disclosure.none()

    def __repr__(self) -> str:
        regimes, rows = counted(len(self._targets), "regime"), counted(len(self._regime), "row")
        return f"Interventions({regimes}, {rows})"


def _gathered(
    needs: type[Statistic], schema: Schema, columns: Sequence[NDArray[Any]], rows: NDArray[np.intp]
) -> Statistic:
    """Return the moments or counts of some rows of columns that have been read."""
    part = [x[rows] for x in columns]
    if needs is Moments:
        return Moments.from_columns(schema, part)
    plan = CountPlan.everything()
    return Counts.from_rows(countable(schema, plan), coded_rows(schema, part), plan=plan)


def _of_tables(
    data: object, targets: object
) -> tuple[Columns, NDArray[np.int64], list[frozenset[str]]]:
    if not isinstance(data, Sequence) or isinstance(data, str) or not data:
        raise SchemaError(
            "Give a list of tables and a list of targets, or one table with column='...', which "
            "names the regime of each row."
        )
    if not isinstance(targets, Sequence) or len(targets) != len(data):
        raise SchemaError(
            f"There are {len(data)} tables; give one collection of targets for each, which may be "
            "empty: targets=[[], ['a'], ['b', 'c']]."
        )
    tables = [_in_memory(AnnotatedTable(t) if is_annotated(t) else t) for t in data]
    names = list(tables[0])
    for table in tables:
        if set(table) != set(names):
            raise SchemaError(f"The tables have different columns: {names} and {list(table)}.")
    columns = {n: _joined([table[n] for table in tables]) for n in names}
    sizes = [len(table[names[0]]) for table in tables]
    regime = np.repeat(np.arange(len(tables)), sizes)
    return columns, regime, [_target_set(t) for t in targets]


def _in_memory(table: object) -> Columns:
    from isthmus.tables.engines.find import is_lazy

    if isinstance(table, Source) or (
        not isinstance(table, (Mapping, np.ndarray)) and is_lazy(table)
    ):
        raise DataError(
            f"A {type(table).__name__} is not a table in memory, which Interventions needs. "
            "Collect it first."
        )
    return numpy_columns(table)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Join the parts of a column, without turning numbers into text where only some are text."""
    text = {part.dtype.kind in "US" for part in parts}
    return np.concatenate([p.astype(object) if len(text) > 1 else p for p in parts])


def _of_column(
    data: object, targets: object, column: str
) -> tuple[Columns, NDArray[np.int64], list[frozenset[str]]]:
    columns, labels, regime = regimes_of(data, column)
    if not isinstance(targets, Mapping) or set(targets) != set(labels):
        raise SchemaError(
            f"targets must map each value of {column!r} to the names of its targets, which may be "
            f"none. The values are {labels[:20]}."
        )
    return columns, regime, [_target_set(targets[label]) for label in labels]


def complete_frame(columns: Columns, kinds: Mapping[str, AsGiven | str] | None) -> Frame:
    """Return the table of all regimes, or raise an error if values are missing."""
    frame = Frame(columns, kinds=kinds)
    try:
        frame.schema()
    except MissingValuesError as refusal:
        raise MissingValuesError(
            f"{str(refusal).partition(' Say what to do')[0]} Data of several regimes need "
            "complete rows: drop the others first, or leave these columns out."
        ) from refusal
    return frame


def regimes_of(data: object, column: str) -> tuple[Columns, list[Any], NDArray[np.int64]]:
    """Return the other columns, the values of the column of regimes, and that of each row."""
    columns = _in_memory(AnnotatedTable(data, obs=[column]) if is_annotated(data) else data)
    if column not in columns:
        raise SchemaError(f"There is no column {column!r}. There are: {list(columns)[:20]}.")
    given = columns.pop(column)
    absent = sum(is_absent(value) for value in given.tolist())
    if absent:
        raise SchemaError(
            f"The column {column!r} lacks a value in {counted(absent, 'row')}. Each row belongs to "
            "a regime: drop these rows, or give them a value of their own."
        )
    try:
        labels, regime = np.unique(given, return_inverse=True)
    except TypeError:
        raise SchemaError(
            f"The values of {column!r} are of different types. Make them all text, or all numbers."
        ) from None
    return columns, labels.tolist(), regime.ravel()


def _target_set(targets: object) -> frozenset[str]:
    if isinstance(targets, str) or not isinstance(targets, Iterable):
        raise SchemaError(f"Targets are collections of names; {targets!r} was given.")
    return frozenset(targets)
