"""Penalties of families by the rows that speak about their variables, if values were missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from isthmus.kernels.scoring import LocalScore as LocalScoreKernel
from isthmus.kernels.scoring import row_score
from isthmus.objectives import LocalScore
from isthmus.statistics import Moments
from isthmus.types import Floats, Integers

_MOST_LEVELS = 64
"""Different numbers of rows for which penalties are computed; others are rounded down to them."""
_SECONDS = 4e-5
"""For the penalties of a family; those of many families at once share most of it."""


def at_own_rows(
    score: LocalScore,
    moments: Moments,
    prices: Callable[[int], Floats],
    coefficient: Callable[[int], float] = lambda _: 0.0,
) -> LocalScore:
    """Return a score whose families are charged by the rows that speak about their variables.

    All families have the likelihood of ``n`` rows, from one covariance matrix, so an edge gains
    nothing if the others explain it. In a family about which only m rows speak, chance gains
    ``n / m`` times as much as with n rows. Its penalty is therefore ``n / m`` times that of m rows:
    an edge must gain as much as if the table had m rows. A sparse variable makes the edges of its
    own families dearer, and no others.

    Graphs that are Markov-equivalent have the same likelihood and number of edges, but their
    families differ, so their penalties may. The best member of a class is one in which a sparse
    variable is a parent of few others. Complete rows give the score itself.

    Parameters
    ----------
    score
        The score with penalties for n rows.
    moments
        The moments.
    prices
        Returns the penalties of 0, 1, … d parents for a number of rows.
    coefficient
        Returns the penalty of a coefficient between two columns for a number of rows.
    """
    if moments.pair_rows is None or len(moments.schema) < 2:
        return score
    families = _Families(score.kernel, moments, moments.pair_rows, prices, coefficient)
    if not families.charge:
        return score
    return LocalScore(
        score.nodes,
        row_score(len(score.nodes), families.values),
        equivalent=score.equivalent,
        cost=lambda parents: score.seconds(parents) + _SECONDS,
    )


@final
class _Families:
    """Scores of families with their penalties; see `at_own_rows`."""

    def __init__(
        self,
        inner: LocalScoreKernel,
        moments: Moments,
        rows: Floats,
        prices: Callable[[int], Floats],
        coefficient: Callable[[int], float],
    ) -> None:
        n, d = moments.n, len(moments.schema)
        self.error: BaseException | None = None
        self._inner = inner
        numbers = np.unique(rows[~np.eye(d, dtype=np.bool_)])
        if len(numbers) > _MOST_LEVELS:
            ends = np.geomspace(numbers[0], numbers[-1], _MOST_LEVELS)
            numbers = numbers[np.unique(np.searchsorted(numbers, ends))]
        levels = np.maximum(np.searchsorted(numbers, rows, side="right") - 1, 0)
        np.fill_diagonal(levels, len(numbers) - 1)
        self._levels = levels
        usual = prices(n)
        self._flat = np.array([n / m * prices(int(m)) - usual for m in numbers])
        self._flat -= self._flat[:, :1]
        self._slope = np.array([n / m * coefficient(int(m)) - coefficient(n) for m in numbers])
        self.charge = bool(self._flat.any() or self._slope.any())
        self._widths = np.array([b - a for a, b in moments.schema.blocks], np.float64)

    def values(self, child: int, parents: tuple[int, ...], candidates: Integers) -> Floats:
        """Return the score of the parents, then those with each candidate."""
        given = np.array(parents, np.int64)
        scores = np.asarray(self._inner.extensions(child, given, candidates))
        scores[:1] -= self._more(child, given, given[:0])
        if len(candidates):
            scores[1:] -= self._more(child, given, candidates)
        return scores

    def _more(self, child: int, parents: Integers, candidates: Integers) -> Floats:
        """Return what families cost more than at n rows, for each candidate or without one."""
        members = np.append(parents, child)
        level = self._levels[np.ix_(members, members)].min()
        columns = self._widths[parents].sum()
        if not len(candidates):
            return self._cost(level, len(parents), self._widths[child] * columns)
        levels = self._levels[np.ix_(candidates, members)].min(axis=1, initial=level)
        columns = self._widths[child] * (columns + self._widths[candidates])
        return self._cost(levels, len(members), columns)

    def _cost(self, level: Any, parents: int, coefficients: Any) -> Floats:
        costs: Floats = self._flat[level, parents] + self._slope[level] * coefficients
        return costs
