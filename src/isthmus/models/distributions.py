"""Answers to queries: distributions of some variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.errors import ArgumentError, SchemaError
from isthmus.models.columns import Level
from isthmus.types import Floats


@final
@dataclass(frozen=True, eq=False)
class Probabilities:
    """The joint distribution of discrete variables; ``numpy.asarray`` gives the probabilities.

    Attributes
    ----------
    levels
        The values of each variable, by name, in the order of the axes.
    values
        The probabilities, one axis per variable.
    """

    levels: Mapping[str, tuple[Level, ...]]
    values: Floats

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(self.levels)

    def __getitem__(self, level: Level | tuple[Level, ...]) -> float:
        """Return the probability of a level, or of one level per variable."""
        asked = level if isinstance(level, tuple) else (level,)
        if len(asked) != len(self.levels):
            raise ArgumentError(f"Give one level for each of {list(self.names)}; got {level!r}.")
        place = []
        for (name, known), wanted in zip(self.levels.items(), asked, strict=True):
            if wanted not in known:
                raise SchemaError(f"{wanted!r} is not one of the levels of {name!r}: {known!r}.")
            place.append(known.index(wanted))
        return float(self.values[tuple(place)])

    def marginal(self, name: str) -> Probabilities:
        """Return the distribution of one of the variables."""
        if name not in self.levels:
            raise ArgumentError(f"{name!r} is not one of {list(self.names)}.")
        others = tuple(i for i, other in enumerate(self.names) if other != name)
        return Probabilities({name: self.levels[name]}, self.values.sum(axis=others))

    def most_probable(self) -> dict[str, Level]:
        """Return the most probable level of each variable, jointly."""
        place = np.unravel_index(int(np.argmax(self.values)), self.values.shape)
        return {name: own[i] for (name, own), i in zip(self.levels.items(), place, strict=True)}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __str__(self) -> str:
        lines = [", ".join(self.names)]
        for place in np.ndindex(self.values.shape):
            known = zip(self.levels.values(), place, strict=True)
            row = ", ".join(str(own[i]) for own, i in known)
            lines.append(f"{row}: {self.values[place]:.4f}")
        return "\n".join(lines)


@final
@dataclass(frozen=True, eq=False)
class Normal:
    """The joint normal distribution of continuous variables.

    Attributes
    ----------
    names
        Names of the variables, in the order of the arrays.
    mean, covariance
        Its parameters.
    """

    names: tuple[str, ...]
    mean: Floats
    covariance: Floats

    @property
    def deviation(self) -> Floats:
        """Standard deviation of each variable."""
        deviation: Floats = np.sqrt(self.covariance.diagonal())
        return deviation

    def __str__(self) -> str:
        pairs = zip(self.names, self.mean.tolist(), self.deviation.tolist(), strict=True)
        return "\n".join(f"{name}: {mean:.4g} ± {spread:.4g}" for name, mean, spread in pairs)
