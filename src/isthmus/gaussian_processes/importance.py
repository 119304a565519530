"""Importance sampling of a marginal likelihood, from Student-t distributions at its modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from scipy.special import gammaln, logsumexp

from isthmus.gaussian_processes.density import Density
from isthmus.gaussian_processes.laplace import Mode
from isthmus.types import Floats, Work, completed

FREEDOM = 5.0
"""Degrees of freedom. The density falls faster than a Student-t, so weights are bounded."""


class IntegralEstimate(NamedTuple):
    """A logarithm of an integral, estimated from random draws.

    Attributes
    ----------
    value
        The logarithm of the estimate.
    error
        Two standard errors, in nats: the truth is closer than this in about 95 of 100 cases.
    effective
        Effective number of draws.
    """

    value: float
    error: float
    effective: float


@final
class Proposal:
    """A mixture of Student-t distributions, one per mode, weighted by their integrals."""

    def __init__(self, modes: Sequence[Mode]) -> None:
        integrals = np.array([mode.log_integral for mode in modes])
        shares = np.exp(integrals - integrals.max())
        chosen = shares > 1e-3 * shares.sum()
        kept = [mode for mode, share in zip(modes, chosen, strict=True) if share]
        self._shares = shares[chosen] / shares[chosen].sum()
        self._centres = [mode.point for mode in kept]
        # curvature = L Lᵀ, so L⁻ᵀ z has the inverse curvature as its covariance
        self._factors = [np.linalg.cholesky(mode.curvature) for mode in kept]

    def draw(self, number: int, rng: np.random.Generator) -> Floats:
        """Draw points, shape (number, size)."""
        size = len(self._centres[0])
        which = rng.choice(len(self._shares), size=number, p=self._shares)
        normal = rng.standard_normal((number, size))
        normal *= np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=(number, 1)))
        points = np.empty_like(normal)
        for i, (centre, factor) in enumerate(zip(self._centres, self._factors, strict=True)):
            rows = which == i
            points[rows] = centre + np.linalg.solve(factor.T, normal[rows].T).T
        return points

    def log_density(self, points: Floats) -> Floats:
        """Return the log density of each point."""
        size = points.shape[1]
        constant = (
            gammaln(0.5 * (FREEDOM + size))
            - gammaln(0.5 * FREEDOM)
            - 0.5 * size * np.log(FREEDOM * np.pi)
        )
        parts = []
        for share, centre, factor in zip(self._shares, self._centres, self._factors, strict=True):
            squares = (((points - centre) @ factor) ** 2).sum(axis=1)
            scale = float(np.log(factor.diagonal()).sum())
            tail = -0.5 * (FREEDOM + size) * np.log1p(squares / FREEDOM)
            parts.append(np.log(share) + constant + scale + tail)
        return np.asarray(logsumexp(parts, axis=0))


def log_values(density: Density, points: Floats) -> Work[Floats]:
    """Compute the log density of a child and its hyperparameters at each point."""
    values = np.empty(len(points))
    for i, point in enumerate(points):
        values[i] = density.value(point)
        yield
    return values


def importance(
    density: Density, modes: Sequence[Mode], draws: int, rng: np.random.Generator
) -> IntegralEstimate:
    """Estimate the log marginal likelihood by importance sampling."""
    return completed(importance_work(density, modes, draws, rng))


def importance_work(
    density: Density, modes: Sequence[Mode], draws: int, rng: np.random.Generator
) -> Work[IntegralEstimate]:
    """Do what `importance` does, in pieces."""
    proposal = Proposal(modes)
    points = proposal.draw(draws, rng)
    ratios = (yield from log_values(density, points)) - proposal.log_density(points)
    value = float(logsumexp(ratios) - np.log(draws))
    weights = np.exp(ratios - value)
    error = 2.0 * float(np.sqrt(((weights - 1.0) ** 2).sum() / max(draws - 1, 1) / draws))
    return IntegralEstimate(value, error, float(weights.sum() ** 2 / (weights**2).sum()))
