"""Smooth measures of how far a weighted graph is from acyclic, with their gradients.

Each function takes a square matrix of weights ``[from, to]`` and returns ``(h, gradient)``. All are
zero exactly where the graph of the non-zero weights has no cycle, and positive elsewhere: each is a
sum over the closed walks of the graph with the weights squared, and they differ in how much a
walk of length k counts.

=====================  ============================  =============================
function               h                             a closed walk of length k
=====================  ============================  =============================
`exponential`          tr exp(V) - d                 1 / k!
`polynomial`           tr (I + V / d)^d - d          binomial(d, k) / d^k
`log_determinant`      d log s - log det(s I - V)    1 / (k s^k)
=====================  ============================  =============================

with ``V = W ∘ W``. The first two lose long cycles to rounding: one of 20 edges of weight 0.9 counts
1e-20. The log-determinant does not, but is finite only where the spectral radius of V is below s.
"""

from __future__ import annotations

import numpy as np

from isthmus.types import Floats


def exponential(weights: Floats) -> tuple[float, Floats]:
    """Return ``tr exp(W ∘ W) - d`` and its gradient (Zheng et al. 2018, arXiv 1803.01422)."""
    from scipy.linalg import expm

    power: Floats = expm(weights * weights)
    gradient: Floats = power.T * (2.0 * weights)
    return float(np.trace(power)) - len(weights), gradient


def polynomial(weights: Floats) -> tuple[float, Floats]:
    """Return ``tr (I + W ∘ W / d)^d - d`` and its gradient (Yu et al. 2019, arXiv 1904.10098)."""
    d = len(weights)
    if d == 0:
        return 0.0, np.zeros_like(weights)
    base = np.eye(d) + weights * weights / d
    power: Floats = np.linalg.matrix_power(base, d - 1)
    gradient: Floats = power.T * (2.0 * weights)
    return float(np.vdot(power.T, base)) - d, gradient


def log_determinant(weights: Floats, s: float = 1.0) -> tuple[float, Floats]:
    """Return ``d log s - log det(s I - W ∘ W)`` and its gradient.

    After Bello et al. 2022, arXiv 2209.08037. Outside the domain, where the spectral radius of
    ``W ∘ W`` is not below ``s``, the value is infinite and the gradient is not a number.
    """
    d = len(weights)
    matrix = s * np.eye(d) - weights * weights
    try:
        inverse = np.linalg.inv(matrix).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return np.inf, np.full_like(weights, np.nan)
    # A matrix with no positive entry off the diagonal has its spectrum in the right half plane
    # exactly when its inverse has no negative entry; rounding is relative to the largest one.
    if d and inverse.min() < -1e-12 * np.abs(inverse).max():
        return np.inf, np.full_like(weights, np.nan)
    sign, log_det = np.linalg.slogdet(matrix)
    if sign <= 0:
        return np.inf, np.full_like(weights, np.nan)
    gradient: Floats = inverse.T * (2.0 * weights)
    return d * float(np.log(s)) - float(log_det), gradient
