"""The rules on data, against accidents: one function each, which says why data may not leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.statistics import CountPlan, Features, Kind, Schema, Variable
from isthmus.statistics.base import planned_sets
from isthmus.tables.base import countable
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.study import Study
from isthmus_joint.extracts.reading import chunks
from isthmus_joint.federation.requests.statistics import AskCounts, AskFeatures

NEARLY = 0.05
"""Share of rows with other values below which a variable is nearly constant. Products with it then
tell the means of the site up to so much of the rows of others."""

# --- Everything that a study could let leave an extract, for the check that is made once --------


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
        common value; zero if most of its levels or nearly all of its values are not found here.
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
        others={v.name: _share_of_others(values[:, schema.index(v.name)], v) for v in shown},
        pooled=bool(used) and not study.within_sites,
    )


def _share_of_others(values: Floats, variable: Variable) -> float:
    """Return the share of rows without the most common value, among those that have a value.

    It is zero where most levels or nearly all values are found at other sites only.
    """
    known = values[~np.isnan(values)]
    distinct, rows = np.unique(known, return_counts=True)
    if 2 * len(distinct) < len(variable.levels) or len(known) <= NEARLY * len(values):
        return 0.0
    return 1.0 - int(rows.max()) / len(known)


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
    """Yield the planned tables as numbers of persons, one after the other."""
    rows = ReleaseCandidates({}, values[:, :0], persons=persons)
    for positions in planned_sets(counted, plan):
        cell = np.zeros(len(values), dtype=np.int64)
        for i in positions:
            column = values[:, schema.index(counted.names[i])]
            cell = cell * int(counted.cardinalities[i]) + column.astype(np.int64)
        codes = np.unique(cell, return_inverse=True)[1].reshape(-1)
        yield rows.tally(codes, int(codes.max(initial=-1)) + 1)


# --- The rules on data, against accidents: one function each -------------------------------------


def fewest_in_a_cell(candidates: ReleaseCandidates) -> int | None:
    """Return the smallest number of persons that something released singles out.

    Whatever the declared kinds of the variables are, these are

    - the persons in a cell of a table;
    - the persons who have a value of a variable at all;
    - the persons with a value, where the released sums determine how many have it: ``f`` functions
      of a variable and their products determine the numbers of up to ``2 f + 1`` different values;
    - the persons with a pair of such values of two variables, because products are released;
    - the persons who differ from the most common value of a variable, because the sums about that
      value are theirs alone;
    - the same within a level of another variable: the only patient of a ward with a dose.
    """
    fewest = [_smallest(candidates.tables)]
    few: list[tuple[Integers, int]] = []
    groups: list[NDArray[np.bool_]] = []
    numbers: list[tuple[NDArray[np.bool_], Integers]] = []
    for name, values in candidates.values.items():
        known = ~np.isnan(values)
        distinct, codes = np.unique(values[known], return_inverse=True)
        if len(distinct) < 2:
            continue
        fewest.append(candidates.count(known))
        # A missing value has the code of no value.
        everyone = np.full(len(values), len(distinct))
        everyone[known] = codes
        persons = candidates.tally(everyone, len(distinct) + 1)[:-1]
        if name in candidates.by_level or len(distinct) <= 2 * candidates.functions + 1:
            fewest.append(_smallest([persons]))
            if known.all():  # in as few bytes as possible: there may be many rows
                few.append((everyone.astype(np.min_scalar_type(len(distinct))), len(distinct)))
        if name in candidates.by_level:
            groups += [everyone == k for k in range(len(distinct))]
        else:
            fewest.append(candidates.count(known & (everyone != int(persons.argmax()))))
            numbers.append((known, everyone))
    if candidates.columns.shape[1]:
        fewest.append(_smallest_pair(candidates, few))
    fewest += [_fewest_beside(candidates, g & known, c) for g in groups for known, c in numbers]
    return min((n for n in fewest if n), default=None)


def _fewest_beside(candidates: ReleaseCandidates, group: NDArray[np.bool_], codes: Integers) -> int:
    """Return how many persons of a group lack the value that most of its rows have, if any does."""
    rows = np.bincount(codes[group])
    if not len(rows) or 2 * rows.max() <= rows.sum():
        return 0
    return candidates.count(group & (codes != int(rows.argmax())))


def _smallest(tables: Iterable[Integers]) -> int | None:
    return min((int(t[t > 0].min()) for t in tables if (t > 0).any()), default=None)


def _smallest_pair(candidates: ReleaseCandidates, few: list[tuple[Integers, int]]) -> int | None:
    """Return the smallest number of persons with a pair of values of two variables."""
    if len(few) < 2:
        return None
    if candidates.persons is None:
        return _smallest([_pairs_of_rows(few)])
    wide = [(codes.astype(np.int64), levels) for codes, levels in few]
    tables = (candidates.tally(a * k + b, j * k) for (a, j), (b, k) in combinations(wide, 2))
    return _smallest(tables)


def _pairs_of_rows(few: list[tuple[Integers, int]]) -> Integers:
    """Return how many rows have each pair of values, over all variables at once."""
    starts = np.cumsum([0, *(levels for _, levels in few)])
    cells = np.zeros((starts[-1], starts[-1]))
    for rows in chunks(len(few[0][0])):
        part = np.zeros((rows.stop - rows.start, starts[-1]), dtype=np.float32)
        for (codes, _), start in zip(few, starts, strict=False):
            part[np.arange(len(part)), start + codes[rows]] = 1.0
        cells += part.T @ part
    return np.rint(cells).astype(np.int64)


RANK = 1e-12
"""Share of the largest singular value below which a direction counts as zero."""

MOST_TABLES = 2**20
"""Number of tables that are looked at for small cells; a million tables take minutes."""


def largest_share(candidates: ReleaseCandidates) -> float:
    """Return the largest share that one person has in a sum of squares.

    Whoever knows the sums and products of columns knows the sum of squares of every combination of
    them, about every origin. The share of a row in it is largest for one combination, where it is
    the leverage of the row in a regression on all columns. With several rows per person it is the
    largest eigenvalue of their block of the hat matrix. A share of one means that there is a
    combination which is zero for everybody else: the sums contain that person's record.
    """
    rows, basis = candidates.rows, _Orthonormal(candidates.columns)
    if not rows:
        return 0.0
    if candidates.persons is None:
        parts = (basis.part(some) for some in chunks(rows))
        return max(float((part**2).sum(axis=1).max()) for part in parts) + 1 / rows
    # The sum of the leverages of a person's rows is an upper bound of the eigenvalue.
    bounds = np.zeros(int(candidates.persons.max()) + 1)
    for some in chunks(rows):
        leverages = (basis.part(some) ** 2).sum(axis=1) + 1 / rows
        bounds += np.bincount(candidates.persons[some], leverages, len(bounds))
    order = np.argsort(candidates.persons, kind="stable")
    starts = np.searchsorted(candidates.persons[order], np.arange(len(bounds) + 1))
    largest = 0.0
    for person in np.argsort(-bounds, kind="stable"):
        if bounds[person] <= largest:
            break
        own = np.sort(order[starts[person] : starts[person + 1]])
        block = np.concatenate([basis.part(own), np.full((len(own), 1), rows**-0.5)], axis=1)
        largest = max(largest, float(np.linalg.svd(block, compute_uv=False)[0] ** 2))
    return largest


class _Orthonormal:
    """An orthonormal basis of the centred columns, of which some rows are computed at a time."""

    def __init__(self, columns: RowsOfColumns) -> None:
        self._columns = columns
        rows, number = columns.shape
        total, size = np.zeros(number), np.zeros(number)
        for some in chunks(rows):
            part = columns[some]
            total += part.sum(axis=0)
            size = np.maximum(size, np.abs(part).max(axis=0, initial=0.0))
        self._mean = total / max(rows, 1)
        scale = np.zeros(number)
        for some in chunks(rows):
            scale = np.maximum(scale, np.abs(columns[some] - self._mean).max(axis=0, initial=0.0))
        self._kept = scale > RANK * np.maximum(size, np.finfo(float).tiny)
        self._scale = scale[self._kept]
        triangle: Any = np.zeros((0, len(self._scale)))
        for some in chunks(rows if len(self._scale) else 0):
            stacked = np.concatenate([triangle, self._centred(some)])
            triangle = np.linalg.qr(stacked, mode="r")
        _, singular, directions = np.linalg.svd(triangle)
        exist = singular > RANK * singular.max(initial=0.0)
        self._directions = directions[: len(singular)][exist].T / singular[exist]

    def _centred(self, rows: slice | Integers) -> Floats:
        centred: Floats = (self._columns[rows] - self._mean)[:, self._kept] / self._scale
        return centred

    def part(self, rows: slice | Integers) -> Floats:
        """Return these rows of the basis."""
        found: Floats = self._centred(rows) @ self._directions
        return found


Rule = Callable[[ReleaseCandidates, Policy], Iterator[str]]


def persons(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require a minimum number of persons."""
    if candidates.count() < policy.minimum_cohort:
        yield f"fewer than {policy.minimum_cohort} persons"


