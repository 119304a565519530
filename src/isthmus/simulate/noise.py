"""Laws of the noise, its variances, and the weights of edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.errors import DataError
from isthmus.types import Floats


class Noise(ABC):
    """A law with mean zero and variance one; variances are set apart from the shape."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Give n independent draws, mean 0, variance 1."""


@final
@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal noise."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Give n independent draws, mean 0, variance 1."""
        return rng.standard_normal(n)


@final
@dataclass(frozen=True)
class Exponential(Noise):
    """Exponential noise less its mean: skewed to the right."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Give n independent draws, mean 0, variance 1."""
        return rng.standard_exponential(n) - 1.0


@final
@dataclass(frozen=True)
class Gumbel(Noise):
    """Gumbel noise less its mean and scaled to variance one.

    A standard Gumbel variable has variance π²/6; to have that, as benchmarks with "scale 1" do,
    add ``variances=EqualVariances(math.pi**2 / 6)``.
    """

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Give n independent draws, mean 0, variance 1."""
        draws: Floats = (rng.gumbel(size=n) - np.euler_gamma) * (np.sqrt(6.0) / np.pi)
        return draws


@final
@dataclass(frozen=True)
class Uniform(Noise):
    """Uniform noise around zero."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Give n independent draws, mean 0, variance 1."""
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), n)


class Variances(ABC):
    """A law of the noise variances of the nodes."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        """Give one positive variance a node."""


@final
@dataclass(frozen=True)
class EqualVariances(Variances):
    """The same variance for every node: the order can then be told from the covariance."""

    value: float = 1.0

    def __post_init__(self) -> None:
        if not self.value > 0:
            raise DataError(f"A noise variance must be positive; {self.value} was given.")

    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        """Give one positive variance a node."""
        return np.full(d, float(self.value))


@final
@dataclass(frozen=True)
class UnequalVariances(Variances):
    """Variances uniform between two bounds, one drawn for each node."""

    low: float = 0.5
    high: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high:
            raise DataError(f"Need 0 < low <= high; low={self.low}, high={self.high} were given.")

    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        """Give one positive variance a node."""
        return rng.uniform(self.low, self.high, d)


@final
@dataclass(frozen=True)
class UniformWeights:
    """Edge weights: size uniform between ``low`` and ``high``, either sign equally likely."""

    low: float = 0.5
    high: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise DataError(f"Need 0 <= low <= high; low={self.low}, high={self.high} were given.")

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Give ``count`` weights."""
        sizes = rng.uniform(self.low, self.high, count)
        return np.where(rng.random(count) < 0.5, -sizes, sizes)
