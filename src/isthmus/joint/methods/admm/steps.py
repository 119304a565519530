"""The coordinator's side of ADMM: from sums over sites to common acyclic parameters.

The coordinator's step minimises ``K ρ₂/2 |W - T|² + λ |W|₁ + α h(W) + ρ₁/2 h(W)²``, where T is the
mean of the sites' contributions. No subgradient of the ℓ1 norm is needed, which would make the
result depend on rounding at its kinks. Because h depends only on the squares of the weights and
increases with each, every stationary point has weights ``v κ / (κ + 2 c)``, with κ = K ρ₂, v the
soft threshold of T by λ/κ, and c the slope of the terms of h, the same for all parameters of one
edge. It is therefore enough to minimise the smooth ``κ/2 |A - |v||² + α h(A) + ρ₁/2 h(A)²`` over
one number A per edge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from isthmus.graphs.order import above_threshold
from isthmus.joint.methods.admm.requests import AskConsensus, StepOfADMM
from isthmus.options import require_choice, require_integer, require_number
from isthmus.searches.continuous.acyclicity import exponential
from isthmus.statistics import Schema
from isthmus.types import Bools, Floats

Ask: TypeAlias = Callable[[int, Floats, float], Floats]
"""Returns the sum over sites of ``B + β/ρ``, given step, common parameters and penalty."""

MOST = 1e16
"""Upper limit of the penalties."""


class Centring(StrEnum):
    """Which means a site subtracts from its rows."""

    POOLED = "pooled"
    LOCAL = "local"


class Stiffness(StrEnum):
    """Whether ``rho2`` is the penalty of each site or of all sites together."""

    EACH = "each"
    TOGETHER = "together"


@dataclass(frozen=True)
class Pull:
    """The terms of the coordinator's step: the weight of the sites, and of the acyclicity terms."""

    weight: float
    alpha: float
    rho1: float


@dataclass(frozen=True, eq=False)
class Turn:
    """One step, before it is sent to the sites.

    Attributes
    ----------
    names
        The variables.
    rows
        Number of rows of all sites.
    centre
        Values that sites subtract from their rows; ``None`` for the means of each site.
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
        """Return the request to sites that fit linear models."""
        weights = tuple(map(tuple, self.common.tolist()))
        return AskConsensus(self.names, self.step, self.rows, self.rho, weights, self.centre)


@dataclass(frozen=True)
class ADMM(ABC):
    """A model and the schedule of ADMM for it.

    Parameters
    ----------
    penalty
        Coefficient of the ℓ1 norm.
    rho1, rho2
        Initial penalties on cycles and on disagreement.
    growth1, growth2
        Factors by which they grow in each round.
    rounds
        Maximum number of rounds.
    tolerance
        Stop early if, in five consecutive rounds, the parameters moved less than this, and both the
        acyclicity measure and the distance to the mean of the sites are below a hundred times this.
        Zero never stops early.
    threshold
        Smaller weights are dropped; then the weakest edges until there is no cycle.
    centring
        Subtract the means of each site, as in the paper, which costs one degree of freedom per
        site; or the pooled means. Sites accept pooled means only if the study fixes them, because
        second moments about a centre that the coordinator chooses show the means of sites.
    stiffness
        Whether ``rho2`` is the penalty of each site, as in the paper, or of all sites together.
        Then the size of a step does not depend on the number of sites.
    """

    penalty: float = 0.01
    rho1: float = 1e-3
    rho2: float = 1e-3
    growth1: float = 1.75
    growth2: float = 1.25
    rounds: int = 200
    tolerance: float = 1e-6
    threshold: float = 0.3
    centring: Centring = Centring.LOCAL
    stiffness: Stiffness = Stiffness.EACH

    def __post_init__(self) -> None:
        for name in ("penalty", "tolerance", "threshold"):
            require_number(self, name, least=0)
        for name in ("rho1", "rho2", "growth1", "growth2"):
            require_number(self, name, above=0)
        require_integer(self, "rounds", least=1)
        require_choice(self, "centring", Centring)
        require_choice(self, "stiffness", Stiffness)

    @abstractmethod
    def start(self, schema: Schema) -> Floats:
        """Return the initial common parameters; refuse variables that the model is not for."""

    @abstractmethod
    def request(self, turn: Turn) -> StepOfADMM:
        """Return the request to the sites for one step."""

    @abstractmethod
    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step from the mean of the sites' contributions."""

    @abstractmethod
    def weights(self, common: Floats) -> Floats:
        """Return the edge weights ``[cause, effect]``. Effects come first among the causes."""

    def edges(self, common: Floats) -> Bools:
        """Return the edges above the threshold, without cycles."""
        return above_threshold(self.weights(common), self.threshold)


def iterate(ask: Ask, start: Floats, sites: int, options: ADMM) -> tuple[Floats, int]:
    """Run ADMM; return the common parameters and the number of rounds."""
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
        # In the first rounds the penalty keeps all weights at zero, far from the mean of the sites.
        still = max(moved, 0.01 * h, 0.01 * apart) < options.tolerance
        quiet = quiet + 1 if still else 0
        if quiet == 5:
            return common, step
        rho1 = min(rho1 * options.growth1, MOST)
        rho2 = min(rho2 * options.growth2, MOST)
    return common, options.rounds


def cycles(weights: Floats) -> float:
    """Return the acyclicity measure of the contemporaneous weights."""
    return exponential(weights[: weights.shape[1]])[0]


def soft(values: Floats, by: float) -> Floats:
    """Apply a soft threshold."""
    shrunk: Floats = np.sign(values) * np.maximum(np.abs(values) - by, 0.0)
    return shrunk


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

    optimum = minimize(
        objective,
        np.where(wanted == 0.0, 0.0, start).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-12, "gtol": 1e-8},
    )
    weights: Floats = np.asarray(optimum.x, dtype=np.float64).reshape(d, d)
    return weights


def joint_step(target: Floats, start: Floats, pull: Pull, penalty: float) -> Floats:
    """Compute the coordinator's step for one weight per edge; the diagonal stays zero."""
    wanted = soft(target, penalty / pull.weight)
    np.fill_diagonal(wanted, 0.0)
    return without_cycles(wanted, start, pull)
