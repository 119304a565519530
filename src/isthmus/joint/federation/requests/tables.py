"""Requests for tables that a search asks for as it goes on, in rounds of bounded size."""

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
    counts_size,
    require_count,
)
from isthmus.joint.federation.requests.statistics import show_array
from isthmus.joint.secure_sum.limbs import LimbArray, from_int64, to_int64
from isthmus.sources.base import Source, countable
from isthmus.statistics import CountPlan, Kind, Schema
from isthmus.statistics.on_demand import Core, indicator_products, product_shape
from isthmus.types import Integers

MOST_CORES = 2**12
"""Maximum number of cores per request, whose names must fit into a message."""


@final
@dataclass(frozen=True)
class AskTables(StatisticRequest["list[Integers]"]):
    """Request tables of *cores* of discrete variables, each with every other variable.

    Only indicators without the first level of each variable are summed; the rest of a table
    follows from smaller cores. The empty core comes first in every answer: the frequencies of
    single levels and the number of rows.

    Parameters
    ----------
    cores
        Names of the variables of each core.
    """

    cores: tuple[tuple[str, ...], ...]
    name: ClassVar[str] = "tables"
    limbs: ClassVar[int] = 2
    releases_columns: ClassVar[bool] = False
    caution: ClassVar[str] = (
        "Tables are asked for on demand: which ones depends on the answers so far. Any table of "
        "at most as many variables as the study plans may be asked for."
    )

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for core in self.cores for name in core))

    def violations(self, study: Study) -> list[str]:
        if study.privacy is not None:
            return ["tables on demand are for studies without noise"]
        limit = largest_table(study)
        largest = max(map(len, self.cores), default=0) + 1
        if limit is None or largest > limit:
            return ["the study does not plan these tables"]
        return []

    def size(self, grid: FixedPointEncoding) -> int:
        sizes, cores = self._layout(grid.schema)
        return sum(math.prod(product_shape(sizes, core)) for core in cores)

    def _layout(self, schema: Schema) -> tuple[tuple[int, ...], list[Core]]:
        """Return the numbers of levels, and all cores by position."""
        counted = discrete_part(schema)
        cores = [counted.indices(core) for core in self.cores]
        if any(tuple(sorted(set(core))) != core for core in cores) or len(cores) > MOST_CORES:
            raise SchemaError("The variables of a core are not in the order of the study.")
        return tuple(map(int, counted.cardinalities)), [(), *cores]

    def encode(self, source: Source, grid: FixedPointEncoding) -> LimbArray:
        sizes, cores = self._layout(source.schema())
        rows = source.counts(CountPlan.everything()).joint
        assert rows is not None
        products = indicator_products(rows, sizes, cores)
        grid.require_rows(int(products[0][-1]))
        return from_int64(np.concatenate([part.reshape(-1) for part in products]))

    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> list[Integers]:
        sizes, cores = self._layout(grid.schema)
        shapes = [product_shape(sizes, core) for core in cores]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        parts = np.split(to_int64(total), ends)
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def require_plausible(self, total: LimbArray, grid: FixedPointEncoding) -> None:
        parts = self.decode(total, grid)
        n = int(parts[0][-1])
        require_count(n, grid.rows * grid.sites)
        if any(part.min() < 0 or (part > part[..., -1:]).any() or part.max() > n for part in parts):
            raise DataError(IMPOSSIBLE)

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        first, *others = self.decode(numbers, grid)
        lines = [f"  rows: {first[-1]}", "  rows with each level but the first:"]
        lines += [show_array(first[:-1])]
        for core, part in zip(self.cores, others, strict=True):
            lines += [f"  {' × '.join(core)}, with each of these levels:", show_array(part)]
        return lines

    def __str__(self) -> str:
        largest = max(map(len, self.cores), default=0) + 1
        return f"tables on demand of at most {largest} variables"


def discrete_part(schema: Schema) -> Schema:
    """Return the variables of which tables can be asked for."""
    return countable(schema.subset(schema.of_kind(Kind.DISCRETE)), CountPlan.everything())


def largest_table(study: Study) -> int | None:
    """Return how many variables a table may have that is asked for on demand; None for no table."""
    if study.plan is None or study.plan.groups is not None:
        return None
    number = len(study.schema.of_kind(Kind.DISCRETE))
    return number if study.plan.limit is None else min(study.plan.limit, number)


def needs_demand(schema: Schema, plan: CountPlan) -> bool:
    """Return whether the planned tables have too many cells for one round."""
    try:
        counts_size(discrete_part(schema), plan)
    except DataError:
        return True
    return False


def in_pieces(
    schema: Schema, cores: Sequence[Core], most: int = NUMBERS
) -> Iterator[tuple[AskTables, list[Core]]]:
    """Yield requests for cores, each with at most so many numbers, or with a single core."""
    counted = discrete_part(schema)
    sizes = tuple(map(int, counted.cardinalities))
    numbers, first = [math.prod(product_shape(sizes, core)) for core in cores], 0
    room = most - math.prod(product_shape(sizes, ()))
    while first < len(cores):
        last, used = first + 1, numbers[first]
        while last < len(cores) and used + numbers[last] <= room and last - first < MOST_CORES:
            used += numbers[last]
            last += 1
        some = list(cores[first:last])
        yield AskTables(tuple(tuple(counted.names[i] for i in core) for core in some)), some
        first = last
