"""Answers to interventions whose effect the learned graph does not identify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.errors import ArgumentError
from isthmus.frames import cells_of, table_of
from isthmus.models.columns import Level
from isthmus.models.distributions import (
    Nonparanormal,
    Normal,
    NormalMixture,
    Probabilities,
    centre,
    shown,
)
from isthmus.types import Floats


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
