"""Whether the levels of a discrete cause occur in all combinations of the variables to adjust for.

Without such overlap (positivity) no data tell what the rows of a combination would be like under
the level that none of them has.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.statistics import Schema
from isthmus.types import Bools, Floats

FEW_ROWS = 0.05
"""Share of rows without overlap that is left out; with more of them, there is no estimate, or it
leads with the extrapolation."""
_RARE = 0.02
"""Share of a level in a combination below which it has little overlap: few rows stand for many
(`benchmarks/results/effects-overlap.md`)."""
_CHANCE = 10
"""Rows of a combination below which a level may be absent by chance: if none of ten rows has it,
its probability is below 26% with a confidence of 95%."""


@final
class Combinations(NamedTuple):
    """The combinations of the discrete variables to adjust for.

    Attributes
    ----------
    place
        The combination of each row.
    counts
        Rows of each compared level of the cause (rows of the array) and combination.
    """

    place: NDArray[np.intp]
    counts: NDArray[np.intp]

    @property
    def lacking(self) -> Bools:
        """Whether the combination of each row lacks one of the levels."""
        rows: Bools = (self.counts.min(axis=0) == 0)[self.place]
        return rows

    @property
    def rare(self) -> Bools:
        """Whether one of the levels is rare in the combination of each row."""
        rows: Bools = (self.counts.min(axis=0) < _RARE * np.bincount(self.place))[self.place]
        return rows


def combinations(
    cause: NDArray[np.intp], change: tuple[int, int], codes: Floats, sizes: tuple[int, ...]
) -> Combinations:
    """Return the combinations of discrete variables and their numbers of rows.

    Parameters
    ----------
    cause, change
        Codes of the cause, and the two that are compared.
    codes, sizes
        Codes of the variables to adjust for, and their numbers of levels (0: continuous, ignored).
    """
    place = np.zeros(len(cause), np.intp)
    for j in (j for j, size in enumerate(sizes) if size):
        _, place = np.unique(place * sizes[j] + codes[:, j].astype(np.intp), return_inverse=True)
        place = place.ravel()
    cells = int(place.max()) + 1
    counts = np.array([np.bincount(place[cause == code], minlength=cells) for code in change])
    return Combinations(place, counts)


def check_overlap(
    schema: Schema, rows: Floats, change: tuple[int, int], sizes: tuple[int, ...]
) -> Bools:
    """Return which rows to leave out; raise if many are in combinations without one of the levels.

    Combinations of few rows may lack a level by chance, unless all rows of one of their levels do.

    Parameters
    ----------
    schema
        The variables: cause, effect, and those to adjust for.
    rows
        Their columns, with levels as codes.
    change
        Codes of the two levels of the cause that are compared.
    sizes
        Numbers of levels of the variables to adjust for; 0 if they are continuous.
    """
    cause, _, *given = schema.names
    discrete = [j for j, size in enumerate(sizes) if size]
    own = rows[:, 0].astype(np.intp)
    every = combinations(own, change, rows[:, 2:], sizes)
    absent = every.lacking
    if absent.mean() <= FEW_ROWS:
        return absent
    structural = absent & (np.bincount(every.place)[every.place] >= _CHANCE)
    for j in discrete:
        structural |= combinations(own, change, rows[:, 2 + j : 3 + j], (sizes[j],)).lacking
    if structural.mean() <= FEW_ROWS:
        return structural
    largest = int(np.bincount(every.place[structural]).argmax())
    here = every.place == largest
    levels = schema[cause].levels
    missing = next(
        levels[c] for c, n in zip(change, every.counts[:, largest], strict=True) if not n
    )
    first = rows[here][0]
    where = " and ".join(
        f"{given[j]} = {schema[given[j]].levels[int(first[2 + j])]!r}" for j in discrete
    )
    total = ""
    if structural.sum() > here.sum():
        total = f"; all combinations without one of the levels have {structural.mean():.1%}"
    raise DataError(
        f"The effect of {cause!r} from {levels[change[0]]!r} to {levels[change[1]]!r} is not "
        f"determined by these data, which lack overlap (positivity): no row has {cause} = "
        f"{missing!r} and {where}, a combination that {here.mean():.1%} of rows have{total}. Ask "
        "for the effect in the other rows: leave these out of the table and learn again. Or merge "
        f"levels of {', '.join(given[j] for j in discrete)} that are alike."
    )
