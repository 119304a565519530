"""Simulate nonlinear structural equation models with additive noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.errors import DataError
from isthmus.graphs import DAG
from isthmus.options import require_boolean, require_instance, require_integer, require_number
from isthmus.simulate.noise import (
    EqualVariances,
    Gaussian,
    Noise,
    UniformWeights,
    Variances,
)
from isthmus.simulate.result import Purpose, Simulation, stream
from isthmus.types import Floats


class Mechanism(ABC):
    """A distribution of random functions from the parents of a node to its mean."""

    @abstractmethod
    def apply(self, rng: np.random.Generator, parents: Floats) -> Floats:
        """Draw one function and evaluate it.

        Parameters
        ----------
        rng
            Random generator, used for the function only, independently of the rows.
        parents
            One row per parent, at least one.
        """


@final
@dataclass(frozen=True)
class MLP(Mechanism):
    """One hidden layer of sigmoids over all parents, as in the NOTEARS-MLP experiments."""

    hidden: int = 100
    weights: UniformWeights = UniformWeights()

    def __post_init__(self) -> None:
        require_integer(self, "hidden", least=1)
        require_instance(self, "weights", UniformWeights, "UniformWeights()")

    def apply(self, rng: np.random.Generator, parents: Floats) -> Floats:
        p = len(parents)
        first = self.weights.draw(rng, p * self.hidden).reshape(self.hidden, p)
        second = self.weights.draw(rng, self.hidden)
        # The tanh form of the sigmoid does not overflow.
        mean: Floats = second @ (0.5 * (1.0 + np.tanh(0.5 * (first @ parents))))
        return mean


@final
@dataclass(frozen=True)
class FourierAdditive(Mechanism):
    """A sum of one random function per parent: a linear term and a few sines and cosines.

    f(x) = β {w₀ x + Σ_k [v_k sin(kx) + w_k cos(kx)]}, where v and w have Dirichlet distributions
    with concentrations proportional to exp(-k/decay), as in the Gaussian process network
    experiments (arXiv 2306.11380).

    Attributes
    ----------
    terms
        Number of frequencies.
    decay
        0 gives linear functions, small values nearly linear ones, large values strongly nonlinear
        ones.
    weights
        Distribution of β.
    shared
        Whether the parents of a node share v and w, as in the code of those experiments. In the
        paper each parent has its own.
    """

    terms: int = 6
    decay: float = 1.0
    weights: UniformWeights = UniformWeights()
    shared: bool = False

    def __post_init__(self) -> None:
        require_integer(self, "terms", least=1)
        require_number(self, "decay", least=0)
        require_instance(self, "weights", UniformWeights, "UniformWeights()")
        require_boolean(self, "shared")

    def apply(self, rng: np.random.Generator, parents: Floats) -> Floats:
        betas = self.weights.draw(rng, len(parents))
        mean = np.zeros(parents.shape[1])
        cosines, sines = self._coefficients(rng)
        for beta, x in zip(betas, parents, strict=True):
            shape = cosines[0] * x
            for k in range(1, self.terms + 1):
                shape += sines[k] * np.sin(k * x) + cosines[k] * np.cos(k * x)
            mean += beta * shape
            if not self.shared:
                cosines, sines = self._coefficients(rng)
        return mean

    def _coefficients(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        if self.decay == 0.0:
            linear = np.zeros(self.terms + 1)
            linear[0] = 1.0
            return linear, np.zeros(self.terms + 1)
        sizes = np.exp(-np.arange(self.terms + 1) / self.decay)
        # A concentration must be positive even if the exponential underflows.
        concentration = np.maximum(sizes / sizes.sum(), 1e-12)
        return rng.dirichlet(concentration), rng.dirichlet(concentration)


def nonlinear(
    dag: DAG,
    n: int,
    *,
    mechanism: Mechanism = MLP(),
    noise: Noise = Gaussian(),
    variances: Variances | Mapping[str, float] = EqualVariances(),
    internally_standardised: bool = False,
    seed: int = 0,
) -> Simulation:
    """Simulate data from a nonlinear model ``x_j = f_j(parents) + e_j``.

    Parameters
    ----------
    dag
        The graph.
    n
        Number of rows, at least 2 if internally standardised.
    mechanism
        Distribution of the functions: `MLP` or `FourierAdditive`.
    noise
        Distribution of the noise, with mean zero.
    variances
        Distribution of the noise variances, or the variance of each node.
    internally_standardised
        Standardise each variable by its sample mean and standard deviation before it enters the
        equations of its children (arXiv 2406.11601).
    seed
        Random seed. The same seed gives the same data. Functions do not depend on ``n``.
    """
    if n < (2 if internally_standardised else 0):
        least = 2 if internally_standardised else 0
        raise DataError(f"n must be {least} or more; {n} was given.")
    nodes = dag.nodes
    if isinstance(variances, Variances):
        values = variances.draw(stream(seed, Purpose.VARIANCES), len(nodes))
        variances = dict(zip(nodes, values.tolist(), strict=True))
    rng = stream(seed, Purpose.NOISE)
    columns = np.empty((len(nodes), n))
    for j, name in enumerate(nodes):
        columns[j] = np.sqrt(variances[name]) * noise.draw(rng, n)
    above = dag.parent_indices()
    for name in dag.topological_order():
        j = dag.index(name)
        if above[j]:
            draw = stream(seed, Purpose.MECHANISM, j)
            columns[j] += mechanism.apply(draw, columns[list(above[j])])
        if internally_standardised:
            columns[j] = (columns[j] - columns[j].mean()) / columns[j].std()
    return Simulation(dag, dict(zip(nodes, columns, strict=True)))
