"""Distributions of noise, noise variances and edge weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.errors import ArgumentError
from isthmus.options import require_number
from isthmus.types import Floats


class Noise(ABC):
    """A noise distribution with mean zero and variance one; `Variances` set the scale."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw ``n`` independent values with mean 0 and variance 1."""


@final
@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal noise."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.standard_normal(n)


@final
@dataclass(frozen=True)
class Exponential(Noise):
    """Exponential noise, centred; it is skewed to the right."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.standard_exponential(n) - 1.0


@final
@dataclass(frozen=True)
class Gumbel(Noise):
    """Gumbel noise, centred and scaled to variance one.

    A standard Gumbel variable has variance π²/6. For this variance, as in benchmarks with "scale
    1", give ``variances=EqualVariances(math.pi**2 / 6)``.
    """

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        draws: Floats = (rng.gumbel(size=n) - np.euler_gamma) * (np.sqrt(6.0) / np.pi)
        return draws


@final
@dataclass(frozen=True)
class Uniform(Noise):
    """Uniform noise, centred."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), n)


class Variances(ABC):
    """A distribution of the noise variances of the nodes."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        """Draw one positive variance per node."""


@final
@dataclass(frozen=True)
class EqualVariances(Variances):
    """The same variance for every node, which makes the order identifiable from the covariance."""

    value: float = 1.0

    def __post_init__(self) -> None:
        require_number(self, "value", above=0)

    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        return np.full(d, float(self.value))


@final
@dataclass(frozen=True)
class UnequalVariances(Variances):
    """Variances drawn uniformly between two bounds, independently for each node."""

    low: float = 0.5
    high: float = 2.0

    def __post_init__(self) -> None:
        require_number(self, "low", above=0)
        require_number(self, "high", above=0)
        if self.low > self.high:
            raise ArgumentError(f"Expected 0 < low <= high; got low={self.low}, high={self.high}.")

    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        return rng.uniform(self.low, self.high, d)


@final
@dataclass(frozen=True)
class UniformWeights:
    """Edge weights with absolute value uniform in [``low``, ``high``] and a random sign."""

    low: float = 0.5
    high: float = 2.0

    def __post_init__(self) -> None:
        require_number(self, "low", least=0)
        require_number(self, "high", least=0)
        if self.low > self.high:
            raise ArgumentError(f"Expected 0 <= low <= high; got low={self.low}, high={self.high}.")

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw ``count`` weights."""
        sizes = rng.uniform(self.low, self.high, count)
        return np.where(rng.random(count) < 0.5, -sizes, sizes)
