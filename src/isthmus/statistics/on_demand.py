"""Tables that a source elsewhere counts when a search asks for them, in batches.

A search asks for a child and its parents, with each other variable as one parent more. So tables
are asked for by *cores*: the table of a core with every other variable. Only indicators without the
first level of each variable are counted, because the rest follows from smaller cores.

Until a core is counted, its tables are estimated from known margins, as the distribution of largest
entropy (iterative proportional fitting). The estimate is exact if the variables have no interaction
beyond these margins. A search runs on estimates, the cores that it looked at are asked for, and it
runs again: the result of a run that used no estimate is the result from all tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import UnplannedError
from isthmus.statistics.base import advice_on_limit
from isthmus.statistics.coded import CodedRows

Core: TypeAlias = tuple[int, ...]
"""Ascending positions of variables."""

AskCores: TypeAlias = Callable[[Sequence[Core]], dict[Core, Integers]]
"""Returns the products of each core, as `indicator_products` does for one table."""

_SWEEPS = 6
"""Sweeps of proportional fitting; an estimate only decides how many batches there are."""

_ROWS, _COLUMNS = 2**13, 2**10
"""Rows and products of levels that are multiplied at once. Counts below 2^24 are exact in single
precision."""


def product_shape(sizes: Sequence[int], core: Core) -> tuple[int, ...]:
    """Return the shape of the products of a core: its levels but the first, and all columns."""
    return (*(int(sizes[i]) - 1 for i in core), int(sum(sizes)) - len(sizes) + 1)


def indicator_products(
    rows: CodedRows, sizes: Sequence[int], cores: Sequence[Core]
) -> list[Integers]:
    """Count in how many rows levels occur together, the first level of each variable left out.

    The last axis has a column for each further level of each variable, and one for all rows.
    """
    columns = [(i, level) for i, size in enumerate(sizes) for level in range(1, int(size))]
    chosen = [
        tuple(zip(core, levels, strict=True))
        for core in cores
        for levels in np.ndindex(*(int(sizes[i]) - 1 for i in core))
    ]
    total = np.zeros((len(chosen), len(columns) + 1), dtype=np.int64)
    exact = np.float32 if rows.weights is None else np.float64
    for start in range(0, rows.codes.shape[1], _ROWS):
        codes = rows.codes[:, start : start + _ROWS]
        right = np.ones((codes.shape[1], len(columns) + 1), dtype=exact)
        for k, (i, level) in enumerate(columns):
            right[:, k] = codes[i] == level
        if rows.weights is not None:
            right *= rows.weights[start : start + _ROWS, None]
        for first in range(0, len(chosen), _COLUMNS):
            some = chosen[first : first + _COLUMNS]
            left = np.ones((len(some), codes.shape[1]), dtype=exact)
            for row, pairs in zip(left, some, strict=True):
                for i, level in pairs:
                    row *= codes[i] == level + 1
            total[first : first + len(some)] += (left @ right).astype(np.int64)
    products, at = [], 0
    for core in cores:
        shape = product_shape(sizes, core)
        length = int(np.prod(shape[:-1]))
        products.append(total[at : at + length].reshape(shape))
        at += length
    return products


@final
class TablesOnDemand:
    """Tables of discrete variables that were asked for so far, and estimates of the others.

    Parameters
    ----------
    sizes
        Number of levels of each variable.
    limit
        Maximum number of variables of a table; None for no limit.
    ask
        Asks the source for the products of cores.

    Attributes
    ----------
    wanted
        Cores whose tables were estimated since the last batch.
    estimates
        Whether tables that are not known are estimated. Otherwise they raise `UnplannedError`.
    batches
        Number of batches that were asked for.
    error
        Why the last score failed.
    """

    def __init__(self, sizes: Iterable[int], limit: int | None, ask: AskCores) -> None:
        self._sizes = tuple(int(size) for size in sizes)
        self.limit = limit
        self._ask = ask
        self._products: dict[Core, Integers] = {}
        self._estimates: dict[tuple[Core, int], Floats] = {}
        starts = np.cumsum([0, *(size - 1 for size in self._sizes)])
        self._groups = {
            size: np.array([i for i, own in enumerate(self._sizes) if own == size])
            for size in sorted(set(self._sizes))
        }
        self._columns = {
            size: starts[members][:, None] + np.arange(size - 1)
            for size, members in self._groups.items()
        }
        self._own = [np.arange(a, b) for a, b in pairwise(starts.tolist())]
        self.wanted: set[Core] = set()
        self.estimates = False
        self.batches = 0
        self.error: BaseException | None = None
        self.fetch([(i,) for i in range(len(self._sizes))])

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self._products[()][-1])

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The different numbers of levels, ascending."""
        return tuple(self._groups)

    def knows(self, core: Core) -> bool:
        """Return whether the tables of a core were asked for."""
        return core in self._products

    def fetch(self, cores: Iterable[Core]) -> None:
        """Ask for cores, with all smaller ones that their tables follow from."""
        needed = {
            part
            for core in cores
            for size in range(len(core) + 1)
            for part in combinations(core, size)
            if part not in self._products
        }
        if needed:
            self._products |= self._ask(sorted(needed, key=lambda c: (len(c), c)))
            self.batches += 1
            self._estimates.clear()
        self.wanted.clear()

    def table(self, positions: Core) -> Integers | None:
        """Return the table of some variables, with axes in this order; None if it is not known."""
        if not positions:
            return np.array(self.n)
        for last in reversed(positions):
            core = tuple(sorted(i for i in positions if i != last))
            if core in self._products:
                levels = self._levels(core)
                rest = levels[..., self._own[last]]
                first = levels[..., -1:] - rest.sum(axis=-1, keepdims=True)
                table = np.concatenate([first, rest], axis=-1)
                order = (*core, last)
                axes = [order.index(i) for i in positions]
                return np.ascontiguousarray(np.transpose(table, axes))
        return None

    def extensions(self, core: Core, size: int) -> tuple[Integers, Floats | Integers, bool]:
        """Return the tables of a core with each variable that has so many levels.

        Returns
        -------
        tuple
            Positions of the variables; their tables, whose last axis is the variable; and whether
            these are counts, and not estimates. Tables of variables of the core are meaningless.
        """
        members, columns = self._groups[size], self._columns[size]
        if core not in self._products:
            return members, self._estimated(core, size), False
        levels = self._levels(core)
        rest = np.moveaxis(levels[..., columns], -2, 0)
        first = levels[..., -1:] - rest.sum(axis=-1, keepdims=True)
        return members, np.concatenate([first, rest], axis=-1), True

    def _levels(self, core: Core) -> Integers:
        """Return the products of a core with all its levels."""
        levels = np.empty([*(self._sizes[i] for i in core), sum(map(len, self._own)) + 1], np.int64)
        for size in range(len(core) + 1):
            for axes in combinations(range(len(core)), size):
                place = tuple(slice(1, None) if a in axes else 0 for a in range(len(core)))
                levels[place] = self._products[tuple(core[a] for a in axes)]
        for axis in range(len(core)):
            view = np.moveaxis(levels, axis, 0)
            view[0] -= view[1:].sum(axis=0)
        return levels

    def _estimated(self, core: Core, size: int) -> Floats:
        """Return estimates of the tables of a core with variables, from known margins."""
        key = core, size
        if key not in self._estimates:
            # The variables are the last axis, so that sums over levels are sums of long rows.
            axes = range(len(core))
            margins: list[tuple[tuple[int, ...], NDArray[np.generic]]] = []
            for kept in _largest(axes, lambda a: self.table(_taken(core, a)) is not None):
                own = np.asarray(self.table(_taken(core, kept)))
                margins.append(((*kept,), own[..., None, None]))
            for kept in _largest(axes, lambda a: _taken(core, a) in self._products):
                tables = self.extensions(_taken(core, kept), size)[1]
                margins.append(((*kept, len(core)), np.moveaxis(tables, 0, -1)))
            shape = [*(self._sizes[i] for i in core), size, len(self._groups[size])]
            self._estimates[key] = np.ascontiguousarray(
                np.moveaxis(_fitted(shape, self.n, margins), -1, 0)
            )
        return self._estimates[key]


