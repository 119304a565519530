"""Distinct rows and how often they occur, from one GROUP BY in the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus.arrays import Bools, Integers
from isthmus.errors import DataError
from isthmus.statistics import Level
from isthmus.statistics.base import Positions, methods_for, refuse_empty, refuse_missing
from isthmus.statistics.coded import CodedRows, as_codes
from isthmus.tables.columns import TableColumn, column_of_series

if TYPE_CHECKING:
    import narwhals as nw

PACK = 2**12
"""Planned sets are asked for together while their common table has at most this many cells."""

LOOK_BACK = 200
"""Number of packs to which adding a set is tried."""

NUMBER = "n"
"""Name of the column of group sizes; the columns of the table are named c0, c1 and so on."""


@final
@dataclass(frozen=True)
class Grouped:
    """Distinct rows of some variables.

    Attributes
    ----------
    levels
        The levels of each variable, in the order of the rows of codes.
    rows
        Codes and weights.
    size
        How many numbers the engine sent.
    absent
        Which values are missing, of shape (variables, rows); their codes mean nothing. None if
        none is.
    """

    levels: Mapping[str, tuple[Level, ...]]
    rows: CodedRows
    size: int
    absent: Bools | None = None

    def take(self, names: Sequence[str]) -> CodedRows:
        """The rows of some of the variables."""
        position = {name: i for i, name in enumerate(self.levels)}
        chosen = tuple(position[n] for n in names)
        if chosen == tuple(range(len(position))):
            return self.rows
        part = self.rows.take(chosen)
        return part.distinct(np.array([len(self.levels[n]) for n in names], dtype=np.int64))


def group(
    frame: nw.LazyFrame[Any],
    columns: Mapping[str, str],
    *,
    levels: Mapping[str, Sequence[Level]],
    is_discrete: Callable[[TableColumn, int], bool] | None = None,
    allow_missing: bool = False,
    are_all: bool = True,
    most: int | None = None,
) -> Grouped | None:
    """Count distinct rows in the engine, in one pass.

    Parameters
    ----------
    columns
        Names of the variables to group by, and of their columns in the table.
    levels
        Levels that are known; those of the other variables are the values that occur.
    is_discrete
        Tells from the distinct values and the number of rows whether a variable is discrete after
        all; by default all are.
    allow_missing
        Whether rows may have missing values.
    are_all
        Whether these are all columns of the table, which an error about missing values considers.
    most
        Maximum number of distinct rows; if there are more, the result is None.
    """
    import narwhals as nw

    groups = frame.group_by(*columns.values()).agg(nw.len().alias(NUMBER))
    table = (groups if most is None else groups.head(most + 1)).collect()
    if most is not None and len(table) > most:
        return None
    weights = np.asarray(table.get_column(NUMBER).to_numpy(), dtype=np.int64)
    n = int(weights.sum())
    read = [column_of_series(name, table.get_column(c)) for name, c in columns.items()]
    refuse_empty(n)
    kept = [c for c in read if is_discrete is None or is_discrete(c, n)]
    absent = None
    if allow_missing and any(c.absent is not None for c in kept):
        none = np.zeros(len(weights), dtype=np.bool_)
        absent = np.array([none if c.absent is None else c.absent for c in kept])
    else:
        methods = methods_for(continuous=not are_all, level=False)
        refuse_missing({c.name: _missing(c, weights) for c in kept}, n, methods)
    coded = {c.name: c.encode(levels.get(c.name)) for c in kept}
    sizes = np.array([len(own) for _, own in coded.values()], dtype=np.int64)
    codes = np.empty((len(coded), len(weights)), dtype=as_codes(np.empty(0), sizes).dtype)
    for i, (places, _) in enumerate(coded.values()):
        codes[i] = places
    return Grouped(
        {name: own for name, (_, own) in coded.items()},
        CodedRows(codes, weights),
        weights.size * (len(columns) + 1),
        absent,
    )


def _missing(column: TableColumn, weights: Integers) -> int:
    """Number of rows with an empty cell: each group counts with its weight."""
    return 0 if column.absent is None else int(weights[column.absent].sum())


def pack(sets: Iterable[Positions], sizes: Integers) -> list[tuple[Positions, list[Positions]]]:
    """Put sets of variables together while their common table stays small.

    Each pack is one GROUP BY; fewer of them are fewer passes over the data. Gives the members of
    each pack, and the sets it answers for.
    """
    packs: list[tuple[int, int]] = []  # bits and cells
    homes: list[list[Positions]] = []
    for members in sets:
        best: tuple[int, int] | None = None
        for k in range(max(0, len(packs) - LOOK_BACK), len(packs)):
            held, cells = packs[k]
            extra = [int(sizes[i]) for i in members if not held >> i & 1]
            cells *= math.prod(extra)
            if not extra or (cells <= PACK and (best is None or cells < best[1])):
                best = (k, cells)
                if not extra:
                    break
        if best is None:
            best = (len(packs), math.prod(int(sizes[i]) for i in members))
            packs.append((0, 1))
            homes.append([])
        packs[best[0]] = (packs[best[0]][0] | sum(1 << i for i in members), best[1])
        homes[best[0]].append(members)
    found = [tuple(i for i in range(bits.bit_length()) if bits >> i & 1) for bits, _ in packs]
    return list(zip(found, homes, strict=True))


def count_distinct(frame: nw.LazyFrame[Any], columns: Sequence[str]) -> tuple[int, int]:
    """Return the number of distinct rows of some columns, and the number of all rows."""
    import narwhals as nw

    groups = frame.group_by(*columns).agg(nw.len().alias(NUMBER))
    sizes = groups.select(
        nw.len().cast(nw.Int64).alias("groups"), nw.col(NUMBER).sum().alias("rows")
    ).collect()
    different, rows = (int(sizes.get_column(c).to_list()[0] or 0) for c in ("groups", "rows"))
    return different, rows


def count_rows(frame: nw.LazyFrame[Any]) -> int:
    """Return the number of rows."""
    import narwhals as nw

    total = frame.select(nw.len().cast(nw.Int64).alias("rows")).collect()
    return int(total.get_column("rows").to_list()[0])


def too_many_rows(names: Sequence[str], most: int, subject: str) -> DataError:
    """Return an error that says what to do about columns with too many distinct rows."""
    return DataError(
        f"{subject} more than {most:,} distinct rows of {len(names)} columns, and no "
        "more than that are fetched from an engine. Learn with a score of counts, such as BDeu(), "
        "summarise(table, plan=CountPlan.up_to(3)) for a search with at most two parents, give "
        "fewer columns, or collect the table."
    )
