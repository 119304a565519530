"""Answers to interventions whose effect the learned graph does not identify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.errors import ArgumentError
from isthmus.models.columns import Level
from isthmus.models.distributions import (
    Nonparanormal,
    Normal,
    NormalMixture,
    Probabilities,
    shown,
)
from isthmus.types import Floats


@final
@dataclass(frozen=True, eq=False)
class ProbabilityRange:
    """Bounds on the probabilities after an intervention that the learned graph does not identify.

    The sampling error of fitted parameters is not included.

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

    def __str__(self) -> str:
        lines = [f"not identified: {self.reason}", ", ".join(self.names)]
        lower, upper = self.lower, self.upper
        for place in np.ndindex(lower.shape):
            known = zip(self.levels.values(), place, strict=True)
            row = ", ".join(str(own[i]) for own, i in known)
            lines.append(f"{row}: between {lower[place]:.4f} and {upper[place]:.4f}")
        return "\n".join(lines)


@final
@dataclass(frozen=True, eq=False)
class MeanRange:
    """Bounds on the means after an intervention that the learned graph does not identify.

    For targets that were learned as normal scores, they are bounds on the medians.
    The sampling error of fitted parameters is not included. `Solution.effect` has it.

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
        lower: Floats = np.min([_centre(answer) for answer in self.answers], axis=0)
        return lower

    @property
    def upper(self) -> Floats:
        """Largest mean of each target; infinity if the answers were not computed."""
        if not self.answers:
            return np.full(len(self.names), np.inf)
        upper: Floats = np.max([_centre(answer) for answer in self.answers], axis=0)
        return upper

    def __getitem__(self, name: str) -> tuple[float, float]:
        """Return the bounds on the mean of a target."""
        if name not in self.names:
            raise ArgumentError(f"{name!r} is not one of {list(self.names)}.")
        place = self.names.index(name)
        return float(self.lower[place]), float(self.upper[place])

    def __str__(self) -> str:
        rows = zip(self.names, self.lower.tolist(), self.upper.tolist(), strict=True)
        maps = self.answers[0].maps if self.answers else {}
        scored = bool(self.answers) and isinstance(self.answers[0], Nonparanormal)
        word = "median" if scored else "mean"
        bounds = [
            f"{name}: {word} between {shown(maps, name, low)} and {shown(maps, name, high)}"
            for name, low, high in rows
        ]
        return "\n".join([f"not identified: {self.reason}", *bounds])


def _centre(answer: Normal | NormalMixture | Nonparanormal) -> Floats:
    return answer.median if isinstance(answer, Nonparanormal) else answer.mean
