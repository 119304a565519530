"""Starts of a search over orders: how many, in which labels, and whether they agree."""

from __future__ import annotations

from typing import final

import numpy as np

from isthmus.kernels.scoring import LocalScore
from isthmus.plurals import counted
from isthmus.types import Integers, Work

_REACHED = 5
"""The best score is taken for the best of all when so many random starts have reached it."""
_FEWEST, _SECONDS, _MOST_SECONDS = 4, 1.0, 4.0
"""Otherwise random starts go on for a second of estimated work, and there are four of them if that
takes no longer than four seconds. See ``benchmarks/orders/starts.py``."""
_PERTURBATIONS, _LONG_SECONDS = 10, 30.0
"""A search that perturbs its best order ends when as many perturbations in a row have failed as
there are variables. After a second of estimated work this many failures are enough, and after
thirty seconds it ends anyway. Chosen on few tables; ``benchmarks/orders/dense.py`` measures the
result."""
_SAME = 1e-9
"""Relative difference of scores that are called the same."""


@final
class Starts:
    """The scores that the starts of a search have reached, and whether there should be more.

    Parameters
    ----------
    number
        Number of starts; None to decide by the scores and the work. Work is counted, not timed, so
        that the same seed gives the same graph on every machine.
    variables
        Number of variables if starts after the first one are perturbations of the best order; None
        if they are random.
    """

    def __init__(self, number: int | None, *, variables: int | None = None) -> None:
        self._number = number
        self._variables = variables
        self._totals: list[float] = []

    def record(self, total: float) -> None:
        """Add the score that a start has reached."""
        self._totals.append(total)

    def more(self, seconds: float) -> bool:
        """Return whether there should be another start after this much estimated work."""
        done = len(self._totals)
        if self._number is not None:
            return done < self._number
        if self._variables is not None:
            enough = max(_PERTURBATIONS, self._variables if seconds < _SECONDS else 0)
            return seconds < _LONG_SECONDS and self._unimproved < enough
        if self.reached >= _REACHED:
            return False
        return seconds < (_MOST_SECONDS if done < _FEWEST else _SECONDS)

    @property
    def number(self) -> int:
        """Number of finished starts."""
        return len(self._totals)

    @property
    def reached(self) -> int:
        """Number of starts that have reached the best score."""
        if not self._totals:
            return 0
        best = max(self._totals)
        return sum(total >= best - _SAME * max(1.0, abs(best)) for total in self._totals)

    @property
    def _unimproved(self) -> int:
        """Number of starts since the first one that reached the best score."""
        if not self._totals:
            return 0
        best = max(self._totals)
        same = _SAME * max(1.0, abs(best))
        first = next(i for i, total in enumerate(self._totals) if total >= best - same)
        return len(self._totals) - 1 - first

    def conclusion(self) -> str:
        """Explain why the search stopped, and how many starts agree."""
        reason = "this is a local optimum; no move of a variable in the order improves the score."
        if self.number < 2:
            return f"{reason} There was one start."
        if self.reached == self.number:
            return f"{reason} All {self.number} starts reached it."
        return f"{reason} {self.reached} of {self.number} starts reached it."

    def notes(self) -> tuple[str, ...]:
        """Say so if the result may depend on chance."""
        if self.number < 2 or self.reached > 1:
            return ()
        note = (
            f"Only one of {counted(self.number, 'start')} of the search reached this score, so "
            "there may be better graphs, and another seed may give a different one. Use "
            f"Boss(starts={10 * self.number}) to search longer, or isthmus.bootstrap to see which "
            "edges are stable."
        )
        return (note,)


def canonical_labels(score: LocalScore) -> Work[Integers]:
    """Sort the variables by how much single parents raise their scores.

    Random orders of these labels, unlike those of columns, depend neither on the order of the
    columns nor on their names or units, and so neither does the graph that a search finds.
    """
    gains = np.zeros(score.size)
    none = np.empty(0, np.int64)
    for v in range(score.size):
        others = np.delete(np.arange(score.size), v)
        scores = score.extensions(v, none, others)
        # A parent set that is not allowed has the score minus infinity.
        raised = scores[1:] - scores[0] if np.isfinite(scores[0]) else none
        gains[v] = raised[np.isfinite(raised)].sum()
        yield
    return np.argsort(gains, kind="stable")
