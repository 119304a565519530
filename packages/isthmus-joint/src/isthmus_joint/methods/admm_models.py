"""The models that ADMM can fit: linear models and time series, or neural networks.

The coordinator's step minimises ``K ρ₂/2 |W - T|² + λ |W|₁ + α h(W) + ρ₁/2 h(W)²``, where T is the
mean of the sites' contributions. No subgradient of the ℓ1 norm is needed, which would make the
result depend on rounding at its kinks. Because h depends only on the squares of the weights and
increases with each, every stationary point has weights ``v κ / (κ + 2 c)``, with κ = K ρ₂, v the
soft threshold of T by λ/κ, and c the slope of the terms of h, the same for all parameters of one
edge. It is therefore enough to minimise the smooth ``κ/2 |A - |v||² + α h(A) + ρ₁/2 h(A)²`` over
one number A per edge.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import final

import numpy as np

from isthmus.arrays import Bools, Floats
from isthmus.errors import SchemaError
from isthmus.graphs.knowledge import Lag
from isthmus.graphs.names import above_threshold
from isthmus.searches.notears_penalties import exponential
from isthmus.statistics import Schema

SMALLEST, LARGEST = 1e-9, 1e16
"""Limits of the penalties in all steps."""


@final
@dataclass(frozen=True)
class ADMMOptions:
    """What a coordinator chooses for a run, before any number of a site is known.

    Attributes
    ----------
    penalty, lagged_penalty, rho1, rho2, growth1, growth2
        As for `ADMM`.
    together
        Whether ``rho2`` is the penalty of all sites together.
    forbidden
        Pairs of a cause and an effect that must not be an edge.
    hidden, seed
        Units in the hidden layer of each neural network, and the seed of their initial parameters;
        without effect for linear models.
    """

    penalty: float = 0.01
    lagged_penalty: float = 0.01
    rho1: float = 1e-3
    rho2: float = 1e-3
    growth1: float = 1.75
    growth2: float = 1.25
    together: bool = False
    forbidden: tuple[tuple[str, str], ...] = ()
    hidden: int = 10
    seed: int = 0

    def forbidden_among(self, names: tuple[str, ...]) -> Bools:
        """Return which edges ``[cause, effect]`` must not be in the graph; no loop may be."""
        found = np.eye(len(names), dtype=np.bool_)
        for cause, effect in self.forbidden:
            found[names.index(cause), names.index(effect)] = True
        return found

    def fit(self, names: tuple[str, ...]) -> bool:
        """Return whether a run over these variables can have these options."""
        numbers = (self.penalty, self.lagged_penalty, self.growth1, self.growth2)
        return (
            all(0 <= v < math.inf for v in numbers)
            and all(SMALLEST <= v <= LARGEST for v in (self.rho1, self.rho2))
            and all(len(pair) == 2 and set(pair) <= set(names) for pair in self.forbidden)
            and 1 <= self.hidden <= 2**16
            and 0 <= self.seed < 2**64
        )


@dataclass(frozen=True)
class Pull:
    """The terms of the coordinator's step: the weight of the sites, and of the acyclicity terms."""

    weight: float
    alpha: float
    rho1: float


def cycles(weights: Floats) -> float:
    """Return the acyclicity measure of the contemporaneous weights."""
    return exponential(weights[: weights.shape[1]])[0]


def soft(values: Floats, by: float) -> Floats:
    """Apply a soft threshold."""
    shrunk: Floats = np.sign(values) * np.maximum(np.abs(values) - by, 0.0)
    return shrunk


def without_cycles(wanted: Floats, start: Floats, pull: Pull) -> Floats:
    """Minimise ``weight/2 |W - wanted|² + alpha h(W) + rho1/2 h(W)²``.

    Weights that are zero in ``wanted`` stay so; those of the diagonal must be.
    """
    first = np.where(wanted == 0.0, 0.0, start)
    return np.frombuffer(_minimised(wanted.tobytes(), first.tobytes(), pull)).reshape(wanted.shape)


@lru_cache(maxsize=2)  # in a simulation, all sites solve the same problem in one process
def _minimised(wanted_bytes: bytes, start: bytes, pull: Pull) -> bytes:
    from scipy.optimize import minimize

    wanted = np.frombuffer(wanted_bytes)
    d = isqrt(len(wanted))

    def objective(flat: Floats) -> tuple[float, Floats]:
        h, slope = exponential(flat.reshape(d, d))
        away = flat - wanted
        value = 0.5 * float((away * away).sum())
        value += (pull.alpha * h + 0.5 * pull.rho1 * h * h) / pull.weight
        gradient = away + (pull.alpha + pull.rho1 * h) / pull.weight * slope.ravel()
        return value, gradient

    optimum = minimize(
        objective,
        np.frombuffer(start),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-12, "gtol": 1e-8},
    )
    return np.asarray(optimum.x, dtype=np.float64).tobytes()


