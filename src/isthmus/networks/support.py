"""Ranges of the numbers that a network was fitted to, beyond which answers are extrapolated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor, log10
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, DataError, DataWarning, counted, warn
from isthmus.frames import cells_of, table_of
from isthmus.networks.column_maps import NetworkMaps, TimeMap, scored_nodes, table_values
from isthmus.networks.columns import Level
from isthmus.networks.distributions import (
    Nonparanormal,
    Normal,
    NormalMixture,
    Probabilities,
    centre,
    shown,
)

_MARGIN = 1.0
"""Share of its range by which a value of a new row may be outside without a warning: the ranges of
new rows from the same distribution differ, those of heavy tails by half."""
_WITHIN = 0.5
"""The same for a range within a level, beyond which a combination is unknown."""
_LEAST = 0.25
"""Least width of the range within a level, as a share of that of all rows: of few rows it is too
narrow."""


@final
@dataclass(frozen=True, eq=False)
class Support:
    """The range of a column of numbers.

    Its ends are rounded outwards, by a hundredth to a tenth of the range, so that they are not
    values of single rows.

    Attributes
    ----------
    low, high
        Its ends.
    whole
        Whether all values are whole numbers.
    within
        For discrete nodes of the same families, the ranges in the rows of each of their levels, of
        shape (levels, 2).
    """

    low: float
    high: float
    whole: bool = False
    within: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ends = np.array([[self.low, self.high]])
        for own in (ends, *self.within.values()):
            if own.ndim != 2 or own.shape[1] != 2 or not (own[:, 0] <= own[:, 1]).all():
                raise DataError(f"A range must have two ends, the lower first; got {own.tolist()}.")

    @classmethod
    def of(cls, values: Floats, given: Mapping[str, tuple[NDArray[np.intp], int]]) -> Support:
        """Return the range of a column, given codes and numbers of levels of discrete columns."""
        low, high = float(values.min()), float(values.max())
        step = 10.0 ** (floor(log10(high - low)) - 1) if high > low else 0.0

        def outwards(lows: Floats, highs: Floats) -> Floats:
            ends = np.array([lows, highs]).T
            if step:
                rounded = np.array([np.floor(lows / step), np.ceil(highs / step)]).T * step
                ends = np.array([np.minimum(ends[:, 0], rounded[:, 0]), rounded[:, 1]]).T
                ends[:, 1] = np.maximum(ends[:, 1], highs)
            return ends

        within = {}
        for name, (codes, size) in given.items():
            lows, highs = np.full(size, np.inf), np.full(size, -np.inf)
            np.minimum.at(lows, codes, values)
            np.maximum.at(highs, codes, values)
            absent = lows > highs  # such levels are another matter
            lows[absent], highs[absent] = low, high
            within[name] = outwards(lows, highs)
        ((low, high),) = outwards(np.array([low]), np.array([high])).tolist()
        return cls(low, high, bool((values == np.round(values)).all()), within)

    def keep(self, values: Floats) -> Floats:
        """Return drawn values with those outside at the ends, and whole if the column is."""
        kept = np.clip(values, self.low, self.high)
        return np.round(kept) if self.whole else kept


def kept(supports: Mapping[str, Support], name: str, drawn: NDArray[Any]) -> NDArray[Any]:
    """Return drawn values of a node within the range of its column, if that is known."""
    return supports[name].keep(drawn) if name in supports else drawn


def as_column(
    supports: Mapping[str, Support],
    maps: NetworkMaps,
    name: str,
    drawn: NDArray[Any],
    *,
    bounded: bool,
) -> NDArray[Any]:
    """Return drawn numbers as values of a table, whole ones as integers."""
    whole = bounded and name in supports and supports[name].whole and name not in maps
    values: NDArray[Any] = drawn.astype(np.int64) if whole else table_values(maps, name, drawn)
    return values


def note_on_evidence(
    supports: Mapping[str, Support],
    maps: NetworkMaps,
    known: Mapping[str, float],
    levels: Mapping[str, tuple[Level, ...]],
) -> str:
    """Say which known values are outside the data.

    Parameters
    ----------
    maps
        Units of dates; normal scores have no range.
    known
        Numbers, and codes of levels, that are observed or set.
    """
    parts = []
    for name in [v for v in known if v in supports and v not in scored_nodes(maps)]:
        own, value = supports[name], float(known[name])
        low, high, given = own.low, own.high, ""
        if low <= value <= high:
            for other, ends in own.within.items():
                if (
                    other in known
                    and not ends[int(known[other])][0] <= value <= (ends[int(known[other])][1])
                ):
                    low, high = ends[int(known[other])].tolist()
                    given = f" with {other} = {levels[other][int(known[other])]}"
                    break
        if not low <= value <= high:
            shown = [_shown(maps, name, x) for x in (value, low, high)]
            parts.append(f"{name} = {shown[0]}{given} (data: {shown[1]} to {shown[2]})")
    if not parts:
        return ""
    return f"Outside the data, so the answer is extrapolated: {'; '.join(parts)}."


def _shown(maps: NetworkMaps, name: str, value: float) -> str:
    own = maps.get(name)
    return own.shown(value) if isinstance(own, TimeMap) else f"{value:.4g}"


def warn_outside(
    supports: Mapping[str, Support], maps: NetworkMaps, columns: Mapping[str, NDArray[Any]]
) -> None:
    """Warn if values of rows are far outside the data; NaN is unknown."""
    for name in [v for v in columns if v in supports and v not in scored_nodes(maps)]:
        own, values = supports[name], np.asarray(columns[name], np.float64)
        margin = _MARGIN * (own.high - own.low)
        out = (values < own.low - margin) | (values > own.high + margin)
        for other in own.within.keys() & columns.keys():
            codes = np.asarray(columns[other], np.float64)
            seen = np.flatnonzero(~np.isnan(codes))
            ends = own.within[other][codes[seen].astype(np.intp)]
            width = np.maximum(_WITHIN * (ends[:, 1] - ends[:, 0]), _LEAST * margin)
            out[seen] |= (values[seen] < ends[:, 0] - width) | (values[seen] > ends[:, 1] + width)
        if out.any():
            warn(
                f"In {counted(int(out.sum()), 'row')} of {len(out):,}, first in row "
                f"{int(out.argmax())}, {name} is far outside the data that the network was fitted "
                f"to ({_shown(maps, name, own.low)} to {_shown(maps, name, own.high)}, or less "
                "with the levels of these rows). These predictions are extrapolated.",
                DataWarning,
            )


def plain_supports(supports: Mapping[str, Support]) -> dict[str, dict[str, Any]]:
    """Return ranges as plain data for JSON."""
    return {
        name: {
            "low": own.low,
            "high": own.high,
            "whole": own.whole,
            "within": {v: ends.tolist() for v, ends in own.within.items()},
        }
        for name, own in supports.items()
    }


def read_supports(content: Mapping[str, Mapping[str, Any]]) -> dict[str, Support]:
    """Return ranges from plain data."""
    return {
        str(name): Support(
            float(own["low"]),
            float(own["high"]),
            own["whole"] is True,
            {str(v): np.array(ends, np.float64) for v, ends in own["within"].items()},
        )
        for name, own in content.items()
    }


# --- Answers to interventions whose effect the learned graph does not identify ------------------


class _Range:
    """Answers of which one is true, each with its sampling error."""

    answers: tuple[Any, ...]

    def confidence_interval(self, level: float = 0.95) -> tuple[Floats, Floats] | None:
        """Return the ends of intervals that contain those of all answers, given the learned class.

        None if the sampling error is not known.

        Parameters
        ----------
        level
            The level of the interval of each answer, between 0 and 1.
        """
        ends = [answer.confidence_interval(level) for answer in self.answers]
        known = [pair for pair in ends if pair is not None]
        if not known or len(known) < len(ends):
            return None
        lower, upper = zip(*known, strict=True)
        return np.min(lower, axis=0), np.max(upper, axis=0)


@final
@dataclass(frozen=True, eq=False)
class ProbabilityRange(_Range):
    """Bounds on the probabilities after an intervention that the learned graph does not identify.

    The bounds are those of the estimated parameters; `confidence_interval` is wider.

    Attributes
    ----------
    levels
        The values of each target, by name, in the order of the axes.
    answers
        One distribution for each possible choice of the parents of the variables that are set. Each
        of them is the answer if that choice is true; differences between two interventions can be
        computed choice by choice. Empty if they were not computed.
    reason
        Why there is no single answer.
    """

    levels: Mapping[str, tuple[Level, ...]]
    answers: tuple[Probabilities, ...]
    reason: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return tuple(self.levels)

    @property
    def lower(self) -> Floats:
        """Smallest probability of each level; zero if the answers were not computed."""
        if not self.answers:
            return np.zeros([len(own) for own in self.levels.values()])
        lower: Floats = np.min([answer.values for answer in self.answers], axis=0)
        return lower

    @property
    def upper(self) -> Floats:
        """Largest probability of each level; one if the answers were not computed."""
        if not self.answers:
            return np.ones([len(own) for own in self.levels.values()])
        upper: Floats = np.max([answer.values for answer in self.answers], axis=0)
        return upper

    def __getitem__(self, level: Level | tuple[Level, ...]) -> tuple[float, float]:
        """Return the bounds on the probability of a level, or of one level per target."""
        low = Probabilities(self.levels, self.lower)[level]
        return low, Probabilities(self.levels, self.upper)[level]

    def to_frame(self, like: object = None) -> Any:
        """Return one row per combination of levels; see :func:`isthmus.to_frame`."""
        values = {"lower": self.lower, "upper": self.upper}
        return table_of(cells_of(self.levels, values), like)

    def __str__(self) -> str:
        lines = [f"not identified: {self.reason}", ", ".join(self.names)]
        lower, upper, ends = self.lower, self.upper, self.confidence_interval()
        for place in np.ndindex(lower.shape):
            known = zip(self.levels.values(), place, strict=True)
            row = ", ".join(str(own[i]) for own, i in known)
            wide = None if ends is None else (f"{ends[0][place]:.4f}", f"{ends[1][place]:.4f}")
            lines.append(
                f"{row}: between {lower[place]:.4f} and {upper[place]:.4f}{_with_errors(wide)}"
            )
        return "\n".join(lines)

    __repr__ = __str__


@final
@dataclass(frozen=True, eq=False)
class MeanRange(_Range):
    """Bounds on the means after an intervention that the learned graph does not identify.

    For targets that were learned as normal scores, they are bounds on the medians.
    The bounds are those of the estimated parameters; `confidence_interval` is wider.

    Attributes
    ----------
    names
        Names of the targets.
    answers
        One distribution for each possible choice of the parents of the variables that are set, as
        in `ProbabilityRange`. Empty if they were not computed.
    reason
        Why there is no single answer.
    """

    names: tuple[str, ...]
    answers: tuple[Normal | NormalMixture | Nonparanormal, ...]
    reason: str

    @property
    def lower(self) -> Floats:
        """Smallest mean of each target; minus infinity if the answers were not computed."""
        if not self.answers:
            return np.full(len(self.names), -np.inf)
        lower: Floats = np.min([centre(answer) for answer in self.answers], axis=0)
        return lower

    @property
    def upper(self) -> Floats:
        """Largest mean of each target; infinity if the answers were not computed."""
        if not self.answers:
            return np.full(len(self.names), np.inf)
        upper: Floats = np.max([centre(answer) for answer in self.answers], axis=0)
        return upper

    def __getitem__(self, name: str) -> tuple[float, float]:
        """Return the bounds on the mean of a target."""
        if name not in self.names:
            raise ArgumentError(f"{name!r} is not one of {list(self.names)}.")
        place = self.names.index(name)
        return float(self.lower[place]), float(self.upper[place])

    def to_frame(self, like: object = None) -> Any:
        """Return one row per target; see :func:`isthmus.to_frame`."""
        columns = {"variable": np.array(self.names), "lower": self.lower, "upper": self.upper}
        return table_of(columns, like)

    def __str__(self) -> str:
        if not self.answers:
            return f"not identified: {self.reason}"
        rows = zip(self.names, self.lower.tolist(), self.upper.tolist(), strict=True)
        ends = self.confidence_interval()
        maps = self.answers[0].maps
        word = "median" if isinstance(self.answers[0], Nonparanormal) else "mean"
        bounds = []
        for i, (name, low, high) in enumerate(rows):
            text = f"{name}: {word} between {shown(maps, name, low)} and {shown(maps, name, high)}"
            wide = None if ends is None else [shown(maps, name, float(end[i])) for end in ends]
            bounds.append(text + _with_errors(None if wide is None else (wide[0], wide[1])))
        return "\n".join([f"not identified: {self.reason}", *bounds])

    __repr__ = __str__


def _with_errors(ends: tuple[str, str] | None) -> str:
    return "" if ends is None else f" (with sampling error: between {ends[0]} and {ends[1]})"