def columns(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require enough rows for the number of released columns."""
    number = candidates.columns.shape[1] + candidates.more_columns
    if number > policy.columns_per_row * candidates.rows:
        yield (
            f"{number} columns or cells would be released, which is more than "
            f"{policy.columns_per_row} per row"
        )


def cells(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require that nothing released singles out few persons."""
    if policy.minimum_cell == 1:  # of rows that do not describe persons
        return
    if candidates.number_of_tables > MOST_TABLES:
        yield (
            f"{candidates.number_of_tables:,} tables may be asked for, which are too many to look "
            f"for cells of fewer than {policy.minimum_cell} persons; at most {MOST_TABLES:,} are "
            "checked. Draft the study with tables of fewer variables, or with noise"
        )
        return
    fewest = fewest_in_a_cell(candidates)
    if fewest is not None and fewest < policy.minimum_cell:
        yield f"a cell or a value has fewer than {policy.minimum_cell} persons"


def dominance(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require that no released sum owes more than a share to one person."""
    if policy.largest_share == 1.0 or not candidates.columns.shape[1]:
        return
    # A share that equals the limit is allowed; it is computed with rounding errors.
    if largest_share(candidates) > policy.largest_share * (1 + 1e-9):
        yield f"one person has more than {policy.largest_share:.0%} of a sum of squares"


def constants(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require that no variable has one value at this site: it would name the site in a sum.

    Sums over the rows with that value are sums of the site. If products of all rows are released,
    the same holds for a variable that nearly has one value. A variable of which this site lacks
    most levels, or nearly all values, names other sites: wards, or a test that one hospital does.
    """
    del policy
    least = NEARLY if candidates.pooled else 0.0
    found = [name for name, share in candidates.others.items() if share <= least]
    if found and candidates.rows:
        nearly = ", or nearly so" if least else ""
        yield (
            f"{found[:5]} are constant at this site{nearly}, or most of their levels or nearly all "
            "of their values are found at other sites only, so that sums over their rows are sums "
            "of one site; leave them out of the study, or merge their levels so that they vary "
            "within every site"
        )


RULES: tuple[Rule, ...] = (persons, columns, cells, dominance, constants)


def broken_rules(candidates: ReleaseCandidates, policy: Policy) -> list[str]:
    """Return a phrase for each rule on data that the candidates breaks."""
    return [phrase for rule in RULES for phrase in rule(candidates, policy)]
