"""Contingency tables across two parties, as shares that nobody opens.

A party's own part of a configuration is one column of zeros and ones. A table of both parties'
variables follows from the products of such columns without the last level of each variable, and
from the same products of fewer variables: the cells of a last level are a sum minus the others.
Each party counts its own variables alone. So a product is computed once, whatever the number of
tables that it belongs to, and a table of three variables with two levels needs a single new one.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.shares.columns import Columns
from isthmus.joint.shares.shares import Private, Words

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime

Members: TypeAlias = tuple[int, ...]
"""Positions of variables, ascending."""

ELEMENTS = 1 << 20
"""Maximum number of elements of a matrix in one product: of about 220 bytes in the engine, see
benchmarks/results/vertical.md."""


COVER = 2560
"""Rows of random numbers of each party in a product: so many unknowns must be found to read its
columns from answers of the engine, by learning with errors with a modulus of 59 bits."""


def covered(own: NDArray[Any], rank: int, widths: Sequence[int]) -> list[NDArray[Any]]:
    """Return the matrices of both parties, with further rows that hide columns of few people.

    The engine adds the same encryption of zero to up to four answers to a product. The party that
    gets them can take their differences, and so would have equations for the other party's columns
    in which only people are unknown. In the further rows one party has random numbers and the other
    one zeros, so that they change no product.

    Parameters
    ----------
    own
        The matrix of this party, one row per person.
    widths
        Number of columns of both parties.
    """
    rows = len(own)
    matrices = [np.zeros((rows + 2 * COVER, w), dtype=own.dtype) for w in widths]
    matrices[rank][:rows] = own
    random = secrets.token_bytes(COVER * widths[rank] * own.itemsize)
    start = rows + rank * COVER
    matrices[rank][start : start + COVER] = np.frombuffer(random, own.dtype).reshape(
        -1, widths[rank]
    )
    return matrices


def product(left: Any, right: Any) -> Any:
    """Multiply two matrices (a program of JAX)."""
    return left @ right


def each_product(left: Any, right: Any) -> Any:
    """Multiply two arrays element by element (a program of JAX)."""
    return left * right


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
        groups = _groups([self._split(part) for part in missing])
        if groups:
            counts = self._lifted(np.concatenate([self._cross(*group).ravel() for group in groups]))
            places = ((a, b) for firsts, seconds in groups for a in firsts for b in seconds)
            self._keep(places, counts)

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

    def _keep(self, pairs: Iterable[tuple[Members, Members]], counts: Words) -> None:
        """Keep the counts of pairs of parts, which follow each other."""
        start = 0
        for a, b in pairs:
            members, shape = a + b, self._shape(a + b)
            corner = counts[start : start + math.prod(shape)].reshape(shape)
            self._corners[tuple(sorted(members))] = corner.transpose(np.argsort(members))
            start += corner.size

    def _cross(self, firsts: list[Members], seconds: list[Members]) -> NDArray[np.uint32]:
        """Return this party's share of all products of parts of both parties, in their order."""
        rows, rank = self._columns.rows, self._engine.rank
        parts = firsts, seconds
        sizes = [[math.prod(self._shape(m)) for m in part] for part in parts]
        widths = [sum(size) for size in sizes]
        block = math.ceil(rows / math.ceil(rows * max(widths) / ELEMENTS))
        codes = [self._codes(m) for m in parts[rank]]
        offsets = [np.cumsum([0, *size]) for size in sizes]
        total = np.zeros(widths, dtype=np.uint32)
        for start in range(0, rows, block):
            own = np.zeros((block, widths[rank]), dtype=np.int32)
            for code, offset in zip(codes, offsets[rank], strict=False):
                (counted,) = np.nonzero(code[start : start + block] >= 0)
                own[counted, offset + code[start + counted]] = 1
            first, second = covered(own, rank, widths)
            left = Private(0, np.ascontiguousarray(first.T))
            (result,) = self._engine.run(product, left, Private(1, second), bits=32)
            total += result.words
        blocks = [np.hsplit(row, offsets[1][1:-1]) for row in np.vsplit(total, offsets[0][1:-1])]
        return np.concatenate([block.ravel() for row in blocks for block in row])

    def _codes(self, members: Members) -> NDArray[np.int64]:
        """Return which column of a part of one's own each row belongs to; -1 if to none."""
        values = [self._columns.values[self._columns.names[i]] for i in members]
        codes, counted = np.zeros(self._columns.rows, dtype=np.int64), self._columns.present
        for value, levels in zip(values, self._shape(members), strict=True):
            codes, counted = codes * levels + value, counted & (value < levels)
        return np.where(counted, codes, -1)

    def _lifted(self, counts: NDArray[np.uint32]) -> Words:
        """Return shares of counts below 2^31 in the ring of 64 bits.

        Two shares of 32 bits exceed 2^32 by their sum exactly if one of them has its first bit
        set: if none has, they are too small, and if only one has and they did not, the count would
        have its first bit set.
        """
        high = np.zeros(1 << (counts.size - 1).bit_length(), dtype=np.int32)
        high[: counts.size] = counts >> 31
        (both,) = self._engine.run(each_product, Private(0, high), Private(1, high), bits=32)
        carries = (high.view(np.uint32) - both.words)[: counts.size].astype(np.uint64)
        lifted: Words = counts - (carries << np.uint64(32))
        return lifted


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