def _taken(core: Core, axes: Iterable[int]) -> Core:
    return tuple(core[a] for a in axes)


def _fitted(
    shape: Sequence[int], n: int, margins: Sequence[tuple[tuple[int, ...], NDArray[np.generic]]]
) -> Floats:
    """Return tables of largest entropy with these margins, by proportional fitting.

    The last axis numbers the tables. A margin is given by its axes.
    """
    estimate: Floats = np.full(shape, n / np.prod(shape[:-1]))
    for _ in range(_SWEEPS):
        for kept, target in margins:
            lost = tuple(a for a in range(len(shape) - 1) if a not in kept)
            now = estimate.sum(axis=lost, keepdims=True)
            wide = target.reshape([*now.shape[:-1], -1])
            estimate *= np.divide(wide, now, out=np.zeros(now.shape), where=now > 0)
    return estimate


def _largest(
    axes: Iterable[int], is_known: Callable[[tuple[int, ...]], bool]
) -> list[tuple[int, ...]]:
    """Return the largest sets of axes that are known, none of which contains another."""
    axes, found = tuple(axes), list[tuple[int, ...]]()
    for size in range(len(axes), 0, -1):
        for kept in combinations(axes, size):
            if not any(set(kept) <= set(other) for other in found) and is_known(kept):
                found.append(kept)
    return found


