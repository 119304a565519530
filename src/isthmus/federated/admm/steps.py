"""The coordinator's side of ADMM: from sums over sites to common parameters without cycles.

The coordinator's step minimises ``K ρ₂/2 |W - T|² + λ |W|₁ + α h(W) + ρ₁/2 h(W)²``, T the mean of
what the sites gave. The ℓ1 norm need not be met with a subgradient, at whose corners rounding
chooses where to stop. Because h reads only the squares of weights, and rises with each, at every
stationary point a weight is ``v κ / (κ + 2 c)``, with κ = K ρ₂, v = T moved towards zero by λ/κ,
and c the slope of the terms of h, the same for all parameters of one edge. So it is enough to
minimise the smooth ``κ/2 |A - |v||² + α h(A) + ρ₁/2 h(A)²`` over one number A an edge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isthmus.federated.admm.requests import AskConsensus, Step
from isthmus.numerics.acyclicity import exponential

Floats: TypeAlias = NDArray[np.float64]
Truths: TypeAlias = NDArray[np.bool_]
Ask: TypeAlias = Callable[[int, Floats, float], Floats]
"""From step, common parameters and penalty to the sum over sites of ``B + β/ρ``."""

MOST = 1e16
"""Penalties do not grow beyond this."""


class Centring(StrEnum):
    """Which means a site takes off its rows."""

    POOLED = "pooled"
    LOCAL = "local"


class Stiffness(StrEnum):
    """Whose penalty on disagreement ``rho2`` is at first."""

    EACH = "each"
    TOGETHER = "together"


@dataclass(frozen=True)
class Pull:
    """What holds the common parameters: the sites, by ``weight``, and the terms of cycles."""

    weight: float
    alpha: float
    rho1: float


@dataclass(frozen=True, eq=False)
class Turn:
    """One step, before it is asked of the sites.

    Attributes
    ----------
    names
        The variables.
    rows
        Number of rows of all sites.
    centre
        What sites take off their rows; ``None`` for each site's own means.
    step, rho, common
        Number of the step, penalty on disagreement, and the common parameters.
    """

    names: tuple[str, ...]
    rows: int
    centre: tuple[float, ...] | None
    step: int
    rho: float
    common: Floats

    def linear(self) -> AskConsensus:
        """The question to sites that fit lines."""
        weights = tuple(map(tuple, self.common.tolist()))
        return AskConsensus(self.names, self.step, self.rows, self.rho, weights, self.centre)


@dataclass(frozen=True)
class ADMM(ABC):
    """A model and the schedule of ADMM for it.

    Parameters
    ----------
    penalty
        Weight of the ℓ1 norm.
    rho1, rho2
        First penalties on cycles and on disagreement.
    growth1, growth2
        Factors by which they grow every round.
    rounds
        The most rounds.
    tolerance
        Ends early when, five rounds in a row, the parameters moved less than this, and the measure
        of cycles and the distance to what the sites want on average are below a hundred times
        it; zero never ends early.
    threshold
        Weights below are dropped; then the weakest until no cycle is left.
    centring
        Take off the pooled means, or each site's own, as in the paper, which costs a degree of
        freedom for each site.
    stiffness
        Whether ``rho2`` is for each site, as in the paper, or for all together: then the common
        parameters move as far in a round, however many sites there are.
    """

    penalty: float = 0.01
    rho1: float = 1e-3
    rho2: float = 1e-3
    growth1: float = 1.75
    growth2: float = 1.25
    rounds: int = 200
    tolerance: float = 1e-6
    threshold: float = 0.3
    centring: Centring = Centring.POOLED
    stiffness: Stiffness = Stiffness.EACH

    @abstractmethod
    def start(self, names: tuple[str, ...]) -> Floats:
        """The first common parameters."""

    @abstractmethod
    def request(self, turn: Turn) -> Step:
        """The question to the sites in one step."""

    @abstractmethod
    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """The coordinator's step, from the mean of what the sites gave."""

    @abstractmethod
    def weights(self, common: Floats) -> Floats:
        """Weights ``[cause, effect]`` of edges; where there are more causes, effects come first."""

    def edges(self, common: Floats) -> Truths:
        """The edges above the threshold, without a cycle."""
        return acyclic(self.weights(common), self.threshold)


def iterate(ask: Ask, start: Floats, sites: int, options: ADMM) -> tuple[Floats, int]:
    """Give the common parameters and the number of rounds."""
    common = start
    alpha, rho1, rho2 = 0.0, options.rho1, options.rho2
    if options.stiffness is Stiffness.TOGETHER:
        rho2 /= sites
    quiet = 0
    for step in range(1, options.rounds + 1):
        target = ask(step, common, rho2) / sites
        new = options.join(target, common, Pull(sites * rho2, alpha, rho1))
        h = cycles(options.weights(new))
        alpha += rho1 * h
        moved = float(np.abs(new - common).max())
        apart = float(np.abs(new - target).max())
        common = new
        # In the first rounds the penalty holds all weights at zero, far from what sites want.
        still = max(moved, 0.01 * h, 0.01 * apart) < options.tolerance
        quiet = quiet + 1 if still else 0
        if quiet == 5:
            return common, step
        rho1 = min(rho1 * options.growth1, MOST)
        rho2 = min(rho2 * options.growth2, MOST)
    return common, options.rounds


def cycles(weights: Floats) -> float:
    """The measure of cycles among the effects."""
    return exponential(weights[: weights.shape[1]])[0]


def soft(values: Floats, by: float) -> Floats:
    """Move values towards zero."""
    found: Floats = np.sign(values) * np.maximum(np.abs(values) - by, 0.0)
    return found


def without_cycles(wanted: Floats, start: Floats, pull: Pull) -> Floats:
    """Minimise ``weight/2 |W - wanted|² + alpha h(W) + rho1/2 h(W)²``.

    The diagonal of ``wanted`` must be zero, and stays so.
    """
    from scipy.optimize import minimize

    d = len(wanted)

    def objective(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(d, d)
        h, slope = exponential(w)
        away = w - wanted
        value = 0.5 * float((away * away).sum())
        value += (pull.alpha * h + 0.5 * pull.rho1 * h * h) / pull.weight
        gradient = away + (pull.alpha + pull.rho1 * h) / pull.weight * slope
        return value, gradient.ravel()

    found = minimize(
        objective,
        np.where(wanted == 0.0, 0.0, start).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-12, "gtol": 1e-8},
    )
    weights: Floats = np.asarray(found.x, dtype=np.float64).reshape(d, d)
    return weights


def joint_step(target: Floats, start: Floats, pull: Pull, penalty: float) -> Floats:
    """The coordinator's step for one weight an edge; the diagonal is held at zero."""
    wanted = soft(target, penalty / pull.weight)
    np.fill_diagonal(wanted, 0.0)
    return without_cycles(wanted, start, pull)


def acyclic(weights: Floats, threshold: float) -> Truths:
    """The edges above a threshold, which rises until there is no cycle."""
    size = np.abs(weights)
    for least in [threshold, *np.sort(size[size > threshold]).tolist()]:
        edges: Truths = size > least
        if not cyclic(edges):
            return edges
    return np.zeros_like(size, dtype=bool)


def cyclic(edges: Truths) -> bool:
    """Whether a graph has a cycle."""
    left = np.ones(len(edges), dtype=bool)
    while left.any():
        roots = left & ~(edges[left].any(axis=0))
        if not roots.any():
            return True
        left &= ~roots
    return False
