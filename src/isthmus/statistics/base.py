"""The interface of statistics, for scores, diagnostics and the disclosure rules of a site."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, FormatError, MismatchError, MissingValuesError, SchemaError
from isthmus.kernels.counting import tally_many
from isthmus.statistics.coded import CodedRows, as_codes, histogram
from isthmus.statistics.resampling import (
    IndependentRows,
    RowSampler,
    sampler_of_rows,
    with_equal_levels,
)
from isthmus.statistics.schema import Schema

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.networks import Network


class Gatherable(Protocol):
    """The methods of a source that a statistic uses."""

    def schema(self) -> Schema:
        """Return the variables."""

    def moments(self, names: Sequence[str] | None = None) -> Any:
        """Return the moments of some variables."""

    def counts(self, plan: CountPlan) -> Any:
        """Return the counts of planned sets of variables."""

    def rows(self) -> Floats:
        """Return all rows."""

    def all_columns(self) -> Sequence[NDArray[Any]]:
        """Return the columns of all rows, one by one."""

    def incomplete(self) -> Any:
        """Return the coded rows of discrete variables, with missing values."""

    def realisation_of_rows(self) -> Integers | None:
        """Return the realisation of each row of time series; None if rows are independent."""

    def estimation(self) -> tuple[Floats, Callable[[Floats], Any]] | None:
        """Return rows with NaN for missing values and what estimates moments from such rows."""

    def rows_within_groups(self) -> tuple[Floats, Floats] | None:
        """Return rows about the means of their groups and how likely each is drawn, if known."""


@final
@dataclass(frozen=True)
class Resampler:
    """Draws the replicates of a bootstrap.

    Attributes
    ----------
    draw
        Returns the statistics of rows that were drawn with replacement.
    notes
        Sentences that say how rows are drawn, if they are not drawn one by one.
    """

    draw: Callable[[np.random.Generator], Summary]
    notes: tuple[str, ...] = ()


class Summary(ABC):
    """A summary of rows that a score is bound to.

    It carries what is particular about the rows (missing values, interventions), and so it knows
    how to fit a network to them and how to draw them again.

    Attributes
    ----------
    schema
        The variables.
    n
        Number of rows.
    described
        Name of the summary, for messages: "a score needs ...".
    """

    schema: Schema
    n: int
    described: ClassVar[str]

    @abstractmethod
    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows."""

    @abstractmethod
    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that determine each other."""

    @abstractmethod
    def cells(self) -> Sequence[Integers]:
        """Tables of row counts that the summary reveals; a site does not release small cells."""

    @abstractmethod
    def without_rows(self) -> Summary:
        """Return a summary without rows, which a solution may keep."""

    @property
    def number_of_rows(self) -> int:
        """Number of rows of the data, also where fewer speak about relations of variables."""
        return self.n

    def rows_about(self, names: Sequence[str]) -> int:
        """Number of rows that speak about the relations of these variables.

        With missing values it depends on the variables; otherwise it is `n`.
        """
        del names
        return self.n

    @property
    def joint(self) -> CodedRows | None:
        """The rows of the joint table of discrete variables, if it is known; None by default."""
        return None

    def as_moments(self) -> Any:
        """Return `Moments` of all rows, for linear regressions; None by default."""
        return None

    def fit(self, dag: DAG, pseudo_count: float) -> Network | None:
        """Estimate the parameters of a graph; None (the default) if that takes other data."""
        del dag, pseudo_count
        return None

    def for_file(self, dag: DAG) -> Any:
        """Return the `Moments` or `Counts` that a file keeps for a graph; None by default."""
        del dag
        return None

    def identified(self, dag: DAG) -> tuple[tuple[str, str], ...]:
        """Edges whose direction is known from how the rows came about; none by default."""
        del dag
        return ()

    def resampler(self, source: Gatherable) -> Resampler:
        """Return what draws the replicates of a bootstrap."""
        del source
        raise MismatchError(
            f"The bootstrap draws rows, and {self!r} has none to draw from. Give the table itself, "
            "or counts(CountPlan.everything())."
        )


class Statistic(Summary):
    """A summary of rows that a source can be asked for.

    A score names the type it needs. A statistic of one's own is one class, which says how it is
    gathered. By default it is drawn again from the rows of the source.
    """

    @classmethod
    @abstractmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Self:
        """Request this statistic from a source; only the families of a graph, if one is given."""

    def resampler(self, source: Gatherable) -> Resampler:
        try:
            rows = source.rows()
        except MissingValuesError as refusal:
            raise MismatchError(
                "The bootstrap draws rows, and some of their values are missing. Give a table in "
                "memory with ExpectationMaximisation(), or use missing=DropRows()."
            ) from refusal
        except MismatchError as refusal:
            raise MismatchError(
                f"The bootstrap draws rows, and there are none here. {refusal.fact} Give a table "
                "in memory, or call sample(data): the posterior over graphs needs the statistics "
                "only."
            ) from refusal
        owners = source.realisation_of_rows()
        if owners is None:
            return Resampler(partial(self._draw, rows, IndependentRows(self.n)))
        rows, note = with_equal_levels(rows, owners, self.schema)
        sampler = sampler_of_rows(owners, rows, lags=self.schema.lags)
        return Resampler(partial(self._draw, rows, sampler), (*note, sampler.note))

    def _draw(self, rows: Floats, sampler: RowSampler, rng: np.random.Generator) -> Statistic:
        return self.drawn(rows, sampler.draw(rng))

    def drawn(self, rows: Floats, chosen: Integers) -> Statistic:
        """Return this statistic of the chosen rows of an array.

        By default it is gathered from them. A statistic that is gathered from anything other than
        rows defines it.
        """
        return type(self).gather(DrawnRows(self.schema, rows[chosen]))


@final
@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows that were drawn, as something that statistics are gathered from."""

    variables: Schema
    values: Floats

    def schema(self) -> Schema:
        return self.variables

    def rows(self) -> Floats:
        return self.values

    def all_columns(self) -> Sequence[NDArray[Any]]:
        return tuple(self.values.T)

    def realisation_of_rows(self) -> None:
        return None

    def estimation(self) -> None:
        return None

    def rows_within_groups(self) -> None:
        return None

    def moments(self, names: Sequence[str] | None = None) -> Any:
        raise self._refusal()

    def counts(self, plan: CountPlan) -> Any:
        raise self._refusal()

    def incomplete(self) -> Any:
        raise self._refusal()

    def _refusal(self) -> MismatchError:
        return MismatchError(
            "There are only rows that were drawn. A statistic that is gathered from moments or "
            "counts needs a method `drawn`, which computes it from rows."
        )


