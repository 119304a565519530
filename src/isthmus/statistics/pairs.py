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

    def effective(self) -> Floats:
        """How many rows speak about each pair of columns, shape (d, d), or about one of them.

        Missing values are predicted by regressions on the other columns, which take one degree of
        freedom per column, in proportion to the rows that are predicted. Half of the rows are left
        at least. With two columns, or complete ones, nothing is taken.
        """
        used = (1.0 - self.pairs / self.n) * max(len(self.names) - 2, 0)
        rows: Floats = np.maximum(np.round(np.maximum(self.pairs - used, self.pairs / 2)), 1.0)
        return rows

    def effective_rows(self) -> int:
        """The unit in which likelihoods are stated: rows that speak about most pairs of columns.

        Scores charge each family at its own rows, and their maximum does not depend on this number.
        Probabilities and differences of scores do: it is the smallest number of rows over the pairs
        of the columns that are left when sparse ones are set aside, one after the other, as long as
        the others gain more rows than pairs are lost.
        """
        return self._rows_of(self._core())

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
        """A note on sparse columns, and on how few rows count if most columns are sparse."""
        core, rows = self._core(), self.effective_rows()
        sparse = tuple(name for k, name in enumerate(self.names) if k not in core)
        fewest = self._rows_of(list(range(len(self.names))))
        if sparse and 2 * fewest < rows:
            columns, verb = ("column", "has") if len(sparse) == 1 else ("columns", "have")
            note = (
                f"The {columns} {_listed(sparse)} {verb} values in few rows together with others, "
                f"down to {fewest:,} that count, and edges there need much stronger evidence. "
                f"At least {rows:,} of {self.n:,} rows count for each pair of the other columns."
            )
            return (note,)
        if 2 * rows >= self.n:
            return ()
        note = (
            f"Scores and standard errors count {rows:,} of {self.n:,} rows or more for each pair "
            "of columns, because columns have values in few common rows."
        )
        return (note,)

    def _rows_of(self, kept: list[int]) -> int:
        """The smallest number of rows that speak about a pair of these columns."""
        rows = self.effective()[np.ix_(kept, kept)]
        if len(kept) > 1:
            np.fill_diagonal(rows, np.inf)
        return int(rows.min())

    def _core(self) -> list[int]:
        """The columns with the largest product of pairs and rows, if sparse ones are set aside."""
        kept = list(range(len(self.names)))
        best, most = list(kept), 0.0
        while kept:
            between = self._between(kept)
            rows = float(between.min()) * len(kept) ** 2
            if rows > most:
                best, most = list(kept), rows
            if len(kept) < 3 or float(between.min()) >= self.n:
                break
            kept.remove(self._sparser(kept, between))
        return best

    def _sparser(self, kept: list[int], between: Floats) -> int:
        """The sparser column of the pair with the fewest rows; if equal, that of fewer pairs."""
        worst = np.unravel_index(int(between.argmin()), between.shape)
        return min(
            (kept[int(k)] for k in worst),
            key=lambda k: (self.pairs[k, k], self.pairs[k, kept].sum()),
        )

    def _left_out(self, enough: Callable[[float], bool]) -> tuple[str, ...]:
        """Columns without which all pairs have enough rows: the sparser one of each worst pair."""
        kept, out = list(range(len(self.names))), []
        while len(kept) > 1:
            between = self._between(kept)
            if enough(float(between.min())):
                break
            sparser = self._sparser(kept, between)
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
