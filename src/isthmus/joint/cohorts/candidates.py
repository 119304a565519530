"""Everything that studies could let leave a cohort, for the check that is made once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.agreement.study import Study
from isthmus.joint.agreement.variables import Resolutions, Variables
from isthmus.joint.federation.requests.counts import AskCounts
from isthmus.joint.federation.requests.expectation import allows_holes
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

    The rules are applied to this once, when a cohort is frozen or opened for a study, and not to
    single requests.

    Attributes
    ----------
    values
        The values of each variable, row by row; codes for variables that are released level by
        level.
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
    windows
        Lowest and highest value between which the basis functions of a variable vary.
    more_columns
        Number of released columns that are not in `columns`: those of another party, whose products
        with these are released, and cells of tables over columns of both.
    persons
        The person that each row describes, as codes from zero; ``None`` if every row is a person
        of its own.
    resolutions
        Within how wide an interval the values of a variable were blurred, if they were.
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
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    more_columns: int = 0
    persons: Integers | None = None
    resolutions: Resolutions = field(default_factory=dict)
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


def candidates_of(
    studies: Iterable[Study], variables: Variables, values: Floats, persons: Integers | None
) -> ReleaseCandidates:
    """Return the most that the requests of studies could release together, whatever is asked."""
    schema, used, tabulated, pooled = variables.schema, set[str](), set[str](), False
    features: dict[str, Features] = {}
    plans: list[tuple[Schema, CountPlan]] = []
    for study in studies:
        if study.requests - {AskCounts.name}:  # all others release sums and products of columns
            used |= set(study.schema.names)
            pooled |= not study.within_sites
        if study.features is not None and AskFeatures.name in study.requests:
            features |= dict(study.features.features)
        if study.plan is not None and AskCounts.name in study.requests:
            counted = countable(study.schema, study.plan)
            plans.append((counted, study.plan))
            tabulated |= _tabulated(counted, study.plan)
    released = [v for v in schema.variables if v.name in used]
    # Many tables determine rows as products of columns do, so that their levels are columns, too.
    shown_columns = [v for v in schema.variables if v.name in used | tabulated]
    columns = ReleasedColumns(schema, shown_columns, values, features)
    size = max((own.basis.size for own in features.values()), default=0)
    windows = {n: own.window for n, own in features.items() if all(map(math.isfinite, own.window))}
    return ReleaseCandidates(
        {v.name: values[:, schema.index(v.name)] for v in released},
        columns,
        frozenset(v.name for v in released if v.kind is Kind.DISCRETE),
        1 + size,
        planned_tables(plans, schema, values, persons),
        sum(plan.size(counted.names) for counted, plan in plans),
        windows,
        persons=persons,
        resolutions=variables.resolutions,
        others={
            v.name: _share_of_others(
                values[:, schema.index(v.name)], variables.resolutions.get(v.name, 0.0)
            )
            for v in shown_columns
        },
        pooled=pooled,
    )


def _share_of_others(values: Floats, resolution: float) -> float:
    """Return the share of rows without the most common value; blurred values can be one value."""
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return 0.0
    alike = np.searchsorted(known, known + resolution, side="right") - np.arange(len(known))
    return 1.0 - float(alike.max()) / len(known)


def has_patterns(studies: Iterable[Study], values: Floats) -> bool:
    """Return whether the patterns of missing values are released one by one."""
    return any(map(allows_holes, studies)) and bool(np.isnan(values).any())


@final
class ReleasedColumns:
    """The columns whose sums and products may be released, computed for some rows at a time.

    These are values, a column of zeros and ones for each level, and basis functions.
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
        self.shape: tuple[int, ...] = len(values), self[slice(0, 0)].shape[1]

    def __getitem__(self, rows: slice | Integers) -> Floats:
        values = np.asarray(self._values[rows])
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


def _tabulated(counted: Schema, plan: CountPlan) -> set[str]:
    """Return the variables that are in a planned table."""
    return set(counted.names) if plan.groups is None else set().union(*plan.groups)


def planned_tables(
    plans: Sequence[tuple[Schema, CountPlan]],
    schema: Schema,
    values: Floats,
    persons: Integers | None,
) -> Iterator[Integers]:
    """Yield the planned tables of each study as numbers of persons, one after the other.

    Parameters
    ----------
    plans
        The discrete variables and the plan of each study.
    schema, values, persons
        The variables, rows and persons of a cohort.
    """
    shown, seen = ReleaseCandidates({}, values[:, :0], persons=persons), set[tuple[int, ...]]()
    for counted, plan in plans:
        for positions in planned_sets(counted, plan):
            places = [schema.index(counted.names[i]) for i in positions]
            if tuple(sorted(places)) in seen:
                continue
            seen.add(tuple(sorted(places)))
            cell = np.zeros(len(values), dtype=np.int64)
            for i, place in zip(positions, places, strict=True):
                cell = cell * int(counted.cardinalities[i]) + values[:, place].astype(np.int64)
            codes = np.unique(cell, return_inverse=True)[1].reshape(-1)
            yield shown.tally(codes, int(codes.max(initial=-1)) + 1)
