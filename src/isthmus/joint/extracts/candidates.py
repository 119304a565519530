"""Everything that a study could let leave an extract, for the check that is made once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.counts import AskCounts
from isthmus.joint.federation.requests.statistics import AskFeatures
from isthmus.sources.base import countable
from isthmus.statistics import CountPlan, Features, Kind, Schema, Variable
from isthmus.statistics.blocks import planned_sets
from isthmus.types import Floats, Integers


class RowsOfColumns(Protocol):
    """Columns of numbers of which some rows are read at a time, such as an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and of columns."""

    def __getitem__(self, rows: Any, /) -> Any:
        """Return an array of some rows, given by a slice or by their positions."""


@final
@dataclass(frozen=True, eq=False)
class ReleaseCandidates:
    """The data behind everything that a study could let leave a site.

    The rules are applied to this once, when a table is frozen, and not to single requests.

    Attributes
    ----------
    values
        The values of each variable, row by row; codes for variables that are released level by
        level; NaN where a value is missing.
    columns
        The numbers whose sums and products may be released, one row per row of the data. It has no
        columns if only tables are released.
    by_level
        Names of the variables whose levels are released one by one.
    functions
        Number of released functions of a variable that is not released by level: one for the
        variable itself, and one per basis function.
    tables
        The tables that may be released, as numbers of persons; computed as they are looked at,
        once.
    number_of_tables
        How many of them there are.
    more_columns
        Number of released columns that are not in `columns`: those of another party, whose products
        with these are released, and cells of tables over columns of both.
    persons
        The person that each row describes, as codes from zero; ``None`` if every row is a person
        of its own.
    others
        For each variable of a sum over sites, the share of the rows that do not have its most
        common value.
    pooled
        Whether products of all rows are released, and not only those about the means of sites.
    """

    values: Mapping[str, NDArray[Any]]
    columns: RowsOfColumns
    by_level: frozenset[str] = frozenset()
    functions: int = 1
    tables: Iterable[Integers] = ()
    number_of_tables: int = 0
    more_columns: int = 0
    persons: Integers | None = None
    others: Mapping[str, float] = field(default_factory=dict)
    pooled: bool = False

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.columns.shape[0]

    def count(self, chosen: NDArray[np.bool_] | None = None) -> int:
        """Return the number of persons, of all rows or of chosen ones."""
        if self.persons is None:
            return self.rows if chosen is None else int(chosen.sum())
        return len(np.unique(self.persons if chosen is None else self.persons[chosen]))

    def tally(self, codes: Integers, cells: int) -> Integers:
        """Return the number of persons in each cell, given the cell of each row."""
        if self.persons is None:
            return np.bincount(codes, minlength=cells)
        pairs = np.unique(self.persons.astype(np.int64) * cells + codes)
        return np.bincount(pairs % cells, minlength=cells)


def candidates_of(study: Study, values: Floats, persons: Integers | None) -> ReleaseCandidates:
    """Return the most that the requests of a study could release, whatever is asked."""
    schema, number, tabulated = study.schema, 0, set[str]()
    tables: Iterable[Integers] = ()
    features: Mapping[str, Features] = {}
    if study.features is not None and AskFeatures.name in study.requests:
        features = study.features.features
    if study.plan is not None and AskCounts.name in study.requests:
        counted = countable(schema, study.plan)
        tables = planned_tables(counted, study.plan, schema, values, persons)
        number = study.plan.size(counted.names)
        groups = study.plan.groups
        tabulated = set(counted.names) if groups is None else set().union(*groups)
    # All other requests release sums and products of columns.
    used = set(schema.names) if study.requests - {AskCounts.name} else set[str]()
    released = [v for v in schema.variables if v.name in used]
    # Many tables determine rows as products of columns do, so that their levels are columns, too.
    shown = [v for v in schema.variables if v.name in used | tabulated]
    return ReleaseCandidates(
        {v.name: values[:, schema.index(v.name)] for v in released},
        ReleasedColumns(schema, shown, values, features),
        frozenset(v.name for v in released if v.kind is Kind.DISCRETE),
        1 + max((own.basis.size for own in features.values()), default=0),
        tables,
        number,
        persons=persons,
        others={v.name: _share_of_others(values[:, schema.index(v.name)]) for v in shown},
        pooled=bool(used) and not study.within_sites,
    )


def _share_of_others(values: Floats) -> float:
    """Return the share of rows without the most common value, among those that have a value."""
    known = values[~np.isnan(values)]
    return 1.0 - int(np.unique(known, return_counts=True)[1].max(initial=0)) / max(len(known), 1)


@final
class ReleasedColumns:
    """The columns whose sums and products may be released, computed for some rows at a time.

    These are values, a column of zeros and ones for each level, and basis functions. A missing
    value counts as the mean of its column.
    """

    def __init__(
        self,
        schema: Schema,
        released: Sequence[Variable],
        values: Floats,
        features: Mapping[str, Features],
    ) -> None:
        self._schema = schema
        self._released = released
        self._values = values
        self._features = features
        known = (column[~np.isnan(column)] for column in values.T)
        self._means = np.array([column.mean() if len(column) else 0.0 for column in known])
        self.shape: tuple[int, ...] = len(values), self[slice(0, 0)].shape[1]

    def __getitem__(self, rows: slice | Integers) -> Floats:
        values = np.asarray(self._values[rows])
        values = np.where(np.isnan(values), self._means, values)
        parts = [np.zeros((len(values), 0))]
        for variable in self._released:
            column = values[:, self._schema.index(variable.name)]
            if variable.kind is Kind.DISCRETE:
                levels = np.arange(len(variable.levels))
                parts.append((column[:, None] == levels).astype(np.float64))
            else:
                parts.append(column[:, None])
        columns = dict(zip(self._schema.names, values.T, strict=True))
        for name, own in self._features.items():
            parts.append(own.evaluate(columns[name], columns).T)
        return np.concatenate(parts, axis=1)


def planned_tables(
    counted: Schema, plan: CountPlan, schema: Schema, values: Floats, persons: Integers | None
) -> Iterator[Integers]:
    """Yield the planned tables as numbers of persons, one after the other.

    Parameters
    ----------
    counted, plan
        The discrete variables, and the plan.
    schema, values, persons
        The variables, rows and persons of an extract.
    """
    rows = ReleaseCandidates({}, values[:, :0], persons=persons)
    for positions in planned_sets(counted, plan):
        cell = np.zeros(len(values), dtype=np.int64)
        for i in positions:
            column = values[:, schema.index(counted.names[i])]
            cell = cell * int(counted.cardinalities[i]) + column.astype(np.int64)
        codes = np.unique(cell, return_inverse=True)[1].reshape(-1)
        yield rows.tally(codes, int(codes.max(initial=-1)) + 1)
