"""Accounting of differential privacy: what discrete Gaussian noise costs, and how costs add up.

Costs are counted in zero-concentrated differential privacy (zCDP; Bun and Steinke 2016), where
they add up: answers that cost ρ₁ and ρ₂ cost ρ₁ + ρ₂ together. They are reported as ε at a δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from isthmus.errors import ArgumentError

SMALLEST_SCALE = 0.5
"""The bound on sums of discrete Gaussians holds from this standard deviation on."""

STEPS = 200
"""Maximum number of bisection steps."""


def delta_of(rho: float, epsilon: float) -> float:
    """Return a δ such that ρ-zCDP implies (ε, δ)-differential privacy.

    This is Corollary 13 of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
    Privacy" (2020): the minimum over α > 1 of ``exp((α-1)(αρ-ε)) (1-1/α)^α / (α-1)``. Every α
    gives a valid δ, so that an inexact minimum is on the safe side.
    """
    if rho == 0.0:
        return 0.0
    # The derivative of the logarithm increases in α.
    _, alpha = _bisected(
        1.0 + 1e-9,
        (epsilon + 1.0) / (2.0 * rho) + 2.0,
        lambda a: (2.0 * a - 1.0) * rho - epsilon + math.log1p(-1.0 / a) >= 0.0,
    )
    exponent = (alpha - 1.0) * (alpha * rho - epsilon) + alpha * math.log1p(-1.0 / alpha)
    return min(1.0, math.exp(min(exponent, 700.0)) / (alpha - 1.0))


def epsilon_of(rho: float, delta: float) -> float:
    """Return an ε such that ρ-zCDP implies (ε, δ)-differential privacy."""
    _require_delta(delta)
    if rho == 0.0:
        return 0.0
    largest = rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))
    return _bisected(0.0, largest, lambda epsilon: delta_of(rho, epsilon) <= delta)[1]


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ that implies (ε, δ)-differential privacy."""
    _require_delta(delta)
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise ArgumentError(f"epsilon is {epsilon}; it must be positive and finite.")
    return _bisected(0.0, epsilon + 1.0, lambda rho: delta_of(rho, epsilon) > delta)[0]


def _bisected(low: float, high: float, is_high: Callable[[float], bool]) -> tuple[float, float]:
    """Return neighbours between which a condition that holds for large numbers begins to hold."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if is_high(middle) else (middle, high)
    return low, high


def gap(scale: float, sites: int) -> float:
    """Return τ: how far a sum of discrete Gaussians is from a discrete Gaussian.

    This is Proposition 14 of Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian Mechanism
    for Federated Learning with Secure Aggregation" (2021).

    Parameters
    ----------
    scale
        Standard deviation of the noise of each site.
    sites
        How many sites add noise.
    """
    if scale < SMALLEST_SCALE:
        raise ArgumentError(f"The scale is {scale}; the bound holds from {SMALLEST_SCALE} on.")
    exponent = -2.0 * math.pi**2 * scale**2
    return 10.0 * sum(math.exp(exponent * k / (k + 1)) for k in range(1, sites))


def cost(sensitivity: float, scale: float, sites: int, numbers: int) -> float:
    """Return the ρ of an answer to which several sites have added discrete Gaussian noise.

    Parameters
    ----------
    sensitivity
        The largest Euclidean norm by which one person changes the answer.
    scale
        Standard deviation of the noise of each site in each number.
    sites
        How many sites have added noise that nobody else knows.
    numbers
        How many numbers the answer has.
    """
    distance = sensitivity / (math.sqrt(sites) * scale)
    return (distance + gap(scale, sites) * math.sqrt(numbers)) ** 2 / 2.0


def scale_for(rho: float, sensitivity: float, sites: int, numbers: int) -> float:
    """Return the standard deviation of the noise of each site with which an answer costs ρ."""
    scale = max(sensitivity / math.sqrt(2.0 * rho * sites), SMALLEST_SCALE)
    while cost(sensitivity, scale, sites, numbers) > rho:
        scale *= 1.0 + 1e-6 if gap(scale, sites) == 0.0 else 1.01
    return scale


def _require_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise ArgumentError(f"delta is {delta}; it must be between 0 and 1.")
