"""In how many rows both of two columns have a value, and what that allows to be learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.errors import MissingValuesError
from isthmus.types import Floats

FEWEST = 5
"""Two columns with fewer common rows are refused: see tests/repro/test_missing_pairs.py.

With none, their dependence is not identified. With four or less, the standard error of a
correlation is at least 0.5, and one row decides.
"""

SHOWN = 5
"""Errors name this many pairs."""


@final
@dataclass(frozen=True, eq=False)
class PairCounts:
    """The number of rows in which both of two columns have a value.

    Attributes
    ----------
    names
        The columns.
    pairs
        Shape (d, d): the number of rows for each pair; on the diagonal, that of each column.
    n
        Number of rows of the table.
    """

    names: tuple[str, ...]
    pairs: Floats
    n: int

    def effective_rows(self) -> int:
        """The smallest number of rows over all pairs of columns, less what estimation uses up.

        One number serves all families of a score. With the mean over all pairs, complete columns
        would lend their rows to a sparse one, and noise would get edges with certainty.

        Missing values are predicted by regressions on the other columns, which take one degree of
        freedom per column, in proportion to the rows that are predicted. Half of the rows are left
        at least. With two columns, or complete ones, nothing is taken.
        """
        return self._effective(list(range(len(self.names))))

    def fewest(self) -> float:
        """The smallest number of rows over all pairs of columns."""
        return float(self._between(list(range(len(self.names)))).min())

    def _effective(self, kept: list[int]) -> int:
        rows = float(self._between(kept).min())
        used = (1.0 - rows / self.n) * max(len(kept) - 2, 0)
        return max(1, round(max(rows - used, rows / 2)))

    def refuse_apart(self) -> None:
        """Raise `MissingValuesError` if two columns have (nearly) no rows in common.

        Complete columns pass, however few rows there are.
        """
        i, j = np.nonzero(np.triu(self.pairs < min(FEWEST, self.n), 1))
        if not i.size:
            return
        told = [
            f"{self.names[a]!r} and {self.names[b]!r} ({int(self.pairs[a, b])})"
            for a, b in zip(i[:SHOWN].tolist(), j[:SHOWN].tolist(), strict=True)
        ]
        more = f" and {len(i) - SHOWN} more" if len(i) > SHOWN else ""
        out = self._left_out(lambda rows: rows >= min(FEWEST, self.n))
        raise MissingValuesError(
            f"These pairs of columns have values in fewer than {FEWEST} common rows (the number is "
            f"in parentheses), so the data do not tell how they depend on each other: "
            f"{', '.join(told)}{more}. Leave out {_listed(out)}, for example, or learn from "
            "columns that are observed together."
        )

    def remarks(self) -> tuple[str, ...]:
        """A note if less than half of the rows count, and which columns to leave out for more."""
        rows = self.effective_rows()
        if 2 * rows >= self.n:
            return ()
        remark = (
            f"Scores and standard errors count {rows:,} of {self.n:,} rows, because some columns "
            "have values in few common rows."
        )
        out = self._left_out(lambda rows: 2 * rows >= self.n)
        # If many columns are sparse, leaving them out is no advice.
        if 3 * len(out) <= len(self.names):
            kept = [k for k, name in enumerate(self.names) if name not in out]
            remark += f" Without {_listed(out)}, {self._effective(kept):,} rows would count."
        return (remark,)

    def _left_out(self, enough: Callable[[float], bool]) -> tuple[str, ...]:
        """Columns without which all pairs have enough rows: the sparser one of each worst pair."""
        kept, out = list(range(len(self.names))), []
        while len(kept) > 1:
            between = self._between(kept)
            if enough(float(between.min())):
                break
            worst = np.unravel_index(int(between.argmin()), between.shape)
            # Of equally sparse columns, the one with fewer rows in common with all others.
            sparser = min(
                (kept[int(k)] for k in worst),
                key=lambda k: (self.pairs[k, k], self.pairs[k, kept].sum()),
            )
            kept.remove(sparser)
            out.append(self.names[sparser])
        return tuple(out)

    def _between(self, kept: list[int]) -> Floats:
        """The numbers of rows of the pairs of these columns; of one column, its own."""
        between: Floats = self.pairs[np.ix_(kept, kept)].astype(np.float64)
        if len(kept) > 1:
            np.fill_diagonal(between, np.inf)
        return between


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
