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

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np

from isthmus.searches.continuous.acyclicity import exponential
from isthmus.types import Bools, Floats


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
