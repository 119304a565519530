"""Contingency tables across two parties, as shares that nobody opens.

A party's own part of a configuration is one column of zeros and ones. The table of variables of
both parties is the product of the two matrices of such columns. Tables that share a part are
multiplied together, and a table inside a larger one is a sum of shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from isthmus.joint.shares.columns import Columns
from isthmus.joint.shares.shares import Private, Words

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime

Members: TypeAlias = tuple[int, ...]
"""Positions of variables, ascending."""

ELEMENTS = 1 << 22
"""Maximum number of elements of a matrix in one product."""


def product(left: Any, right: Any) -> Any:
    """Multiply two matrices (a program of JAX)."""
    return left @ right


@final
class SecretTables:
    """Tables of variables of both parties."""

    def __init__(self, engine: SecretSharingRuntime, columns: Columns) -> None:
        self._engine = engine
        self._columns = columns
        self._tables: dict[Members, Words] = {}

    def prepare(self, wanted: Iterable[Members]) -> None:
        """Compute tables that are not at hand yet; those of one party need no computation."""
        crossing = {m for m in wanted if len(self._columns.owners(m)) == 2}
        missing = sorted(m for m in crossing if not self._inside(m, self._tables))
        largest = [m for m in missing if not self._inside(m, set(missing) - {m})]
        for parts in _groups([self._split(m) for m in largest]):
            self._multiply(*parts)

    def share(self, members: Members) -> Words:
        """Return this party's share of a table that was prepared."""
        if members not in self._tables:
            home = next(m for m in self._tables if set(members) <= set(m))
            others = tuple(k for k, i in enumerate(home) if i not in members)
            self._tables[members] = self._tables[home].sum(axis=others, dtype=np.uint64)
        return self._tables[members]

    def _inside(self, members: Members, others: Iterable[Members]) -> bool:
        return any(set(members) <= set(other) for other in others)

    def _split(self, members: Members) -> tuple[Members, Members]:
        """Return the parts of both parties."""
        owner = [c.owner for c in self._columns.columns]
        first = tuple(i for i in members if owner[i] == 0)
        return first, tuple(i for i in members if owner[i] == 1)

    def _multiply(self, first: list[Members], second: list[Members]) -> None:
        """Compute the tables of all pairs of a part of one party with a part of the other."""
        shape = self._columns.shape
        widths = [[math.prod(shape(m)) for m in parts] for parts in (first, second)]
        result = self._cross((first, second), (sum(widths[0]), sum(widths[1])))
        row = 0
        for a, height in zip(first, widths[0], strict=True):
            column = 0
            for b, width in zip(second, widths[1], strict=True):
                block = result[row : row + height, column : column + width]
                members = a + b
                order = np.argsort(members)
                table = block.reshape(*shape(a), *shape(b)).transpose(order)
                self._tables[tuple(sorted(members))] = np.ascontiguousarray(table)
                column += width
            row += height

    def _cross(self, parts: tuple[list[Members], list[Members]], sizes: tuple[int, int]) -> Words:
        rows = self._columns.rows
        widths = (_padded(sizes[0]), _padded(sizes[1]))
        block = min(rows, max(1, ELEMENTS // max(widths)))
        block = math.ceil(rows / math.ceil(rows / block))
        mine = self._engine.rank
        codes = [self._columns.configurations(m) for m in parts[mine]]
        offsets = np.cumsum([0] + [math.prod(self._columns.shape(m)) for m in parts[mine]])
        total = np.zeros(widths, dtype=np.uint64)
        for start in range(0, rows, block):
            stop = min(start + block, rows)
            matrices = [np.zeros((block, w), dtype=np.int64) for w in widths]
            counted = np.flatnonzero(self._columns.present[start:stop])
            for code, offset in zip(codes, offsets[:-1], strict=True):
                matrices[mine][counted, offset + code[start:stop][counted]] = 1
            left = Private(0, np.ascontiguousarray(matrices[0].T))
            (result,) = self._engine.run(product, left, Private(1, matrices[1]))
            total += result.words
        return total[: sizes[0], : sizes[1]]


def _padded(width: int) -> int:
    """Round up to a power of two, or one and a half of it, so that programs are used again."""
    power = 1 << max(width - 1, 0).bit_length()
    return 3 * power // 4 if power >= 4 and width <= 3 * power // 4 else power


def _groups(
    pairs: list[tuple[Members, Members]],
) -> list[tuple[list[Members], list[Members]]]:
    """Group pairs of parts so that each group is all pairs of two lists: one product each."""
    candidates = [_grouped(pairs), [(a, b) for b, a in _grouped([(b, a) for a, b in pairs])]]
    return min(candidates, key=len)


def _grouped(
    pairs: list[tuple[Members, Members]],
) -> list[tuple[list[Members], list[Members]]]:
    """Collect the first parts of each second part; then join second parts with the same ones."""
    partners: dict[Members, list[Members]] = {}
    for a, b in pairs:
        partners.setdefault(b, []).append(a)
    joined: dict[tuple[Members, ...], list[Members]] = {}
    for b in sorted(partners):
        joined.setdefault(tuple(sorted(set(partners[b]))), []).append(b)
    return [(list(firsts), seconds) for firsts, seconds in joined.items()]
