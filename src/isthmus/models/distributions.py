"""Answers to queries: distributions of some variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.errors import ArgumentError, SchemaError
from isthmus.models.columns import Level
from isthmus.types import Floats

_SIMULATED = (
    "More draws reduce the simulation error. The sampling error of the fitted parameters is not "
    "included."
)


@final
@dataclass(frozen=True, eq=False)
class Probabilities:
    """The joint distribution of discrete variables; ``numpy.asarray`` gives the probabilities.

    The sampling error of fitted parameters is not included.

    Attributes
    ----------
    levels
        The values of each variable, by name, in the order of the axes.
    values
        The probabilities, one axis per variable.
    squares
        If the answer was simulated, the sum of the squared weights of the draws in each cell,
        from which `error` is computed. None if the answer is exact.
    """

    levels: Mapping[str, tuple[Level, ...]]
    values: Floats
    squares: Floats | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(self.levels)

    @property
    def error(self) -> Floats | None:
        """Simulation error of each probability; None if the answer is exact for the parameters."""
        if self.squares is None:
            return None
        total, p = float(self.squares.sum()), self.values
        error: Floats = np.sqrt(self.squares * (1 - p) ** 2 + (total - self.squares) * p**2)
        return error

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
        squares = None if self.squares is None else self.squares.sum(axis=others)
        return Probabilities({name: self.levels[name]}, self.values.sum(axis=others), squares)

    def most_probable(self) -> dict[str, Level]:
        """Return the most probable level of each variable, jointly."""
        place = np.unravel_index(int(np.argmax(self.values)), self.values.shape)
        return {name: own[i] for (name, own), i in zip(self.levels.items(), place, strict=True)}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __str__(self) -> str:
        lines, error = [", ".join(self.names)], self.error
        for place in np.ndindex(self.values.shape):
            known = zip(self.levels.values(), place, strict=True)
            row = ", ".join(str(own[i]) for own, i in known)
            unsure = "" if error is None else f" (simulation error {error[place]:.2g})"
            lines.append(f"{row}: {self.values[place]:.4f}{unsure}")
        return "\n".join(lines if error is None else [*lines, _SIMULATED])


@final
@dataclass(frozen=True, eq=False)
class Explanation:
    """The most probable values of some variables, jointly, given the evidence.

    The sampling error of fitted parameters is not included.

    Attributes
    ----------
    values
        The level, or the value, of each variable.
    log_probability
        Logarithm of their joint probability given the evidence; of their joint density if they are
        continuous.
    """

    values: Mapping[str, Level | float]
    log_probability: float

    def __getitem__(self, name: str) -> Level | float:
        """Return the value of a variable."""
        if name not in self.values:
            raise ArgumentError(f"{name!r} is not one of {list(self.values)}.")
        return self.values[name]

    def __str__(self) -> str:
        rows = [f"{name}: {_plain(value)}" for name, value in self.values.items()]
        return "\n".join([*rows, f"log-probability: {self.log_probability:.6g}"])


def _plain(value: Level | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@final
@dataclass(frozen=True, eq=False)
class Normal:
    """The joint normal distribution of continuous variables.

    The sampling error of fitted parameters is not included.

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


@final
@dataclass(frozen=True, eq=False)
class NormalMixture:
    """The joint distribution of continuous variables as a weighted mixture of normal ones.

    The sampling error of fitted parameters is not included.

    Attributes
    ----------
    names
        Names of the variables, in the order of the arrays.
    weights
        Weight of each component; they sum to one.
    means, covariances
        Parameters of the components, with one row or one matrix per component.
    simulated
        Whether the components are weighted draws, each with covariance zero. Otherwise the
        mixture is exact.
    """

    names: tuple[str, ...]
    weights: Floats
    means: Floats
    covariances: Floats
    simulated: bool = False

    @property
    def mean(self) -> Floats:
        """Mean of each variable; `error` is its simulation error."""
        mean: Floats = self.weights @ self.means
        return mean

    @property
    def covariance(self) -> Floats:
        """Covariance matrix of the variables."""
        away = self.means - self.mean
        within = np.tensordot(self.weights, self.covariances, axes=1)
        covariance: Floats = within + (self.weights[:, None] * away).T @ away
        return covariance

    @property
    def deviation(self) -> Floats:
        """Standard deviation of each variable."""
        deviation: Floats = np.sqrt(self.covariance.diagonal())
        return deviation

    @property
    def error(self) -> Floats | None:
        """Simulation error of each mean; None if the answer is exact for the parameters."""
        if not self.simulated:
            return None
        error: Floats = np.sqrt(self.weights**2 @ (self.means - self.mean) ** 2)
        return error

    def __str__(self) -> str:
        lines, error = [], self.error
        for i, (name, mean, spread) in enumerate(
            zip(self.names, self.mean.tolist(), self.deviation.tolist(), strict=True)
        ):
            unsure = "" if error is None else f" (simulation error of the mean {error[i]:.2g})"
            lines.append(f"{name}: {mean:.4g} ± {spread:.4g}{unsure}")
        return "\n".join(lines if error is None else [*lines, _SIMULATED])