# --- Errors that statistics and sources share: missing, infinite, overflowing or no values ------

OVERFLOW = (
    "Some values are so large that their squares overflow. "
    "Rescale the columns (change their units) first."
)

LARGEST_SQUARES = 1e306
"""Sums of squares above this overflow when they are added or subtracted: floats end at 1.8e308."""

UNDERFLOW = 1e-290
"""Sums of squares below this have lost digits: floats below 1e-308 are not exact."""


def overflow(names: Iterable[str]) -> DataError:
    """Return the error that names columns with values that are too large."""
    all_names = list(dict.fromkeys(names))
    shown = ", ".join(map(repr, all_names[:10])) + (" and others" if len(all_names) > 10 else "")
    return DataError(OVERFLOW.replace("values", f"values of {shown}", 1) if shown else OVERFLOW)


_INFINITE = " Values are infinite"


def _listed(found: Mapping[str, int]) -> str:
    shown = [f"{name!r} ({count:,})" for name, count in list(found.items())[:20]]
    return ", ".join(shown) + (f" and {len(found) - 20} more" if len(found) > 20 else "")


def methods_for(*, continuous: bool, level: bool) -> str:
    """Name the methods for missing values that a table allows.

    Parameters
    ----------
    continuous
        Whether the table has continuous columns.
    level
        Whether missing can be a level of its own: the table is in memory, and only discrete
        columns lack values.
    """
    methods = ["DropRows()"]
    if level:
        methods.append("MissingAsLevel()")
    methods += (
        ["ExpectationMaximisation()"] if continuous else ["AvailableCases()", "StructuralEM()"]
    )
    return " or ".join(", ".join(methods).rsplit(", ", 1))


