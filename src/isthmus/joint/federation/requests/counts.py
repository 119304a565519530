"""Requests for tables of discrete variables: all planned ones, or those that a search asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import DataError, SchemaError
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.base import StatisticRequest
from isthmus.joint.federation.requests.fixed_point import (
    IMPOSSIBLE,
    NUMBERS,
    FixedPointEncoding,
    require_count,
)
from isthmus.joint.federation.requests.statistics import show_array
from isthmus.joint.noise.interactions import MOST_VARIABLES, PAIRS, TABLES, layout_of
from isthmus.joint.secure_sum.limbs import LimbArray, from_int64, to_int64
from isthmus.sources.base import Source, countable
from isthmus.statistics import CodedRows, CountPlan, Schema
from isthmus.statistics.blocks import DENSE, planned_sets
from isthmus.statistics.on_demand import Core, indicator_products, product_shape
from isthmus.types import Integers

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

    In a study with differential privacy, there are two requests; see `isthmus.joint.noise.counts`.

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
