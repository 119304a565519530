"""What was done to the numbers of a column before a graph was learned."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class ColumnMap:
    """A function of the numbers of one column.

    Attributes
    ----------
    at
        Increasing values: knots of a curve, or cut points between levels. The level of a cut point
        is the lower one.
    scores
        Values of the curve at the knots; it is linear between them and constant outside. None if
        numbers become levels.
    """

    at: tuple[float, ...]
    scores: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        steps = np.diff(self.at)
        if not np.isfinite(self.at).all() or (steps <= 0).any():
            raise FormatError(f"The values of a column map must increase; {self.at!r} do not.")
        if self.scores is not None and len(self.scores) != len(self.at):
            raise FormatError("A column map needs one score for each of its values.")

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels between cut points, which are in their order when sorted."""
        digits = len(str(len(self.at) + 1))
        ends = [f"{value:.6g}" for value in self.at]
        if not ends:
            return ("1: all",)
        inner = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
        texts = [f"up to {ends[0]}", *inner, f"above {ends[-1]}"]
        return tuple(f"{i:0{digits}d}: {text}" for i, text in enumerate(texts, start=1))

    @property
    def described(self) -> str:
        """What the map does, for the reading of a column."""
        if self.scores is not None:
            return "normal scores of numbers"
        return f"numbers, cut at {', '.join(f'{value:.6g}' for value in self.at)}"

    def apply(self, values: Floats) -> NDArray[Any]:
        """Return scores, or levels with None for missing values."""
        if self.scores is not None:
            scores: Floats = np.interp(values, self.at, self.scores)
            return np.where(np.isnan(values), np.nan, scores)
        names = np.array([*self.levels, None], dtype=object)
        codes = np.searchsorted(self.at, values, side="left")
        return names[np.where(np.isnan(values), len(names) - 1, codes)]


ColumnMaps = Mapping[str, ColumnMap]
"""The maps of some columns."""


def plain_maps(maps: ColumnMaps) -> dict[str, dict[str, Any]]:
    """Return maps as plain data for JSON."""
    return {name: {"at": own.at, "scores": own.scores} for name, own in maps.items()}


def read_maps(content: Mapping[str, Mapping[str, Any]]) -> dict[str, ColumnMap]:
    """Return maps from plain data."""
    return {
        str(name): ColumnMap(
            tuple(float(x) for x in own["at"]),
            None if own["scores"] is None else tuple(float(x) for x in own["scores"]),
        )
        for name, own in content.items()
    }