BatchScore: TypeAlias = Callable[[Integers | Floats], Floats]
"""Scores tables of shape (tables, configurations of the parents, levels of the child)."""


@final
class RowsOfScores:
    """Scores of a child with its parents and each other variable, from tables on demand.

    Parameters
    ----------
    names
        Names of the variables, for error messages.
    score
        Scores many tables.
    """

    def __init__(self, tables: TablesOnDemand, names: Sequence[str], score: BatchScore) -> None:
        self._tables = tables
        self._names = names
        self._score = score
        self._known: dict[tuple[int, Core], Floats] = {}
        self._guessed: dict[tuple[int, Core], Floats] = {}
        self._batch = tables.batches

    @property
    def error(self) -> BaseException | None:
        """Why the last call failed."""
        return self._tables.error

    @error.setter
    def error(self, error: BaseException) -> None:
        self._tables.error = error

    def values(self, child: int, parents: Core, candidates: Integers) -> Floats:
        """Return the score of a family, then its scores with each candidate as a parent more."""
        tables = self._tables
        tables.error = None
        if tables.batches != self._batch:
            self._guessed.clear()
            self._batch = tables.batches
        size = len(parents) + 1 + bool(len(candidates))
        if tables.limit is not None and size > tables.limit:
            raise UnplannedError(
                f"Tables of {size} variables were asked for; the study plans at most "
                f"{tables.limit}. {advice_on_limit(tables.limit, size)}"
            )
        out = np.empty(len(candidates) + 1)
        out[0] = self._family(child, parents)
        if len(candidates):
            out[1:] = self._row(child, parents)[candidates]
        return out

    def _family(self, child: int, parents: Core) -> float:
        if not parents:
            table = np.asarray(self._tables.table((child,)))
            return float(self._score(table.reshape(1, 1, -1))[0])
        family = tuple(sorted((child, *parents)))
        for last in reversed(parents):
            # Any known core that leaves out one variable has this family.
            others = tuple(p for p in parents if p != last)
            if self._tables.knows(tuple(i for i in family if i != last)):
                return float(self._row(child, others)[last])
        if self._tables.knows(parents):
            table = np.asarray(self._tables.table((*parents, child)))
            return float(self._score(table.reshape(1, -1, table.shape[-1]))[0])
        return float(self._row(child, parents[:-1])[parents[-1]])

    def _row(self, child: int, parents: Core) -> Floats:
        """Return the scores of a child with its parents and each variable."""
        key, core = (child, parents), tuple(sorted((child, *parents)))
        row = self._known.get(key)
        if row is not None:
            return row
        tables = self._tables
        is_known = tables.knows(core)
        if not is_known:
            if not tables.estimates:
                names = [self._names[i] for i in core]
                raise UnplannedError(
                    f"The tables of {names} with other variables were not asked for. Tables on "
                    "demand are for learn; other methods need a study whose planned tables fit "
                    "into one round."
                )
            tables.wanted.add(core)
            row = self._guessed.get(key)
            if row is not None:
                return row
        row = np.empty(len(self._names))
        for size in tables.cardinalities:
            members, table, _ = tables.extensions(core, size)
            last = np.moveaxis(table, 1 + core.index(child), -1)
            row[members] = self._score(last.reshape(len(members), -1, last.shape[-1]))
        (self._known if is_known else self._guessed)[key] = row
        return row
