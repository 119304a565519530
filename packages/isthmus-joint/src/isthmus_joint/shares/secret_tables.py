"""Contingency tables across two parties, as shares that nobody opens.

A party's own part of a configuration is one column of zeros and ones. A table of both parties'
variables follows from the products of such columns without the last level of each variable, and
from the same products of fewer variables: the cells of a last level are a sum minus the others.
Each party counts its own variables alone. So a product is computed once, whatever the number of
tables that it belongs to, and a table of three variables with two levels needs a single new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus_joint.shares.link import Words
from isthmus_joint.shares.secret_products import ColumnProducts
from isthmus_joint.shares.terms import Columns

if TYPE_CHECKING:
    from isthmus_joint.shares.engine import SecretSharingRuntime

Members: TypeAlias = tuple[int, ...]
"""Positions of variables, ascending."""


@final
class SecretTables:
    """Tables of variables of both parties."""

    def __init__(self, engine: SecretSharingRuntime, columns: Columns) -> None:
        self._engine = engine
        self._columns = columns
        self._corners: dict[Members, Words] = {}

    def prepare(self, wanted: Iterable[Members]) -> None:
        """Compute what tables need and is not at hand; those of one party need no computation."""
        parts = {part for members in wanted for part in self._parts(members)}
        missing = sorted(part for part in parts - self._corners.keys() if self._crosses(part))
        partners: dict[tuple[int, Members], list[Members]] = {}
        for part in missing:
            halves = self._split(part)
            # A transfer is made for each bit, and then used for all columns of the other party.
            chooser = int(len(halves[1]) < len(halves[0]))
            partners.setdefault((chooser, halves[chooser]), []).append(halves[1 - chooser])
        products = [
            ColumnProducts(
                chooser,
                (self._size(part), sum(map(self._size, others))),
                self._indicators([part] if chooser == self._engine.rank else others),
            )
            for (chooser, part), others in partners.items()
        ]
        counts = self._engine.products.counts(products, self._columns.rows)
        for ((_, part), others), count in zip(partners.items(), counts, strict=True):
            self._keep(part, others, count)

    def share(self, members: Members) -> Words:
        """Return this party's share of a table that was prepared."""
        table = np.zeros(self._columns.shape(members), dtype=np.uint64)
        # The place of the last level takes the sum over all levels, until the others are known.
        for part in self._parts(members):
            place = tuple(slice(-1) if i in part else -1 for i in members)
            table[place] = self._corner(part)
        for axis in range(len(members)):
            levels = np.moveaxis(table, axis, 0)
            levels[-1:] -= levels[:-1].sum(axis=0, dtype=np.uint64, keepdims=True)
        return table

    def _parts(self, members: Members) -> Iterator[Members]:
        """Yield all subsets of variables; those with a single level have only their sum."""
        varied = [i for i in members if self._columns.columns[i].levels > 1]
        for size in range(len(varied) + 1):
            yield from combinations(varied, size)

    def _crosses(self, members: Members) -> bool:
        return len(self._columns.owners(members)) == 2

    def _corner(self, members: Members) -> Words:
        """Return this party's share of the cells without last levels."""
        if self._crosses(members):
            return self._corners[members]
        owner = next(iter(self._columns.owners(members)), 0)
        if owner != self._engine.rank:
            return np.zeros(self._shape(members), dtype=np.uint64)
        corner = self._columns.table(members)[(slice(-1),) * len(members)]
        return corner.astype(np.uint64)

    def _shape(self, members: Members) -> tuple[int, ...]:
        return tuple(self._columns.columns[i].levels - 1 for i in members)

    def _split(self, members: Members) -> tuple[Members, Members]:
        """Return the parts of both parties."""
        owner = [c.owner for c in self._columns.columns]
        first = tuple(i for i in members if owner[i] == 0)
        return first, tuple(i for i in members if owner[i] == 1)

    def _size(self, members: Members) -> int:
        return math.prod(self._shape(members))

    def _keep(self, part: Members, others: list[Members], counts: Words) -> None:
        """Keep the counts of a part of one party with some of the other, side by side."""
        ends = np.cumsum([self._size(other) for other in others])
        for other, found in zip(others, np.hsplit(counts, ends[:-1]), strict=True):
            members = part + other
            corner = found.reshape(self._shape(members)).transpose(np.argsort(members))
            self._corners[tuple(sorted(members))] = corner

    def _indicators(self, parts: list[Members]) -> Callable[[slice], NDArray[np.bool_]]:
        """Return a function from rows to the columns of some parts of one's own, side by side."""

        def columns(at: slice) -> NDArray[np.bool_]:
            codes = [self._codes(members, at)[:, None] for members in parts]
            levels = [np.arange(self._size(members)) for members in parts]
            return np.hstack([c == level for c, level in zip(codes, levels, strict=True)])

        return columns

    def _codes(self, members: Members, at: slice) -> NDArray[np.int64]:
        """Return which column of a part of one's own each row belongs to; -1 if to none."""
        counted = self._columns.present[at]
        codes = np.zeros(len(counted), dtype=np.int64)
        for i, levels in zip(members, self._shape(members), strict=True):
            value = self._columns.values[self._columns.names[i]][at]
            codes, counted = codes * levels + value, counted & (value < levels)
        return np.where(counted, codes, -1)