ANY_METHOD = (
    "DropRows(); MissingAsLevel(), AvailableCases() or StructuralEM() for categories; or "
    "ExpectationMaximisation() for numbers and mixed tables"
)


def refuse_missing(missing: Mapping[str, int], n: int, methods: str = ANY_METHOD) -> None:
    """Raise `MissingValuesError` that names the columns with missing cells, if there are any.

    Parameters
    ----------
    n
        Number of rows.
    methods
        Names of the methods that the error proposes.
    """
    found = {name: count for name, count in missing.items() if count}
    if found:
        raise MissingValuesError(
            f"Values are missing (null or NaN) in {len(found)} of {len(missing)} columns, "
            f"{n:,} rows: {_listed(found)}. Say what to do: learn(data, missing=...) with "
            f"{methods}; or leave the columns out."
        )


def with_advice(error: MissingValuesError, advice: str) -> MissingValuesError:
    """Return the error of `refuse_missing` with another advice, for other calls than ``learn``."""
    start, _, rest = str(error).partition(" Say what to do:")
    more = "".join(rest.partition(_INFINITE)[1:])
    return MissingValuesError(f"{start} {advice}{more}")


def refuse_infinite(infinite: Mapping[str, int]) -> None:
    """Raise `DataError` that names the columns with infinite cells, if there are any."""
    found = {name: count for name, count in infinite.items() if count}
    if found:
        raise DataError(
            f"{_INFINITE.strip()} in these columns: {_listed(found)}. "
            "Replace them by finite ones, or drop the rows."
        )


def refuse_underflow(
    columns: Sequence[str], varies: NDArray[np.bool_], squares: NDArray[np.float64]
) -> None:
    """Raise `DataError` for columns that vary, but so little that their squares are zero.

    Parameters
    ----------
    varies
        Which of them have values that differ from the shift; constants have none.
    squares
        Their sums of squares after the shift.
    """
    small = np.flatnonzero((squares < UNDERFLOW) & varies)
    if len(small):
        raise DataError(
            f"The values of {[columns[i] for i in small[:10]]} differ by so little that their "
            "squares are zero. Rescale the columns (change their units) first."
        )


def refuse_empty(n: int) -> None:
    """Raise `DataError` when there are no rows."""
    if n == 0:
        raise DataError(
            "The table has no rows: there is nothing to count. Check the filter or the path."
        )


# --- Count plans ---------------------------------------------------------------------------------
#
# Plans: the tables that a search may request, fixed in advance because each discloses data.


