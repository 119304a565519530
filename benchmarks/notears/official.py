"""The published NOTEARS rules for linear models, reimplemented from their description.

L-BFGS-B on doubled non-negative variables with the diagonal held at zero; the augmented Lagrangian
starts at rho = 1, alpha = 0; rho is multiplied by ten until h falls to a quarter, each try from the
last outer iterate; the end is h <= 1e-8, rho >= 1e16 or a hundred dual steps; then weights below
0.3 go. The loss is on rows, as in the published program, or on their covariance: the same function,
and the only one whose time does not depend on the number of rows.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm
from scipy.optimize import minimize

from isthmus.searches.continuous.acyclicity import exponential


class Rows:
    def __init__(self, x: np.ndarray) -> None:
        self.x = x - x.mean(axis=0)

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        residual = self.x - self.x @ w
        n = len(self.x)
        return 0.5 / n * float((residual**2).sum()), -(self.x.T @ residual) / n


class Covariance:
    def __init__(self, x: np.ndarray) -> None:
        x = x - x.mean(axis=0)
        self.s = x.T @ x / len(x)

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        residual = np.eye(len(self.s)) - w
        product = self.s @ residual
        return 0.5 * float(np.vdot(residual, product)), -product


def notears(loss: Rows | Covariance, d: int, penalty: float = 0.1, threshold: float = 0.3):
    """Give the weights after the threshold, and before it."""
    bounds = [(0.0, 0.0 if i == j else None) for _ in (1, -1) for i in range(d) for j in range(d)]
    w, rho, alpha, h = np.zeros(2 * d * d), 1.0, 0.0, np.inf

    def whole(doubled: np.ndarray) -> np.ndarray:
        return (doubled[: d * d] - doubled[d * d :]).reshape(d, d)

    def lagrangian(doubled: np.ndarray) -> tuple[float, np.ndarray]:
        weights = whole(doubled)
        value, gradient = loss(weights)
        cyclic, slope = exponential(weights)
        value += 0.5 * rho * cyclic**2 + alpha * cyclic + penalty * doubled.sum()
        smooth = (gradient + (rho * cyclic + alpha) * slope).ravel()
        return value, np.concatenate([smooth + penalty, penalty - smooth])

    for _ in range(100):
        tried, left = w, h
        while rho < 1e16:
            tried = minimize(lagrangian, w, jac=True, method="L-BFGS-B", bounds=bounds).x
            left = float(np.trace(expm(whole(tried) ** 2))) - d
            if left <= 0.25 * h:
                break
            rho *= 10.0
        w, h = tried, left
        alpha += rho * h
        if h <= 1e-8 or rho >= 1e16:
            break
    raw = whole(w)
    return np.where(np.abs(raw) < threshold, 0.0, raw), raw
