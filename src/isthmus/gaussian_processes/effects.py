"""Posterior of the effect of each parent, averaged over the hyperparameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from isthmus.gaussian_processes.design import FLOOR
from isthmus.gaussian_processes.families import RegressionFit
from isthmus.gaussian_processes.importance import Proposal, log_values
from isthmus.types import Floats, completed


class Effects(NamedTuple):
    """Posterior of one regression, in units of standard deviations.

    Attributes
    ----------
    means, covariances
        For each parent, mean and covariance of its effect at the inputs of the design.
    length_scales
        Posterior means of the length scales.
    noise
        Posterior mean of σ.
    """

    means: tuple[Floats, ...]
    covariances: tuple[Floats, ...]
    length_scales: Floats
    noise: float


def posterior_effects(fit: RegressionFit, draws: int, rng: np.random.Generator) -> Effects:
    """Average the posterior of each effect over draws of the hyperparameters.

    Parameters
    ----------
    fit
        A regression without interactions.
    draws
        Number of weighted draws; 0 for the highest mode alone.
    rng
        Random numbers.
    """
    points, weights = fit.modes[0].point[None], np.ones(1)
    if draws:
        proposal = Proposal(fit.modes)
        points = proposal.draw(draws, rng)
        ratios = completed(log_values(fit.density, points)) - proposal.log_density(points)
        weights = np.exp(ratios - ratios.max())
        weights /= weights.sum()
        points, weights = points[weights > 1e-6], weights[weights > 1e-6]
        weights /= weights.sum()
    p = fit.density.design.parents
    at = [_conditional(fit, point) for point in points]
    means, covariances = [], []
    for j in range(p):
        own = np.stack([mean[j] for mean, _ in at])
        mean = weights @ own
        within = np.tensordot(weights, np.stack([cov[j] for _, cov in at]), 1)
        means.append(mean)
        covariances.append(within + (own - mean).T @ ((own - mean) * weights[:, None]))
    return Effects(
        tuple(means),
        tuple(covariances),
        weights @ np.exp(points[:, :p]),
        float(weights @ np.exp(points[:, -1])),
    )


def _conditional(fit: RegressionFit, point: Floats) -> tuple[list[Floats], list[Floats]]:
    """Mean and covariance of each effect, given the hyperparameters."""
    d = fit.density.design
    kernels = [
        np.exp(-0.5 * np.exp(-2.0 * t) * square)
        for t, square in zip(point[: d.parents], d.squares, strict=True)
    ]
    # Covariance of each effect at its inputs (rows) with the coordinates (columns).
    crossed = [k if b is None else k @ b.T for k, b in zip(kernels, d.maps, strict=True)]
    covariance = d.outer.copy()
    for cross, mapping in zip(crossed, d.maps, strict=True):
        covariance += cross if mapping is None else mapping @ cross
    covariance[np.diag_indices(len(covariance))] += np.exp(2.0 * point[-1]) + FLOOR
    factor = cho_factor(covariance, lower=True)
    weights = cho_solve(factor, d.target)
    means = [cross @ weights for cross in crossed]
    covariances = [
        kernel - cross @ cho_solve(factor, cross.T)
        for kernel, cross in zip(kernels, crossed, strict=True)
    ]
    return means, covariances
