"""The simulated continuations of a series."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.frames import table_of
from isthmus.plurals import counted, rounded

_SHOWN = 5
"""Number of variables and of steps of each that the print has."""


@final
class Forecast(dict[str, NDArray[Any]]):
    """For each variable an array of simulated numbers or levels ``[step, draw]``.

    It is a dictionary, whose print and `to_frame` have means and intervals.
    """

    def to_frame(self, like: object = None) -> Any:
        """Return one row per step and number, with its mean, and per level, with its probability.

        ``lower`` and ``upper`` are the ends of the interval of 95% of the draws.

        Parameters
        ----------
        like
            As for :func:`isthmus.to_frame`.
        """
        rows = [row for name in self for row in self._rows(name)]
        names = ("variable", "step", "level", "probability", "mean", "lower", "upper")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        some = {v: own for v, own in columns.items() if any(cell is not None for cell in own)}
        return table_of(some, like)

    def _rows(self, name: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for step, draws in enumerate(self[name], start=1):
            if draws.dtype.kind == "f":
                low, high = np.quantile(draws, [0.025, 0.975]).tolist()
                rows.append((name, step, None, None, float(draws.mean()), low, high))
                continue
            levels, counts = np.unique(draws, return_counts=True)
            shares = (counts / len(draws)).tolist()
            rows += [
                (name, step, level, share, None, None, None)
                for level, share in zip(levels.tolist(), shares, strict=True)
            ]
        return rows

    def __str__(self) -> str:
        steps, draws = next(iter(self.values())).shape
        lines = [f"{counted(steps, 'step')}, {counted(draws, 'draw')}"]
        for name in [*self][:_SHOWN]:
            for _, step, level, share, mean, low, high in self._rows(name):
                if step > _SHOWN:
                    continue
                if level is None:
                    ends = f"{rounded(low, 4)} and {rounded(high, 4)}"
                    text = f"{rounded(mean, 4)} (95% of the draws between {ends})"
                else:
                    text = f"{level} in {share:.1%} of the draws"
                lines.append(f"{name}, step {step}: {text}")
        if len(self) > _SHOWN or steps > _SHOWN:
            lines.append("… to_frame() has all variables and steps.")
        return "\n".join(lines)

    __repr__ = __str__
