"""Counts of a table in an engine, of the sets of variables that a search asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from isthmus.arrays import Integers, Work
from isthmus.errors import UnplannedError
from isthmus.statistics.base import CountPlan, Positions, Summary
from isthmus.statistics.coded import CodedRows
from isthmus.statistics.counts import Counts
from isthmus.statistics.schema import Schema

if TYPE_CHECKING:
    from isthmus.graphs import DAG

LARGEST_TABLE = 2**20
"""Sets of variables with more cells than this are not counted."""

CELLS_PER_SCAN = 2**24
"""Maximum number of cells that are counted in one pass over the rows."""


@final
class RequestedCounts(Summary):
    """Contingency tables that are counted over all rows after somebody has asked for them.

    A sample of the rows is at hand, from which the other tables can be estimated. `table` works as
    that of `Counts`, so every score of counts can be bound to it.

    Parameters
    ----------
    schema
        The variables, all discrete.
    n
        Number of rows.
    sample
        Codes of some rows.
    count
        Counts the tables of sets of positions over all rows.
    """

    described: ClassVar[str] = "counts"
    on_demand: ClassVar[None] = None  # as in `Counts`: no other source is asked for tables

    def __init__(
        self,
        schema: Schema,
        n: int,
        sample: CodedRows,
        count: Callable[[Sequence[Positions]], Work[Sequence[Integers]]],
    ) -> None:
        self.schema = schema
        self.n = n
        self.sample = Counts.from_rows(schema, sample)
        self.asked: dict[Positions, None] = {}
        self._count = count
        self._sizes = [int(k) for k in schema.cardinalities]
        self._tables: dict[Positions, Integers] = {}
        self._homes: dict[Positions, Positions] = {(): (0,)}

    def cells(self) -> Sequence[Integers]:
        return list(self._tables.values())

    def cells_of(self, positions: Positions) -> int:
        """Return the number of cells of the table of these variables."""
        return math.prod(self._sizes[i] for i in positions)

    def knows(self, positions: Positions) -> bool:
        """Return whether the table of these variables, ascending, has been counted."""
        return positions in self._homes

    def table(self, variables: Sequence[str]) -> Integers:
        """Number of rows for each combination of levels, with axes in the order asked."""
        asked = self.schema.indices(variables)
        ascending = tuple(sorted(asked))
        home = self._homes.get(ascending)
        if home is None:
            raise UnplannedError(f"The table of {list(variables)} has not been counted.")
        table = self._tables[home]
        others = tuple(k for k, i in enumerate(home) if i not in ascending)
        small = table.sum(axis=others) if others else table
        axes = [ascending.index(i) for i in asked]
        return np.array(np.transpose(small, axes), dtype=np.int64, order="C")

    def scan(self) -> Work[None]:
        """Count the tables that have been asked for, in as few passes over the rows as possible.

        Those of single variables are always counted.
        """
        self.asked |= dict.fromkeys((i,) for i in range(len(self._sizes)))
        waiting: list[Positions] = []
        covered: set[Positions] = set()
        for positions in sorted(self.asked, key=len, reverse=True):
            if positions not in covered and not self.knows(positions):
                waiting.append(positions)
                _add_subsets(positions, covered)
        self.asked.clear()
        while waiting:
            cells = np.cumsum([self.cells_of(s) for s in waiting])
            end = max(1, int(np.searchsorted(cells, CELLS_PER_SCAN, side="right")))
            # Sets that share all but the last variable are counted together.
            batch, waiting = sorted(waiting[:end]), waiting[end:]
            tables = yield from self._count(batch)
            self._keep(dict(zip(batch, tables, strict=True)))

    def _keep(self, tables: Mapping[Positions, Integers]) -> None:
        for positions, table in tables.items():
            self._tables[positions] = table
            subsets: set[Positions] = set()
            _add_subsets(positions, subsets, self._homes)
            self._homes |= dict.fromkeys(subsets, positions)
            self._homes[positions] = positions

    def of_graph(self, dag: DAG) -> Counts:
        """Return the counts of the families of a graph, and of pairs that may be duplicates."""
        families = [tuple(sorted(self.schema.indices((v, *dag.parents(v))))) for v in dag.nodes]
        alike: dict[bytes, list[int]] = {}
        for i, name in enumerate(self.schema.names):
            key = np.sort(self.table([name])).tobytes()
            alike.setdefault(key, []).append(i)
        pairs = [
            (a, b)
            for group in alike.values()
            for k, a in enumerate(group)
            for b in group[k + 1 :]
            if self.knows((a, b))
        ]
        names = self.schema.names
        plan = CountPlan.sets([names[i] for i in s] for s in (*families, *pairs))
        kept = plan.maximal(names)
        return Counts(
            self.schema, self.n, plan, {s: self.table([names[i] for i in s]) for s in kept}
        )

    def constants(self) -> tuple[str, ...]:
        return tuple(
            v.name
            for i, v in enumerate(self.schema.variables)
            if len(v.levels) == 1 or (self.knows((i,)) and self.table([v.name]).max() == self.n)
        )

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def without_rows(self) -> RequestedCounts:
        return self


def _add_subsets(
    positions: Positions, found: set[Positions], known: Mapping[Positions, object] | None = None
) -> None:
    """Add the proper subsets that are not found or known yet."""
    for i in range(len(positions)):
        smaller = positions[:i] + positions[i + 1 :]
        if smaller and smaller not in found and (known is None or smaller not in known):
            found.add(smaller)
            _add_subsets(smaller, found, known)