@final
@dataclass(frozen=True)
class CountPlan:
    """The sets of variables whose tables, and their margins, may be requested.

    Create a plan with `everything`, `up_to`, `sets` or `families`.

    Attributes
    ----------
    limit
        Every set of at most this many variables, or ``None``.
    groups
        These sets and all their subsets, or ``None``. If both are ``None``, every set is planned.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> plan = ist.CountPlan.sets([["smoke", "lung"], ["smoke", "bronc"]])
    >>> counts = ist.summarise(data, plan=plan)
    >>> counts.n
    1000
    """

    limit: int | None = None
    groups: tuple[frozenset[str], ...] | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.groups is not None:
            raise SchemaError("A plan has a size or sets, not both.")
        if self.limit is not None and self.limit < 1:
            raise SchemaError(f"A plan was made up to size {self.limit}; it must be at least 1.")

    @classmethod
    def everything(cls) -> CountPlan:
        """Plan the joint table, and so every set."""
        return cls()

    @classmethod
    def up_to(cls, size: int) -> CountPlan:
        """Plan every set of at most `size` variables."""
        return cls(limit=size)

    @classmethod
    def sets(cls, groups: Iterable[Iterable[str]]) -> CountPlan:
        """Plan these sets and their subsets."""
        sets = {frozenset(g) for g in groups}
        sets.discard(frozenset())
        if not sets:
            raise SchemaError("A plan of sets needs at least one non-empty set; none was given.")
        return cls(groups=tuple(sorted(_maximal(sets), key=sorted)))

    @classmethod
    def families(cls, dag: DAG) -> CountPlan:
        """Plan each node with its parents."""
        return cls.sets((node, *dag.parents(node)) for node in dag.nodes)

    @property
    def is_everything(self) -> bool:
        """Whether the joint table is planned."""
        return self.limit is None and self.groups is None

    @cached_property
    def _homes(self) -> dict[str, frozenset[int]]:
        """For each variable, the groups that contain it."""
        groups_of: dict[str, set[int]] = {}
        for i, group in enumerate(self.groups or ()):
            for name in group:
                groups_of.setdefault(name, set()).add(i)
        return {name: frozenset(ids) for name, ids in groups_of.items()}

    def covers(self, variables: Iterable[str]) -> bool:
        """Return whether the table of these variables is planned."""
        asked = frozenset(variables)
        if self.is_everything or not asked:
            return True
        if self.limit is not None:
            return len(asked) <= self.limit
        return self.home(asked) is not None

    def home(self, variables: Iterable[str]) -> frozenset[str] | None:
        """Return the smallest planned set that contains these variables, for a plan of sets."""
        groups = self.groups or ()
        asked = list(variables)
        if not asked:
            return groups[0] if groups else None
        none: frozenset[int] = frozenset()
        homes = sorted((self._homes.get(n, none) for n in asked), key=len)
        shared = homes[0].intersection(*homes[1:])
        return min((groups[i] for i in shared), key=lambda g: (len(g), sorted(g)), default=None)

    def maximal(self, names: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """Return the largest planned sets, as ascending positions in `names`."""
        if self.is_everything:
            yield tuple(range(len(names)))
        elif self.limit is not None:
            yield from combinations(range(len(names)), min(self.limit, len(names)))
        else:
            position = {n: i for i, n in enumerate(names)}
            for group in self.groups or ():
                unknown = sorted(group - position.keys())
                if unknown:
                    raise SchemaError(f"The plan names {unknown}, which the data do not have.")
                yield tuple(sorted(position[n] for n in group))

    def size(self, names: Sequence[str]) -> int:
        """Return the number of sets of `maximal`."""
        if self.is_everything:
            return 1
        if self.limit is not None:
            return math.comb(len(names), min(self.limit, len(names)))
        return len(self.groups or ())

    def restrict(self, names: Iterable[str]) -> CountPlan:
        """Restrict the plan to these variables."""
        if self.groups is None:
            return self
        kept = frozenset(names)
        left = [g & kept for g in self.groups if g & kept]
        # If no variable is in a group, no table is planned, which Plan.sets does not accept.
        return CountPlan.sets(left) if left else CountPlan(groups=())

    def advice(self, names: Sequence[str]) -> str:
        """Return what to do if a table of these variables is needed, for error messages."""
        if self.limit is None:
            return f"Plan CountPlan.sets([..., {names!r}]) or CountPlan.everything()."
        return advice_on_limit(self.limit, len(names))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data for JSON."""
        if self.limit is not None:
            return {"up_to": self.limit}
        if self.groups is not None:
            return {"sets": [sorted(g) for g in self.groups]}
        return {"everything": True}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CountPlan:
        """Read what `to_dict` wrote."""
        if data.get("everything") is True:
            return cls.everything()
        if type(data.get("up_to")) is int:  # and not True, which equals 1
            return cls.up_to(data["up_to"])
        if isinstance(data.get("sets"), list):
            return cls.sets(data["sets"]) if data["sets"] else cls(groups=())
        raise FormatError(f"This is not a plan: {dict(data)!r}.")

    def __str__(self) -> str:
        if self.limit is not None:
            return f"every set of at most {self.limit} variables"
        if self.groups is not None:
            return f"{len(self.groups)} sets of variables"
        return "every set of variables"


def _maximal(groups: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Drop sets that are contained in another; candidates share the rarest member."""
    kept: list[frozenset[str]] = []
    homes: dict[str, list[int]] = {}
    for group in sorted(groups, key=len, reverse=True):
        rarest = min((homes.get(n, []) for n in group), key=len)
        if not any(group <= kept[i] for i in rarest):
            for name in group:
                homes.setdefault(name, []).append(len(kept))
            kept.append(group)
    return kept


def advice_on_limit(limit: int, needed: int) -> str:
    """Return what to do if tables have `limit` variables and more are needed."""
    return (
        f"Plan CountPlan.up_to({needed}), or limit the search: max_parents={limit - 1}; for a "
        f"search by tests max_conditioning={max(limit - 2, 0)}, and for BossFCI also "
        f"dag_search=Boss(max_parents={limit - 1})."
    )


# --- Contingency tables of counts: dense arrays or coded rows -----------------------------------

DENSE = 2**20
"""A planned set with more cells than this is stored as coded rows."""

LARGEST = 2**28
"""Maximum number of cells in one table, and in all planned tables together."""

Positions: TypeAlias = tuple[int, ...]
Block: TypeAlias = Integers | CodedRows


def planned_sets(schema: Schema, plan: CountPlan) -> list[Positions]:
    """Return the largest planned sets; raise an error if their tables are too large."""
    sizes = schema.cardinalities
    number = plan.size(schema.names)
    cells = 0
    if number <= LARGEST:
        found = list(plan.maximal(schema.names))
        cells = sum(min(math.prod(int(sizes[i]) for i in s), DENSE) for s in found)
        if cells <= LARGEST:
            return found
    raise DataError(
        f"The plan of {plan} needs {number:,} tables"
        + (f" with {cells:,} cells" if cells else "")
        + f"; at most {LARGEST:,} cells are allowed. Plan smaller or fewer sets, "
        "or CountPlan.everything()."
    )


def tally(rows: CodedRows, sizes: Integers, within: Positions) -> Integers:
    """Return the dense table of some variables of coded rows, with axes in this order."""
    part = rows.take(within)
    return histogram(part, sizes[list(within)]).reshape([int(sizes[i]) for i in within])


def count_set(rows: CodedRows, positions: Positions, sizes: Integers) -> Block:
    """Return the table of a planned set: dense, or coded rows if it is mostly empty."""
    cells = math.prod(int(sizes[i]) for i in positions)
    if cells > DENSE:
        return rows.take(positions).distinct(sizes[list(positions)])
    return tally(rows, sizes, positions)


def count_sets(rows: CodedRows, sets: list[Positions], sizes: Integers) -> dict[Positions, Block]:
    """Return the tables of planned sets, the dense ones in one pass over the rows."""
    dense = [s for s in sets if math.prod(int(sizes[i]) for i in s) <= DENSE]
    codes: Any = rows.codes
    held: dict[Positions, Block] = dict(
        zip(dense, tally_many(codes, rows.weights, sizes, dense), strict=True)
    )
    for positions in sets:
        if positions not in held:
            held[positions] = count_set(rows, positions, sizes)
    return held


def nonzero_rows(table: Integers) -> CodedRows:
    """Convert the non-empty cells of a dense table to coded rows."""
    at = np.nonzero(table)
    codes = np.array(at).reshape(table.ndim, -1)
    return CodedRows(as_codes(codes, np.array(table.shape, dtype=np.int64)), table[at])


def merged(a: Block, b: Block, sizes: Integers) -> Block:
    """Return the sum of two tables of the same variables."""
    if not isinstance(a, CodedRows) and not isinstance(b, CodedRows):
        return a + b
    left = a if isinstance(a, CodedRows) else nonzero_rows(a)
    right = b if isinstance(b, CodedRows) else nonzero_rows(b)
    joined = left.joined(right)
    # Rows that each count once are not sorted: that would cost more than it saves.
    return joined if joined.weights is None else joined.distinct(sizes)


def same(a: Block, b: Block, sizes: Integers) -> bool:
    """Return whether two tables have the same counts, in either form."""
    left = (a if isinstance(a, CodedRows) else nonzero_rows(a)).distinct(sizes)
    right = (b if isinstance(b, CodedRows) else nonzero_rows(b)).distinct(sizes)
    return np.array_equal(left.codes, right.codes) and np.array_equal(left.filled(), right.filled())
