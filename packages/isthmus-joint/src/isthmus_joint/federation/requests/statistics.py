"""Requests for moments, counts, and moments of basis functions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, SchemaError
from isthmus.statistics import CountPlan, Expansion, Kind, Moments, Schema
from isthmus.statistics.base import DENSE, planned_sets
from isthmus.statistics.coded import CodedRows
from isthmus.statistics.on_demand import Core, indicator_products, product_shape
from isthmus.statistics.within import from_scatter
from isthmus.tables.base import Source, countable
from isthmus.tables.lazy import Lazy
from isthmus_joint.agreement.study import Study
from isthmus_joint.extracts.reading import rows_with_holes
from isthmus_joint.federation.requests.base import StatisticRequest
from isthmus_joint.federation.requests.fixed_point import (
    CENTRE,
    IMPOSSIBLE,
    LIMBS,
    NUMBERS,
    FixedPointEncoding,
    encode_rows,
    require_count,
)
from isthmus_joint.noise.structure import MOST_VARIABLES, PAIRS, TABLES, layout_of
from isthmus_joint.noise.whitening import LARGEST_ENTRY, LAST, SURVEY, ColumnLayout, moments_size
from isthmus_joint.secure_sum.terms import LimbArray, from_int64, from_ints, to_int64, to_ints

# --- Moments about the mean of each site, as integers -------------------------------------------
#
# A site computes the products about its own mean from exact sums, without rounding, and rounds
# them once: to multiples of the steps of its values, such as one year or half a point, and to
# whole numbers for two levels. Digits beyond would be multiples of one over its number of rows,
# and the last digits of a sum over few sites would then tell how many rows each of them has.


def size_within(grid: FixedPointEncoding) -> int:
    """Return how many numbers there are: those of moments, and the number of sites."""
    return grid.size + 1


def encode_within(
    grid: FixedPointEncoding, rows: Floats, places: Sequence[int] | None = None
) -> LimbArray:
    """Return number of rows, one for the site, sums, and products about the mean of the rows."""
    whole = encode_rows(grid, rows, places)
    n, *rest = to_ints(whole)
    p, (i, j) = grid.schema.width, grid.pairs
    if not n:
        return np.concatenate([whole[:1], whole])
    sums, steps = rest[:p], _steps(grid, rows, places)
    products = []
    for a, b, product in zip(i.tolist(), j.tolist(), rest[p:], strict=True):
        # Units of the products are 2**(exponents - fraction), and those of their steps 2**steps.
        exponents = int(grid.exponents[a] + grid.exponents[b])
        digits = max(steps[a] + steps[b] - exponents + grid.fraction, 0)
        about_mean = (product * n << grid.fraction) - sums[a] * sums[b]
        unit = n << (grid.fraction + digits)
        products.append(((2 * about_mean + unit) // (2 * unit)) << digits)
    return np.concatenate([whole[:1], from_ints([1, *sums, *products], LIMBS)])


def _steps(grid: FixedPointEncoding, rows: Floats, places: Sequence[int] | None) -> list[int]:
    """Return the step of the values of each column at this site, as a power of two.

    It is one for a level. Values that repeat have steps: the median of the gaps between different
    ones. The last digits of other values, and of basis functions, are as good as random.
    """
    found: list[int] = []
    for k, variable in enumerate(grid.schema.variables):
        start, stop = grid.schema.blocks[k]
        if variable.kind is Kind.DISCRETE:
            found += [0] * variable.width
            continue
        fine = [int(e) - CENTRE for e in grid.exponents[start:stop]]
        distinct, number = np.unique(
            rows[:, k if places is None else places[k]], return_counts=True
        )
        if len(distinct) > 1 and 2 * number[number > 1].sum() > number.sum():
            gap, digits = math.frexp(float(np.median(np.diff(distinct))))
            fine[0] = max(fine[0], digits - (gap == 0.5))
        found += fine
    return found


def decode_within(grid: FixedPointEncoding, total: LimbArray) -> Moments:
    """Read the moments within sites: products about their means, and the mean of all rows."""
    n, sites, *rest = to_ints(total)
    p, (i, j) = grid.schema.width, grid.pairs
    scatter = np.zeros((p, p))
    scatter[i, j] = [v / (1 << grid.fraction) for v in rest[p:]]
    scatter += np.triu(scatter, 1).T
    scatter = np.ldexp(scatter, grid.exponents[:, None] + grid.exponents)
    scatter = _possible(scatter) if grid.schema.of_kind(Kind.DISCRETE) else scatter
    return from_scatter(grid.schema, n, sites, grid.mean(n, rest[:p]), scatter)


def _possible(scatter: Floats) -> Floats:
    """Return the nearest products that rows can have: those of levels were rounded."""
    spread = np.sqrt(np.maximum(scatter.diagonal(), 0.0))
    scale = np.where(spread > 0.0, spread, 1.0)
    values, vectors = np.linalg.eigh(scatter / scale[:, None] / scale)
    if values[0] >= -1e-12:
        return scatter
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    possible: Floats = nearest * spread[:, None] * spread
    return possible


def require_plausible_within(grid: FixedPointEncoding, total: LimbArray) -> None:
    """Raise `DataError` unless sites with rows within the bounds could have these numbers."""
    n, sites, *rest = to_ints(total)
    require_count(n, grid.rows * grid.sites)
    p, (i, j) = grid.schema.width, grid.pairs
    # Rounding to whole numbers adds at most one per site, in units of half.
    limit = (n + grid.sites << grid.fraction) + (n << (grid.fraction - 30))
    squares = [v for v, own in zip(rest[p:], i == j, strict=True) if own]
    inside = all(abs(v) <= limit for v in rest)
    if not (1 <= sites <= grid.sites and inside and all(v >= 0 for v in squares)):
        raise DataError(IMPOSSIBLE)


# --- Requests for moments, counts, and moments of basis functions -------------------------------


class _MomentsRequest(StatisticRequest[Moments]):
    """A request for moments of some columns."""

    limbs: ClassVar[int] = LIMBS

    @abstractmethod
    def _grid(self, common: FixedPointEncoding) -> FixedPointEncoding:
        """Return the units of these columns."""

    def size(self, grid: FixedPointEncoding) -> int:
        own = self._grid(grid)
        return size_within(own) if own.within else own.size

    def encode(self, source: Source, grid: FixedPointEncoding) -> LimbArray:
        """Encode the rows: the sum then does not depend on how they are split over sites."""
        own = self._grid(grid)
        rows = rows_with_holes(source) if isinstance(source, Lazy) else source.rows()
        if isinstance(source, Lazy):  # of a simulation, which may drop incomplete rows
            rows = rows[~np.isnan(rows).any(axis=1)]
        encode = encode_within if own.within else encode_rows
        return encode(own, rows, source.schema().indices(own.schema.names))

    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> Moments:
        own = self._grid(grid)
        return decode_within(own, total) if own.within else own.decode(total)

    def require_plausible(self, total: LimbArray, grid: FixedPointEncoding) -> None:
        own = self._grid(grid)
        if own.within:
            require_plausible_within(own, total)
        else:
            own.require_plausible(total)

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        own, value = self._grid(grid), self.decode(numbers, grid)
        about = "the means of this site" if own.within else show_array(value.shift)
        return [
            f"  rows: {value.number_of_rows}",
            f"  columns: {', '.join(value.columns)}",
            "  sums:",
            show_array(value.number_of_rows * value.shift + value.sums),
            f"  products of deviations from {about}:",
            show_array(value.gram),
        ]


@final
@dataclass(frozen=True)
class AskMoments(_MomentsRequest):
    """Request number of rows, sums and products of variables.

    In a study with differential privacy, moments of all variables are requested in rounds; see
    `isthmus_joint.noise.whitening`.

    Parameters
    ----------
    asked
        Names of the variables.
    round
        Number of the round; ``None`` without differential privacy.
    transform
        The map of the rows before their products are summed, row by row; empty for the survey.
    """

    asked: tuple[str, ...]
    round: int | None = None
    transform: tuple[float, ...] = ()
    name: ClassVar[str] = "moments"

    @property
    def map(self) -> Floats | None:
        """The map of the rows; ``None`` for the survey."""
        width = math.isqrt(len(self.transform))
        return np.array(self.transform).reshape(width, width) if width else None

    def violations(self, study: Study) -> list[str]:
        if study.privacy is None:
            exact = self.round is None and not self.transform
            return [] if exact else ["rounds of moments are for studies with privacy"]
        if self.asked != study.schema.names or self.round not in range(SURVEY, LAST + 1):
            return ["with privacy, moments of all variables are released in rounds"]
        entries = 0 if self.round == SURVEY else (1 + study.schema.width) ** 2
        fits = len(self.transform) == entries
        small = all(abs(v) <= LARGEST_ENTRY for v in self.transform)  # False for NaN
        return [] if fits and small else ["the map of the rows does not fit the study"]

    def _grid(self, common: FixedPointEncoding) -> FixedPointEncoding:
        return common.over(common.schema.subset(self.asked))

    def size(self, grid: FixedPointEncoding) -> int:
        if self.round == SURVEY:
            return 1 + sum(ColumnLayout(grid.schema, grid.bounds).bins)
        if self.round is not None:
            return moments_size(1 + grid.schema.width, within=grid.within)
        return super().size(grid)

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        shown = super().show(numbers, grid)
        if self.round == SURVEY:
            what = "how many rows have a value in each interval of its range"
            return [*shown[:1], *(f"  {name}: {what}" for name in self.asked)]
        return shown

    def __str__(self) -> str:
        if self.round == SURVEY:
            return f"number of rows, and where the values of {len(self.asked)} variables are"
        what = f"number of rows, sums and products of {len(self.asked)} variables"
        return what if self.round is None else f"{what}, after a map of the rows"


@final
@dataclass(frozen=True)
class AskFeatures(_MomentsRequest):
    """Request moments of basis functions of continuous variables.

    The basis functions and their windows are those of the study.
    """

    expansion: Expansion
    name: ClassVar[str] = "features"

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.expansion.names, *self.expansion.beside)

    def violations(self, study: Study) -> list[str]:
        return []

    def window_violations(self, study: Study) -> list[str]:
        agreed = study.features
        if agreed is not None and agreed.basis == self.expansion.basis:
            known, asked = agreed.features, self.expansion.features
            if all(known.get(name) == own for name, own in asked.items()):
                return []
        return ["the study does not fix these basis functions, with these centres and scales"]

    def _grid(self, common: FixedPointEncoding) -> FixedPointEncoding:
        return common.over(self.expansion.widen(common.schema))

    def __str__(self) -> str:
        functions = sum(own.size for own in self.expansion.features.values())
        return (
            f"sums and products of {functions} basis functions of {len(self.variables)} variables"
        )


def show_array(values: NDArray[Any]) -> str:
    """Return all numbers of an array as text."""
    with np.printoptions(threshold=2**31, linewidth=100):
        return str(values)


# --- Requests for tables of discrete variables ---------------------------------------------------
#
# Requests for tables of discrete variables: all planned ones, or those that a search asks for.

MOST_CORES = 2**12
"""Maximum number of cores per request, whose names must fit into a message."""


@final
@dataclass(frozen=True)
class AskCounts(StatisticRequest["list[Integers]"]):
    """Request tables of discrete variables.

    An answer begins with the number of rows, and the table of each planned set follows. If a search
    asks for tables on demand, it names *cores*, each of which is counted with every other variable.
    Only indicators without the first level of each variable are summed then; the rest of a table
    follows from smaller cores. The empty core comes first: the frequencies of single levels and the
    number of rows.

    In a study with differential privacy, there are two requests; see
    `isthmus_joint.noise.statistics`.

    Parameters
    ----------
    plan
        The tables.
    cores
        Names of the variables of each core, if not all planned tables are asked for at once.
    round
        Which of the two requests; ``None`` without differential privacy.
    """

    plan: CountPlan
    cores: tuple[tuple[str, ...], ...] = ()
    round: int | None = None
    name: ClassVar[str] = "counts"
    limbs: ClassVar[int] = 2
    caution: ClassVar[str] = (
        "Which tables are asked for may depend on the answers so far. Any table that the study "
        "plans may be asked for."
    )

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for core in self.cores for name in core))

    def violations(self, study: Study) -> list[str]:
        if study.plan is None or not _covers(study.plan, self.plan) or not self._fit(study.schema):
            return ["the study does not plan these tables"]
        if study.privacy is None:
            exact = self.round is None
            return [] if exact else ["rounds of counts are for studies with privacy"]
        largest = max(map(len, self.plan.groups or ()), default=MOST_VARIABLES + 1)
        fits = self.round in (PAIRS, TABLES) and largest <= MOST_VARIABLES and not self.cores
        small = f"of at most {MOST_VARIABLES} variables"
        return [] if fits else [f"with privacy, tables {small} are released in two rounds"]

    def _fit(self, schema: Schema) -> bool:
        """Return whether the cores, with every other variable, are within the plan."""
        limit = largest_table(schema, self.plan)
        return not self.cores or (limit is not None and max(map(len, self.cores)) < limit)

    def _layout(self, schema: Schema) -> tuple[list[Core], list[tuple[int, ...]]]:
        """Return the sets of variables by position, and the shapes of all parts of an answer."""
        counted = countable(schema, self.plan)
        sizes = tuple(map(int, counted.cardinalities))
        if not self.cores:
            sets = planned_sets(counted, self.plan)
            return sets, [(1,), *(tuple(sizes[i] for i in own) for own in sets)]
        cores = [counted.indices(core) for core in self.cores]
        if any(tuple(sorted(set(core))) != core for core in cores) or len(cores) > MOST_CORES:
            raise SchemaError("The variables of a core are not in the order of the study.")
        return cores, [product_shape(sizes, core) for core in ((), *cores)]

    def size(self, grid: FixedPointEncoding) -> int:
        if self.cores:
            return sum(map(math.prod, self._layout(grid.schema)[1]))
        counted = countable(grid.schema, self.plan)
        size = counts_size(counted, self.plan)
        if self.round is None:
            return size
        return sum(layout_of(counted, self.plan, self.round).lengths)

    def encode(self, source: Source, grid: FixedPointEncoding) -> LimbArray:
        if self.cores:
            cores, _ = self._layout(source.schema())
            rows = source.counts(CountPlan.everything()).joint
            assert rows is not None
            sizes = countable(source.schema(), self.plan).cardinalities.tolist()
            parts = indicator_products(rows, sizes, [(), *cores])
        else:
            counts = source.counts(self.plan)
            parts = [np.array([counts.n])]
            for own in planned_sets(counts.schema, counts.plan):
                block = counts.tables[own]
                if isinstance(block, CodedRows):
                    block = counts.table([counts.schema.names[i] for i in own])
                parts.append(block)
        grid.require_rows(int(parts[0][-1]))
        return from_int64(np.concatenate([part.reshape(-1) for part in parts]))

    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> list[Integers]:
        _, shapes = self._layout(grid.schema)
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        parts = np.split(to_int64(total), ends)
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def require_plausible(self, total: LimbArray, grid: FixedPointEncoding) -> None:
        parts = self.decode(total, grid)
        n = int(parts[0][-1])
        require_count(n, grid.rows * grid.sites)
        possible = all(part.min() >= 0 and part.max() <= n for part in parts)
        if self.cores:
            possible = possible and all((part <= part[..., -1:]).all() for part in parts)
        if not possible or not (self.cores or all(part.sum() == n for part in parts)):
            raise DataError(IMPOSSIBLE)

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        (first, *others), (sets, _) = self.decode(numbers, grid), self._layout(grid.schema)
        lines, beside = [f"  rows: {first[-1]}"], ""
        if self.cores:
            lines += ["  rows with each level but the first:", show_array(first[:-1])]
            beside = ", with each of these levels"
        names = countable(grid.schema, self.plan).names
        for own, part in zip(sets, others, strict=True):
            lines += [f"  {' × '.join(names[i] for i in own)}{beside}:", show_array(part)]
        return lines

    def __str__(self) -> str:
        if self.cores:
            return f"tables on demand of at most {max(map(len, self.cores)) + 1} variables"
        return f"tables of {self.plan}"


def largest_table(schema: Schema, plan: CountPlan | None) -> int | None:
    """Return how many variables a table may have that is asked for on demand; None for no table."""
    if plan is None or plan.groups is not None:
        return None
    return len(schema) if plan.limit is None else min(plan.limit, len(schema))


def _covers(planned: CountPlan, asked: CountPlan) -> bool:
    """Return whether a study plans at least these tables."""
    if planned.is_everything or asked == planned:
        return True
    if asked.groups is not None:
        return all(planned.covers(g) for g in asked.groups)
    if asked.limit is not None and planned.limit is not None:
        return asked.limit <= planned.limit
    return False


def counts_size(schema: Schema, plan: CountPlan, most: int = NUMBERS) -> int:
    """Return how many numbers the planned tables have: n, then every cell.

    Raises
    ------
    DataError
        There are too many cells to sum them one by one.
    """
    sizes = [int(size) for size in schema.cardinalities]
    number = plan.size(schema.names)
    if plan.limit is not None:
        # Counted without listing the sets, of which a coordinator may ask for billions.
        chosen = min(plan.limit, len(sizes))
        largest, total = math.prod(sorted(sizes)[-chosen:]), _cells_of_subsets(sizes, chosen)
    elif number <= most:
        cells = [math.prod(sizes[i] for i in s) for s in planned_sets(schema, plan)]
        largest, total = max(cells), sum(cells)
    else:
        largest = total = most + 1
    if largest <= DENSE and total <= most:
        return 1 + total
    raise DataError(
        f"The plan of {plan} has {number:,} tables with too many cells. At most {most:,} cells "
        f"can be summed per round, and {DENSE:,} per table. Plan smaller sets, for instance "
        "CountPlan.up_to(3) for a search with at most two parents."
    )


def _cells_of_subsets(sizes: list[int], chosen: int) -> int:
    """Return the cells of the tables over all subsets of this many variables."""
    sums = [1] + [0] * chosen
    for size in sizes:
        for k in range(chosen, 0, -1):
            sums[k] += size * sums[k - 1]
    return sums[chosen]


def needs_demand(schema: Schema, plan: CountPlan | None, most: int = NUMBERS) -> bool:
    """Return whether tables are asked for on demand, because they are too many for one round."""
    if largest_table(schema, plan) is None:
        return False
    assert plan is not None
    try:
        counts_size(countable(schema, plan), plan, most)
    except DataError:
        return True
    return False


def in_pieces(
    schema: Schema, plan: CountPlan, cores: Sequence[Core], most: int = NUMBERS
) -> Iterator[tuple[AskCounts, list[Core]]]:
    """Yield requests for cores, each with at most so many numbers, or with a single core."""
    counted = countable(schema, plan)
    sizes = tuple(map(int, counted.cardinalities))
    numbers, first = [math.prod(product_shape(sizes, core)) for core in cores], 0
    room = most - math.prod(product_shape(sizes, ()))
    while first < len(cores):
        last, used = first + 1, numbers[first]
        while last < len(cores) and used + numbers[last] <= room and last - first < MOST_CORES:
            used += numbers[last]
            last += 1
        some = list(cores[first:last])
        named = tuple(tuple(counted.names[i] for i in core) for core in some)
        yield AskCounts(plan, named), some
        first = last