def joint_step(
    target: Floats, start: Floats, pull: Pull, penalty: float, forbidden: Bools
) -> Floats:
    """Compute the coordinator's step for one weight per edge; forbidden edges stay zero."""
    wanted = np.where(forbidden, 0.0, soft(target, penalty / pull.weight))
    return without_cycles(wanted, start, pull)


class ConsensusModel(ABC):
    """Base class of the models that ADMM can fit.

    Parameters
    ----------
    schema
        The variables; those that the model is not for are refused.
    """

    def __init__(self, schema: Schema, options: ADMMOptions) -> None:
        self._options = options
        self._d = len(schema)
        self._forbidden = options.forbidden_among(schema.names)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters."""

    @abstractmethod
    def start(self) -> Floats:
        """Return the initial common parameters."""

    @abstractmethod
    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step from the mean of the sites' contributions."""

    @abstractmethod
    def weights(self, common: Floats) -> Floats:
        """Return the edge weights ``[cause, effect]``. Effects come first among the causes."""

    def edges(self, common: Floats, threshold: float, lagged_threshold: float) -> Bools:
        """Return the edges above the thresholds, without cycles."""
        weights = self.weights(common)
        effects = weights.shape[1]
        now = above_threshold(weights[:effects], threshold)
        return np.concatenate([now, np.abs(weights[effects:]) > lagged_threshold])


@final
class LinearConsensus(ConsensusModel):
    """Linear models: one weight per edge; of time series also lagged edges, after section 5.2.

    The schema states which variables are lagged, as that of a `Series` does. Only contemporaneous
    edges can form a cycle.
    """

    def __init__(self, schema: Schema, options: ADMMOptions) -> None:
        super().__init__(schema, options)
        self.effects = self._d
        if schema.lags:
            given = list(schema.lag_of.values())
            now = [lag.variable for lag in given if lag.steps == 0]
            if given != [Lag(name, steps) for steps in range(schema.lags + 1) for name in now]:
                raise SchemaError(
                    "ADMM for time series needs all variables, then all of them one time step "
                    f"earlier, and so on; {list(schema.names)[:8]} were given, with {schema.lags} "
                    "earlier steps. Pass Series(table, lags=2) for each site."
                )
            self.effects = len(now)

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per variable, and one column per contemporaneous variable."""
        return self._d, self.effects

    def start(self) -> Floats:
        return np.zeros(self.shape)

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step; lagged weights need no acyclicity constraint."""
        d, options, forbidden = self.effects, self._options, self._forbidden[:, : self.effects]
        now = joint_step(target[:d], common[:d], pull, options.penalty, forbidden[:d])
        lagged = soft(target[d:], options.lagged_penalty / pull.weight)
        return np.concatenate([now, np.where(forbidden[d:], 0.0, lagged)])

    def weights(self, common: Floats) -> Floats:
        return common


@final
class PerceptronConsensus(ConsensusModel):
    """One small neural network per variable. Needs JAX at every site (the extra ``neural``).

    The weight of an edge is the norm of the weights from the cause to the hidden layer of the
    effect.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """All parameters in one row."""
        from isthmus.neural import perceptron

        return (perceptron.size(self._d, self._options.hidden),)

    def start(self) -> Floats:
        """Draw the initial parameters; no network uses the variable that it predicts."""
        from isthmus.neural import perceptron

        rng = np.random.default_rng(self._options.seed)
        drawn = perceptron.drawn(self._d, self._options.hidden, rng)
        self._first(drawn)[self._forbidden] = 0.0
        return drawn

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step; only first layers are penalised and can form cycles."""
        new = target.copy()
        first = soft(self._first(target), self._options.penalty / pull.weight)
        first[self._forbidden] = 0.0
        wanted = np.sqrt((first * first).sum(axis=2))
        kept = np.abs(without_cycles(wanted, self.weights(common), pull))
        share = np.divide(kept, wanted, out=np.zeros_like(kept), where=wanted > 0.0)
        self._first(new)[:] = first * share[:, :, None]
        return new

    def weights(self, common: Floats) -> Floats:
        """Return the norms of the weights from a cause to the hidden layer of an effect."""
        first = self._first(common)
        norms: Floats = np.sqrt((first * first).sum(axis=2))
        return norms

    def _first(self, common: Floats) -> Floats:
        """Return a view of the first layers: [cause, effect, unit]."""
        d, hidden = self._d, self._options.hidden
        return common[: d * d * hidden].reshape(d, d, hidden)
